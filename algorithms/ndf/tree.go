package ndf

import (
	"encoding/binary"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Tree is a grown tree: a tree of package forest, whose features are the negated outputs of the
// networks, numbered in the order of their split nodes, and whose thresholds are 0; and the networks.
type Tree struct {
	*forest.Tree
	networks
}

// networks are the networks of a tree, or of a forest, one after the other. All have the same number of inputs.
type networks struct {
	width        int       // inputs of a network
	hidden       []uint32  // of each
	inputs       []uint32  // networks × width
	shift, scale []float32 // networks × width
	weights      []float32
}

// newTree returns a tree of one node, the root.
func newTree(labels, inputs int) *Tree {
	t := &Tree{Tree: new(forest.Tree), networks: networks{width: inputs}}
	t.Reset(labels)
	return t
}

// addSplit makes a node a split node with a copy of a network. Nodes are added in the order of
// their numbers.
func (t *Tree) addSplit(at int, n *network, gain float64) {
	t.Split(at, uint32(len(t.hidden)), 0, gain)
	t.hidden = append(t.hidden, uint32(n.hidden))
	t.inputs = append(t.inputs, n.inputs...)
	t.shift, t.scale = append(t.shift, n.shift...), append(t.scale, n.scale...)
	t.weights = append(t.weights, n.weights...)
}

// list returns the networks one by one, and the number of weights of all.
func (s *networks) list() (all []network, weights int) {
	for i, hidden := range s.hidden {
		from, to := i*s.width, (i+1)*s.width
		n := parameters(s.width, int(hidden))
		k := network{inputs: s.inputs[from:to], shift: s.shift[from:to], scale: s.scale[from:to], hidden: int(hidden)}
		if weights+n <= len(s.weights) {
			k.weights = s.weights[weights : weights+n]
		}
		weights += n
		all = append(all, k)
	}
	return all, weights
}

// check returns an error unless the networks read only features from 0 to features-1, and all
// numbers are finite. Errors wrap forest.ErrTree.
func (s *networks) check(features int) error {
	weights := 0
	for i, hidden := range s.hidden {
		if hidden > maxHidden {
			return fmt.Errorf("%w: network %d has %d hidden units, which is not possible", forest.ErrTree, i, hidden)
		}
		weights += parameters(s.width, int(hidden))
	}
	if weights != len(s.weights) {
		return fmt.Errorf("%w: it has %d weights, but its networks need %d", forest.ErrTree, len(s.weights), weights)
	}
	for i, feature := range s.inputs {
		if feature >= uint32(features) || i%s.width > 0 && feature <= s.inputs[i-1] {
			return fmt.Errorf("%w: input %d of network %d is feature %d, but there are %d features", forest.ErrTree, i%s.width,
				i/s.width, feature, features)
		}
	}
	for _, v := range [][]float32{s.shift, s.scale, s.weights} {
		if !num.Finite32(v) {
			return fmt.Errorf("%w: a weight, a mean or a scale is not finite", forest.ErrTree)
		}
	}
	return nil
}

// checkSplits returns an error unless the split nodes of a checked tree test the networks in order.
func (t *Tree) checkSplits() error {
	next := uint32(0)
	for i := range t.Nodes() {
		network, _, split := t.Test(i)
		if !split {
			continue
		}
		if network != next {
			return fmt.Errorf("%w: node %d has network %d, want %d", forest.ErrTree, i, network, next)
		}
		next++
	}
	return nil
}

// treeFormat is the version byte of an encoded tree; FORMAT.md draws the bytes.
const treeFormat = 1

// treeHead is the size of an encoded tree's head: format, inputs, weights, and the size of the
// tree of package forest.
const treeHead = 1 + 4 + 4 + 8

// AppendBinary implements forest.Grown.
func (t *Tree) AppendBinary(b []byte) []byte {
	b = append(b, treeFormat)
	b = binary.LittleEndian.AppendUint32(b, uint32(t.width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.weights)))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Tree.Size()))
	b = t.Tree.AppendBinary(b)
	for _, v := range [][]uint32{t.hidden, t.inputs} {
		b = append(b, num.BytesU32(v)...)
	}
	for _, v := range [][]float32{t.shift, t.scale, t.weights} {
		b = append(b, num.Bytes32(v)...)
	}
	return b
}

// Size implements forest.Grown.
func (t *Tree) Size() int { return treeHead + t.Tree.Size() + t.networks.size() }

func (s *networks) size() int { return 4 * (len(s.hidden) + 3*len(s.inputs) + len(s.weights)) }

// inner returns the encoded tree of package forest and the bytes after it.
func inner(b []byte) (tree, rest []byte, err error) {
	if len(b) < treeHead || b[0] != treeFormat {
		return nil, nil, fmt.Errorf("%w: it does not begin with a header of format version %d", forest.ErrTree, treeFormat)
	}
	size := binary.LittleEndian.Uint64(b[9:])
	if size > uint64(len(b)-treeHead) {
		return nil, nil, fmt.Errorf("%w: it is truncated", forest.ErrTree)
	}
	return b[treeHead : treeHead+size], b[treeHead+size:], nil
}

// peekTree returns what Training returns of an encoded tree.
func peekTree(b []byte) (samples uint32, loss float64, err error) {
	tree, _, err := inner(b)
	if err != nil {
		return 0, -1, err
	}
	return forest.PeekTree(tree)
}

// decodeTree reads what AppendBinary wrote, for rows of so many features and labels, and networks of
// so many inputs. The tree may share the memory of b. Errors wrap forest.ErrTree.
func decodeTree(b []byte, features, labels, inputs int) (*Tree, error) {
	encoded, rest, err := inner(b)
	if err != nil {
		return nil, err
	}
	tree, err := forest.DecodeTree(encoded, 1<<31-1, labels)
	if err != nil {
		return nil, err
	}
	t := &Tree{Tree: tree, networks: networks{width: inputs}}
	width, weights, splits := binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:]), tree.Nodes()-
		tree.Leaves()
	if width != uint32(inputs) || uint64(len(rest)) != 4*(uint64(splits)*(1+3*uint64(width))+uint64(weights)) {
		return nil, fmt.Errorf("%w: %d bytes are not %d networks with %d weights in all and %d inputs each (its header "+
			"says %d inputs)",
			forest.ErrTree, len(rest), splits, weights, inputs, width)
	}
	next := func(n int) []byte {
		head := rest[:4*n]
		rest = rest[4*n:]
		return head
	}
	t.hidden, t.inputs = num.Uint32s(next(splits)), num.Uint32s(next(splits*inputs))
	t.shift, t.scale = num.Float32s(next(splits*inputs)), num.Float32s(next(splits*inputs))
	t.weights = num.Float32s(rest)
	if err := t.checkSplits(); err != nil {
		return nil, err
	}
	return t, t.check(features)
}
