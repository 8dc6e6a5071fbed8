package round

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/dataset"
)

// Numerics names the arithmetic that decides a model's bits. Any change that
// alters a digest raises it.
const Numerics = 1

// AlgorithmCells stands in Job.Algorithm of a job of cells.
const AlgorithmCells = "cells"

// Job is a resolved job: with the dataset it decides the model, bit for bit.
type Job struct {
	Algorithm string        `json:"algorithm"`
	Numerics  int           `json:"numerics"`
	Seed      uint64        `json:"seed"`
	Dataset   string        `json:"dataset"` // Manifest.Digest
	Split     dataset.Split `json:"split"`
	// Folds > 0 runs the job once for each fold of Split as child jobs and
	// averages their measures.
	Folds int `json:"folds,omitempty"`
	// Cells, where set, runs the job as cells: child jobs with algorithms and settings of their
	// own. Algorithm is AlgorithmCells then.
	Cells *Cells `json:"cells,omitempty"`
	// Params holds the algorithm's resolved settings in its own JSON form.
	Params json.RawMessage `json:"settings"`
	// Predictions is the greatest size, in bytes, of the predictions of held-out rows
	// that are stored with the job; 0: none are. The model does not depend on it.
	Predictions int64 `json:"predictions,omitempty"`
	// Measures says which measures the job has, and Clip whether degrees are clipped for
	// them: see pipeline.JobPlan. The model does not depend on either.
	Measures string `json:"measures,omitempty"`
	Clip     string `json:"clip,omitempty"`
	// NoModel leaves the model out of the job's outcome, which has its digest: the child job
	// is trained for its predictions.
	NoModel bool `json:"no_model,omitempty"`
}
