package algorithms

import "github.com/coppice-ldl/coppice/dataset"

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
	// U32, the same field in all. A forest is so written without a copy of its trees'
	// arrays. A decoded tensor has no Pieces.
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
	}
	return "label distributions"
}
