package experiments_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// experimentSpec writes a spec of two datasets, and the datasets.
func experimentSpec(t *testing.T, dir, rows string) string {
	t.Helper()
	cmdtest.ArtificialFile(t, dir, "first.csv", 150, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 120, 2)
	return cmdtest.Write(t, dir, "e.yaml", `name: e
seed: 5
datasets:
  - first.csv
  - {file: second.csv, folds: {sklearn: 2, seed: 4, repeats: 2}}
folds: 3
measures: [kl, clark]
methods:
  - {algorithm: structrf, settings: {trees: 3}}
  - ranking
`+rows)
}

// tableOf reads the table that a command prints as JSON, without the seconds, attempts and commands.
func tableOf(t *testing.T, args ...string) *tables.Table {
	t.Helper()
	e := cmdtest.Run(t, append(args, "-o", "json")...)
	if !completed(e) {
		t.Fatalf("coppice %s: exit code %d\n%s", strings.Join(args, " "), e.Code, e.Stderr)
	}
	table := withoutTimes(decodedTable(t, e.Stdout))
	if failed := experiment.Count(table).Failed; args[1] != "report" && (failed > 0) != (e.Code != cli.ExitOK) {
		t.Errorf("coppice %s: %d runs failed, exit code %d", strings.Join(args, " "), failed, e.Code)
	}
	return table
}

// TestExperimentLocal: runs have the digests of folds that train alone, rows that do not go
// with the data fail with a reason, and what has ended is not run again.
func TestExperimentLocal(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	spec := experimentSpec(t, dir, "")
	table := tableOf(t, "experiment", "run", spec, "--local", "--threads", "2")
	var alone cmdtest.Trained
	cmdtest.JSON(t, &alone, "train", "--local", "--data", filepath.Join(dir, "first.csv"), "--algorithm", "structrf",
		"--set", "trees=3", "--folds", "3", "--seed", "5")
	if len(table.Runs) != 2*(3+4) {
		t.Fatalf("%d runs", len(table.Runs))
	}
	for _, c := range table.Runs {
		switch {
		case c.Method == 1:
			if c.State != tables.Failed || !strings.Contains(c.Error, "ranking predicts numbers") {
				t.Errorf("%+v", c)
			}
		case c.State != tables.Done:
			t.Errorf("%+v", c)
		case c.Dataset == 0:
			f := alone.Folds[c.Fold]
			if kl, _ := f.Measures.Get("kl"); c.Digest != f.ModelDigest || c.Values[0] != kl.Mean || c.Rows != 50 {
				t.Errorf("fold %d: %+v, alone %.12s", c.Fold, c, f.ModelDigest)
			}
		}
	}
	e := cmdtest.Run(t, "experiment", "run", spec, "--local")
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "0 runs to do, 7 runs ended before") ||
		!strings.Contains(e.Stderr, "7 runs of experiment e failed; the report says why") ||
		!strings.Contains(e.Stdout, "structrf trees=3") || !strings.Contains(e.Stdout, "mean baseline") {
		t.Errorf("again: exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
	experimentSpec(t, dir, "  - {algorithm: structrf, settings: {trees: 4}}\n")
	if e := cmdtest.Run(t, "experiment", "run", spec, "--local"); !completed(e) ||
		!strings.Contains(e.Stderr, "7 runs to do, 7 runs ended before") {
		t.Errorf("with another row: exit code %d\n%s", e.Code, e.Stderr)
	}
	if text := cmdtest.Works(t, "experiment", "show", filepath.Join(dir, "e.experiment")); !strings.Contains(text,
		"14 done, 7 failed") || !strings.Contains(text, "failed: first, ranking (3 runs): ranking predicts") {
		t.Errorf("shown:\n%s", text)
	}
}

// TestOtherMeasures: other measures, and clipped ones, of runs that have ended need no run to be
// run again, and are those of training alone.
func TestOtherMeasures(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 90, 1)
	run := func(text string) *tables.Table {
		return tableOf(t, "experiment", "run", cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: "+
			"3\nmethods: [{algorithm: structrf, settings: {trees: 2, min_samples: 2}}]\n"+text), "--local")
	}
	run("measures: [cosine]")
	log := filepath.Join(dir, "e.experiment", "cells.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, clip := range []string{"none", "pyldl"} {
		table := run("measures: [spearman, kl, clark]\nclip: " + clip)
		var alone cmdtest.Trained
		cmdtest.JSON(t, &alone, "train", "--local", "--data", filepath.Join(dir, "first.csv"), "--algorithm", "structrf",
			"--set", "trees=2", "--set", "min_samples=2",
			"--folds", "3", "--measures", "all", "--clip", clip)
		for i, c := range table.Runs {
			o := alone.Folds[i]
			kl, _ := o.Measures.Get("kl")
			clark, _ := o.MeanPredictor.Get("clark")
			if c.Digest != o.ModelDigest || c.Values[0] != o.Added.Model.Distribution[0].Mean || c.Values[1] != kl.Mean ||
				c.Mean[2] != clark.Mean {
				t.Errorf("clip %s, fold %d: %+v", clip, i, c)
			}
		}
	}
	if after, err := os.ReadFile(log); err != nil || string(after) != string(before) {
		t.Errorf("runs were run again, error %v", err)
	}
}

