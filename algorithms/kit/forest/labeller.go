package forest

import "github.com/coppice-ldl/coppice/algorithms"

// BootstrapSample is one tree's bootstrap sample, or the part of it in one node. Its distinct rows are numbered from 0, in
// the order of the dataset's row numbers.
type BootstrapSample struct {
	Tree      uint32
	Width     int       // labels of a row
	Labels    []float32 // rows×Width label degrees
	Weight    []uint32  // how often each row was drawn
	RowValues []float64 // Variant.RowValue of each row; empty if the variant has none
	// Class is the class label of each row, as Labeller.Classify last wrote it.
	Class []uint32
}

// Label returns the label distribution of a row.
func (s *BootstrapSample) Label(row uint32) []float32 {
	i := int(row) * s.Width
	return s.Labels[i : i+s.Width : i+s.Width]
}

// Node describes a node to a Labeller.
type Node struct {
	Rows   []uint32 // rows of the sample, ascending
	Copies int      // sum of their weights
	Path   uint64   // 1 for the root; the children of p are 2p (left) and 2p+1
}

// Labeller gives each node's rows the class labels whose entropy a split lowers,
// and each leaf its distribution. A Labeller is used for one tree at a time, by one
// goroutine. Its results depend on seed, tree and node only.
type Labeller interface {
	// Begin prepares for a tree on s, or for a subtree: s then has the rows of its root only.
	Begin(s *BootstrapSample)
	// Classify writes the class of each of the node's rows to s.Class. It reports
	// false when the node can only be a leaf: its rows do not differ.
	Classify(s *BootstrapSample, n *Node) bool
	// Leaf writes the distribution that a leaf of the node's rows predicts to dst
	// (s.Width values) and returns the training loss there: the K-L, in nats, of
	// the samples from it, summed over copies.
	Leaf(dst []float32, s *BootstrapSample, n *Node) float64
}

// Variant has the parts of a forest algorithm that structrf and rf do not share. Its method
// New makes the algorithm.
type Variant struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// Auto is what preset auto has of its own.
	Auto Sizes
	// Classes returns the number of different class labels that the Labeller gives, at least
	// 2. labels is the number of labels of the dataset.
	Classes func(labels int) int
	// RowValue, if set, computes a number from the label distribution of a row. A kernel
	// calls it once for each training row; Labellers find the numbers in
	// BootstrapSample.RowValues.
	RowValue func(label []float32) float64
	// NewLabeller makes the labeller of one grower.
	NewLabeller func(seed uint64) Labeller
}
