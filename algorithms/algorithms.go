// Package algorithms declares what every algorithm of Coppice has beside the Trainer and
// the Kernel of package round: a name, settings, an estimate of its memory, and a Model.
package algorithms

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
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

// Partial is implemented by algorithms that may learn from labels in which degrees are missing (dataset.MissingDegree).
type Partial interface{ LearnsFromIncomplete() bool }

// Weigher is implemented by algorithms that may use the weights of samples: a weight is a factor of the loss of its
// sample, so that a sample of weight 2 counts as two samples.
type Weigher interface {
	// Unweighted returns why the algorithm cannot use weights, as a clause; "": it uses them.
	Unweighted() string
}

// WeightsError returns an error if an algorithm cannot use the weights of samples.
func WeightsError(a Algorithm) error {
	why := "it has no notion of them"
	if w, ok := a.(Weigher); ok {
		why = w.Unweighted()
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s cannot use the weights of samples, because %s", a.Name(), why)
}

// Parent is implemented by algorithms whose trainers ask for rounds of child jobs.
type Parent interface {
	// SubJob returns the job of a task of such a round, as the trainer's Gather.SubJob does.
	// An error says that the job has no such task.
	SubJob(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error)
}

// Divider is implemented by algorithms that divide the training rows of a job once more.
type Divider interface {
	// Divided returns resolved settings (Resolved.Params) as they are for a job of this split, and has the split name the
	// groups if it needs them. Errors are *param.Error.
	Divided(params json.RawMessage, s *dataset.Split, m *dataset.Manifest) (json.RawMessage, error)
}

// Composite is implemented by Trainers whose models consist of results of collected units: a forest
// of trees. Workers that made such a result have it already.
type Composite interface {
	// Pieces lists the results in order, once Next returned nil. Their bytes are those that the
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
	// Model returns the trained model once Next returned nil.
	Model() (Model, error)
}

// Model is a trained model.
type Model interface {
	// Tensors lists the tensors in the order of the digest (design section 8.1).
	Tensors() []Tensor
	// Shape returns the features that the model reads and the labels it predicts.
	Shape() (features, labels int)
	// NewScratch makes the working memory of one caller of Predict.
	NewScratch() any
	// Predict writes what the algorithm predicts (Output) of each row of refs, in order, to
	// dst: a label distribution or class shares (len(refs)×labels, row-major), or a number
	// for each. shard returns a shard by number.
	// A row's prediction does not depend on the other rows.
	Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any)
	// Describe returns the pairs of a name and a value that `model show` prints after
	// the provenance, in order.
	Describe() [][2]string
}

// Tensor is a named array of a model: exactly one of F32, F64, U32 and Pieces is
// set.
type Tensor struct {
	Name string
	Dims []int
	F32  []float32
	F64  []float64
	U32  []uint32
	// Pieces are consecutive pieces of the array, each with its numbers in F32, F64 or
	// U32, the same field in all. With pieces, a forest is written without a copy of its
	// trees' arrays. A decoded tensor has no Pieces.
	Pieces []Tensor
}

// Width returns how many values Model.Predict writes for a row of a dataset with so many
// labels.
func (o Output) Width(labels int) int {
	if o == Number {
		return 1
	}
	return labels
}

// String names what is predicted, as users read it.
func (o Output) String() string {
	switch o {
	case ClassShares:
		return "class shares"
	case Number:
		return "a number"
	case Targets:
		return "targets in bounds"
	}
	return "label distributions"
}

// Output is what a model predicts of a row.
type Output uint8

// The outputs that models have.
const (
	Distribution Output = iota // degrees of the labels, which sum to 1
	ClassShares                // a share for each class, which sum to 1
	Number                     // one number
	Targets                    // a target for each label, scaled to [0, 1]
)

// TargetReader is implemented by algorithms that can learn targets in bounds. They read targets scaled to [0, 1] as
// labels, and their models then predict such (Targets). They find the kind of the labels in the manifest, and write it
// into their models.
type TargetReader interface {
	// ReadsTargets reports whether the algorithm can learn targets.
	ReadsTargets() bool
}

// Mixture says how a model adds up other models, its members.
type Mixture struct {
	Members []Share `json:"members"`
	// OutOfFoldKL is the mean K-L divergence, in nats, of the weighted sum on the rows that
	// the weights were fitted to, each predicted by models that did not see the row; nil: no
	// weights were fitted.
	OutOfFoldKL *float64 `json:"out_of_fold_kl,omitempty"`
	Rows        int      `json:"rows,omitempty"` // of these
}

// Share is a member and its weight.
type Share struct {
	Member string  `json:"member"`
	Weight float64 `json:"weight"`
	// OutOfFoldKL is Mixture.OutOfFoldKL of the member alone.
	OutOfFoldKL *float64 `json:"out_of_fold_kl,omitempty"`
}

// Mixer is implemented by Trainers whose model is a Mixture.
type Mixer interface {
	// Mixture returns the weights once Next returned nil.
	Mixture() *Mixture
}

// ErrNoRows says that a split leaves nothing to train on.
var ErrNoRows = errors.New("there are no training samples")

// Nothing returns the error of a training whose samples have no weight: ErrNoWeights if the samples of the dataset have
// weights, else ErrNoRows.
func Nothing(m *dataset.Manifest) error {
	if m.HasWeights {
		return ErrNoWeights
	}
	return ErrNoRows
}

// ErrNoWeights says that all samples to train on have the weight 0.
var ErrNoWeights = errtext.Errorf(errtext.WrongData, "the weights of all training samples are zero, so nothing can be "+
	"learned")

// BatchUnits returns U, the number of units of a round on a mini-batch of b rows
// of a dataset with s shards: min(s, the largest power of two at most b/32, 1 at
// least) (design section 8.3).
func BatchUnits(b, s int) int {
	u := 1
	for u*2 <= b/32 {
		u *= 2
	}
	return min(u, s)
}

// BatchShare returns b_u, the rows that unit u of n draws of a batch of b rows.
func BatchShare(u, n, b int) int { return (u+1)*b/n - u*b/n }

// Footprint is the memory, in bytes, that the trainer of a job needs, estimated
// from the job's settings and the shape of its data.
type Footprint struct {
	State int64 // the trainer: parameters, moments, gradient, best state, collected results
	Model int64 // the model
	Node  int64 // one node of the reduction tree, at most
	Nodes int64 // nodes that may be in memory at a time
	// Weights is what the weights to begin from take: their file, and what is read of it.
	Weights int64
	// Working is what a Fold takes for a moment. No state has it, so no message does.
	Working int64
}
