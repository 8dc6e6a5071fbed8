// Package algorithms declares what every algorithm of Coppice has beside the Trainer and
// the Kernel of package round: a name, settings, an estimate of its memory, and a Model.
package algorithms

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Algorithm is one entry of the registry. Package learner makes it of what an algorithm is.
type Algorithm interface {
	// Name is the word that selects the algorithm in a spec: "ldlf".
	Name() string
	// Doc says what the algorithm is, in one line.
	Doc() string
	// About says in words what the algorithm is for, and where it comes from.
	About() About
	// Predicts is what its models predict.
	Predicts() Output
	// Params lists the settings that a spec may give, in the order of help texts.
	Params() []param.Param
	// Resolve checks the settings that the user gave, fills in the rest (presets
	// may look at the dataset) and returns the JSON that becomes Job.Params, and
	// the validation share that goes into Job.Split. Errors are *param.Error
	// where one setting is at fault.
	Resolve(given param.Values, m *dataset.Manifest) (Resolved, error)
	// NewTrainer starts a job; state is nil, or what AppendState wrote.
	NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (Trainer, error)
	// NewKernel makes the job's kernel; it is shared by concurrent units.
	NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error)
	// Footprint estimates the memory that the trainer of a job needs. An error says that
	// the settings are not of this algorithm.
	Footprint(j *round.Job, m *dataset.Manifest) (Footprint, error)
	// DecodeModel rebuilds a model from the tensors of a model file.
	DecodeModel(tensors []Tensor) (Model, error)
}

// About describes an algorithm to somebody who chooses one.
type About struct {
	// Class is the name of the algorithm's class in the Python library, such as StructRF.
	Class string
	// Summary says what the algorithm is, in a few words.
	Summary string
	// When says when to use the algorithm, in one sentence.
	When string
	// Paper names the authors, the year and the title of the paper. It is empty if the algorithm has no paper.
	Paper string
}

// Resolved is what Algorithm.Resolve returns.
type Resolved struct {
	Params             json.RawMessage
	ValidationFraction float64
	ValidationMin      int
	Weights            string // of Job.Weights
}

// Beginner is implemented by algorithms whose training may begin from given weights.
type Beginner interface {
	// FitsWeights returns an error, a *param.Error where a setting is at fault, if the weights
	// of a job (Job.WeightsFile) are not of its network.
	FitsWeights(j *round.Job, m *dataset.Manifest) error
}

// Parent is implemented by algorithms whose trainers ask for rounds of child jobs.
type Parent interface {
	// SubJob returns the job of a task of such a round, as the trainer's Gather.SubJob does.
	// An error says that the job has no such task.
	SubJob(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error)
}

// Divider is implemented by algorithms that divide the training rows of a job once more.
type Divider interface {
	// Divided returns resolved settings (Resolved.Params) as they are for a job of this split. Errors are *param.Error.
	Divided(params json.RawMessage, s *dataset.Split, m *dataset.Manifest) (json.RawMessage, error)
}

// Composite is implemented by Trainers whose models consist of results of collected units: a forest
// of trees. Workers that made such a result have it already.
type Composite interface {
	// Pieces lists the results in order, once Next said Done. Their bytes are those that the
	// units returned.
	Pieces() []round.Chunk
}

// Composer is implemented by the Kernels of algorithms whose Trainers are Composite.
type Composer interface {
	// Compose makes the model of the pieces: Model.Predict gives the same bits as that of
	// Trainer.Model. The model may share the memory of the pieces.
	Compose(pieces []round.Chunk) (Model, error)
}

// Trainer is a round.Trainer that ends with a model.
type Trainer interface {
	round.Trainer
	// Counters returns the algorithm's own counts by name, such as gain_evaluations; nil:
	// it has none.
	Counters() map[string]uint64
	// Model returns the trained model once Next said Done.
	Model() (Model, error)
}
