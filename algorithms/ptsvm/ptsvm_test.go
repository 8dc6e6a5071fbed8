package ptsvm_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ptsvm"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper"}},
	{Name: "auto", Set: nil},
	{Name: "raw", Set: param.Values{"gamma": 10.0, "scaling": "none"}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ptsvm.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ptsvm.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ptsvm.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ptsvm.New(), cases, map[string]string{
		"paper":        "eb6f7a4b80c6bba6efd6949da7b326136f1d583b6cb949c923f70f33b426329f",
		"auto":         "b2f2d076cca239c635ec921485607a0cbbb7b30ce557665e5701fcc7f4193591",
		"raw":          "2d54104f07d4e38cc0a1218c405c4102615fee56a1b219dc4c0f8bd7f22b74e2",
		"paper sparse": "5be980033fbdad34e9f986825ffa6a7ee841cbcd489f4df815571b9b71db10f1",
		"auto sparse":  "60c1d0b5c6c74fe9ef915d6b79bd344c3e794e57e6e00999b5f8f10e1bba7b7c",
		"raw sparse":   "9c1cfa7278eaf6b838fb179adfa2ee37b96f9f0143dfece01b8e98c33adb8f0d",
	})
}

// TestFolds: the measures on ten folds are those of scikit-learn's LinearSVC with sample_weight, SciPy's sigmoids and
// NumPy's coupling, which draw the three folds of the sigmoids otherwise.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Measures(t, ptsvm.New(), param.Values{"preset": "paper"}, 0.02,
		[6]float64{.1054, .3866, .8054, .0614, .9416, .8617})
}
