package ranking_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ranking"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// by sums are jobs of rounds of sums: the state is cut inside inner loops and between rounds of
// EM.
var (
	bySums   = param.Values{"landmarks": int64(20), "loops": int64(2), "em_rounds": int64(2), "lambda": 0.01}
	exact    = param.Values{"loops": int64(2), "em_rounds": int64(2), "lambda": 0.01}
	minmax   = param.Values{"landmarks": int64(20), "loops": int64(1), "scaling": "minmax"}
	byKernel = param.Values{"landmarks": int64(500), "loops": int64(1), "kernels": int64(2), "widths": "printed",
		"preset": "paper"}
)

// TestContract: both forms pass the suite.
func TestContract(t *testing.T) {
	contract.Run(t, ranking.New(), contract.Case{Name: "by sums", Set: bySums},
		contract.Case{Name: "all by sums", Set: byKernel},
		contract.Case{Name: "minmax", Set: minmax})
}

// FuzzRestore: see contract.FuzzRestore.
func FuzzRestore(f *testing.F) {
	contract.FuzzRestore(f, ranking.New(), exact, bySums, minmax, byKernel)
}

// FuzzSettings: see contract.FuzzSettings.
func FuzzSettings(f *testing.F) {
	contract.FuzzSettings(f, ranking.New(), exact, bySums, minmax, byKernel)
}

// FuzzDecodeModel: see contract.FuzzDecodeModel.
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, ranking.New(), exact, bySums, minmax, byKernel)
}
