package forest

// Tree is a grown tree. Element i of feature, left, samples, threshold and gain is about
// node i. Node 0 is the root. The two children of a split node have consecutive numbers,
// which are greater than its own.
type Tree struct {
	Labels      int
	Evaluations uint64  // gain evaluations while it was grown
	Loss        float64 // training loss: the mean K-L divergence of the samples from their leaves, in nats

	feature   []uint32  // of a split node: the feature that it tests; of a leaf: leafMark
	left      []uint32  // of a split node: its left child, and left + 1 is the right one; of a leaf: its number
	samples   []uint32  // samples (rows with their copies) that reached the node
	threshold []float64 // of a split node: rows with a value below it go left; of a leaf: 0
	gain      []float64 // of a split node: of its split, in nats; of a leaf: 0
	leaves    []float32 // leaves×Labels: label distributions
}

// leafMark is what feature has for a leaf.
const leafMark = 1<<32 - 1

// Reset makes t a tree of one node, the root. A call of Split or Leaf must follow for it, as
// for each new node.
func (t *Tree) Reset(labels int) {
	*t = Tree{
		Labels: labels, feature: t.feature[:0], left: t.left[:0], samples: t.samples[:0],
		threshold: t.threshold[:0], gain: t.gain[:0], leaves: t.leaves[:0],
	}
	t.addNode()
}

// addNode adds a node with the next number.
func (t *Tree) addNode() {
	t.feature = append(t.feature, leafMark)
	t.left = append(t.left, 0)
	t.samples = append(t.samples, 0)
	t.threshold = append(t.threshold, 0)
	t.gain = append(t.gain, 0)
}

// Split makes a node a split node and adds its two children.
func (t *Tree) Split(node int, feature uint32, threshold, gain float64) {
	t.feature[node], t.threshold[node], t.gain[node] = feature, threshold, gain
	t.left[node] = uint32(len(t.feature))
	t.addNode()
	t.addNode()
}

// Leaf makes a node a leaf and returns its label distribution, for the caller to fill.
func (t *Tree) Leaf(node int) []float32 {
	n := len(t.leaves)
	t.left[node] = uint32(n / t.Labels)
	for range t.Labels {
		t.leaves = append(t.leaves, 0)
	}
	return t.leaves[n:]
}

// SetSamples says how many samples reached a node.
func (t *Tree) SetSamples(node, n int) { t.samples[node] = uint32(n) }

// Nodes is the number of nodes.
func (t *Tree) Nodes() int { return len(t.feature) }

// Leaves is the number of leaves.
func (t *Tree) Leaves() int { return len(t.leaves) / t.Labels }

// Samples returns how many samples (rows with their copies) reached a node.
func (t *Tree) Samples(node int) uint32 { return t.samples[node] }

// Test returns the feature that a split node tests and its left child; the right child is the
// node after that. Of a leaf split is false, and left is its number among the leaves.
func (t *Tree) Test(node int) (feature, left uint32, split bool) {
	return t.feature[node], t.left[node], t.feature[node] != leafMark
}

// Distribution returns the label distribution of a leaf.
func (t *Tree) Distribution(leaf int) []float32 { return t.leaves[leaf*t.Labels:][:t.Labels] }

// Training implements Grown.
func (t *Tree) Training() (samples uint32, loss float64) { return t.samples[0], t.Loss }
