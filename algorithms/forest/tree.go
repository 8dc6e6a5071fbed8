package forest

// Tree is a grown tree as parallel arrays by node: node 0 is the root, and the
// children of a split node stand side by side behind it.
type Tree struct {
	Labels      int
	Evaluations uint64  // gains that were computed to grow it
	Loss        float64 // mean K-L of its samples from their leaves, nats

	feature   []uint32  // of a split node; leafMark of a leaf
	left      []uint32  // the left child, the right one follows; of a leaf its number
	samples   []uint32  // copies of rows that reached the node
	threshold []float64 // rows with a value below it go left; 0 of a leaf
	gain      []float64 // of the split, nats; 0 of a leaf
	leaves    []float32 // leaves×Labels: distributions
}

// leafMark is the feature of a leaf.
const leafMark = 1<<32 - 1

// reset makes t a tree with a root only, which is neither a split node nor a leaf yet.
func (t *Tree) reset(labels int) {
	*t = Tree{
		Labels: labels, feature: t.feature[:0], left: t.left[:0], samples: t.samples[:0],
		threshold: t.threshold[:0], gain: t.gain[:0], leaves: t.leaves[:0],
	}
	t.addNode()
}

func (t *Tree) addNode() {
	t.feature = append(t.feature, leafMark)
	t.left = append(t.left, 0)
	t.samples = append(t.samples, 0)
	t.threshold = append(t.threshold, 0)
	t.gain = append(t.gain, 0)
}

// split makes node number at a split node with two new children.
func (t *Tree) split(at int, feature uint32, threshold, gain float64) {
	t.feature[at], t.threshold[at], t.gain[at] = feature, threshold, gain
	t.left[at] = uint32(len(t.feature))
	t.addNode()
	t.addNode()
}

// leaf makes node number at a leaf and returns its distribution, for the caller to fill.
func (t *Tree) leaf(at int) []float32 {
	n := len(t.leaves)
	t.left[at] = uint32(n / t.Labels)
	for range t.Labels {
		t.leaves = append(t.leaves, 0)
	}
	return t.leaves[n:]
}

// Nodes is the number of nodes.
func (t *Tree) Nodes() int { return len(t.feature) }

// Leaves is the number of leaves.
func (t *Tree) Leaves() int { return len(t.leaves) / t.Labels }
