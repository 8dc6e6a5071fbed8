package ldlboost

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// division is a split of a node of a tree: rows up to a bin of a column go left. Split k makes the nodes 2k+1 and 2k+2.
type division struct{ node, column, bin int }

// request is what a histogram round is about: a tree, its splits so far, and the nodes whose sums are asked for.
type request struct {
	tree   uint64
	splits []division
	build  []int
}

// encode appends the encoded request.
func (r *request) encode(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.tree))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.splits)))
	for _, s := range r.splits {
		for _, x := range []int{s.node, s.column, s.bin} {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
		}
	}
	for _, node := range r.build {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(node))
	}
	return dst
}

// decode reads what encode wrote.
func (r *request) decode(b []byte) error {
	if len(b)%4 != 0 {
		return errRequest
	}
	words := num.Uint32s(b)
	if len(words) < 2 || uint64(len(words)) < 2+3*uint64(words[1]) {
		return errRequest
	}
	splits := 3 * words[1]
	r.tree, r.splits, r.build = uint64(words[0]), r.splits[:0], r.build[:0]
	words = words[2:]
	for s := words[:splits]; len(s) > 0; s = s[3:] {
		r.splits = append(r.splits, division{int(s[0]), int(s[1]), int(s[2])})
	}
	for _, node := range words[splits:] {
		r.build = append(r.build, int(node))
	}
	return nil
}

// check refuses a request with nodes, columns or bins that there are not, or for other than the numbers of a partial,
// given how many a node has. With weights, there are no int32 numbers.
func (r *request) check(b *binning.Bins, dst *round.Partial, size int, weighted bool) error {
	nodes := 1
	for _, s := range r.splits {
		if s.node >= nodes || s.column >= len(b.Columns) || s.bin >= len(b.Columns[s.column].Cuts) {
			return fmt.Errorf("%w: no split of node %d, column %d, bin %d is possible", errRequest, s.node, s.column, s.bin)
		}
		nodes += 2
	}
	for _, node := range r.build {
		if node >= nodes {
			return fmt.Errorf("%w: the tree has %d nodes, but not node %d", errRequest, nodes, node)
		}
	}
	wide, narrow := len(dst.F64)-1, len(dst.I32)
	if wide < 0 || wide+narrow != len(r.build)*size || narrow > 0 && (wide > 0 || weighted) {
		return fmt.Errorf("%w: %d nodes with %d sums each are not %d float64 and %d int32 numbers", errRequest, len(r.build),
			size, wide, narrow)
	}
	return nil
}

var errRequest = errors.New("the request for histograms is damaged")
