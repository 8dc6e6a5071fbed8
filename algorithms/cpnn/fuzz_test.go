package cpnn

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{
		{"hidden": int64(3), "steps": int64(30), "validation_steps": int64(4), "patience": int64(2)},
		{"preset": "paper", "hidden": int64(2), "steps": int64(20), "label_input": "number"},
		{"scaling": "minmax", "hidden": int64(4), "steps": int64(5)},
	}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }
