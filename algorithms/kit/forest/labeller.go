package forest

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
