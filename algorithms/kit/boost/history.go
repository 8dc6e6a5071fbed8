package boost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/engine/round"
)

// A round is encoded as its trees, each after its length in bytes (uint32, little-endian).

// Form is what the trees of a job look like.
type Form struct {
	features int // of the rows
	labels   int
	trees    int // of a round
	width    int // numbers of a leaf
	leaves   int // of a tree, at most
}

func newForm(v *Variant, c *Config, features, labels int) Form {
	return Form{features: features, labels: labels, trees: v.trees(labels), width: v.width(labels), leaves: c.Leaves}
}

// AppendTree appends an encoded tree of a round.
func AppendTree(dst, tree []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(tree))), tree...)
}

var errCut = errors.New("the list of trees is truncated")

// cut cuts the first tree off b.
func cut(b []byte) (tree, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errCut
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return nil, nil, errCut
	}
	return b[:n:n], b[n:], nil
}

// Decode reads the next tree of b. The tree may share the memory of b.
func (f *Form) Decode(b []byte) (*forest.Tree, error) {
	t, err := forest.DecodeTreeOf(b, f.features, f.width, forest.Values)
	switch {
	case err != nil:
		return nil, err
	case t.Leaves() > f.leaves:
		return nil, fmt.Errorf("%w: it has %d leaves, want at most %d", forest.ErrTree, t.Leaves(), f.leaves)
	case !(t.Loss >= 0 && finite(t.Loss)):
		return nil, fmt.Errorf("%w: the loss before this tree is %v, want a finite number of at least 0",
			forest.ErrTree, t.Loss)
	}
	return t, nil
}

func finite(x float64) bool { return x-x == 0 }

// next reads the trees of the first round of b, and returns what follows it.
func (f *Form) next(dst []*forest.Tree, b []byte) (trees []*forest.Tree, rest []byte, err error) {
	for range f.trees {
		var encoded []byte
		if encoded, b, err = cut(b); err != nil {
			return nil, nil, err
		}
		t, err := f.Decode(encoded)
		if err != nil {
			return nil, nil, err
		}
		dst = append(dst, t)
	}
	return dst, b, nil
}

// skip returns what follows the first round of b.
func (f *Form) skip(b []byte) (rest []byte, err error) {
	for range f.trees {
		if _, b, err = cut(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// The trees of earlier rounds travel as variables of 1, 8, 64, ... rounds each: a job may have 64
// variables, and a value is sent to a worker once. Eight variables of a size become one of the
// next size, so each tree is sent once in each size.
const (
	groupBase   = 8
	groupSizes  = 5 // 8^5 is above maxRounds
	varStart    = 0
	varGroups   = 1
	groupsEnd   = varGroups + groupSizes*(groupBase-1)
	groupAtMost = groupBase - 1
)

// refitVersions is added to the versions of variables in a refit. A worker may still hold the trees
// of the first training under the same IDs.
const refitVersions = maxRounds

// group is consecutive rounds in one variable.
type group struct {
	size  int // power of groupBase: the group has groupBase^size rounds
	first int // number of its first round, from 0
	data  []byte
}

// History is the trees of all rounds so far.
type History struct {
	Rounds int
	groups []group // the oldest first, sizes descending, at most groupAtMost of a size
}

// Add adds a round.
func (h *History) Add(encoded []byte) {
	h.groups = append(h.groups, group{first: h.Rounds, data: encoded})
	h.Rounds++
	for n := len(h.groups); n >= groupBase && h.groups[n-groupBase].size == h.groups[n-1].size; n = len(h.groups) {
		last := h.groups[n-groupBase:]
		merged := group{size: last[0].size + 1, first: last[0].first}
		for i := range last {
			merged.data = append(merged.data, last[i].data...)
		}
		h.groups = append(h.groups[:n-groupBase], merged)
	}
}

// Bytes is the length of the encoded rounds.
func (h *History) Bytes() (n int) {
	for i := range h.groups {
		n += len(h.groups[i].data)
	}
	return n
}

// AppendTo appends the encoded rounds.
func (h *History) AppendTo(dst []byte) []byte {
	for i := range h.groups {
		dst = append(dst, h.groups[i].data...)
	}
	return dst
}

// AppendVars appends the variables of the groups. Versions begin after base.
func (h *History) AppendVars(vars []round.Var, base uint64) []round.Var {
	place := 0
	for i, g := range h.groups {
		if place++; i == 0 || h.groups[i-1].size != g.size {
			place = 0
		}
		id := varGroups + g.size*groupAtMost + place
		vars = append(vars, round.Var{ID: uint16(id), Version: base + uint64(g.first) + 1, Data: g.data})
	}
	return vars
}

// groupOf returns the rounds [first, end) of a variable, and false if it is no group.
func groupOf(v *round.Var) (first, end int, ok bool) {
	if v.ID < varGroups || v.ID >= groupsEnd || v.Version < 1 || v.Version > refitVersions+maxRounds {
		return 0, 0, false
	}
	size := 1
	for range (v.ID - varGroups) / groupAtMost {
		size *= groupBase
	}
	first = int((v.Version - 1) % refitVersions)
	return first, first + size, true
}

// read adds encoded rounds.
func (h *History) read(f *Form, b []byte) (err error) {
	b = bytes.Clone(b)
	var trees []*forest.Tree
	for len(b) > 0 {
		var rest []byte
		if trees, rest, err = f.next(trees[:0], b); err != nil {
			return err
		}
		h.Add(b[: len(b)-len(rest) : len(b)-len(rest)])
		b = rest
	}
	return nil
}

// decoded returns the trees of the first rounds.
func (h *History) decoded(f *Form, rounds int) (trees []*forest.Tree, err error) {
	b := h.AppendTo(nil)
	for range rounds {
		if trees, b, err = f.next(trees, b); err != nil {
			return nil, err
		}
	}
	return trees, nil
}
