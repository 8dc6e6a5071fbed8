package experiments_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment"
	reporting "github.com/coppice-ldl/coppice/experiment/report"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestNamesTaken: a file is on the cluster beside other data of its name, without groups and with
// them, and each is found again.
func TestNamesTaken(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	server := cmdtest.Start(t, 1, 1).Servers()
	cmdtest.ArtificialFile(t, dir, "other.csv", 60, 1)
	cmdtest.Works(t, "dataset", "import", "--data", filepath.Join(dir, "other.csv"), "--name", "people",
		"--server", server)
	text := "a,who,l1,l2\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,p%d,%g,%g\n", i*i%17, i%4, 0.25+0.25*float64(i%3), 0.75-0.25*float64(i%3))
	}
	cmdtest.Write(t, dir, "people.csv", text)
	for _, c := range []struct {
		name, keys, says string
	}{
		{"bare", "drop: who", "4 runs of experiment "},
		{"grouped", "groups: who, folds: groups", "4 runs of experiment "},
		{"grouped", "groups: who, folds: groups", "0 runs of experiment "},
		{"bare", "drop: who", "0 runs of experiment "},
	} {
		spec := cmdtest.Write(t, dir, "e.yaml", "name: "+c.name+
			"\nmethods: [aa-knn]\nfolds: 4\ndatasets:\n  - {file: people.csv, label_columns: \"l1,l2\", "+c.keys+"}\n")
		if e := cmdtest.Run(t, "experiment", "run", spec, "--server", server); e.Code != cli.ExitOK ||
			!strings.Contains(e.Stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", c.keys, e.Code, e.Stderr)
		}
	}
	var sets []protocol.Dataset
	cmdtest.JSON(t, &sets, "dataset", "list", "--server", server)
	if len(sets) != 3 {
		t.Errorf("%d datasets", len(sets))
	}
}

