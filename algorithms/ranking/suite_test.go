package ranking_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/algorithmtest"
	"github.com/coppice-ldl/coppice/algorithms/param"
	"github.com/coppice-ldl/coppice/algorithms/ranking"
)

// by sums are jobs of rounds of sums: the state is cut inside inner loops and between rounds of
// EM.
var (
	bySums   = param.Values{"landmarks": int64(20), "loops": int64(2), "em_rounds": int64(2), "lambda": 0.01}
	exact    = param.Values{"loops": int64(2), "em_rounds": int64(2), "lambda": 0.01}
	byKernel = param.Values{"landmarks": int64(500), "loops": int64(1), "kernels": int64(2), "widths": "printed", "preset": "paper"}
)

// TestContract: both forms pass the suite.
func TestContract(t *testing.T) {
	algorithmtest.Run(t, ranking.New(), algorithmtest.Case{Name: "by sums", Set: bySums}, algorithmtest.Case{Name: "all by sums", Set: byKernel})
}

// FuzzRestore: see algorithmtest.FuzzRestore.
func FuzzRestore(f *testing.F) { algorithmtest.FuzzRestore(f, ranking.New(), exact, bySums) }

// FuzzSettings: see algorithmtest.FuzzSettings.
func FuzzSettings(f *testing.F) { algorithmtest.FuzzSettings(f, ranking.New(), exact, bySums) }

// FuzzDecodeModel: see algorithmtest.FuzzDecodeModel.
func FuzzDecodeModel(f *testing.F) { algorithmtest.FuzzDecodeModel(f, ranking.New(), exact, bySums) }
