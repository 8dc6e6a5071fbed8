package rf_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// fuzzedSets are small jobs by histograms. The first one subtracts counts; the second one draws features.
var fuzzedSets = []param.Values{
	{"trees": int64(2), "min_samples": int64(4), "split": "histogram", "bins": int64(5)},
	{"trees": int64(2), "min_samples": int64(4), "split": "histogram", "bins": int64(5), "features": "sqrt"},
}

// FuzzRestore: see contract.FuzzRestore.
func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, rf.New(), fuzzedSets...) }
