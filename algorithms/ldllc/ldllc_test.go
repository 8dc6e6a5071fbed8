package ldllc_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldllc"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3)}},
	{Name: "path", Set: param.Values{"lambda": 0.01, "iterations": int64(50), "validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ldllc.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ldllc.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldllc.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldllc.New(), cases, map[string]string{
		"paper":        "525d0c9ecfe0ae045f89f7e857872147d3dfa1543122819d845a4b41e0ab2e72",
		"auto":         "9b9d16c11056c62ac492596b6eb90e460db987c48aee770f4d04caa7bf8273aa",
		"path":         "f8fd2e2939c5390c07122dc63db78db8a23a6a96bce19304226915062a50b266",
		"paper sparse": "3243643391766af69744d07d15526bd212144312906ac5dc909621af26adb1a5",
		"auto sparse":  "9ed230261506b9af66ff280d3ee031e97f97b3ffd099b6264026bcae264c1d39",
		"path sparse":  "6b8b4bca3361cc06d3090ee03908fcec9ce0d83b1e652e821a48985bfb6c2f75",
	})
}

// correlation is Pearson's of two labels' weights, without the last row.
func correlation(w [][]float64, j, k int) float64 {
	n := float64(len(w) - 1)
	var a, b, ab, aa, bb float64
	for _, row := range w[:len(w)-1] {
		a, b = a+row[j]/n, b+row[k]/n
	}
	for _, row := range w[:len(w)-1] {
		x, y := row[j]-a, row[k]-b
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// loss is the objective by plain loops over both orders of each pair.
func loss(lambda, l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) float64 {
		sum := 0.0
		for i := range x {
			sum += fittest.KL(d[i], fittest.Predict(x[i], w)) / float64(len(x))
		}
		for j := range w[0] {
			for k := range w[0] {
				square := 1e-6
				for _, row := range w[:len(w)-1] {
					square += (row[j] - row[k]) * (row[j] - row[k])
				}
				switch r := correlation(w, j, k); {
				case j != k && r > 0:
					sum += lambda / 2 * math.Sqrt(square)
				case j != k && r < 0:
					sum -= lambda / 2 * math.Sqrt(square)
				}
			}
		}
		return sum + fittest.Decay(w, l2)
	}
}

func TestGradient(t *testing.T) {
	fittest.Gradient(t, ldllc.New(), param.Values{"preset": "paper", "bias": true, "lambda": 0.7, "l2": 0.3,
		"iterations": int64(1)}, func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) }, loss(0.7, 0.3))
}

// standard are the settings of the figures of an independent program (SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.1}

// TestObjectives: the fit on a fold of SJAFFE has the same course as SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	fittest.Open(t, "SJAFFE").Objectives(t, ldllc.New(), standard, loss(0.001, 0.1), true,
		[4]float64{.071705, .039779, .017307, .017241})
}

// TestFolds: the measures on ten folds equal the measures of an independent program.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Measures(t, ldllc.New(), standard, 0.005,
		[6]float64{.0859, .3267, .6715, .0425, .9599, .8866})
	fittest.Open(t, "Yeast_spo5").Measures(t, ldllc.New(), standard, 0.005,
		[6]float64{.0911, .1837, .2821, .0292, .9742, .9089})
}
