package forest

// Sample is one tree's bootstrap sample. Its distinct rows are numbered from 0, in
// the order of the dataset's original row numbers.
type BootstrapSample struct {
	Tree      uint32
	Width     int       // labels of a row
	Labels    []float32 // rows×Width label degrees
	Weight    []uint32  // how often each row was drawn
	RowValues []float64 // Family.Note of each row, where the family has it
	// Class is the class label of each row, as Labeller.Classify last wrote it.
	Class []uint32
}

// Label returns the label distribution of a row.
func (s *BootstrapSample) Label(row uint32) []float32 {
	i := int(row) * s.Width
	return s.Labels[i : i+s.Width : i+s.Width]
}

// Node is a node as a Labeller sees it.
type Node struct {
	Rows   []uint32 // rows of the sample, ascending
	Copies int      // sum of their weights
	Path   uint64   // 1 for the root; the children of p are 2p (left) and 2p+1
}

// Labeller gives each node's rows the class labels whose entropy a split lowers,
// and each leaf its distribution. One belongs to one lane and is used for one tree
// at a time; its results depend on seed, tree and node only.
type Labeller interface {
	// Begin tells that a tree on s begins.
	Begin(s *BootstrapSample)
	// Classify writes the class of each of the node's rows to s.Class. It reports
	// false when the node can only be a leaf: its rows do not differ.
	Classify(s *BootstrapSample, n *Node) bool
	// Leaf writes the distribution that a leaf of the node's rows predicts to dst
	// (s.Width values) and returns the training loss there: the K-L, in nats, of
	// the samples from it, summed over copies.
	Leaf(dst []float32, s *BootstrapSample, n *Node) float64
}
