package sabfgs_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// merged is the loss of samples in which degrees are missing, by plain loops: the missing labels of a sample are one.
func merged(l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) (sum float64) {
		for i, row := range x {
			p := fittest.Predict(row, w)
			rest, together := 1.0, 0.0
			for c, v := range d[i] {
				if math.IsNaN(v) {
					together += p[c]
					continue
				}
				rest -= v
				if v > 0 {
					sum += v * math.Log(v/p[c])
				}
			}
			if together > 0 && rest > 0 {
				sum += rest * math.Log(rest/together)
			}
		}
		return sum/float64(len(x)) + fittest.Decay(w, l2)
	}
}

// standard are the settings of the figures of an independent program (SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.1}

// TestMergedGradient: the loss of incomplete labels and its gradient, for masks that leave few degrees, and samples
// without any.
func TestMergedGradient(t *testing.T) {
	for _, mask := range []dataset.Mask{{Rate: 0.5}, {Rate: 0.8, Unlabelled: 0.2}, {Rate: 0.4, Golden: true}} {
		set := param.Values{"preset": "paper", "bias": true, "l2": 0.3, "iterations": int64(1)}
		fittest.MaskedGradient(t, sabfgs.New(), set, mask,
			func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) }, merged(0.3))
	}
}

// TestMergedObjectives: the fit on a fold of SJAFFE, in which 80 % of the degrees are missing, has the same course as
// SciPy's L-BFGS-B.
func TestMergedObjectives(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	f.Mask = dataset.Mask{Rate: 0.8, Golden: true}
	f.Objectives(t, sabfgs.New(), standard, merged(0.1), false, [4]float64{.017407, .008271, .004915, .004882})
}

// TestMergedFolds: the measures on ten folds equal the measures of the independent program.
func TestMergedFolds(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		want [6]float64
	}{
		{"SJAFFE", 0.5, [6]float64{.0908, .3379, .6960, .0454, .9569, .8822}},
		{"SJAFFE", 0.8, [6]float64{.1044, .3732, .7676, .0566, .9461, .8685}},
		{"SJAFFE", 0, [6]float64{.0859, .3260, .6697, .0423, .9601, .8868}},
		{"Yeast_spo5", 0, [6]float64{.0911, .1837, .2822, .0292, .9742, .9089}},
	} {
		f := fittest.Open(t, c.name)
		f.Mask = dataset.Mask{Rate: c.rate, Golden: c.rate > 0}
		f.Measures(t, sabfgs.New(), standard, 0.01, c.want)
	}
	for rate, kl := range map[float64]float64{0.5: .0292, 0.8: .0294} {
		f := fittest.Open(t, "Yeast_spo5")
		f.Mask = dataset.Mask{Rate: rate, Golden: true}
		f.KL(t, sabfgs.New(), standard, 0.01, kl)
	}
}
