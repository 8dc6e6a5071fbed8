package spec

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/dataset"
)

// Memory is an estimate, in bytes, of what a job takes on the coordinator that
// leads.
type Memory struct {
	// State is the trainer's state and the copy of it that is being committed; of a
	// job of folds, whose states are the workers', the outcome of each fold.
	State int64
	// Tree is what waits in the reduction tree for its sibling, at most.
	Tree int64
	// Message is the largest message between leader and workers, at most: a value, a sum,
	// or a fold's training state.
	Message int64
}

// Total returns the whole.
func (m Memory) Total() int64 { return m.State + m.Tree }

// Estimate tells, from a resolved job and its dataset's shape alone, what memory
// the job takes on the leader; what its data take on workers is not part of it.
func Estimate(j *algorithms.Job, m *dataset.Manifest) (Memory, error) {
	a, err := find(j.Algorithm)
	if err != nil {
		return Memory{}, err
	}
	measured, ok := a.(algorithms.Measured)
	if !ok {
		return Memory{}, nil
	}
	f, err := measured.Footprint(j, m)
	if err != nil {
		return Memory{}, err
	}
	kept := copies * predicted(j, m)
	if j.Folds > 0 {
		return Memory{State: 2*int64(j.Folds)*f.Model + kept, Message: f.State}, nil
	}
	return Memory{State: 2*f.State + kept, Tree: f.Node * f.Nodes, Message: f.Node}, nil
}

// copies is how often predictions of held-out rows are there at most: as parts, taken
// apart, put together, and in a commit.
const copies = 4

// predicted is what the predictions that a job keeps take.
func predicted(j *algorithms.Job, m *dataset.Manifest) int64 {
	bytes := pipeline.PredictionBytes(j, m, int(j.Split.TestFraction*float64(m.Rows)))
	if bytes > j.Predictions {
		return 0
	}
	return bytes
}
