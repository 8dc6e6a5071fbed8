package forest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

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

// Degrees is the range of label degrees; Values that of all finite numbers.
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
		return nil, fmt.Errorf("%w: it has %d bytes for %d nodes and %d leaves of %d labels", ErrTree, len(b), nodes, leaves, width)
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
			return fmt.Errorf("%w: node %d splits feature %d of %d at %v with gain %v, which is not possible", ErrTree, i, t.feature[i], features, t.threshold[i], t.gain[i])
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
