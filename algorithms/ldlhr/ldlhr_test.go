package ldlhr_test

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlhr"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"iterations": int64(12)}},
	{Name: "path", Set: param.Values{"lambda2": 0.1, "iterations": int64(50), "validation_fraction": 0.1,
		"validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ldlhr.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ldlhr.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldlhr.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldlhr.New(), cases, map[string]string{
		"paper":        "4b57639f19527beef3da8db566ce79b0f26c9161e3e8c23a8ee4a82ed141d04b",
		"auto":         "8956e3aec267f1b38ec47b3378ae385713fe23e2f8ff9ef76298e46a2a206e1f",
		"path":         "24b19a6c139c7f4f96e8f0ddc9c1ec64042084060df772fbfc7fe003efc048c3",
		"paper sparse": "9c050408bca9eb37d9cbd7e0600a7a9dc1609779de8fa2913a80cc4e249e64a1",
		"auto sparse":  "3b1b3c8128b88124eb42654e21e3da93e646db12ac58b7219c69f36c7d71aea5",
		"path sparse":  "73f29e76d2e38c9f8856f638a1250c4c5630a7c9042419aa924da58ea58f845d",
	})
}

// loss is the objective by plain loops.
func loss(lambda2, lambda3, rho, l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) float64 {
		sum := 0.0
		for i := range x {
			p, t := fittest.Predict(x[i], w), slices.Index(d[i], slices.Max(d[i]))
			sum += 1 - p[t]
			for c, v := range p {
				if c != t {
					sum += v + lambda2/rho*math.Max(0, rho-p[t]+v) + lambda3*math.Abs(v-d[i][c])
				}
			}
		}
		return sum/float64(len(x)) + fittest.Decay(w, l2)
	}
}

// TestGradient: some hinges are active, and the point has no kink nearby.
func TestGradient(t *testing.T) {
	fittest.Gradient(t, ldlhr.New(), param.Values{"preset": "paper", "bias": true, "lambda2": 0.7, "lambda3": 0.5,
		"rho": 0.4, "l2": 0.3, "iterations": int64(1)},
		func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) },
		loss(0.7, 0.5, 0.4, 0.3))
}

// standard are the settings of the figures of an independent program (SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.3,
	"lambda2": 0.001, "lambda3": 1.0, "rho": 0.01}

// TestObjectives: the fit on a fold of SJAFFE has the same course as SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	fittest.Open(t, "SJAFFE").Objectives(t, ldlhr.New(), standard, loss(0.001, 1, 0.01, 0.3), false,
		[4]float64{1.859606, 1.731178, 1.436416, 0})
}

// TestFolds: the measures on ten folds equal the measures of an independent program.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Classes(t, ldlhr.New(), standard, 0.05, [2]float64{.4844, .7664})
	fittest.Open(t, "Yeast_spo5").Classes(t, ldlhr.New(), standard, 0.05, [2]float64{.5533, .6549})
}
