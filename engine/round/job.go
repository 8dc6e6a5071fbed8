package round

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
)

// Numerics names the arithmetic that decides a model's bits. Any change that
// alters a digest raises it.
const Numerics = 1

// AlgorithmCells stands in Job.Algorithm of a job of runs.
const AlgorithmCells = "cells"

// Job is a resolved job: with the dataset it decides the model, bit for bit.
type Job struct {
	Algorithm string        `json:"algorithm"`
	Numerics  int           `json:"numerics"`
	Seed      uint64        `json:"seed"`
	Dataset   string        `json:"dataset"` // Manifest.Digest
	Split     dataset.Split `json:"split"`
	// Folds > 0 runs the job once for each fold of Split as sub-jobs and
	// averages their measures.
	Folds int `json:"folds,omitempty"`
	// Cells, where set, runs the job as runs: sub-jobs with algorithms and settings of their
	// own. Algorithm is AlgorithmCells then.
	Cells *Cells `json:"cells,omitempty"`
	// Fill says by what the missing features of the dataset are filled: dataset.FillMean or
	// dataset.FillMedian of the training rows; empty: there are none.
	Fill string `json:"fill,omitempty"`
	// Params holds the algorithm's resolved settings in its own JSON form.
	Params json.RawMessage `json:"settings"`
	// Predictions is the greatest size, in bytes, of the predictions of held-out rows
	// that are stored with the job; 0: none are. The model does not depend on it.
	Predictions int64 `json:"predictions,omitempty"`
	// PredictedRows, where above 0, keeps the predictions of so many held-out rows, which the
	// seed of the split draws, in the place of those of all. The model does not depend on it.
	PredictedRows int `json:"predicted_rows,omitempty"`
	// Measures says which measures the job has, and Clip whether degrees are clipped for
	// them: see pipeline.JobPlan. The model does not depend on either.
	Measures string `json:"measures,omitempty"`
	Clip     string `json:"clip,omitempty"`
	// NoModel leaves the model out of the job's outcome, which has its digest: the sub-job
	// is trained for its predictions.
	NoModel bool `json:"no_model,omitempty"`
	// Weights is the digest of the blob whose weights training begins from, where the settings
	// name one: see package network. Its bytes are no part of the job; see WithWeights.
	Weights string `json:"weights,omitempty"`
	// WeightsFile are the bytes of that blob, where WithWeights added them.
	WeightsFile []byte `json:"-"`
}

// WithWeights returns the job with the bytes of the blob that Weights names, which its trainer
// needs. An error says that they are others.
func (j *Job) WithWeights(b []byte) (*Job, error) {
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != j.Weights {
		return nil, fmt.Errorf("the weights to start from have the digest %x, but the job names %.80s", sum, j.Weights)
	}
	with := *j
	with.WeightsFile = b
	return &with, nil
}
