package ldllrr_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldllrr"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3)}},
	{Name: "path", Set: param.Values{"lambda": 10.0, "sharpness": 100.0, "iterations": int64(50),
		"validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, ldllrr.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, ldllrr.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, ldllrr.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldllrr.New(), cases, map[string]string{
		"paper":        "7de43996fb4232935ed02d38b9f9bdc3e356b2cb6eb20792a2e45f101a2229c7",
		"auto":         "c5f56940e4a730b6f20e49e3a595af61c92e706a8782a326c53dfdfb9b32208f",
		"path":         "48a08441d836f9dda0cdaa79c9935d58a75226f38af95efc064235b0a0f523fe",
		"paper sparse": "c2ec20251644bd8701cabd6a8d57aa2e98db2c34e90ac5c31c81004ff69b856b",
		"auto sparse":  "1b11fa3ab3755653bd119274b9ab9b8a9b0eece53b414668ddf0d94dde6f597a",
		"path sparse":  "a22afda9820a9a061f465d9bfc97c32f358cbf9ed670541160bb41bf5a3c06e7",
	})
}

// loss is the objective by plain loops over both orders of each pair.
func loss(lambda, sharpness, l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) float64 {
		sum := 0.0
		for i := range x {
			p := fittest.Predict(x[i], w)
			sum += fittest.KL(d[i], p)
			for j := range p {
				for k := range p {
					by, x := d[i][j]-d[i][k], sharpness*(p[j]-p[k])
					if by > 0 {
						x = -x // -ln σ(x), and not -ln(1 - σ(x))
					}
					sum += lambda / 2 * by * by * math.Log1p(math.Exp(x))
				}
			}
		}
		return sum/float64(len(x)) + fittest.Decay(w, l2)
	}
}

// TestGradient: a smooth ranking loss and a sharp one.
func TestGradient(t *testing.T) {
	for _, sharpness := range []float64{1, 40} {
		fittest.Gradient(t, ldllrr.New(), param.Values{"preset": "paper", "bias": true, "lambda": 2.5, "sharpness": sharpness,
			"l2": 0.3, "iterations": int64(1)}, func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) },
			loss(2.5, sharpness, 0.3))
	}
}

// standard are the settings of the figures that SciPy has computed (L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.1, "lambda": 0.1}

// TestObjectives: the fit on a fold of SJAFFE has the same course as SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	fittest.Open(t, "SJAFFE").Objectives(t, ldllrr.New(), standard, loss(0.1, 100, 0.1), false,
		[4]float64{0.082706, 0.053982, 0.020051, 0.019919})
}

// TestFolds: the measures on ten folds equal the measures of an independent program with the same objective.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Measures(t, ldllrr.New(), standard, 0.005,
		[6]float64{.0859, .3264, .6704, .0424, .9600, .8867})
	fittest.Open(t, "Yeast_spo5").Measures(t, ldllrr.New(), standard, 0.005,
		[6]float64{.0914, .1841, .2828, .0294, .9741, .9086})
}
