package experiments_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestReportOfAnotherSpec: of two specs of one name, a report by one never has the results of the other, in a folder
// and on a cluster; what the error advises prints them.
func TestReportOfAnotherSpec(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 40, 2)
	a := cmdtest.Write(t, dir, "a.yaml", "name: study\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 3}}]\n")
	b := cmdtest.Write(t, dir, "b.yaml", "name: study\ndatasets: [second.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 5}}]\n")
	server := cmdtest.Start(t, 1, 1).Servers()
	for _, c := range []struct {
		where  []string
		advice []string
	}{
		{[]string{"--local"}, []string{"experiment", "report", filepath.Join(dir, "study.experiment")}},
		{[]string{"--server", server}, []string{"experiment", "report", "study", "--server", server}},
	} {
		with := func(args ...string) cmdtest.Ended { return cmdtest.Run(t, append(args, c.where...)...) }
		if e := with("experiment", "run", a); e.Code != cli.ExitOK || strings.Contains(e.Stderr, "another spec") {
			t.Errorf("run: exit code %d\n%s", e.Code, e.Stderr)
		}
		e := with("experiment", "run", b, "--yes")
		if e.Code != cli.ExitOK || !strings.Contains(e.Stderr, "had results of another spec with the same name, a.yaml") ||
			!strings.Contains(e.Stdout, "b.yaml, SHA-256") {
			t.Errorf("run of the other: exit code %d\n%s", e.Code, e.Stderr)
		}
		for _, command := range []string{"report", "show"} {
			e := with("experiment", command, a)
			if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr,
				"has the results of another spec, b.yaml, with the same name") ||
				!strings.Contains(e.Stderr, "coppice "+strings.Join(c.advice, " ")) || e.Stdout != "" {
				t.Errorf("%s of a.yaml: exit code %d\n%s%s", command, e.Code, e.Stdout, e.Stderr)
			}
			if e := with("experiment", command, b); e.Code != cli.ExitOK ||
				strings.Contains(e.Stderr+e.Stdout, "has changed since") {
				t.Errorf("%s of b.yaml: exit code %d\n%s", command, e.Code, e.Stderr)
			}
		}
		if text := cmdtest.Works(t, c.advice...); !strings.Contains(text, "second") ||
			!strings.Contains(text, "b.yaml, SHA-256") {
			t.Errorf("the advice gives\n%s", text)
		}
		if e := with("experiment", "run", a, "--yes"); e.Code != cli.ExitOK ||
			!strings.Contains(e.Stderr, "another spec with the same name, b.yaml") {
			t.Errorf("run again: exit code %d\n%s", e.Code, e.Stderr)
		}
		if e := with("experiment", "report", a); e.Code != cli.ExitOK || !strings.Contains(e.Stdout, "first") {
			t.Errorf("report after the run: exit code %d\n%s", e.Code, e.Stderr)
		}
	}
}