// TestChangedRuns: runs that are run again since their row has other settings now, or another
// version has other numerics, are named, here and on a cluster.
func TestChangedRuns(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	spec := func(k int) string {
		return cmdtest.Write(t, dir, "e.yaml", fmt.Sprintf("name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [aa-knn, "+
			"{algorithm: aa-knn, name: mine, settings: {k: %d}}]\n", k))
	}
	says := "2 runs are repeated, because their data, settings, folds or seed have changed: first, mine, fold 0; first, " +
		"mine, fold 1\n"
	for _, where := range [][]string{{"--local"}, {"--server", cmdtest.Start(t, 1, 1).Servers()}} {
		first := cmdtest.Run(t, append([]string{"experiment", "run", spec(3)}, where...)...)
		second := cmdtest.Run(t, append([]string{"experiment", "run", spec(4), "--yes"}, where...)...)
		third := cmdtest.Run(t, append([]string{"experiment", "run", spec(4)}, where...)...)
		if strings.Contains(first.Stderr+third.Stderr, "repeated") || !strings.Contains(second.Stderr, says) ||
			third.Code != cli.ExitOK {
			t.Errorf("%v: %s\n%s\n%s", where, first.Stderr, second.Stderr, third.Stderr)
		}
	}
	folder := filepath.Join(dir, "e.experiment")
	content, err := experiment.ReadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	l, records := content.Layout, content.Records
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	f, err := experiment.OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	l.Numerics = 99
	for i, key := range l.Keys { // as if they had been computed by them
		l.Keys[i] = strings.Repeat(fmt.Sprint(i), 64)
		if err := f.Put(&experiment.Record{Key: l.Keys[i], Outcome: records[key].Outcome}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.PutLayout(l), f.Close()); err != nil {
		t.Fatal(err)
	}
	e := cmdtest.Run(t, "experiment", "run", spec(4), "--local")
	if says := fmt.Sprintf("4 runs are repeated, because they were computed by arithmetic version 99, and this program "+
		"has arithmetic version %d: first, aa-knn, fold 0; ", round.Numerics); !strings.Contains(e.Stderr, says) {
		t.Errorf("want %q: %s", says, e.Stderr)
	}
}

// TestRecordedRuns: what is recorded of runs is the same here and on a cluster; runs that ended
// without it are counted, and run again where that is asked for.
func TestRecordedRuns(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	server := cmdtest.Start(t, 1, 1).Servers()
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\nmethods: [aa-knn, {algorithm: "+
		"structrf, settings: {trees: 3}}]\n")
	on := func(where string, args ...string) []string {
		args = append([]string{"experiment", "run", spec, "--no-times"}, args...)
		if where == "" {
			return append(args, "--local")
		}
		return append(args, "--server", where)
	}
	var recorded []string
	for _, where := range []string{"", server} {
		bare := tableOf(t, on(where)...)
		e := cmdtest.Run(t, on(where, "--record", "curve,predictions")...)
		if !strings.Contains(e.Stderr, "4 runs ended without the data that are recorded now; --record-again repeats them") {
			t.Errorf("%s: %s", where, e.Stderr)
		}
		table := tableOf(t, on(where, "--record", "curve,predictions", "--record-again")...)
		for i, c := range table.Runs {
			if c.Digest != bare.Runs[i].Digest || len(c.Predictions) != 6 || bare.Runs[i].Predictions != nil {
				t.Errorf("%s: %+v", where, c)
			}
			if (c.Curve != nil) != (c.Method == 1) { // of neighbours there are no steps
				t.Errorf("%s: row %d has the curve %+v", where, c.Method, c.Curve)
			}
		}
		recorded = append(recorded, asJSON(t, table))
		if e := cmdtest.Run(t, on(where, "--record", "curve,predictions", "--record-again")...); strings.Contains(e.Stderr,
			"without what") || !strings.Contains(e.Stderr, "0 runs") {
			t.Errorf("%s: %s", where, e.Stderr)
		}
	}
	if diff := cmp.Diff(recorded[0], recorded[1]); diff != "" {
		t.Error(diff)
	}
	var list []protocol.Experiment
	if cmdtest.JSON(t, &list, "experiment", "list", "--server", server); len(list) != 1 || list[0].Runs != 4 ||
		list[0].Done != 4 {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct{ flag, says string }{{"--record=odd", `--record: cannot record "odd"`},
		{"--record-again", "--record-again: nothing is to be recorded"}} {
		if e := cmdtest.Run(t, on("", c.flag)...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", c.flag, e.Code, e.Stderr)
		}
	}
}

// TestRunsOfTwoJobs: a cluster computes 400 runs in one job, and as many others of more folds and rows in another, with
// the table of --local.
func TestRunsOfTwoJobs(t *testing.T) {
	testkit.WithoutRace(t)
	const n = 400
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "tiny.csv", 60, 1)
	server := cmdtest.Start(t, 1, 2).Servers()
	spec := func(repeats int, rows string) string {
		return cmdtest.Write(t, dir, "e.yaml", fmt.Sprintf("name: e\ndatasets: [tiny.csv]\nfolds: {k: 10, repeats: "+
			"%d}\nmeasures: [kl]\nmethods: [%s]\n", repeats, rows))
	}
	there := tableOf(t, "experiment", "run", spec(n/20, "aa-knn, {algorithm: aa-knn, settings: {k: 3}}"),
		"--server", server)
	if got := len(there.Runs); got != n {
		t.Fatalf("%d runs", got)
	}
	more := spec(n/20+n/40, "{algorithm: aa-knn, settings: {k: 7}}, aa-knn")
	there = tableOf(t, "experiment", "run", more, "--yes", "--server", server)
	if diff := cmp.Diff(asJSON(t, tableOf(t, "experiment", "run", more, "--local")), asJSON(t, there)); diff != "" {
		t.Error(diff)
	}
	var list []protocol.Experiment
	cmdtest.JSON(t, &list, "experiment", "list", "--server", server)
	if len(list) != 1 || list[0].Done != 2*n || list[0].Runs != 2*n || list[0].State != "done" {
		t.Errorf("%+v", list)
	}
}

// TestModelsOfRuns: a cluster keeps the models of runs where it is asked to: they are those that
// --local keeps, byte for byte.
func TestModelsOfRuns(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "tiny.csv", 60, 1)
	server := cmdtest.Start(t, 1, 1).Servers()
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [tiny.csv]\nfolds: 2\nmeasures: [kl]\nmethods: [aa-knn, "+
		"ranking, {algorithm: structrf, settings: {trees: 2}}]\n")
	here := tableOf(t, "experiment", "run", spec, "--local", "--keep-models")
	there := tableOf(t, "experiment", "run", spec, "--keep-models", "--server", server)
	if diff := cmp.Diff(asJSON(t, here), asJSON(t, there)); diff != "" {
		t.Error(diff)
	}
	files, err := filepath.Glob(filepath.Join(dir, "e.experiment", "models", "*.model"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%d models, error %v", len(files), err)
	}
	for i, c := range there.Runs {
		if c.State != tables.Done {
			continue
		}
		out, name := filepath.Join(dir, c.Digest), "e.tiny/"+c.Digest
		if i%2 == 0 {
			name = "e.tiny/" + c.Digest[:12]
		}
		cmdtest.Works(t, "model", "download", name, "--out", out, "--server", server)
		b, err := os.ReadFile(out)
		kept, missing := os.ReadFile(filepath.Join(dir, "e.experiment", "models", c.Digest+".model"))
		if err != nil || missing != nil || !bytes.Equal(b, kept) {
			t.Errorf("%s: %d bytes on the cluster, %d in the folder, errors %v and %v", there.NameOf(&c).String(), len(b),
				len(kept), err, missing)
		}
	}
	if text := cmdtest.Works(t, "model", "list", "--server", server); strings.Count(text, "e.tiny/") != 4 {
		t.Errorf("models:\n%s", text)
	}
}

// TestCancelledRuns: an experiment is paused and goes on; the runs that had ended when it was cancelled are in its
// report, and the next run has the others run alone.
func TestCancelledRuns(t *testing.T) {
	dir := t.TempDir()
	c := cmdtest.Start(t, 1, 2)
	server := []string{"--server", c.Servers()}
	on := func(args ...string) []string { return append(args, server...) }
	cmdtest.ArtificialFile(t, dir, "tiny.csv", 60, 1)
	spec := func(rows string) string {
		return cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [tiny.csv]\nfolds: 5\nmeasures: [kl]\nmethods: [aa-knn"+
			rows+"]\n")
	}
	end := make(chan cmdtest.Ended, 1)
	path := spec(", {algorithm: ldlf, settings: {steps: 100000000, patience: 100000000}}")
	go func() { end <- cmdtest.Run(t, on("experiment", "run", path)...) }()
	testkit.Until(t, "some runs to be recorded", func() bool {
		list, err := c.Client().Jobs().List(t.Context(), protocol.JobQuery{Experiment: "e"})
		return err == nil && recordedCells(list.Jobs) >= 2
	})
	for _, command := range []string{"pause", "pause", "resume", "resume"} {
		var x protocol.ExperimentChange
		cmdtest.JSON(t, &x, on("experiment", command, "e")...)
		testkit.Until(t, "the experiment to be listed as "+string(x.State), func() bool {
			now, err := c.Client().Experiments().Show(t.Context(), "e")
			return err == nil && (now.State == protocol.Paused) == (command == "pause") && now.Done >= 2
		})
	}
	if e := cmdtest.Run(t, on("experiment", "pause", "none")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, `the cluster has no experiment "none"`) {
		t.Errorf("exit code %d\n%s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, on("experiment", "cancel", "e")...)
	if e := <-end; e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "runs of experiment e missing") {
		t.Errorf("exit code %d\n%s", e.Code, e.Stderr)
	}
	ofReport := func() int { return experiment.Count(tableOf(t, on("experiment", "report", "e")...)).Done }
	done := ofReport()
	if done < 2 || done > 5 {
		t.Fatalf("%d runs stay", done)
	}
	for flag, want := range map[string]int{"--failed": 0, "--failed=false": 10 - done} {
		var again struct{ Runs int }
		if cmdtest.JSON(t, &again, on("experiment", "retry", "e", flag)...); again.Runs != want {
			t.Errorf("retry %s: %d runs, want %d", flag, again.Runs, want)
		}
	}
	cmdtest.Works(t, on("experiment", "cancel", "e")...)
	if done = ofReport(); done > 5 {
		t.Fatalf("%d runs stay", done)
	}
	e := cmdtest.Run(t, on("experiment", "run", spec(""), "-o", "json")...)
	if says := fmt.Sprintf("%d run", 5-done); e.Code != cli.ExitOK || !strings.Contains(e.Stderr, says) {
		t.Errorf("want %q: exit code %d\n%s", says, e.Code, e.Stderr)
	}
	if diff := cmp.Diff(asJSON(t, tableOf(t, "experiment", "run", path, "--local")),
		asJSON(t, tableOf(t, on("experiment", "report", "e")...))); diff != "" {
		t.Error(diff)
	}
}

// TestReportFromServer: the report that a coordinator makes has the same bytes as the report of the command line, in
// each format; wrong options are refused.
func TestReportFromServer(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	c := cmdtest.Start(t, 3, 2)
	spec := experimentSpec(t, dir, "")
	reported(t, "experiment", "run", spec, "--server", c.Servers())
	x := c.Client().Experiments()
	for _, format := range reporting.Formats() {
		want := cmdtest.Works(t, "experiment", "report", "e", "--server", c.Servers(), "--format", format, "--no-times",
			"--sample")
		got, err := x.Report(t.Context(), "e", url.Values{"format": {format}, "no_times": {"true"}, "sample": {"true"}})
		if err != nil || string(got) != want {
			t.Errorf("%s: error %v, %s", format, err, cmp.Diff(want, string(got)))
		}
	}
	for query, want := range map[string]string{"format=pdf": "want table, md", "level=2": "level",
		"no_times=maybe": "no_times", "colour=red": "unknown parameter"} {
		values, _ := url.ParseQuery(query)
		if _, err := x.Report(t.Context(), "e", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := x.Report(t.Context(), "none", nil); !client.IsNotFound(err) {
		t.Errorf("an experiment that is not there: %v", err)
	}
}
