package gldknn_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/gldknn"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper"}},
	{Name: "auto", Set: nil},
	{Name: "minmax", Set: param.Values{"k": "7", "scaling": "minmax"}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, gldknn.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, gldknn.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, gldknn.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, gldknn.New(), cases, map[string]string{
		"paper":         "bdb0715998097c0f9aa8ec7e69f3632749dae4bfe279737cd0da8788924ff576",
		"auto":          "d4fe133a4759eba371df61cd55f48677d58c0c65b21f684207c133a4f4a12f3e",
		"minmax":        "693f625ae3c112b4802a64160264b7a3432fd7209bf45aa2f849347f8d64a68e",
		"paper sparse":  "e09779f4d36864470c7dc4064ce8dec68370dfe6d0df70f8d337544d57902f1f",
		"auto sparse":   "391706de077a0d3a2a65959bdb5717c7ab51ceb36ebb3af4990a0ccdc76735e3",
		"minmax sparse": "33279af084ef177cb5b8f4bf984bd98556d07f66d5fe2d9780ac919d59bf88e9",
	})
}

// TestFolds: the measures on ten folds, after the conversion of targets to distributions, equal the measures of an
// independent program, which are also AA-kNN's on these data.
func TestFolds(t *testing.T) {
	raw := param.Values{"preset": "paper"}
	sj, s5 := fittest.OpenTargets(t, "SJAFFE"), fittest.OpenTargets(t, "Yeast_spo5")
	sj.Measures(t, gldknn.New(), raw, 0.005, [6]float64{.1007, .3585, .7367, .0561, .9461, .8727})
	sj.KL(t, gldknn.New(), param.Values{"preset": "paper", "scaling": "standard"}, 0.02, .0442)
	s5.KL(t, gldknn.New(), raw, 0.02, .0324)
}