// TestReportOfAnEditedSpec: the report says that the spec was edited since, and what; so does JSON. A comment changes
// nothing.
func TestReportOfAnEditedSpec(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	const text = "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, name: near, settings: {k: 3}}]\n"
	spec := cmdtest.Write(t, dir, "e.yaml", text)
	server := cmdtest.Start(t, 1, 1).Servers()
	for _, where := range [][]string{{"--local"}, {"--server", server}} {
		with := func(args ...string) cmdtest.Ended { return cmdtest.Run(t, append(args, where...)...) }
		cmdtest.Write(t, dir, "e.yaml", text)
		if e := with("experiment", "run", spec, "--yes"); e.Code != cli.ExitOK {
			t.Fatalf("exit code %d\n%s", e.Code, e.Stderr)
		}
		cmdtest.Write(t, dir, "e.yaml", "# nearest neighbours\n"+text)
		if e := with("experiment", "report", spec); e.Code != cli.ExitOK ||
			strings.Contains(e.Stdout+e.Stderr, "has changed since") {
			t.Errorf("a comment: exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
		}
		cmdtest.Write(t, dir, "e.yaml", strings.Replace(text, "k: 3", "k: 20", 1))
		const says = "The spec e.yaml has changed since these results were computed. Changed: methods with other settings: " +
			"near. To get results of the new spec, run the experiment again."
		e := with("experiment", "report", spec)
		if e.Code != cli.ExitOK || !strings.Contains(e.Stderr, says) ||
			!strings.Contains(strings.Join(strings.Fields(e.Stdout), " "), says) {
			t.Errorf("exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
		}
		for _, args := range [][]string{{"experiment", "report", spec, "--format", "json"}, {"experiment", "show", spec},
			{"experiment", "show", spec, "-o", "json"}} {
			if e := with(args...); e.Code != cli.ExitOK || !strings.Contains(e.Stdout, says) {
				t.Errorf("%v: exit code %d\n%s%s", args, e.Code, e.Stdout, e.Stderr)
			}
		}
		// the advice
		if e := with("experiment", "run", spec, "--yes"); e.Code != cli.ExitOK || strings.Contains(e.Stderr, "another spec") {
			t.Errorf("exit code %d\n%s", e.Code, e.Stderr)
		}
		if e := with("experiment", "report", spec); e.Code != cli.ExitOK ||
			strings.Contains(e.Stdout+e.Stderr, "has changed since") {
			t.Errorf("after the run: exit code %d\n%s", e.Code, e.Stderr)
		}
	}
}

// TestDamagedRecord: a flipped bit in a record costs its run alone: report goes on without it, and run runs it again.
func TestDamagedRecord(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 5\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 3}}]\n")
	want := reported(t, "experiment", "run", spec, "--local", "--no-times", "--threads", "1")
	log := filepath.Join(dir, "e.experiment", "cells.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.IndexByte(b, '\n')+40] ^= 1 // in the second line
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e := cmdtest.Run(t, "experiment", "report", spec, "--local")
	if e.Code != cli.ExitOK || !strings.Contains(e.Stderr,
		"line 2 of cells.log is damaged and was left out; coppice experiment run repeats the runs of these lines") ||
		!strings.Contains(e.Stdout, "4 of 5 runs done") {
		t.Errorf("report: exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
	e = cmdtest.Run(t, "experiment", "run", spec, "--local", "--no-times")
	if e.Code != cli.ExitOK || !strings.Contains(e.Stderr, "1 run to do, 4 runs ended before") || e.Stdout != want {
		t.Errorf("run: exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
	plan := filepath.Join(dir, "e.experiment", "plan.json")
	if err := os.WriteFile(plan, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := cmdtest.Run(t, "experiment", "report", spec, "--local"); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "coppice experiment run writes plan.json again and keeps the runs that have ended") {
		t.Errorf("a damaged plan: exit code %d\n%s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "experiment", "run", spec, "--local", "--no-times"); e.Code != cli.ExitOK ||
		!strings.Contains(e.Stderr, "0 runs to do, 5 runs ended before") || e.Stdout != want {
		t.Errorf("after the advice: exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
}

// TestRepeatsAreNoEvidence: repeats of the folds of a file give the p-values of one repeat, and run and report say so;
// a method under several names counts once.
func TestRepeatsAreNoEvidence(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	folds := "row,fold\n"
	for row := range 40 {
		folds += fmt.Sprintf("%d,%d\n", row, row%5)
	}
	cmdtest.Write(t, dir, "folds.csv", folds)
	rows := "methods: [{algorithm: aa-knn, grid: {k: [3, 30]}}]\nmeasures: [kl]\n"
	once := cmdtest.Write(t, dir, "once.yaml", "name: once\ndatasets: [first.csv]\nfolds: {file: folds.csv}\n"+rows)
	often := cmdtest.Write(t, dir, "often.yaml", "name: often\ndatasets: [first.csv]\nfolds: {file: folds.csv, repeats: "+
		"10}\n"+strings.Replace(rows, "[3, 30]", "[3, 03, 30]", 1))
	tests := func(text string) string {
		_, after, _ := strings.Cut(text, "effect size\n")
		_, line, _ := strings.Cut(after, "\n")
		line, _, _ = strings.Cut(line, "\n")
		return line
	}
	one := cmdtest.Run(t, "experiment", "run", once, "--local")
	many := cmdtest.Run(t, "experiment", "run", often, "--local")
	if one.Code != cli.ExitOK || many.Code != cli.ExitOK || tests(one.Stdout) == "" ||
		tests(one.Stdout) != tests(many.Stdout) {
		t.Errorf("exit codes %d and %d; tests\n%s\n%s\n%s", one.Code, many.Code, tests(one.Stdout), tests(many.Stdout),
			many.Stdout)
	}
	for _, says := range []string{
		"Dataset first: repeats have the same folds. Results of equal folds are averaged first, so the repeats add no " +
			"evidence to the tests.",
		`Methods "aa-knn k=3" = "aa-knn k=03": they have the same hyperparameters on every dataset.`,
	} {
		if !strings.Contains(many.Stderr, says) {
			t.Errorf("run does not say %q:\n%s", says, many.Stderr)
		}
	}
}

// TestDatasetOfTwoTypesOfLabels: a dataset that a spec lists again with a range or with other folds counts again in
// ranks, and a note says so; accuracy is said to be no measure of these labels.
func TestDatasetOfTwoTypesOfLabels(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for i := range 3 {
		cmdtest.ArtificialFile(t, dir, fmt.Sprintf("d%d.csv", i), 40, uint64(i+1))
	}
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\nmeasures: [kl, mae_expected, accuracy]\nfolds: 2\nmethods: "+
		"[{algorithm: aa-knn, settings: {k: 3}}, {algorithm: structrf, settings: {trees: 2, min_samples: 2}}]\n"+
		"datasets: [d0.csv, {file: d0.csv, name: d0r, range: 1:3}, d1.csv, d2.csv, {file: d2.csv, name: d2f, folds: {k: 2, "+
		"seed: 9}}]\n")
	e := cmdtest.Run(t, "experiment", "run", spec, "--local", "--format", "json")
	if e.Code != cli.ExitOK || !strings.Contains(e.Stderr,
		"Datasets d0 and d0r have the same samples, but other folds or labels of another kind. Ranks count both datasets.") {
		t.Fatalf("exit code %d, %s", e.Code, e.Stderr)
	}
	var r struct {
		Notes    []string
		Rankings []struct {
			Datasets    []string
			LeftOut     []string `json:"left_out"`
			NotMeasured []string `json:"not_measured"`
		}
	}
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		t.Fatal(err)
	}
	for m, want := range []struct{ ranked, not []string }{
		{[]string{"d0", "d0r", "d1", "d2", "d2f"}, nil}, {[]string{"d0r"}, []string{"d0", "d1", "d2", "d2f"}},
		{nil, []string{"d0", "d0r", "d1", "d2", "d2f"}},
	} {
		if got := r.Rankings[m]; !slices.Equal(got.Datasets, want.ranked) || !slices.Equal(got.NotMeasured, want.not) ||
			len(got.LeftOut) > 0 {
			t.Errorf("measure %d: %+v, want %+v", m, got, want)
		}
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "Datasets d0 and d0r have the same samples,") ||
		!strings.Contains(notes, "Datasets d2 and d2f have the same samples,") {
		t.Errorf("notes: %s", notes)
	}
}

// TestReportNamesTheData: a report of a run with --data names the folder, on a cluster as here, and compares the files
// of that folder.
func TestReportNamesTheData(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 40, 1)
	alt := filepath.Join(dir, "alt")
	if err := os.Mkdir(alt, 0o700); err != nil {
		t.Fatal(err)
	}
	cmdtest.ArtificialFile(t, alt, "first.csv", 40, 2)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 3}}]\n")
	says := "The files are in the folder " + alt + " (--data)."
	for _, where := range [][]string{{"--local"}, {"--server", cmdtest.Start(t, 1, 1).Servers()}} {
		with := func(args ...string) string {
			return strings.Join(strings.Fields(cmdtest.Works(t, append(append([]string{"experiment"}, args...), where...)...)),
				" ")
		}
		for _, text := range []string{with("run", spec, "--data", alt, "--format", "md"),
			with("report", spec, "--format", "html")} {
			if !strings.Contains(text, says) {
				t.Errorf("%v: the report lacks %q: %s", where, says, text)
			}
		}
		var r struct{ Spec struct{ Data string } }
		if err := json.Unmarshal([]byte(with("report", spec, "--format", "json")), &r); err != nil || r.Spec.Data != alt {
			t.Errorf("%v: %+v, %v", where, r, err)
		}
		if text := with("show", spec); !strings.Contains(text, alt) {
			t.Errorf("%v: show lacks the folder: %s", where, text)
		}
		if text := with("run", spec, "--format", "md"); strings.Contains(text, "(--data)") {
			t.Errorf("%v: without --data: %s", where, text)
		}
	}
}