// TestFoldAsListed: a run on scikit-learn's folds has the digest that training with these
// folds in a file has.
func TestFoldAsListed(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	table := tableOf(t, "experiment", "run", experimentSpec(t, dir, ""), "--local", "--keep-models")
	models, err := filepath.Glob(filepath.Join(dir, "e.experiment", "models", "*.model"))
	if err != nil || len(models) != 7 {
		t.Fatalf("%d models, error %v", len(models), err)
	}
	c := table.Runs[6+3] // second.csv, repeat 1, fold 1
	if c.Dataset != 1 || c.Repeat != 1 || c.Fold != 1 {
		t.Fatalf("%+v", c)
	}
	list, err := folds.KFold(120, 2, 4+1)
	if err != nil {
		t.Fatal(err)
	}
	text := "row,fold\n"
	for row, fold := range list {
		text += fmt.Sprintf("%d,%d\n", row, fold)
	}
	var alone cmdtest.Trained
	cmdtest.JSON(t, &alone, "train", "--local", "--data", filepath.Join(dir, "second.csv"), "--algorithm", "structrf",
		"--set", "trees=3",
		"--split", cmdtest.Write(t, dir, "folds.csv", text), "--seed", fmt.Sprint(5+1))
	if alone.Folds[1].ModelDigest != c.Digest {
		t.Errorf("the run has the digest %s, alone %s", c.Digest, alone.Folds[1].ModelDigest)
	}
	found := false
	for _, path := range models {
		found = found || strings.Contains(cmdtest.Works(t, "model", "show", path), c.Digest)
	}
	if !found {
		t.Errorf("no model has the digest %s", c.Digest)
	}
}

