// Package pipeline makes a whole job of an algorithm: training, then evaluation
// on the test rows beside the mean predictor; or one such job for each fold. It
// is a Trainer and a Kernel like those it wraps, so the engine sees rounds only.
package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/measures"
)

// Outcome is what a job ends with.
type Outcome struct {
	// ModelDigest identifies the model; for a job of folds it is the SHA-256 of
	// the folds' digests in order.
	ModelDigest string `json:"model_digest"`
	Steps       uint64 `json:"steps"` // those of a refit included
	// BestStep is the step of the state with the least validation loss; 0 where no
	// rows validated, and for a job of folds.
	BestStep uint64 `json:"best_step,omitempty"`
	// RefitSteps are the steps that trained once more, on the validation rows too.
	RefitSteps uint64  `json:"refit_steps,omitempty"`
	Samples    uint64  `json:"samples"`
	Loss       float64 `json:"loss"` // the last training loss, as K-L
	// EvaluatedOn says which rows the measures are of: "test rows", or "training
	// rows" where the job holds none back.
	EvaluatedOn string `json:"evaluated_on"`
	Rows        Counts `json:"rows"`
	// Measures are over rows, or over folds for a job of folds.
	Measures measures.Report `json:"measures"`
	// Baseline are the same measures of predicting the training mean.
	Baseline measures.Report `json:"mean_predictor"`
	// Counters are the algorithm's own counts by name, as a Counter gives them;
	// for a job of folds they are sums.
	Counters map[string]uint64 `json:"counters,omitempty"`
	Folds    []*Outcome        `json:"folds,omitempty"`

	// Model is the model file; empty for a job of folds, whose models are in
	// Folds.
	Model []byte `json:"-"`
	// Predictions is a predictions.Set of the held-out rows, encoded; empty where
	// there are none or they are too many to be kept. Those of folds are together.
	Predictions []byte `json:"-"`
}

// Counts says how many rows played each role.
type Counts struct {
	Train      int `json:"train"`
	Validation int `json:"validation"`
	Test       int `json:"test"`
}

// Finisher is a Trainer that knows its outcome once it is done.
type Finisher interface {
	algorithms.Trainer
	Outcome() (*Outcome, error)
}

var (
	_ algorithms.Gatherer = (*single)(nil)
	_ algorithms.Gatherer = (*folds)(nil)
)

// Counter is what a Trainer implements that counts something of its own:
// gain_evaluations, for example.
type Counter interface{ Counters() map[string]uint64 }

// progress is where the job of the outcome ended.
func (o *Outcome) progress() algorithms.Progress {
	return algorithms.Progress{Step: o.Steps, Steps: o.Steps, Samples: o.Samples, Loss: o.Loss}
}

// Encode returns the bytes by which a child job reports its outcome, model and
// predictions.
func (o *Outcome) Encode() ([]byte, error) {
	head, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("a fold's result: %w", err)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	b = append(b, head...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(o.Model)))
	b = append(b, o.Model...)
	return append(b, o.Predictions...), nil
}

// DecodeOutcome reads what Encode wrote.
func DecodeOutcome(b []byte) (*Outcome, error) {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
		return nil, errors.New("a fold's result is cut short")
	}
	n := int(binary.LittleEndian.Uint64(b))
	o := new(Outcome)
	if err := json.Unmarshal(b[8:8+n], o); err != nil {
		return nil, fmt.Errorf("a fold's result: %w", err)
	}
	if b = b[8+n:]; len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
		return nil, errors.New("a child's model is cut short")
	}
	n = 8 + int(binary.LittleEndian.Uint64(b))
	if o.Model = b[8:n:n]; n < len(b) {
		o.Predictions = b[n:]
	}
	return o, nil
}

// foldsDigest is the identity of a job of folds.
func foldsDigest(folds []*Outcome) string {
	h := sha256.New()
	h.Write([]byte("coppice-folds\x00"))
	for _, f := range folds {
		h.Write([]byte(f.ModelDigest))
	}
	return hex.EncodeToString(h.Sum(nil))
}
