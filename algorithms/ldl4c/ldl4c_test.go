package ldl4c_test

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldl4c"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3)}},
	{Name: "path", Set: param.Values{"c1": 1.0, "iterations": int64(50), "validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ldl4c.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ldl4c.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldl4c.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldl4c.New(), cases, map[string]string{
		"paper":        "419594f7b2f60d90a5e91a295429c501e4cbdb8f5f82547c91fb4e36c63c338e",
		"auto":         "40ce6b52d2242d8209a80596a38a84d6d1a826deadd9a33bf61052ed2796a455",
		"path":         "85c75fa5a5890669422d01a3751d7646a4672033c41fac35567e2ddf27f0f2e6",
		"paper sparse": "b2cc292e75c8ee6616b30fef14374b63cba2062640f7223f318e86e828359199",
		"auto sparse":  "40ceb57a01b797336099ee8d17ed0164fbb3cb85114c6403b8e1526bc4d8d78b",
		"path sparse":  "4141e795a38f8252b20584f6e79aefe3e81cbd0a6319849f5a80dceacefa2beb",
	})
}

// loss is the objective by plain loops.
func loss(c1, rho, l2 float64) fittest.Loss {
	return func(x, d, w [][]float64) float64 {
		sum := 0.0
		for i := range x {
			p, t := fittest.Predict(x[i], w), slices.Index(d[i], slices.Max(d[i]))
			entropy, distance, other := 0.0, 0.0, math.Inf(-1)
			for c, v := range p {
				if d[i][c] > 0 {
					entropy -= d[i][c] * math.Log(d[i][c])
				}
				distance += math.Abs(v - d[i][c])
				if c != t {
					other = math.Max(other, v)
				}
			}
			sum += entropy*distance + c1*math.Max(0, 1-(p[t]-other)/rho)
		}
		return sum/float64(len(x)) + fittest.Decay(w, l2)
	}
}

// TestGradient: some hinges are active, and the point has no kink nearby.
func TestGradient(t *testing.T) {
	fittest.Gradient(t, ldl4c.New(), param.Values{"preset": "paper", "bias": true, "c1": 0.7, "rho": 0.4, "l2": 0.3,
		"iterations": int64(1)}, func(tr algorithms.Trainer) *maxent.Trainer { return tr.(*maxent.Trainer) },
		loss(0.7, 0.4, 0.3))
}

// standard are the settings of the figures of an independent program (SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.3, "c1": 0.01, "rho": 0.1}

// TestObjectives: the fit on a fold of SJAFFE has the same course as SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	fittest.Open(t, "SJAFFE").Objectives(t, ldl4c.New(), standard, loss(0.01, 0.1, 0.3), false,
		[4]float64{.523733, .383330, .204362, 0})
}

// TestFolds: the measures on ten folds equal the measures of an independent program.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Classes(t, ldl4c.New(), standard, 0.05, [2]float64{.5214, .7725})
	fittest.Open(t, "Yeast_spo5").Classes(t, ldl4c.New(), standard, 0.05, [2]float64{.5817, .6542})
}