// TestKilledExperiment: a run that is killed, and one that is interrupted, leave the runs that
// ended, the next one runs the others, and the table is that of an undisturbed run.
func TestKilledExperiment(t *testing.T) {
	dir, whole := t.TempDir(), t.TempDir()
	more := fmt.Sprintf("  - {algorithm: ldlf, settings: {steps: %d, patience: 1000}, grid: {depth: [3, 4], trees: "+
		"[1, 2]}}\n", 200/testkit.Slowdown)
	spec := experimentSpec(t, dir, more)
	want := tableOf(t, "experiment", "run", experimentSpec(t, whole, more), "--local")
	log := filepath.Join(dir, "e.experiment", "cells.log")
	lines := func() int {
		b, _ := os.ReadFile(log)
		return strings.Count(string(b), "\n")
	}
	for i, signal := range []os.Signal{os.Kill, os.Interrupt} {
		cmd, _, stderr := cmdtest.Process(t, dir, "experiment", "run", spec, "--local", "--threads", "1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "some runs to end", func() bool { return lines() >= 6*(i+1) })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if signal == os.Interrupt && (cmd.ProcessState.ExitCode() != cli.ExitSignal+2 ||
			!strings.Contains(stderr.String(), "the same command does the other runs")) {
			t.Errorf("%v: %s", err, stderr)
		}
	}
	before := lines()
	if all := 35; before >= all {
		t.Fatalf("all %d runs ended before the end", before)
	}
	e := cmdtest.Run(t, "experiment", "run", spec, "--local")
	if says := fmt.Sprintf("%d runs to do, %d runs ended before", 35-before, before); !completed(e) ||
		!strings.Contains(e.Stderr, says) {
		t.Errorf("want %q:\n%s", says, e.Stderr)
	}
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, tableOf(t, "experiment", "report", spec))); diff != "" {
		t.Error(diff)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExperimentRefusals: what is wrong with a spec ends with exit code 2 and its place.
func TestExperimentRefusals(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 30, 1)
	cmdtest.Write(t, dir, "odd.csv", "row,fold\n0,x\n")
	for text, want := range map[string]string{
		"name: e\ndatasets: [first.csv]\nmethods: [structrv]": "e.yaml:3:11: algorithm: " +
			"\"structrv\" is unknown",
		"name: e\ndatasets: [third.csv]\nmethods: [rf]": "e.yaml:2:12: dataset third: ",
		"name: e\ndatasets: [first.csv]\nmethods: [rf]\nfolds: 31": "e.yaml:4:8: dataset first: " +
			"want 2 to 30 folds for 30 samples",
		"name: e\ndatasets: [{file: first.csv, labels: odd}]\nmethods: [rf]": "e.yaml:2:12: dataset first: " +
			"--labels must be one of",
		"name: e\ndatasets: [{dataset: first}]\nmethods: [rf]": "e.yaml:2:12: dataset first is " +
			"on a cluster",
		"name: e\ndatasets: [first.csv]\nmethods: [rf]\nmeasures: [k-l]\n": "did you mean \"kl\"?",
		"name: e\ndatasets: [first.csv]\nmethods: [rf]\nfolds: {file: nowhere.csv}\n": "e.yaml:4:8: the folds of " +
			"dataset first: " + filepath.Join(dir, "nowhere.csv") + ": no such file or folder",
		"name: e\nmethods: [rf]\ndatasets:\n - {file: first.csv, folds: {file: odd.csv}}": "e.yaml:4:29: the folds of " +
			"dataset first: ",
	} {
		e := cmdtest.Run(t, "experiment", "run", cmdtest.Write(t, dir, "e.yaml", text), "--local")
		if !strings.Contains(e.Stderr, want) || e.Stdout != "" || e.Code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, %s\nwant %q", text, e.Code, e.Stderr, want)
		}
	}
	cmdtest.Write(t, dir, "words.csv", "x,label_a,label_b\n1,0.5,half\n")
	for name, want := range map[string]string{"words.csv": "words.csv: row 0, column 2",
		".": "this is a folder without .parquet files, want a data file"} {
		e := cmdtest.Run(t, "experiment", "run", cmdtest.Write(t, dir, "e.yaml", "name: e\nmethods: [rf]\ndatasets:\n- "+
			"{name: d, file: "+name+"}"), "--local")
		if !strings.Contains(e.Stderr, "e.yaml:4:3: dataset d: ") || !strings.Contains(e.Stderr, want) ||
			e.Code != cli.ExitFailed {
			t.Errorf("data of %s: exit code %d, %s", name, e.Code, e.Stderr)
		}
	}
	if e := cmdtest.Run(t, "experiment", "show", dir); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "no experiment was started in this folder") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	for _, verb := range []string{"show", "report"} {
		if e := cmdtest.Run(t, "experiment", verb, "e", "--server", "127.0.0.1:1", "--wait", "0"); e.Code != cli.ExitFailed ||
			!strings.Contains(e.Stderr, "127.0.0.1:1") {
			t.Errorf("%s without a cluster: exit code %d: %s", verb, e.Code, e.Stderr)
		}
		if e := cmdtest.Run(t, "experiment", verb, "e", "--server", "127.0.0.1:1", "--wait=-1s"); e.Code != cli.ExitUsage ||
			!strings.Contains(e.Stderr, "--wait") {
			t.Errorf("%s: exit code %d: %s", verb, e.Code, e.Stderr)
		}
	}
	skips := cmdtest.Write(t, dir, "e.yaml", "name: e\nmissing: skip\ndatasets: [third.csv, first.csv]\nmethods: "+
		"[{algorithm: structrf, settings: {trees: 2, min_samples: 2}}]\nfolds: 2")
	if e := cmdtest.Run(t, "experiment", "run", skips, "--local"); e.Code != cli.ExitOK ||
		!strings.Contains(e.Stderr, "skipped: dataset third") || strings.Contains(e.Stdout, "third") {
		t.Errorf("exit code %d: %s%s", e.Code, e.Stderr, e.Stdout)
	}
}

