package spec

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Memory is an estimate, in bytes, of the memory of a job on the leader.
type Memory struct {
	// State is the training state and the copy of it that is being committed, and the weights
	// that training begins from. For a job of folds, which has its training states on workers, it is the outcomes of the
	// folds.
	State int64
	// Tree is the greatest size of the partials in the reduction tree.
	Tree int64
	// Message bounds the largest message between leader and workers: a value, a partial,
	// or a fold's training state.
	Message int64
	// Algorithm has the largest message.
	Algorithm string
}

// copies is the greatest number of copies of held-out predictions in memory: collected
// results, decoded, merged, and in a commit.
const copies = 4

// Estimate estimates a job's memory on the leader from the resolved job and the shape of its
// dataset. It does not include memory on workers.
func Estimate(j *round.Job, m *dataset.Manifest) (Memory, error) {
	if j.Cells != nil {
		return estimateCells(j, m)
	}
	a, err := find(j.Algorithm)
	if err != nil {
		return Memory{}, err
	}
	f, err := footprint(a, j, m)
	if err != nil {
		return Memory{}, err
	}
	kept := int64(0)
	heldOut := int(j.Split.TestFraction * float64(j.Split.Divided(m.Rows)))
	if n := pipeline.PredictionBytes(j, m, heldOut); n <= j.Predictions {
		kept = copies * n
	}
	if j.Folds > 0 {
		return Memory{State: 2*int64(j.Folds)*f.Model + kept, Message: f.State, Algorithm: j.Algorithm}, nil
	}
	linear, err := pipeline.LinearFootprint(j, m)
	if err != nil {
		return Memory{}, err
	}
	return Memory{
		State:   2*(f.State+linear.State) + f.Working + linear.Working + f.Weights + kept,
		Tree:    max(f.Node*f.Nodes, linear.Node*linear.Nodes),
		Message: max(f.Node, linear.Node), Algorithm: j.Algorithm,
	}, nil
}

// footprint is the footprint of the algorithm of a job, with its label enhancement.
func footprint(a algorithms.Algorithm, j *round.Job, m *dataset.Manifest) (algorithms.Footprint, error) {
	f, err := a.Footprint(j, m)
	if err == nil && j.Enhance != nil {
		state, message := enhance.Footprint(m)
		f.State, f.Node = f.State+state, max(f.Node, message)
	}
	return f, err
}

// cellBytes is about what the outcome of a run takes without its model, and its sub-job.
const cellBytes = 6 << 10

// estimateCells estimates a job of runs: the outcomes of all, with the models if these are
// kept.
func estimateCells(j *round.Job, m *dataset.Manifest) (all Memory, err error) {
	if err := j.Cells.Check(j.Split.Folds, j.Split.Overlap); err != nil {
		return all, err
	}
	folds := int64(j.Cells.Repeats) * int64(j.Cells.Folds)
	for i := range j.Cells.Rows {
		row, one := &j.Cells.Rows[i], *j
		one.Cells, one.Algorithm, one.Params, one.Enhance = nil, row.Algorithm, row.Params, row.Enhance
		a, err := find(row.Algorithm)
		if err != nil {
			return all, err
		}
		f, err := footprint(a, &one, m)
		if err != nil {
			return all, err
		}
		size := cellBytes + pipeline.RecordBytes(j, m)
		if j.Cells.Models {
			size += 2 * f.Model
		}
		all.State += folds * size
		if f.State > all.Message || all.Algorithm == "" {
			all.Message, all.Algorithm = f.State, row.Algorithm
		}
	}
	return all, nil
}
