package ranking

import (
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations.
const (
	opRows    uint8 = iota + 1 // collects landmarks
	opFit                      // the whole fit, of all rows
	opSums                     // sums of features
	opSquares                  // squared distances of scaled features from their mean
	opStage                    // the sums of a stage of the alternation
)

// The variables.
const (
	varMean   uint16 = iota // of the features
	varKept                 // landmarks, as an encoded shard
	varWidth                // the deviation of the scaled features
	varNow                  // the stage, then u, then v
	varLabels               // u and v that the rows' numbers are taken at; nothing: they are the middles of the intervals
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
	_ round.Demanding    = (*kernel)(nil)
)

// kernel computes fits and sums.
type kernel struct {
	cfg    Config
	rows   int // of the dataset
	wanted rows.Wanted

	mu    sync.Mutex // held while landmarks are decoded
	kept  []byte     // that marks were made from
	marks *marks
}

// marks are landmarks, ready for distances.
type marks struct {
	distances *rows.Distances
	widths    []float64 // δ_o²
}

// newKernel returns the kernel of a job.
func newKernel(j *learner.Job[Config]) *kernel {
	return &kernel{cfg: *j.Config, rows: j.Manifest.Rows, wanted: wanted(j)}
}

// wanted says which rows are landmarks.
func wanted(j *learner.Job[Config]) rows.Wanted {
	return rows.Wanted{Most: j.Config.Landmarks, Key: num.NewKey(j.Seed, "ranking/landmarks")}
}

func errOperation(op uint8) error {
	return fmt.Errorf("ranking: the task has the unknown operation %d", op)
}