// TestExperimentOnCluster: the table of a cluster is that of --local; what ended is not run
// again; an extension runs only what is new; an experiment is listed, cancelled and deleted.
func TestExperimentOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	c := cmdtest.Start(t, 1, 2)
	server := []string{"--server", c.Servers()}
	on := func(args ...string) []string { return append(args, server...) }
	spec := experimentSpec(t, dir, "")
	table := tableOf(t, on("experiment", "run", spec)...)
	if diff := cmp.Diff(asJSON(t, tableOf(t, "experiment", "run", spec, "--local")), asJSON(t, table)); diff != "" {
		t.Error(diff)
	}
	timed := decodedTable(t, cmdtest.Works(t, on("experiment", "report", "e", "-o", "json")...))
	for _, c := range timed.Runs {
		if (c.Seconds > 0) != (c.State == tables.Done) {
			t.Errorf("%s took %v s", timed.NameOf(&c).String(), c.Seconds)
		}
	}
	if here, there := cmdtest.Works(t, "experiment", "report", spec, "--no-times"),
		cmdtest.Works(t, on("experiment", "report", "e", "--no-times")...); here != there {
		t.Errorf("the reports differ:\n%s\n%s", here, there)
	}
	if e := cmdtest.Run(t, on("experiment", "run", spec)...); !completed(e) ||
		!strings.Contains(e.Stderr, "0 runs of experiment e submitted") {
		t.Errorf("again: exit code %d\n%s", e.Code, e.Stderr)
	}
	experimentSpec(t, dir, "  - {algorithm: structrf, settings: {trees: 4}}\n")
	if text := cmdtest.Works(t, on("experiment", "extend", spec)...); !strings.Contains(text, "7 runs added") {
		t.Errorf("extended: %s", text)
	}
	reported(t, on("experiment", "watch", "e")...)
	if diff := cmp.Diff(asJSON(t, tableOf(t, "experiment", "run", spec, "--local")),
		asJSON(t, tableOf(t, on("experiment", "report", "e")...))); diff != "" {
		t.Error(diff)
	}
	if text := cmdtest.Works(t, on("job", "show", "e.second.2")...); !strings.Contains(text, "experiment   e") {
		t.Errorf("job show:\n%s", text)
	}
	if text := cmdtest.Works(t, on("experiment", "show", "e")...); !strings.Contains(text, "state       done\n") {
		t.Errorf("shown:\n%s", text)
	}
	cmdtest.Write(t, dir, "words.csv", "x,label_a,label_b\n1,0.5,half\n")
	words := cmdtest.Write(t, dir, "w.yaml", "name: w\nmethods: [rf]\ndatasets: [words.csv]")
	if e := cmdtest.Run(t, on("experiment", "run", words)...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "w.yaml:3:12: dataset words: ") || !strings.Contains(e.Stderr, "row 0, column 2") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	nothing := cmdtest.Write(t, dir, "n.yaml", "name: n\ndatasets: [first.csv]\nmethods: [ranking]\nfolds: 2\n")
	if e := cmdtest.Run(t, on("experiment", "run", nothing)...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "nothing to run: first, ranking: ranking predicts numbers") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, on("job", "predictions", "e.first", "--out",
		filepath.Join(dir, "p.csv"))...); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "--record predictions") ||
		!strings.Contains(e.Stderr, "--keep-models") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	var list []protocol.Experiment
	cmdtest.JSON(t, &list, on("experiment", "list")...)
	if len(list) != 1 || list[0].Name != "e" || list[0].State != "done" || list[0].Jobs != 4 || list[0].Runs != 14 ||
		list[0].Done != 14 {
		t.Errorf("%+v", list)
	}
	experimentSpec(t, dir, "  - {algorithm: ldlf, settings: {steps: 100000000, patience: 100000000}}\n")
	if e := cmdtest.Run(t, on("experiment", "extend", spec)...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "7 new runs, 7 kept, 7 orphaned") ||
		!strings.Contains(e.Stderr, "nothing was submitted") {
		t.Errorf("orphaned runs: exit code %d\n%s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, on("experiment", "extend", spec, "--yes")...)
	cmdtest.Works(t, on("experiment", "cancel", "e")...)
	cmdtest.JSON(t, &list, on("experiment", "list")...)
	if len(list) != 1 || list[0].State != "cancelled" || list[0].Runs != 21 || list[0].Done != 14 {
		t.Errorf("cancelled: %+v", list)
	}
	if e := cmdtest.Run(t, on("experiment", "watch", "e")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "7 runs of experiment e missing") || !strings.Contains(e.Stdout, "structrf trees=3") {
		t.Errorf("cancelled: exit code %d\n%s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, on("experiment", "delete", "e")...)
	if e := cmdtest.Run(t, on("experiment", "show", "e", "-o", "json")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, `no experiment \"e\"`) || !strings.Contains(e.Stderr, `"kind":"not_found"`) {
		t.Errorf("deleted: exit code %d\n%s", e.Code, e.Stderr)
	}
}

// ownMethod is a method of experimentSpec with the predictions that writeOwnMethod writes.
const ownMethod = "  - {external: theirs, name: mine}\n"

// writeOwnMethod writes predictions of sa-bfgs for each fold of experimentSpec, by commands that know only its folds.
func writeOwnMethod(t *testing.T, dir, spec string) {
	t.Helper()
	var files []struct {
		Dataset, File string
		Repeat, Folds int
	}
	cmdtest.JSON(t, &files, "experiment", "folds", spec, "--out", filepath.Join(dir, "folds"))
	for _, f := range files {
		folder := filepath.Join(dir, "theirs", f.Dataset)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for fold := range f.Folds {
			cmdtest.Works(t, "train", "--local", "--data", filepath.Join(dir, f.Dataset+".csv"), "--algorithm", "sa-bfgs",
				"--seed", "5", "--split", f.File, "--fold", strconv.Itoa(fold), "--predictions-out",
				filepath.Join(folder, fmt.Sprintf("repeat-%d-fold-%d.csv", f.Repeat, fold)))
		}
	}
	if len(files) != 3 {
		t.Errorf("%d files of folds", len(files))
	}
}

// TestOwnMethod: a method with the predictions of an algorithm has its measures.
func TestOwnMethod(t *testing.T) {
	dir := t.TempDir()
	spec := experimentSpec(t, dir, ownMethod+"  - sa-bfgs\n")
	writeOwnMethod(t, dir, spec)
	table := decodedTable(t, reported(t, "experiment", "run", spec, "--local", "-o", "json"))
	values := make(map[tables.Name][]float64)
	for _, c := range table.Runs {
		values[table.NameOf(&c)] = c.Values
	}
	same := 0
	for name, own := range values {
		if name.Method != "mine" || name.Dataset != "first" { // in second, repeats draw other validation samples
			continue
		}
		name.Method = "sa-bfgs"
		if same++; len(own) == 0 || !slices.Equal(own, values[name]) {
			t.Errorf("%v has %v, but its predictions have %v", name, values[name], own)
		}
	}
	if same != 3 {
		t.Errorf("%d runs", same)
	}
}

// TestSpecAsItWas: a run on a cluster reports what its spec says, and so does the report by name,
// also where all of its runs had ended before, under other names, measures or settings.
func TestSpecAsItWas(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	server := cmdtest.Start(t, 1, 1).Servers()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	for text, leftOut := range orderedPairs(
		"measures: [kl]\nmethods: [{algorithm: structrf, name: forest, settings: {trees: 2}}, aa-knn]", "",
		"measures: [kl]\nmethods: [{algorithm: structrf, name: forest, settings: {trees: 3}}]",
		"4 runs are left out, because the last submission of the experiment does not contain them: first, aa-knn, fold 0; "+
			"first, aa-knn, fold 1; first, forest, fold 0; first, forest, fold 1\n",
		"measures: [clark]\nmethods: [{algorithm: structrf, name: forest, settings: {trees: 2}}]", "4 runs are left out",
		"measures: [kl]\nmethods: [{algorithm: structrf, name: woods, settings: {trees: 3}}, aa-knn, {algorithm: structrf, "+
			"name: forest, settings: {trees: 2}}, ranking]", "",
		"measures: [kl]\nmethods: [{algorithm: structrf, name: forest, settings: {trees: 2}}, rf]", "4 runs are left out",
	) {
		spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 2\n"+text)
		here, there := tableOf(t, "experiment", "run", spec, "--local", "--yes"), tableOf(t, "experiment", "run", spec,
			"--yes", "--server", server)
		if diff := cmp.Diff(asJSON(t, here), asJSON(t, there)); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
		e := cmdtest.Run(t, "experiment", "report", "e", "--server", server, "-o", "json")
		named := decodedTable(t, e.Stdout)
		if diff := cmp.Diff(asJSON(t, here), asJSON(t, withoutTimes(named))); diff != "" {
			t.Errorf("by name: %s\n%s", text, diff)
		}
		if strings.Contains(e.Stderr, "left out") != (leftOut != "") || !strings.Contains(e.Stderr, leftOut) {
			t.Errorf("%s: %s", text, e.Stderr)
		}
	}
}

// orderedPairs calls yield for each two texts that follow each other.
func orderedPairs(texts ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i < len(texts) && yield(texts[i], texts[i+1]); i += 2 {
		}
	}
}

// withoutTimes sets the seconds of a table's runs to 0.
func withoutTimes(t *tables.Table) *tables.Table {
	for i := range t.Runs {
		c := &t.Runs[i]
		c.Seconds, c.Attempts, c.Command, c.NoCommand = 0, 0, "", ""
	}
	return t
}

// TestKilledClusterExperiment: while everything is killed and starts again, a cluster ends an
// experiment with the table of --local, and runs no run again whose result was recorded.
func TestKilledClusterExperiment(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	c := cmdtest.Start(t, 3, 2)
	more := "  - {algorithm: ldlf, settings: {steps: 300, patience: 1000, trees: 3}, grid: {depth: [4, 5, 6]}}\n"
	spec := experimentSpec(t, dir, more+ownMethod+"  - {algorithm: aa-knn, settings: {train_fraction: 0.4}}\n")
	writeOwnMethod(t, dir, spec)
	want := tableOf(t, "experiment", "run", spec, "--local")
	end := make(chan cmdtest.Ended, 1)
	go func() {
		end <- cmdtest.Run(t, "experiment", "run", spec, "--server", c.Servers(), "-o", "json")
	}()
	recorded := func() int {
		list, err := c.Client().Jobs().List(t.Context(), protocol.JobQuery{Experiment: "e"})
		if err != nil {
			return 0
		}
		return recordedCells(list.Jobs)
	}
	testkit.Until(t, "some runs to be recorded", func() bool { return recorded() >= 4 })
	before := recorded()
	cmdtest.KillAll(t, c)
	after := 0
	testkit.Until(t, "the cluster to answer", func() bool { after = recorded(); return after > 0 })
	if after < before {
		t.Errorf("%d runs are recorded, %d were before", after, before)
	}
	e := <-end
	if !completed(e) {
		t.Fatalf("exit code %d\n%s", e.Code, e.Stderr)
	}
	table := decodedTable(t, e.Stdout)
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, withoutTimes(table))); diff != "" {
		t.Error(diff)
	}
}

