package forest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/num"
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
	fmt.Fprintf(&w.b, "%s%s < %.6g  %d samples, gain %.4f\n", first, w.feature(t.feature[i]), t.threshold[i],
		t.samples[i], t.gain[i])
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

// treeFormat is the version byte of an encoded tree; FORMAT.md draws the bytes.
const treeFormat = 1

// treeHead is the size of an encoded tree's head: format, labels, nodes, leaves,
// evaluations, loss.
const treeHead = 1 + 3*4 + 2*8

// nodeSize is the encoded size of a node.
const nodeSize = 3*4 + 2*8

// maxNodes bounds the nodes of a tree: a sample of n copies has at most 2n - 1.
const maxNodes = 2*maxDraws - 1

// ErrTree is wrapped by every error about the bytes or arrays of a tree.
var ErrTree = errors.New("forest: the tree is damaged")

// AppendBinary appends the tree's encoded form.
func (t *Tree) AppendBinary(b []byte) []byte {
	b = append(b, treeFormat)
	for _, n := range []int{t.Labels, t.Nodes(), t.Leaves()} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = binary.LittleEndian.AppendUint64(b, t.Evaluations)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Loss))
	for _, v := range [][]uint32{t.feature, t.left, t.samples} {
		b = append(b, num.BytesU32(v)...)
	}
	b = append(b, num.Bytes64(t.threshold)...)
	b = append(b, num.Bytes64(t.gain)...)
	return append(b, num.Bytes32(t.leaves)...)
}

// Size is the length of the tree's encoded form.
func (t *Tree) Size() int { return TreeBytes(t.Nodes(), len(t.leaves)) }

// TreeBytes is the length of the encoded form of a tree of so many nodes, whose leaves have so
// many numbers in all.
func TreeBytes(nodes, numbers int) int { return treeHead + nodeSize*nodes + 4*numbers }

// PeekTree returns the number of samples that an encoded tree was grown on, and its loss.
func PeekTree(b []byte) (samples uint32, loss float64, err error) {
	if len(b) < treeHead || b[0] != treeFormat {
		return 0, -1, fmt.Errorf("%w: its header is missing", ErrTree)
	}
	nodes := uint64(binary.LittleEndian.Uint32(b[5:]))
	at := treeHead + 8*nodes // feature and left come before
	if nodes == 0 || uint64(len(b)) < at+4 {
		return 0, -1, fmt.Errorf("%w: it is truncated", ErrTree)
	}
	return binary.LittleEndian.Uint32(b[at:]), math.Float64frombits(binary.LittleEndian.Uint64(b[21:])), nil
}

// Encode returns the tree's encoded form at an address where DecodeTree need not copy it.
func (t *Tree) Encode() []byte { return t.AppendBinary(alignedBuffer(t.Nodes(), t.Size())) }

// alignedBuffer returns an empty slice with capacity for an encoded tree of n nodes and size
// bytes, at an address where the tree's float64 arrays are aligned: DecodeTree then need not
// copy them.
func alignedBuffer(n, size int) []byte {
	const word = 8
	at := -(treeHead + 12*n) & (word - 1)
	b := num.Bytes64(make([]float64, (at+size+word-1)/word))
	return b[at:at:len(b)]
}

// LeafRange is the least and the greatest number that a leaf may have.
type LeafRange struct{ Least, Most float32 }

// Degrees is the range of label degrees. Values is the range of all finite numbers.
var (
	Degrees = LeafRange{0, 1 + 1e-5}
	Values  = LeafRange{-math.MaxFloat32, math.MaxFloat32}
)

// DecodeTree reads what AppendBinary wrote, for rows of so many features and labels, where leaves
// have label distributions. See DecodeTreeOf.
func DecodeTree(b []byte, features, labels int) (*Tree, error) {
	return DecodeTreeOf(b, features, labels, Degrees)
}

// DecodeTreeOf reads what AppendBinary wrote, for rows of so many features, with leaves of so many
// numbers within r. The tree may share the memory of b, which must not change afterwards. Errors
// wrap ErrTree.
func DecodeTreeOf(b []byte, features, labels int, r LeafRange) (*Tree, error) {
	if len(b) < treeHead {
		return nil, fmt.Errorf("%w: it has only %d bytes", ErrTree, len(b))
	}
	if b[0] != treeFormat {
		return nil, fmt.Errorf("%w: it has format %d, but this version reads format %d", ErrTree, b[0], treeFormat)
	}
	width, nodes, leaves := word(b, 0), word(b, 1), word(b, 2)
	if width != uint64(labels) || nodes < 1 || nodes > maxNodes || leaves != (nodes+1)/2 {
		return nil, fmt.Errorf("%w: %d nodes and %d leaves of %d labels are not possible", ErrTree, nodes, leaves, width)
	}
	if uint64(len(b)) != treeHead+nodes*nodeSize+leaves*width*4 {
		return nil, fmt.Errorf("%w: it has %d bytes for %d nodes and %d leaves of %d labels", ErrTree, len(b), nodes,
			leaves, width)
	}
	t := &Tree{
		Labels:      labels,
		Evaluations: binary.LittleEndian.Uint64(b[13:]),
		Loss:        math.Float64frombits(binary.LittleEndian.Uint64(b[21:])),
	}
	t.readArrays(b[treeHead:], int(nodes))
	return t, t.check(features, r)
}

// word returns number i of the head's uint32.
func word(b []byte, i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[1+4*i:])) }

// readArrays reads the arrays from the bytes after the head.
func (t *Tree) readArrays(b []byte, nodes int) {
	next := func(n int) []byte {
		head := b[:n]
		b = b[n:]
		return head
	}
	for _, v := range []*[]uint32{&t.feature, &t.left, &t.samples} {
		*v = num.Uint32s(next(4 * nodes))
	}
	for _, v := range []*[]float64{&t.threshold, &t.gain} {
		*v = num.Float64s(next(8 * nodes))
	}
	t.leaves = num.Float32s(b)
}

// check returns an error unless every walk from the root ends at a leaf within maxDepth
// steps, and all numbers are in their ranges. Errors wrap ErrTree.
func (t *Tree) check(features int, r LeafRange) error {
	nodes, leaves := uint32(t.Nodes()), uint32(t.Leaves())
	depth := make([]uint8, nodes) // plus one; 0: no parent yet
	depth[0] = 1
	taken, seen := make([]bool, leaves), uint32(0)
	for i := range nodes {
		if depth[i] == 0 {
			return fmt.Errorf("%w: node %d has no parent before it", ErrTree, i)
		}
		if t.feature[i] == leafMark {
			leaf := t.left[i]
			if leaf >= leaves || taken[leaf] {
				return fmt.Errorf("%w: node %d has leaf %d, which does not exist or is used twice", ErrTree, i, leaf)
			}
			taken[leaf] = true
			seen++
			continue
		}
		child := t.left[i]
		if child <= i || child >= nodes-1 || depth[child] != 0 || depth[child+1] != 0 || depth[i] > maxDepth {
			return fmt.Errorf("%w: node %d at depth %[4]d cannot have child %[3]d", ErrTree, i, child, depth[i])
		}
		depth[child], depth[child+1] = depth[i]+1, depth[i]+1
		if t.feature[i] >= uint32(features) || !finite(t.threshold[i]) || !finite(t.gain[i]) {
			return fmt.Errorf("%w: node %d splits feature %d of %d at %v with gain %v, which is not possible", ErrTree, i,
				t.feature[i], features, t.threshold[i], t.gain[i])
		}
	}
	if seen != leaves {
		return fmt.Errorf("%w: only %d of %d leaves are used", ErrTree, seen, leaves)
	}
	for i, v := range t.leaves {
		if !(v >= r.Least && v <= r.Most) {
			return fmt.Errorf("%w: leaf %d has the value %v, which is not possible", ErrTree, i/t.Labels, v)
		}
	}
	return nil
}

func finite(x float64) bool { return x-x == 0 }
