package ldlm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlm"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"iterations": int64(12)}},
	{Name: "path", Set: param.Values{"lambda2": 1.0, "iterations": int64(50), "validation_fraction": 0.1,
		"validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ldlm.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ldlm.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldlm.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldlm.New(), cases, map[string]string{
		"paper":        "07b321d1f8f5c2ddeedc297bfdaf082a772fdb9662fd7edd11074d7a7fe8c71e",
		"auto":         "0237016d280cf008961128537ce09be30c020e4299c580bde7155d0357d1fe74",
		"path":         "b2434e1336cbc2a4286f5656eb212421666c1fdfe87fc45bdeea892fa8094465",
		"paper sparse": "83063666c24fba2278c90c72a9550e2d3bab1490cdf0f078382b84bc79c3692d",
		"auto sparse":  "1428f1e42d412875710a046c8aeea24f4be4f4b2b3d18f20a41ecc86c579e837",
		"path sparse":  "9e4054f124dc312849346794a82a9426255edae35e7cf57b9a8f65b0d684d64a",
	})
}

// loss is the objective by plain loops.
func loss(lambda2, lambda3, rho, l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) float64 {
		sum := 0.0
		for i := range x {
			p, t := fittest.Predict(x[i], w), slices.Index(d[i], slices.Max(d[i]))
			far, rest := 1-p[t], 0.0
			for c, v := range p {
				if c != t {
					far += v
					rest += math.Abs(v - d[i][c])
					sum += lambda2 * math.Max(0, rho-p[t]+v)
				}
			}
			order := slices.Sorted(slices.Values(append([]float64{0}, d[i]...)))
			slices.Reverse(order)
			sum += math.Max(0, far-rho) + lambda3*math.Max(0, rest-(order[1]-order[2]))
		}
		return sum/float64(len(x)) + fittest.Decay(w, l2)
	}
}

// TestGradient: some hinges are active, and the point has no kink nearby.
func TestGradient(t *testing.T) {
	fittest.Gradient(t, ldlm.New(), param.Values{"preset": "paper", "bias": true, "lambda2": 0.7, "lambda3": 0.5,
		"rho": 0.4, "l2": 0.3, "iterations": int64(1)},
		func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) },
		loss(0.7, 0.5, 0.4, 0.3))
}

// standard are the settings of the figures of an independent program (SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.3,
	"lambda2": 0.1, "lambda3": 1.0, "rho": 0.01}

// TestObjectives: the fit on a fold of SJAFFE has the same course as SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	fittest.Open(t, "SJAFFE").Objectives(t, ldlm.New(), standard, loss(0.1, 1, 0.01, 0.3), false,
		[4]float64{1.818437, 1.690009, 1.394894, 0})
}

// TestFolds: the measures on ten folds equal the measures of an independent program.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Classes(t, ldlm.New(), standard, 0.05, [2]float64{.4703, .7649})
	fittest.Open(t, "Yeast_spo5").Classes(t, ldlm.New(), standard, 0.05, [2]float64{.5428, .6552})
}