// recordedCells counts the runs whose results are committed.
func recordedCells(jobs []protocol.JobInfo) (n int) {
	for i := range jobs {
		if n += jobs[i].Gathered; jobs[i].State == protocol.Done {
			n += jobs[i].CellCount
		}
	}
	return n
}

// TestShippedExperiments: the specs that are shipped have the names of their files, and the small one runs by its
// name from an empty folder.
func TestShippedExperiments(t *testing.T) {
	testkit.WithoutRace(t)
	var list []struct {
		Name, About       string
		Datasets, Methods int
	}
	if err := json.Unmarshal([]byte(cmdtest.Works(t, "experiment", "list", "--shipped", "-o", "json")),
		&list); err != nil || len(list) < 12 {
		t.Fatalf("%d specs, error %v", len(list), err)
	}
	for _, s := range list {
		found, ok := shipped.Find(s.Name)
		if !ok {
			t.Errorf("%s is listed, but is not shipped", s.Name)
			continue
		}
		of, err := experiment.Parse(t.Context(), s.Name, found.Text)
		if err != nil {
			t.Error(err)
			continue
		}
		if of.Name != s.Name || !strings.HasSuffix(s.About, ".") || s.Methods == 0 || s.Datasets == 0 {
			t.Errorf("%s: %+v", of.Name, s)
		}
	}
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 200, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 150, 2)
	t.Chdir(t.TempDir())
	table := tableOf(t, "experiment", "run", "small", "--data", dir, "--local")
	if n := len(table.Runs); n != 7*(3+6) {
		t.Errorf("%d runs", n)
	}
	if report := cmdtest.Works(t, "experiment", "report", "small"); !strings.Contains(report, "Their spec is small") {
		t.Error("the report of the runs is not found by the name of the spec:\n", report)
	}
	for _, name := range []string{"small", "small.experiment"} {
		if text := cmdtest.Works(t, "experiment", "show", name, "--spec"); !strings.Contains(text, "name: small\nseed: 1\n") {
			t.Errorf("the spec of %s:\n%s", name, text)
		}
	}
	for _, c := range table.Runs {
		if c.State != tables.Done || !(c.Values[0] < c.Mean[0]*1.1) {
			t.Errorf("%+v", c)
		}
	}
}

