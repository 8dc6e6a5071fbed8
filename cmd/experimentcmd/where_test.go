package experimentcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestWhereExperimentsAre: flags of the command line come first, then the folder beside a spec, then the cluster.
func TestWhereExperimentsAre(t *testing.T) {
	for _, c := range []struct {
		is                 argument
		begun, here, there bool
		cluster            bool
	}{
		{is: isName, cluster: true},
		{is: isName, begun: true, cluster: true},
		{is: isName, here: true},
		{is: isFolder},
		{is: isFolder, begun: true, there: true, cluster: true},
		{is: isSpec, cluster: true},
		{is: isSpec, begun: true},
		{is: isSpec, begun: true, there: true, cluster: true},
		{is: isSpec, here: true},
	} {
		if got := (&whereabouts{is: c.is}).onCluster(c.begun, c.here, c.there); got != c.cluster {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestReportWhere: a variable that names a cluster takes no run with --local away, an error names both
// places, and flags that contradict each other are refused.
func TestReportWhere(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	text := "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: structrf, settings: {trees: 2, " +
		"min_samples: 2}}]\n"
	spec := cmdtest.Write(t, dir, "e.yaml", text)
	cmdtest.Works(t, "experiment", "run", spec, "--local")
	folder := filepath.Join(dir, "e.experiment")
	t.Setenv("COPPICE_SERVER", "127.0.0.1:1")
	t.Setenv("COPPICE_WAIT", "0s")
	want := cmdtest.Works(t, "experiment", "report", folder)
	for _, args := range [][]string{{spec}, {spec, "--local"}, {spec, "--dir", folder}, {"e", "--dir", folder}} {
		if got := cmdtest.Works(t, append([]string{"experiment", "report"}, args...)...); got != want {
			t.Errorf("%q:\n%s\nwant:\n%s", args, got, want)
		}
	}
	if e := cmdtest.Run(t, "experiment", "show", spec); !strings.Contains(e.Stderr, "read from "+folder) {
		t.Errorf("%s does not say what was read", e.Stderr)
	}
	if text := cmdtest.Works(t, "experiment", "show", spec, "--dir", folder); !strings.Contains(text,
		"coppice experiment report "+spec+" --dir "+folder+"\n") {
		t.Errorf("what is shown does not say where its report is:\n%s", text)
	}
	if e := cmdtest.Run(t, "experiment", "show", "none", "--local", "-o", "json"); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, `"kind":"not_found"`) {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	other := cmdtest.Write(t, dir, "f.yaml", strings.Replace(text, "name: e", "name: f", 1))
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"report " + other, cli.ExitFailed, []string{"f.experiment: there is no run with --local", "on the cluster: "}},
		{"report " + other + " --local", cli.ExitFailed, []string{"f.experiment: no experiment was started in this folder"}},
		{"report " + spec + " --server " + os.Getenv("COPPICE_SERVER"), cli.ExitFailed,
			[]string{os.Getenv("COPPICE_SERVER")}},
		{"report " + spec + " --local --server h", cli.ExitUsage, []string{"--server", "--local"}},
		{"report " + spec + " --dir d --wait 3s", cli.ExitUsage, []string{"--wait", "--dir"}},
		{"report " + folder + " --dir d", cli.ExitUsage, []string{"--dir d"}},
		{"report " + folder + " --server h", cli.ExitUsage, []string{"--server", "is a folder of this machine"}},
		{"watch " + spec + " --server h", cli.ExitUsage, []string{"e.yaml is a file", "give the name"}},
		{"cancel " + spec + " --server h", cli.ExitUsage, []string{"e.yaml is a file", "give the name"}},
		{"delete " + spec + " --server h", cli.ExitUsage, []string{"e.yaml is a file", "give the name"}},
		{"run " + spec + " --local --server h", cli.ExitUsage, []string{"--server", "--local"}},
	} {
		e := cmdtest.Run(t, append([]string{"experiment"}, strings.Fields(c.args)...)...)
		if e.Code != c.code || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", c.args, e.Code, e.Stderr)
		}
		for _, word := range c.says {
			if !strings.Contains(e.Stderr, word) {
				t.Errorf("%s: %q does not say %q", c.args, e.Stderr, word)
			}
		}
	}
}

// TestReportWithoutPlan: a folder with runs and no plan is not called empty, and the command that the error names mends
// it.
func TestReportWithoutPlan(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 3}}]\n")
	want := cmdtest.Works(t, "experiment", "run", spec, "--local")
	folder := filepath.Join(dir, "e.experiment")
	plan := filepath.Join(folder, "plan.json")
	for _, c := range []struct{ args, advice []string }{
		{[]string{spec}, []string{"experiment", "run", spec, "--local"}},
		{[]string{spec, "--local"}, []string{"experiment", "run", spec, "--local"}},
		{[]string{spec, "--dir", folder}, []string{"experiment", "run", spec, "--local", "--dir", folder}},
		{[]string{folder}, []string{"experiment", "run", "SPEC", "--local", "--dir", folder}},
	} {
		if err := os.Remove(plan); err != nil {
			t.Fatal(err)
		}
		e := cmdtest.Run(t, append([]string{"experiment", "report"}, c.args...)...)
		if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr,
			"plan.json is missing, though cells.log has runs; coppice "+strings.Join(c.advice, " ")) {
			t.Errorf("%q: exit code %d, %s", c.args, e.Code, e.Stderr)
		}
		for i := range c.advice {
			c.advice[i] = strings.Replace(c.advice[i], "SPEC", spec, 1)
		}
		if e := cmdtest.Run(t, c.advice...); e.Code != cli.ExitOK ||
			!strings.Contains(e.Stderr, "0 runs to do, 2 runs ended before") {
			t.Errorf("%q: exit code %d, %s", c.advice, e.Code, e.Stderr)
		}
		if got := cmdtest.Works(t, append([]string{"experiment", "report"}, c.args...)...); got != want {
			t.Errorf("%q: %s\nwant %s", c.args, got, want)
		}
	}
}

// TestRunWithoutCluster: if the user names no cluster, the error says how to run without one. With --server it does
// not.
func TestRunWithoutCluster(t *testing.T) {
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [aa-knn]\n")
	if cmdtest.Listens("127.0.0.1:7100") {
		t.Skip("a cluster listens at the default address")
	}
	t.Setenv("COPPICE_SERVER", "")
	os.Unsetenv("COPPICE_SERVER")
	t.Setenv("XDG_CONFIG_HOME", dir)
	run := []string{"experiment", "run", spec, "--wait", "0s"}
	const advice = "; --local runs the experiment in this process"
	if e := cmdtest.Run(t, run...); e.Code != cli.ExitFailed || !strings.HasSuffix(e.Stderr, advice+"\n") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, append(run, "--server", testkit.FreeAddress(t))...); e.Code != cli.ExitFailed ||
		strings.Contains(e.Stderr, advice) {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestExitCodeOfFailedRuns: the report is written, and the exit code is 1.
func TestExitCodeOfFailedRuns(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [aa-knn, {algorithm: "+
		"aa-knn, name: far, settings: {k: 39}}]\n")
	out := filepath.Join(dir, "report.md")
	run := []string{"experiment", "run", spec, "--local", "--out", out, "--format", "md"}
	e := cmdtest.Run(t, run...)
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "2 runs of experiment e failed; the report says why; to "+
		"repeat them: --retry-failed") || !strings.Contains(cmdtest.Read(t, out), "39 neighbours") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	if e = cmdtest.Run(t, append(run, "-o", "json")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, `"kind":"runs_failed"`) {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, "experiment", "report", spec) // it only reads
}
