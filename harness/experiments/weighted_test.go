package experiments_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestWeightedExperimentOnCluster: on a cluster, runs on samples with weights have the digests and measures of this
// process, also ensembles, whose members are trained by sub-jobs. The weights have an effect: other weights give other
// digests.
func TestWeightedExperimentOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for name, most := range map[string]int{"some.csv": 4, "others.csv": 3} {
		var b strings.Builder
		b.WriteString("x,y,w,label_a,label_b,label_c\n")
		for i := range 90 {
			x, y := math.Sin(float64(i)), math.Cos(float64(3*i))
			a, c := 0.4+0.3*x, 0.2+0.1*y
			fmt.Fprintf(&b, "%.4f,%.4f,%d,%.6f,%.6f,%.6f\n", x, y, i*7%most, a, 1-a-c, c)
		}
		cmdtest.Write(t, dir, name, b.String())
	}
	spec := cmdtest.Write(t, dir, "w.yaml", `name: w
seed: 5
datasets:
  - {file: some.csv, weights: w}
  - {file: others.csv, weights: w}
folds: 3
weighted_measures: true
methods:
  - {algorithm: sa-bfgs, settings: {iterations: 20}}
  - {algorithm: df-ldl, settings: {iterations: 20, k: 3}}
  - {algorithm: cpnn, settings: {steps: 20}}
  - {algorithm: ldl-ldm, settings: {iterations: 20}}
  - {algorithm: ndf, settings: {trees: 3}}
  - {algorithm: winldl, settings: {iterations: 10}}
  - {algorithm: ldsvr}
  - {algorithm: ensemble, settings: {inner_folds: 2, members: "sa-bfgs:iterations=10,structrf:trees=3"}}
`)
	c := cmdtest.Start(t, 1, 2)
	here := tableOf(t, "experiment", "run", spec, "--local")
	there := tableOf(t, "experiment", "run", spec, "--server", c.Servers())
	if diff := cmp.Diff(asJSON(t, here), asJSON(t, there)); diff != "" {
		t.Error(diff)
	}
	digests := make(map[string]bool)
	for _, run := range there.Runs {
		digests[run.Digest] = true
	}
	if want := 2 * 3 * 8; len(there.Runs) != want || len(digests) != want || digests[""] {
		t.Errorf("%d runs have %d digests, want %d", len(there.Runs), len(digests), want)
	}
}
