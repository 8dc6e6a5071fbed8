package experiments_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/experiment"
	reporting "github.com/coppice-ldl/coppice/experiment/report"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// aloneSpec writes data and specs with folds of every kind.
func aloneSpec(t *testing.T, dir string) []string {
	t.Helper()
	cmdtest.ArtificialFile(t, dir, "it's first.csv", 60, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 40, 2)
	fold, splits, groups := "row,fold\n", "row,a,b\n", ""
	b, err := os.ReadFile(filepath.Join(dir, "second.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		group := fmt.Sprintf("p%d", i%4)
		if i == 0 {
			group = "the person"
		} else {
			row := i - 1
			fold += fmt.Sprintf("%d,%d\n", row, row%5)
			splits += fmt.Sprintf("%d,%d,%d\n", row, min(1, row/30), min(1, row%3))
		}
		groups += line + "," + group + "\n"
	}
	cmdtest.Write(t, dir, "folds.csv", fold)
	cmdtest.Write(t, dir, "splits.csv", splits)
	cmdtest.Write(t, dir, "groups.csv", groups)
	return []string{
		cmdtest.Write(t, dir, "a.yaml", `name: a
seed: 5
datasets:
  - {file: "it's first.csv", name: first, label_prefix: [label_]}
  - {file: "it's first.csv", name: drawn, folds: {k: 3, seed: 9, repeats: 2}}
  - {file: "it's first.csv", name: sklearn, folds: {sklearn: 3, repeats: 2, only: [1]}}
  - {file: "it's first.csv", name: other, folds: {sklearn: 2, seed: 77}}
  - {file: "it's first.csv", name: scaled, normalize: yes, range: "1:3"}
folds: {k: 3, repeats: 2, only: [2]}
measures: [kl, spearman]
methods:
  - {algorithm: structrf, settings: {trees: 2}}
  - {algorithm: ldlf, preset: paper, settings: {trees: 2, depth: 2, steps: 30}}
  - {algorithm: structrf, name: chosen, settings: {min_samples: 4}, grid: {trees: [1, 2]}, choose: {inner: 2}}
  - {algorithm: aa-knn, search: {draws: 2, space: {k: {int: [2, 9]}}}, name: "validated", choose: {validation: 1/3}}
  - ranking
  - {algorithm: aa-knn, settings: {k: 55}}
`),
		cmdtest.Write(t, dir, "b.yaml", `name: b
datasets:
  - {file: groups.csv, folds: groups, groups: the person}
  - {file: groups.csv, name: twice, folds: {groups: true, repeats: 2}, groups: the person}
  - {file: second.csv, name: listed, folds: {file: folds.csv}}
  - {file: second.csv, name: splits, folds: {file: splits.csv, repeats: 2}}
clip: pyldl
measures: [clark, kl]
methods:
  - {algorithm: structrf, settings: {trees: 2}}
  - {algorithm: structrf, name: chosen, grid: {trees: [1, 2]}, choose: {inner: 2}}
  - {algorithm: ldlf, settings: {trees: 1, depth: 2, steps: 20, validation_fraction: 0.2}}
`),
	}
}

// checkAlone runs the command of each run of a table, and compares what comes of it.
func checkAlone(t *testing.T, table *tables.Table, command func(*tables.Run) (string, error)) {
	t.Helper()
	for i := range table.Runs {
		c := &table.Runs[i]
		line, err := command(c)
		if err != nil {
			t.Fatalf("%s: %v", table.NameOf(c).String(), err)
		}
		words := cmdtest.Words(t, line)
		if c.State == tables.Failed {
			if e := cmdtest.Run(t, words...); e.Code == cli.ExitOK || !strings.Contains(e.Stderr, c.Error) {
				t.Errorf("%s: exit code %d\n%s\nwant %s", line, e.Code, e.Stderr, c.Error)
			}
			continue
		}
		var alone cmdtest.Trained
		cmdtest.JSON(t, &alone, words...)
		name := table.Measures[0]
		values := map[string]float64{"kl": alone.Measures[0].Mean}
		if s, ok := alone.Measures.Get(name); ok {
			values[name] = s.Mean
		}
		if alone.ModelDigest != c.Digest || math.Abs(values[name]-c.Values[0]) > 1e-12 || alone.Rows.Test != c.Rows {
			t.Errorf("%s, %s: digest %s, %s %v of %d samples, want %s, %v of %d", table.NameOf(c).String(), line,
				alone.ModelDigest, name, values[name], alone.Rows.Test, c.Digest, c.Values[0], c.Rows)
		}
	}
}

// completed reports whether a command has written the report of an experiment. Its exit code is 1 if runs failed.
func completed(e cmdtest.Ended) bool {
	return e.Code == cli.ExitOK || e.Code == cli.ExitFailed && strings.Contains(e.Stderr, " failed; the report says why")
}

// reported runs a command that writes the report of an experiment, and returns the report.
func reported(t *testing.T, args ...string) string {
	t.Helper()
	e := cmdtest.Run(t, args...)
	if !completed(e) {
		t.Fatalf("coppice %s: exit code %d\n%s", strings.Join(args, " "), e.Code, e.Stderr)
	}
	return e.Stdout
}

// ran runs an experiment in this process, and returns its folder, its table, and the commands of its runs. Data files
// lie next to the spec.
func ran(t *testing.T, spec string) (folder string, table *tables.Table, commands *experiment.Commands) {
	t.Helper()
	reported(t, "experiment", "run", spec, "--local")
	folder = strings.TrimSuffix(spec, ".yaml") + ".experiment"
	content, err := experiment.ReadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	commands, err = experiment.NewCommands(content.Layout, experiment.Sources{File: func(path string) string {
		return filepath.Join(filepath.Dir(spec), path)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return folder, content.Layout.Fill(content.Records), commands
}

// TestRunsAlone: the command of a run trains the same model, whatever its folds and its method are, and a failed run
// fails again for the same reason. A failed run says how often it was run.
func TestRunsAlone(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for _, spec := range aloneSpec(t, dir) {
		folder, table, commands := ran(t, spec)
		checkAlone(t, table, commands.Alone)
		// What is printed is the same, by the name of the spec and by the folder, which does not lie next to the spec.
		moved := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(folder, moved); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{spec, "--dir", moved}, {moved}} {
			var shown struct{ Table *tables.Table }
			cmdtest.JSON(t, &shown, append([]string{"experiment", "show"}, args...)...)
			for i := range shown.Table.Runs {
				c := &shown.Table.Runs[i]
				want := ""
				if c.State == tables.Failed {
					want, _ = commands.Alone(c)
				}
				if c.Command != want || c.NoCommand != "" {
					t.Errorf("%v: %s: %q, want %q", args, table.NameOf(c).String(), c.Command, want)
				}
			}
		}
	}
}

// TestRunOfShippedSpecAlone: the command of a run of a shipped spec names the file of the data from another folder,
// too.
func TestRunOfShippedSpecAlone(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.Write(t, dir, "first.csv", "x,label_a,label_b\n1,0.5,0.5\n2,0.5,0.5\n3,0.5,0.5\n")
	cmdtest.Write(t, dir, "second.csv", "x,label_a,label_b\n1,0.5,0.5\n2,0.5,0.5\n4,0.5,0.5\n")
	t.Chdir(dir)
	reported(t, "experiment", "run", "small", "--local")
	for folder, want := range map[string]string{dir: " --data first.csv ", t.TempDir(): " --data " +
		filepath.Join(dir, "first.csv") + " "} {
		t.Chdir(folder)
		if text := cmdtest.Works(t, "experiment", "show", "small", "--dir",
			filepath.Join(dir, "small.experiment")); !strings.Contains(text, want) {
			t.Errorf("in %s: %s, want %s", folder, text, want)
		}
	}
}

// TestFoldFlags: flags about folds that cannot be are refused, and a seed draws the same folds as the job's seed.
func TestFoldFlags(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "x.csv", 30, 1)
	train := []string{"train", "--local", "--data", filepath.Join(dir, "x.csv"), "--algorithm", "aa-knn"}
	for flags, want := range map[string]string{
		"--fold 1":                            "there are no folds",
		"--folds 3 --fold 3":                  "there is no fold 3: folds are numbered 0 to 2",
		"--folds 3 --fold -1":                 "--fold",
		"--folds sklearn:x":                   "--folds: \"x\"",
		"--folds sklearn:1":                   "want 2 to 65536 folds",
		"--folds 31 --fold-seed 2":            "want 2 to 30 folds",
		"--fold-seed 2":                       "want their number",
		"--folds groups --fold-seed 2":        "want their number",
		"--folds 3 --fold-seed x":             "--fold-seed x: want a whole number",
		"--folds sklearn:3 --seed 9999999999": "largest seed of scikit-learn",
	} {
		if e := cmdtest.Run(t, append(slices.Clone(train), strings.Fields(flags)...)...); e.Code != cli.ExitUsage ||
			!strings.Contains(e.Stderr, want) {
			t.Errorf("%s: exit code %d, %s, want %s", flags, e.Code, e.Stderr, want)
		}
	}
	digest := func(flags string) string {
		var r cmdtest.Trained
		cmdtest.JSON(t, &r, append(slices.Clone(train), strings.Fields(flags)...)...)
		return r.ModelDigest
	}
	if a, b := digest("--folds 3 --fold 1 --seed 7"), digest("--folds 3 --fold 1 --seed 7 --fold-seed 7"); a != b {
		t.Errorf("digest %s, and with the same seed for the folds %s", a, b)
	}
}

// TestAttempts: a failed run counts its attempts, also of a process that runs it again, and a report without times has
// none.
func TestAttempts(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv]\nfolds: 3\nmethods: [ranking, {algorithm: "+
		"aa-knn, settings: {k: 55}}, structrf]\n")
	reported(t, "experiment", "run", spec, "--local")
	again := reported(t, "experiment", "run", spec, "--local", "--retry-failed", "--format", "json")
	text := cmdtest.Works(t, "experiment", "show", spec)
	for _, want := range []string{
		"failed: first, ranking (3 runs): ranking predicts numbers", "failed: first, aa-knn k=55 (3 runs, 6 attempts): ",
		"\n  to train a run alone: coppice train --local --data ",
		" --algorithm aa-knn --set k=55 --folds 3 --fold 0 --seed 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	for _, c := range []struct {
		report   string
		attempts int
	}{{again, 2}, {cmdtest.Works(t, "experiment", "report", spec, "--format", "json"), 2},
		{cmdtest.Works(t, "experiment", "report", spec, "--format", "json", "--no-times"), 0}} {
		var got struct{ Runs reporting.Runs }
		if err := json.Unmarshal([]byte(c.report), &got); err != nil || len(got.Runs.Failures) != 6 {
			t.Fatalf("%v: %s", err, c.report)
		}
		f := got.Runs.Failures[3+2]
		if f.Attempts != c.attempts || strings.Contains(f.Command,
			"--algorithm aa-knn --set k=55 --folds 3 --fold 2 --seed 1") != (c.attempts > 0) {
			t.Errorf("%+v", f)
		}
	}
}

// TestRunsAloneOnCluster: the commands of runs of a cluster train on its datasets. A run that is repeated counts one
// attempt more. A file of folds is found if the command is given the spec, and otherwise the command says that it is
// missing.
func TestRunsAloneOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	spec := cmdtest.Write(t, dir, "c.yaml", `name: c
datasets:
  - {file: groups.csv, folds: {groups: true, repeats: 2}, groups: the person}
  - {file: second.csv, folds: {sklearn: 4, seed: 3, repeats: 2, only: [0, 1]}}
  - {file: second.csv, name: listed, folds: {file: folds.csv}}
measures: [kl]
methods: [{algorithm: structrf, settings: {trees: 2}}, {algorithm: aa-knn, settings: {k: 39}}, ranking]
`)
	aloneSpec(t, dir)
	c := cmdtest.Start(t, 1, 1)
	on := func(args ...string) []string { return append(args, "--server", c.Servers()) }
	reported(t, on("experiment", "run", spec)...)
	cmdtest.Works(t, on("experiment", "retry", "c", "--failed")...)
	reported(t, on("experiment", "watch", "c")...)
	var shown struct{ Table *tables.Table }
	cmdtest.JSON(t, &shown, on("experiment", "show", spec)...)
	failed := 0
	for i := range shown.Table.Runs {
		if c := &shown.Table.Runs[i]; c.State == tables.Failed {
			failed++
			if want := map[string]int{"ranking": 0, "aa-knn k=39": 2}[shown.Table.Methods[c.Method].Name]; c.Attempts != want {
				t.Errorf("%s: %d attempts, want %d", shown.Table.NameOf(c).String(), c.Attempts, want)
			}
		}
	}
	if failed != (8+4+5)*2 {
		t.Errorf("%d runs failed", failed)
	}
	only := *shown.Table // some runs of each dataset and method
	only.Runs = slices.DeleteFunc(slices.Clone(only.Runs), func(c tables.Run) bool { return c.Fold != 1 })
	checkAlone(t, &only, func(c *tables.Run) (string, error) {
		if c.State == tables.Failed {
			return c.Command, nil
		}
		// The command of a failed run with the algorithm of this one.
		i := slices.IndexFunc(only.Runs, func(o tables.Run) bool {
			return o.Dataset == c.Dataset && o.Repeat == c.Repeat && o.State == tables.Failed && o.Method == 1
		})
		return strings.Replace(only.Runs[i].Command, "--algorithm aa-knn --set k=39",
			"--algorithm structrf --set trees=2", 1), nil
	})
	// A job of one fold is trained by a cluster, too.
	fold := []string{"--dataset", "second", "--algorithm", "structrf", "--set", "trees=2", "--folds", "sklearn:4",
		"--fold-seed", "3", "--fold", "1"}
	var alone cmdtest.Trained
	cmdtest.JSON(t, &alone, on(append([]string{"train"}, fold...)...)...)
	i := slices.IndexFunc(only.Runs, func(c tables.Run) bool {
		return only.NameOf(&c) == tables.Name{Dataset: "second", Method: "structrf trees=2", Fold: 1}
	})
	if alone.ModelDigest != only.Runs[i].Digest {
		t.Errorf("on the cluster: digest %s, want %s", alone.ModelDigest, only.Runs[i].Digest)
	}
	text := cmdtest.Works(t, on("experiment", "show", "c")...)
	for _, want := range []string{
		"failed: second, aa-knn k=39 (4 runs, 8 attempts): ",
		"  to train a run alone: coppice train --local --dataset groups --server ",
		"  no command to train a run alone: the command needs the file folds.csv of the spec",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	for noTimes, want := range map[string]string{"false": "coppice train --local --dataset second --algorithm aa-knn " +
		"--set k=39 --folds sklearn:4 --fold-seed 4 --fold 0 --seed 2", "true": ""} {
		var report struct{ Runs reporting.Runs }
		b, err := c.Client().Experiments().Report(t.Context(), "c", url.Values{"format": {"json"}, "no_times": {noTimes}})
		if err == nil {
			err = json.Unmarshal(b, &report)
		}
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(report.Runs.Failures, func(f reporting.Failure) bool {
			return f.Run == "second, aa-knn k=39, fold 0 of repeat 1"
		})
		if f := report.Runs.Failures[i]; f.Command != want || (f.Attempts == 2) != (want != "") {
			t.Errorf("without times %s: %+v", noTimes, f)
		}
	}
}
