// Package algorithms declares what every algorithm of Coppice is made of: a
// Trainer (the leader's half, a deterministic state machine), a Kernel
// (the workers' half, a pure function) and a Model. engine/DESIGN.md says how
// the engine, which knows no algorithm, runs them.
package algorithms

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/dataset"
)

// Numerics names the arithmetic that decides a model's bits. Any change that
// alters a digest raises it.
const Numerics = 1

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
	// Params holds the algorithm's resolved settings in its own JSON form.
	Params json.RawMessage `json:"settings"`
	// Predictions is the greatest size, in bytes, of the predictions of held-out rows
	// that are stored with the job; 0: none are. The model does not depend on it.
	Predictions int64 `json:"predictions,omitempty"`
}

// Algorithm is one entry of the registry.
type Algorithm interface {
	// Name is the word that selects the algorithm in a spec: "ldlf".
	Name() string
	// Params lists the settings that a spec may give, in the order of help texts.
	Params() []Param
	// Resolve checks the settings that the user gave, fills in the rest (presets
	// may look at the dataset) and returns the JSON that becomes Job.Params, and
	// the validation share that goes into Job.Split. Errors are *ParamError
	// where one setting is at fault.
	Resolve(given Values, m *dataset.Manifest) (Resolved, error)
	// NewTrainer starts a job; state is nil, or what AppendState wrote.
	NewTrainer(j *Job, m *dataset.Manifest, state []byte) (Trainer, error)
	// NewKernel makes the job's kernel; it is shared by concurrent units.
	NewKernel(j *Job, m *dataset.Manifest) (Kernel, error)
	// DecodeModel rebuilds a model from the tensors of a model file.
	DecodeModel(tensors []Tensor) (Model, error)
}

// Resolved is what Algorithm.Resolve returns.
type Resolved struct {
	Params             json.RawMessage
	ValidationFraction float64
	ValidationMin      int
}

// Trainer is the deterministic half of an algorithm. It has no clock, goroutine,
// I/O, map iteration or global randomness. Next and Fold alternate; AppendState
// may be called between Fold and Next only.
type Trainer interface {
	// Next returns the next round; it and what it points to stay valid and
	// unchanged until Fold. A Round with Done set ends the job.
	Next() (*Round, error)
	// Fold takes the result of the round that Next returned.
	Fold(*Result) error
	// AppendState appends the state to dst: NewTrainer with it continues to the
	// same bits.
	AppendState(dst []byte) ([]byte, error)
	// Progress tells how far the job is.
	Progress() Progress
	// Model returns the trained model once Next said Done.
	Model() (Model, error)
}

// UnitReporter is implemented by Trainers whose rounds are collected: it gives the progress
// of a round whose units are not all done.
type UnitReporter interface {
	// ResultProgress returns what a unit with these result bytes adds to Progress. It
	// changes nothing and may be called concurrently between Next and Fold.
	ResultProgress(part []byte) (Progress, error)
	// RoundProgress returns the job's Progress from that of the round's units, of which
	// units lists each.
	RoundProgress(units []UnitProgress) Progress
}

// UnitProgress is how far a unit of a collected round is.
type UnitProgress struct {
	Progress      // of the unit alone
	Known    bool // Progress is set
	Done     bool // its result has arrived
}

// Kernel is the pure half of an algorithm: the same unit gives the same bytes
// anywhere. It may be called concurrently with different scratch.
type Kernel interface {
	// NewScratch makes the working memory of one slot.
	NewScratch() any
	// Derive computes the unit's derived value, which the engine may cache and hands
	// to every Run of that unit with the same DerivedVersion. It is called only when
	// DerivedVersion is not 0. A nil value is not cached: Run computes without it.
	Derive(u Unit, d *dataset.Data, v Vars, scratch any) (any, error)
	// Run computes the unit into dst, whose slices have the lengths of Round.Shape and
	// are zero. derived is the result of Derive, or nil.
	Run(dst *Partial, u Unit, d *dataset.Data, v Vars, derived, scratch any) error
}

// Sized is implemented by derived values: a cache counts their bytes.
type Sized interface{ Bytes() int }

// RefCounted is implemented by derived values whose memory is reused. Derive returns the
// value with one reference; the Release of the last reference frees it for reuse.
type RefCounted interface {
	Retain()
	Release()
}

// Progress is for display only. Losses are K-L divergences in nats.
type Progress struct {
	Step  uint64 `json:"step"`
	Steps uint64 `json:"steps"` // 0 where unknown
	// MostSteps is the greatest possible number of steps, those of a refit included, if
	// training may end earlier; 0: training takes Steps.
	MostSteps uint64 `json:"most_steps,omitempty"`
	// BestStep is the step of the state with the least validation loss, BestLoss;
	// 0: none yet.
	BestStep uint64  `json:"best_step,omitempty"`
	BestLoss float64 `json:"best_loss,omitempty"`
	// Refit is the number of refit steps among Steps: training on training and
	// validation rows.
	Refit   uint64  `json:"refit_steps,omitempty"`
	Samples uint64  `json:"samples"` // rows processed so far
	Loss    float64 `json:"loss"`    // the last known training loss; negative: none yet
	// Validation is the last validation loss, of the state at step ValidatedAt; 0
	// there: none yet.
	Validation  float64 `json:"validation_loss,omitempty"`
	ValidatedAt uint64  `json:"validation_step,omitempty"`
	Phase       string  `json:"phase"` // "training", "leaf update", ...
}