// TestMistakesTogether: one answer has the mistakes of a spec and of all of its data, with and without -o json.
func TestMistakesTogether(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	cmdtest.Write(t, dir, "folds.csv", "row,fold\n0,0\n1,1\n")
	data := `name: e
datasets:
  - first.csv
  - {file: first.csv, name: labels, label_columns: nosuch}
  - third.csv
  - {file: first.csv, name: folds, folds: {file: folds.csv}}
methods:
  - `
	ofData := []string{`e.yaml:4:5: dataset labels: `, "e.yaml:5:5: dataset third: ",
		"e.yaml:6:43: the folds of dataset folds: "}
	for _, c := range []struct {
		method string
		want   []string
	}{
		{"rf", ofData},
		{"rff", append(slices.Clone(ofData), `e.yaml:8:5: algorithm: "rff" is unknown`)},
	} {
		spec := cmdtest.Write(t, dir, "e.yaml", data+c.method+"\n")
		e := cmdtest.Run(t, "experiment", "run", spec, "--local")
		_, text, _ := strings.Cut(e.Stderr, fmt.Sprintf("coppice: %d mistakes in the spec and its data:\n", len(c.want)))
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		var got struct{ Mistakes []string }
		last := strings.Split(strings.TrimSpace(cmdtest.Run(t, "experiment", "run", spec, "--local", "-o", "json").Stderr),
			"\n")
		if err := json.Unmarshal([]byte(last[len(last)-1]), &got); err != nil || !slices.Equal(got.Mistakes, lines) {
			t.Errorf("%v: %q in JSON, and as text %q", err, got.Mistakes, lines)
		}
		for i, want := range c.want {
			if e.Code != cli.ExitUsage || len(lines) != len(c.want) || !strings.HasPrefix(lines[i], filepath.Join(dir, want)) {
				t.Errorf("exit code %d, %q, want %q", e.Code, lines, c.want)
				break
			}
		}
	}
}

// TestNoImportAfterMistake: if a spec has a mistake that is found only with its data, the datasets after it are checked
// but not imported.
func TestNoImportAfterMistake(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	server := cmdtest.Start(t, 1, 0).Servers()
	for first, want := range map[string]string{"missing.csv": "dataset missing: ",
		"{dataset: nowhere}": `the cluster has no dataset "nowhere"`} {
		spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: ["+first+
			", first.csv, {file: first.csv, name: labels, label_columns: nosuch}]\nmethods: [rf]\n")
		e := cmdtest.Run(t, "experiment", "run", spec, "--server", server)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "2 mistakes") || !strings.Contains(e.Stderr, want) ||
			!strings.Contains(e.Stderr, "dataset labels: ") {
			t.Errorf("exit code %d\n%s", e.Code, e.Stderr)
		}
	}
	if text := cmdtest.Works(t, "dataset", "list", "--server", server); strings.Contains(text, "first") {
		t.Errorf("imported:\n%s", text)
	}
}
