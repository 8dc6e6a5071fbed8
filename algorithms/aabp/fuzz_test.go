package aabp

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{
		{"hidden": int64(3), "steps": int64(40), "validation_steps": int64(5), "patience": int64(2)},
		{"preset": "paper", "hidden": int64(2), "steps": int64(20), "scaling": "minmax"},
		{"units": "relu", "hidden": int64(4), "steps": int64(12), "refit": false, "weight_decay": 0.01},
	}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }
