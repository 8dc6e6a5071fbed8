// Package gradient has what learners share whose parameters Θ go down the gradient of a loss in
// mini-batches:
//
//	Sample     a row as functions and losses read it
//	Batches    the rows of a mini-batch, drawn by counters
//	Function   f(x; Θ) with its gradient: Linear, or one of package network
//	Optimizer  SGD with momentum, Adam
//	Stopping   early stopping by validation loss
//	Descent    the loop over these: the leader's half of a learner, but for its model
//	Kernel     the workers' half of that loop; the learner adds its Loss
//
// A learner has a trainer that embeds a Descent, a kernel that has a Kernel, a Loss, and a model.
// softmaxtest is the smallest one. LDLF adds leaf updates: rounds of its own between the steps,
// and q, which is validated and stored beside Θ.
//
// Package gradienttest holds a Function against finite differences.
//
// The rounds have the operations 210 to 212 and the variables 0xfe10 to 0xfe1f; those of the
// scaling come before.
package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Function is a feature function f(x; Θ), which maps a row to outputs that a loss reads: a
// linear one, or a network. It is stateless and shared by lanes; what it works in is its
// Workspace.
//
// In a step a kernel calls Begin with all samples of the unit, then Forward and Backward with
// one block of them after the other. Everywhere else it calls Predict alone.
type Function interface {
	// Layout lists the tensors that Θ consists of, in order.
	Layout() []Layer
	// Initialise fills Θ with its first values, from streams of the key.
	Initialise(theta []float32, key num.Key)
	// OutputsFrom returns which parameters belong to one output unit alone: parameter first+i
	// belongs to unit i mod units.
	OutputsFrom() (first, units int)
	// NewWorkspace makes the working memory of one lane.
	NewWorkspace() Workspace

	// Predict writes f(x; Θ) of every sample to dst (len(samples)×outputs, or longer), as
	// prediction, validation and leaf updates need it: without dropout.
	Predict(dst []float32, samples []Sample, w *Weights, ws Workspace)
	// Forward is Predict for the gradient of mini-batch step: with dropout, whose streams
	// count steps and Sample.Row; it leaves in ws what Backward needs.
	Forward(dst []float32, samples []Sample, w *Weights, step uint64, ws Workspace)

	// GradientShape is what Backward fills in a partial, beside the first GradientAt
	// values of F64.
	GradientShape() round.Shape
	// Begin readies dst for the samples of a task. Backward then gets all of them,
	// at most block in a call.
	Begin(dst *round.Partial, u *round.Task, samples []Sample, block int, ws Workspace)
	// Backward adds Σ df·∂f/∂Θ over the samples to dst. Forward has just had
	// the same samples, with this workspace; df is len(samples)×outputs.
	Backward(dst *round.Partial, df []float32, samples []Sample, w *Weights, ws Workspace)

	// GradientRows returns n if the gradient of the first n parameters is in the rows of a sum
	// (Index, Values, Width), and zero elsewhere. It returns 0 if the gradient is dense.
	GradientRows(x *scaling.Values) int
	// Stride divides from of Gradient. It also divides len(g), unless the part ends with Θ.
	Stride() int
	// Gradient sets g to factor times the gradient that sum holds, of the parameters
	// from the given one on.
	Gradient(g []float32, from int, sum *round.Partial, factor float32, x *scaling.Values)
}

// Limited is a Function whose working memory grows with the rows that it takes at once: more than
// MostRows are for Forward and Backward only where somebody has no choice.
type Limited interface{ MostRows() int }

// Workspace is a feature function's working memory: its own type.
type Workspace any

// Weights are what a feature function reads: Θ of some version, and the scaling
// of its input. Equal versions are equal values.
type Weights struct {
	Theta   []float32
	Version uint64
	Input   scaling.Values
}

// GradientAt is the number of F64 values of a step's partial that are not the
// feature function's: rows drawn, and the sum of their losses.
const GradientAt = 2

// Layer is a tensor of Θ, as a model file has it.
type Layer struct {
	Name string
	Dims []int
	Bias bool // it has biases alone, which Rule.SpareBiases keeps from decay
}

// Size returns how many values the tensor has.
func (l *Layer) Size() int {
	n := 1
	for _, d := range l.Dims {
		n *= d
	}
	return n
}

// Parameters returns the length of f's Θ.
func Parameters(f Function) int {
	n := 0
	for _, l := range f.Layout() {
		n += l.Size()
	}
	return n
}

// Tensors lists what a model has of f. A Θ of one tensor that is read shares the tensor's memory.
func Tensors(l *learner.Tensors, f Function, theta *[]float32) {
	var read []float32
	rest := *theta
	for i, layer := range f.Layout() {
		n := min(layer.Size(), len(rest))
		values := rest[:n:n]
		rest = rest[n:]
		l.F32(layer.Name, &values, layer.Dims...)
		if i == 0 {
			read = values
		} else {
			read = append(read, values...)
		}
	}
	if l.Reading() {
		*theta = read
	}
}

// Sample is one row as a feature function and a loss read it. Its slices
// alias the shard: they are valid while the shard is at hand.
type Sample struct {
	Row     uint32 // the row's number in the dataset; 0 where the shard has none
	Sparse  bool
	Columns []uint32  // of a sparse row
	X       []float32 // features, or the non-zeros of a sparse row
	D       []float32 // label degrees; nil where the shard has none
	Shard   *dataset.Rows
	Pos     int // of the row in Shard, which also has its number on a scale
}

// SampleOf returns the row of r at a position.
func SampleOf(r *dataset.Rows, pos int) (s Sample) {
	s.take(r, pos)
	return s
}

// Weight returns the weight of the row.
func (s *Sample) Weight() float64 {
	if s.Shard == nil {
		return 1
	}
	return s.Shard.WeightOf(s.Pos)
}

// take sets s to the row of r at a position.
func (s *Sample) take(r *dataset.Rows, pos int) {
	*s = Sample{Shard: r, Pos: pos}
	if r.Sparse {
		s.Sparse = true
		s.Columns, s.X = r.NonZeros(pos)
	} else {
		s.X = r.Dense(pos)
	}
	if r.Labels > 0 {
		s.D = r.Label(pos)
	}
	if pos < len(r.Row) {
		s.Row = r.Row[pos]
	}
}

// Gather appends the samples at positions rows of refs to dst.
func Gather(dst []Sample, rows []uint32, refs []dataset.RowRef, d *dataset.Data) []Sample {
	var shard *dataset.Rows
	of := -1
	dst = slices.Grow(dst, len(rows))
	for _, row := range rows {
		ref := refs[row]
		if int(ref.Shard) != of {
			of = int(ref.Shard)
			shard = d.Shard(of)
		}
		dst = dst[:len(dst)+1]
		dst[len(dst)-1].take(shard, int(ref.Pos))
	}
	return dst
}

// The operations of a Descent's rounds (Round.Op). Package scaling has others.
const (
	OpStep     uint8 = iota + 210 // the gradient of one mini-batch
	OpValidate                    // the loss of the validation rows
	OpCompare                     // the same, and its difference from the reference's
)

// The values that rounds carry (Var.ID), apart from the scaling: at most maxVectors vectors, and
// as many of the reference's. The first vector is Θ.
const (
	varVectors   = 0xfe10
	varReference = varVectors + maxVectors
	maxVectors   = 8
)
