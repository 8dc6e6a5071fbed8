package experiments_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/results"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestValidationExperiment: runs on a dataset with a validation file have the digests of folds that train alone with
// it, in this process, after half of the results are lost, on a cluster, and on the dataset that is imported with it.
// Other validation samples give other models of methods that use them, and the same models of the others.
func TestValidationExperiment(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "set.csv", 90, 1)
	cmdtest.ArtificialFile(t, dir, "own.csv", 40, 2)
	lines := strings.Split(strings.TrimSpace(cmdtest.Read(t, filepath.Join(dir, "own.csv"))), "\n")
	for i, line := range lines[1:] { // another file, whose labels are exchanged
		fields := strings.Split(line, ",")
		n := len(fields)
		fields[n-3], fields[n-1] = fields[n-1], fields[n-3]
		lines[1+i] = strings.Join(fields, ",")
	}
	cmdtest.Write(t, dir, "another.csv", strings.Join(lines, "\n")+"\n")
	const rest = `
seed: 5
folds: 3
methods:
  - {algorithm: ldlf, settings: {trees: 2, steps: 150}}
  - {algorithm: best, settings: {members: 'structrf:trees=3,structrf:trees=3:min_samples=40'}}
  - {algorithm: structrf, settings: {trees: 3}}
  - {algorithm: sa-bfgs, grid: {l2: [0.01, 3]}, choose: {validation: 0.2}, name: chosen}
measures: [kl]
`
	spec := cmdtest.Write(t, dir, "v.yaml", "name: v\ndatasets:\n  - {file: set.csv, validation: own.csv}\n"+
		"  - {file: set.csv, name: other, validation: another.csv}"+rest)
	here := tableOf(t, "experiment", "run", spec, "--local")
	for method, uses := range []bool{true, true, false, true} {
		a, b := here.Runs[3*method].Digest, here.Runs[12+3*method].Digest
		if a == "" || (a != b) != uses {
			t.Errorf("%s: digests %s and %s with two validation files", here.Methods[method].Name, a, b)
		}
	}
	var alone results.Result
	cmdtest.JSON(t, &alone, "train", "--local", "--data", filepath.Join(dir, "set.csv"), "--validation",
		filepath.Join(dir, "own.csv"), "--algorithm", "best", "--set", "members=structrf:trees=3,structrf:trees=3:min_samples=40",
		"--folds", "3", "--fold", "1", "--seed", "5")
	if got := here.Runs[4].Digest; got != alone.ModelDigest {
		t.Errorf("fold 1 of best has the digest %s, alone %s", got, alone.ModelDigest)
	}
	log := filepath.Join(dir, "v.experiment", "cells.log")
	records := bytes.SplitAfter([]byte(cmdtest.Read(t, log)), []byte("\n"))
	if err := os.WriteFile(log, bytes.Join(records[:12], nil), 0o666); err != nil {
		t.Fatal(err)
	}
	again := cmdtest.Run(t, "experiment", "run", spec, "--local", "-o", "json")
	if diff := cmp.Diff(asJSON(t, here), asJSON(t, withoutTimes(decodedTable(t, again.Stdout)))); diff != "" ||
		!strings.Contains(again.Stderr, "12 runs to do, 12 runs ended before") {
		t.Errorf("after half of the results were lost: %s\n%s", diff, again.Stderr)
	}
	if !strings.Contains(again.Stderr, "Dataset set has 40 validation samples of a file") ||
		!strings.Contains(again.Stderr, "do not use them: structrf trees=3.") {
		t.Errorf("no note says which method does not validate: %s", again.Stderr)
	}

	c := cmdtest.Start(t, 1, 2)
	there := tableOf(t, "experiment", "run", spec, "--server", c.Servers())
	if diff := cmp.Diff(asJSON(t, here), asJSON(t, there)); diff != "" {
		t.Errorf("on a cluster: %s", diff)
	}
	cmdtest.Works(t, "dataset", "import", "--data", filepath.Join(dir, "set.csv"), "--validation",
		filepath.Join(dir, "own.csv"), "--name", "imported", "--server", c.Servers())
	byName := cmdtest.Write(t, dir, "n.yaml", "name: n\ndatasets:\n  - {dataset: imported}"+rest)
	named := tableOf(t, "experiment", "run", byName, "--server", c.Servers())
	if want := digestsOf(here.Runs[:12]); !cmp.Equal(digestsOf(named.Runs), want) {
		t.Errorf("the imported dataset has the digests %v, the file %v", digestsOf(named.Runs), want)
	}
}

// digestsOf lists the digests of runs.
func digestsOf(runs []tables.Run) (list []string) {
	for i := range runs {
		list = append(list, runs[i].Digest)
	}
	return list
}
