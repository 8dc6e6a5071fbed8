package experiments_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestUnvalidatedAlone: the command of a run trains the same model if the dataset has a validation file. Defaults of a
// method that does not use its samples do not count them: rf would need nodes of more samples than a fold has. A label
// enhancement of such a method does not see them. Without
// validation, ldlf and sa-bfgs add samples in another order with the file, so their models are only close.
func TestUnvalidatedAlone(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "few.csv", 100, 1)
	cmdtest.ArtificialFile(t, dir, "own.csv", 400, 2)
	spec := cmdtest.Write(t, dir, "v.yaml", `name: v
datasets: [{file: few.csv, validation: own.csv}]
folds: {k: 10, only: [3]}
measures: [kl]
methods:
  - {algorithm: rf, settings: {trees: 3}}
  - {algorithm: rf, name: counted, settings: {trees: 3, split: histogram}}
  - {algorithm: structrf, settings: {trees: 3}}
  - {algorithm: structrf, name: enhanced, settings: {trees: 3}, enhance: {method: lp, binarise: 0.5}}
  - {algorithm: aa-knn}
  - {algorithm: ldsvr}
  - {algorithm: ldlf, name: unvalidated, settings: {trees: 2, depth: 2, steps: 20, validation_fraction: 0}}
  - {algorithm: sa-bfgs, name: unvalidated-linear, settings: {validation_fraction: 0}}
  - {algorithm: ensemble, settings: {members: "rf:trees=2,aa-knn", inner_folds: 2}}
  - {algorithm: structrf, name: chosen, settings: {trees: 2}, grid: {min_samples: [5, 9]}, choose: {inner: 2}}
  - {algorithm: ldlf, settings: {trees: 2, depth: 2, steps: 20}}
`)
	_, table, commands := ran(t, spec)
	for i := range table.Runs {
		if c := &table.Runs[i]; c.State != tables.Done {
			t.Errorf("%s: %s", table.NameOf(c).String(), c.Error)
		}
	}
	order := func(c tables.Run) bool { return strings.HasPrefix(table.Methods[c.Method].Name, "unvalidated") }
	for i := range table.Runs {
		c := &table.Runs[i]
		if !order(*c) {
			continue
		}
		line, err := commands.Alone(c)
		if err != nil {
			t.Fatal(err)
		}
		var alone cmdtest.Trained
		cmdtest.JSON(t, &alone, cmdtest.Words(t, line)...)
		if kl := alone.Measures[0].Mean; !(math.Abs(kl-c.Values[0]) < 0.01*kl) {
			t.Errorf("%s: K-L %v, want about %v", line, kl, c.Values[0])
		}
	}
	table.Runs = slices.DeleteFunc(table.Runs, order)
	checkAlone(t, table, commands.Alone)
}
