// Package learner makes an algorithms.Algorithm of what an algorithm is: its settings, its
// trainer and kernel, its model, the fields of its state, and an estimate of its memory. What
// is the same for all algorithms is here: settings are parsed, checked and filled in, a trainer
// is started or restored, and states have versions.
package learner

import (
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Definition is an algorithm with settings in a C.
type Definition[C any] struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// Predicts is what its models predict.
	Predicts algorithms.Output

	// Settings lists what a spec may say. The setting "preset", if there is one, selects
	// among the defaults.
	Settings param.Table[C]
	// Fill, if set, computes the settings that were not given and follow from others or
	// from the data. It runs before settings are checked.
	Fill func(c *C, given param.Values, m *dataset.Manifest)
	// Divide, if set, computes the settings that follow from the split of the job. Its error is a *param.Error.
	Divide func(c *C, s *dataset.Split, m *dataset.Manifest) error
	// Check, if set, returns a *param.Error where settings, each in its range, contradict
	// one another.
	Check func(c *C) error
	// Fits, if set, returns a *param.Error where settings do not go with the data.
	Fits func(c *C, m *dataset.Manifest) error
	// Validation, if set, returns the share of the training rows that the job validates
	// on, and the least number of these rows.
	Validation func(c *C) (share float64, least int)

	// Weights, if set, returns the digest of the weights that training begins from; "": there
	// are none. Trainer finds them in Job.WeightsFile.
	Weights func(c *C) string
	// FitsWeights, set where Weights is, returns an error if the bytes of these are not of the
	// job's network; a *param.Error where a setting is at fault.
	FitsWeights func(c *C, m *dataset.Manifest, file []byte) error

	// Trainer makes the trainer of a job, before its first round.
	Trainer func(j *Job[C]) (Trainer, error)
	// StateVersion is the version of the fields that Trainer.State lists.
	StateVersion byte
	// Kernel makes the kernel of a job.
	Kernel func(j *Job[C]) (round.Kernel, error)
	// SubJob, if set, returns the job of a unit of the rounds of child jobs that Trainer asks
	// for.
	SubJob func(j *Job[C], unit int) (*round.Job, error)
	// Model makes a model of its tensors, whose memory it may keep.
	Model func(tensors []algorithms.Tensor) (algorithms.Model, error)
	// Memory estimates the memory of a job's trainer.
	Memory func(c *C, m *dataset.Manifest) algorithms.Footprint
}

// Job is a job with its settings, which are checked.
type Job[C any] struct {
	*round.Job
	Config   *C
	Manifest *dataset.Manifest
}

// Trainer is an algorithms.Trainer that lists the fields of its state. It embeds Base.
type Trainer interface {
	algorithms.Trainer
	// State lists the fields: what Next, Progress and Model depend on besides the job. Its
	// checks refuse a state that no run of the job can be in.
	State(l *fields.List)
	// Start begins the job. A trainer that is restored is not started.
	Start()
	binder
}

// binder is told by Define which fields make up the state.
type binder interface {
	bind(version byte, state func(*fields.List))
}

var _ binder = (*Base)(nil)

// Base is embedded in every trainer. It writes the trainer's state, starts with nothing, and
// has no counters.
type Base struct {
	version byte
	state   func(*fields.List)
}

func (b *Base) bind(version byte, state func(*fields.List)) { b.version, b.state = version, state }

// Start implements Trainer.
func (b *Base) Start() {}

// Counters implements algorithms.Trainer.
func (b *Base) Counters() map[string]uint64 { return nil }

// AppendState implements round.Trainer.
func (b *Base) AppendState(dst []byte) ([]byte, error) { return fields.Append(dst, b.version, b.state) }

// WriteState implements round.StateWriter.
func (b *Base) WriteState(w io.Writer) error { return fields.Write(w, b.version, b.state) }
