package forest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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

// Depth returns the depth of the deepest leaf of a checked tree; the root has depth 0.
func (t *Tree) Depth() int { return slices.Max(t.depths()) }

// depths returns the depth of each node of a checked tree.
func (t *Tree) depths() []int {
	depths := make([]int, t.Nodes())
	for i, f := range t.feature {
		if f != leafMark {
			depths[t.left[i]], depths[t.left[i]+1] = depths[i]+1, depths[i]+1
		}
	}
	return depths
}

type treeWriter struct {
	tree             *Tree
	features, labels []string
	b                strings.Builder
}

func (w *treeWriter) writeNode(i int, first, rest string) {
	t := w.tree
	if t.feature[i] == leafMark {
		fmt.Fprintf(&w.b, "%sleaf  %d samples  %s\n", first, t.samples[i], w.distribution(int(t.left[i])))
		return
	}
	fmt.Fprintf(&w.b, "%s%s < %.6g  %d samples, gain %.4f\n", first, w.feature(t.feature[i]), t.threshold[i], t.samples[i], t.gain[i])
	w.writeNode(int(t.left[i]), rest+"├─ yes: ", rest+"│       ")
	w.writeNode(int(t.left[i])+1, rest+"└─ no:  ", rest+"        ")
}

func (w *treeWriter) feature(f uint32) string {
	if int(f) < len(w.features) {
		return w.features[f]
	}
	return fmt.Sprintf("x[%d]", f)
}

// distribution writes a leaf's labels; the labels with the greatest degrees come first.
func (w *treeWriter) distribution(leaf int) string {
	degrees := w.tree.leaves[leaf*w.tree.Labels : (leaf+1)*w.tree.Labels]
	order := make([]int, len(degrees))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(degrees[b], degrees[a]) })
	var parts []string
	for _, c := range order[:min(describedLabels, len(order))] {
		parts = append(parts, fmt.Sprintf("%s %.3f", labelName(w.labels, c), degrees[c]))
	}
	if len(order) > describedLabels {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// describedLabels is how many of a leaf's labels are written.
const describedLabels = 6

// labelName returns the name of a label, or its number.
func labelName(names []string, label int) string {
	if label < len(names) {
		return names[label]
	}
	return fmt.Sprint(label)
}
