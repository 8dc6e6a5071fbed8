package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
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
	artificialFile(t, dir, "first.csv", 60, 1)
	text := "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: structrf, settings: {trees: 2, min_samples: 2}}]\n"
	spec := write(t, dir, "e.yaml", text)
	works(t, "experiment", "run", spec, "--local")
	folder := filepath.Join(dir, "e.experiment")
	t.Setenv("COPPICE_SERVER", "127.0.0.1:1")
	t.Setenv("COPPICE_WAIT", "0s")
	want := works(t, "experiment", "report", folder)
	for _, args := range [][]string{{spec}, {spec, "--local"}, {spec, "--dir", folder}, {"e", "--dir", folder}} {
		if got := works(t, append([]string{"experiment", "report"}, args...)...); got != want {
			t.Errorf("%q:\n%s\nwant:\n%s", args, got, want)
		}
	}
	if e := coppice(t, "experiment", "show", spec); !strings.Contains(e.stderr, "read from "+folder) {
		t.Errorf("%s does not say what was read", e.stderr)
	}
	if text := works(t, "experiment", "show", spec, "--dir", folder); !strings.Contains(text, "coppice experiment report "+spec+" --dir "+folder+"\n") {
		t.Errorf("what is shown does not say where its report is:\n%s", text)
	}
	if e := coppice(t, "experiment", "show", "none", "--local", "-o", "json"); e.code != exitFailed || !strings.Contains(e.stderr, `"kind":"not_found"`) {
		t.Errorf("exit code %d, %s", e.code, e.stderr)
	}
	other := write(t, dir, "f.yaml", strings.Replace(text, "name: e", "name: f", 1))
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"report " + other, exitFailed, []string{"f.experiment: there is no run with --local", "on the cluster: "}},
		{"report " + other + " --local", exitFailed, []string{"f.experiment: no experiment was started in this folder"}},
		{"report " + spec + " --server " + os.Getenv("COPPICE_SERVER"), exitFailed, []string{os.Getenv("COPPICE_SERVER")}},
		{"report " + spec + " --local --server h", exitUsage, []string{"--server", "--local"}},
		{"report " + spec + " --dir d --wait 3s", exitUsage, []string{"--wait", "--dir"}},
		{"report " + folder + " --dir d", exitUsage, []string{"--dir d"}},
		{"report " + folder + " --server h", exitUsage, []string{"--server", "is a folder of this machine"}},
		{"watch " + spec + " --server h", exitUsage, []string{"e.yaml is a file", "give the name"}},
		{"cancel " + spec + " --server h", exitUsage, []string{"e.yaml is a file", "give the name"}},
		{"delete " + spec + " --server h", exitUsage, []string{"e.yaml is a file", "give the name"}},
		{"run " + spec + " --local --server h", exitUsage, []string{"--server", "--local"}},
	} {
		e := coppice(t, append([]string{"experiment"}, strings.Fields(c.args)...)...)
		if e.code != c.code || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", c.args, e.code, e.stderr)
		}
		for _, word := range c.says {
			if !strings.Contains(e.stderr, word) {
				t.Errorf("%s: %q does not say %q", c.args, e.stderr, word)
			}
		}
	}
}

// TestReportWithoutPlan: a folder with cells and no plan is not called empty, and the command that the error names mends it.
func TestReportWithoutPlan(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	artificialFile(t, dir, "first.csv", 40, 1)
	spec := write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, settings: {k: 3}}]\n")
	want := works(t, "experiment", "run", spec, "--local")
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
		e := coppice(t, append([]string{"experiment", "report"}, c.args...)...)
		if e.code != exitFailed || !strings.Contains(e.stderr, "plan.json is missing, though cells.log has runs; coppice "+strings.Join(c.advice, " ")) {
			t.Errorf("%q: exit code %d, %s", c.args, e.code, e.stderr)
		}
		for i := range c.advice {
			c.advice[i] = strings.Replace(c.advice[i], "SPEC", spec, 1)
		}
		if e := coppice(t, c.advice...); e.code != exitOK || !strings.Contains(e.stderr, "0 runs to do, 2 runs ended before") {
			t.Errorf("%q: exit code %d, %s", c.advice, e.code, e.stderr)
		}
		if got := works(t, append([]string{"experiment", "report"}, c.args...)...); got != want {
			t.Errorf("%q: %s\nwant %s", c.args, got, want)
		}
	}
}
