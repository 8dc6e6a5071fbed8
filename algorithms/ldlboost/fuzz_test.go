package ldlboost_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlboost"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// fuzzedSets are small jobs: of both orders of growth, and both kinds of second derivatives.
var fuzzedSets = []param.Values{
	{"rounds": int64(3), "leaves": int64(5), "leaf_rows": int64(2), "bins": int64(5)},
	{"rounds": int64(3), "leaves": int64(5), "leaf_rows": int64(2), "bins": int64(5), "grow": "leaf", "hessian": "bound"},
}

// FuzzRestore: see contract.FuzzRestore.
func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, ldlboost.New(), fuzzedSets...) }

// FuzzSettings: see contract.FuzzSettings.
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, ldlboost.New(), fuzzedSets...) }

// FuzzDecodeModel: see contract.FuzzDecodeModel.
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldlboost.New(), fuzzedSets...) }
