package mlpregression

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{
		{"hidden": int64(3), "passes": int64(3)},
		{"preset": "paper", "hidden": int64(2), "passes": int64(30), "tolerance": 0.5, "patience": int64(2)},
		{"scaling": "minmax", "hidden": int64(4), "passes": int64(2), "batch_size": int64(64)},
	}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }
