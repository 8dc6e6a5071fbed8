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
	// Predict writes the label distribution of each row of refs, in order, to
	// dst (len(refs)×labels, row-major). shard returns a shard by number.
	// Deterministic for each row, whatever the other rows are.
	Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any)
	// Describe returns what `model show` prints beside the provenance: ordered
	// pairs of a name and a value.
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
	// Pieces hold the array in parts, one after the other, each in one of F32, F64
	// and U32, the same for all: so that a model of many arrays, a forest, need not
	// be copied to be written. A decoded tensor never has them.
	Pieces []Tensor
}
