package forest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The trees at work are encoded in three parts, all numbers little-endian. First, of each tree: its gain evaluations
// (u64), the copies of its root by class (u32), the number of its splits (u32), and of each its node, column, lower
// and upper bin (u32), its gain (u64), and the copies on the left by class (u32). Then the open nodes, after their
// number (u32), the last ones last: tree and node (u32), 1 if the counts of the parent follow (u32), and these (f64).
// Then the small nodes: their number, tree and node (u32).

// append appends the encoded trees.
func (g *growth) append(dst []byte) []byte {
	word := func(x ...int) {
		for _, n := range x {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
		}
	}
	for i := range g.trees {
		t := &g.trees[i]
		dst = binary.LittleEndian.AppendUint64(dst, t.evaluations)
		dst = append(dst, num.BytesU32(t.countsOf(0, g.classes))...)
		word(len(t.nodes) / 2)
		for left := 1; left < len(t.nodes); left += 2 {
			node := t.nodes[left].parent
			n := &t.nodes[node]
			word(node, n.column, n.lower, n.upper)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(n.total))
			dst = append(dst, num.BytesU32(t.countsOf(left, g.classes))...)
		}
	}
	word(len(g.open))
	for _, a := range g.open {
		if word(a.tree, a.node); a.parent == nil {
			word(0)
			continue
		}
		word(1)
		dst = append(dst, num.Bytes64(a.parent)...)
	}
	word(len(g.small))
	for _, a := range g.small {
		word(a.tree, a.node)
	}
	return dst
}

// growthReader reads what append wrote. After the first error all numbers are 0.
type growthReader struct {
	b   []byte
	err error
}

func (r *growthReader) take(n int) []byte {
	if r.err == nil && n > len(r.b) {
		r.err = fmt.Errorf("the trees at work are truncated: %d bytes are left, want %d", len(r.b), n)
	}
	if r.err != nil {
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *growthReader) word() int {
	if b := r.take(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *growthReader) long() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// check refuses the bytes unless ok.
func (r *growthReader) check(ok bool, format string, args ...any) bool {
	if r.err == nil && !ok {
		r.err = fmt.Errorf("the trees at work: %w", fmt.Errorf(format, args...))
	}
	return r.err == nil
}

// decode reads what append wrote, of trees that begin has begun.
func (g *growth) decode(b []byte) error {
	r := growthReader{b: b}
	for i := range g.trees {
		g.readTree(&r, &g.trees[i])
	}
	g.open = g.open[:0]
	seen := make(map[[2]int]bool)
	for n := r.word(); n > 0 && r.err == nil; n-- {
		a := ask{tree: r.word(), node: r.word()}
		kept := r.word()
		if !r.check(kept <= 1 && g.lawful(a, kept == 1) && !seen[[2]int{a.tree, a.node}], "node %d of tree %d cannot wait",
			a.node, a.tree) {
			break
		}
		if seen[[2]int{a.tree, a.node}] = true; kept == 1 {
			seen[[2]int{a.tree, sibling(a.node)}] = true
			a.parent = make([]float64, len(r.b[:min(len(r.b), 8*g.sizeOf(&a))])/8)
			copy(num.Bytes64(a.parent), r.take(8*g.sizeOf(&a)))
			r.check(g.lawfulCounts(&a), "the counts of the parent of node %d are not possible", a.node)
			g.held += len(a.parent)
		}
		g.open = append(g.open, a)
	}
	for n := r.word(); n > 0 && r.err == nil; n-- {
		a := ask{tree: r.word(), node: r.word()}
		if r.check(g.lawful(a, false) && a.node > 0 && g.isSmall(a) && !seen[[2]int{a.tree, a.node}],
			"node %d of tree %d cannot wait", a.node, a.tree) {
			bytes, _ := g.costOf(&a)
			g.small, g.waiting, seen[[2]int{a.tree, a.node}] = append(g.small, a), g.waiting+bytes, true
		}
	}
	r.check(len(r.b) == 0, "%d bytes follow", len(r.b))
	r.check(!g.done(), "no node waits")
	return r.err
}

// lawful reports whether a node may wait for its counts or rows, with the counts of its parent if kept is true.
func (g *growth) lawful(a ask, kept bool) bool {
	if a.tree >= len(g.trees) || a.node >= len(g.trees[a.tree].nodes) {
		return false
	}
	t := &g.trees[a.tree]
	switch n := &t.nodes[a.node]; {
	case n.left != 0:
		return false
	case a.node == 0:
		return n.copies == 0 && !kept
	case kept:
		other := sibling(a.node)
		return g.layouts.sampler.everyFeature && t.nodes[other].left == 0 && g.splittable(t, other)
	}
	return g.splittable(t, a.node)
}

// lawfulCounts reports whether the counts of a node's parent are whole numbers, of each column as many as the parent
// has copies.
func (g *growth) lawfulCounts(a *ask) bool {
	t := &g.trees[a.tree]
	if len(a.parent) != g.layouts.numbersOf(&g.layouts.all) {
		return false
	}
	of := t.countsOf(t.nodes[a.node].parent, g.classes)
	for _, x := range a.parent {
		if !(x >= 0 && x <= math.MaxUint32 && x == math.Floor(x)) {
			return false
		}
	}
	for i, column := range append([]int{-1}, g.layouts.all.columns...) {
		first, bins := 0, 1
		if column >= 0 {
			first, bins = g.layouts.all.first[i-1], g.layouts.edges.Columns[column].Bins()
		}
		for c, n := range of {
			sum := 0.0
			for bin := range bins {
				sum += a.parent[(first+bin)*g.classes+c]
			}
			if sum != float64(n) {
				return false
			}
		}
	}
	return true
}

// readTree reads a tree at work.
func (g *growth) readTree(r *growthReader, t *growingTree) {
	t.evaluations = r.long()
	copies := uint64(0)
	for c := range g.classes {
		t.counts[c] = uint32(r.word())
		copies += uint64(t.counts[c])
	}
	if !r.check(copies <= math.MaxInt32, "a tree has %d samples", copies) {
		return
	}
	t.nodes[0].copies = uint32(copies)
	g.search.knows(int(copies))
	s := countedSplit{left: make([]uint32, g.classes)}
	for n := r.word(); n > 0; n-- {
		node := r.word()
		s.column, s.lower, s.upper, s.total = r.word(), r.word(), r.word(), int64(r.long())
		if !r.check(node < len(t.nodes) && t.nodes[node].left == 0 && g.splittable(t, node) &&
			s.column < len(g.layouts.edges.Columns) && s.lower < s.upper &&
			s.upper < g.layouts.edges.Columns[s.column].Bins() && s.total > 0, "node %d cannot be split", node) {
			return
		}
		left, possible := uint32(0), true
		for c, whole := range t.countsOf(node, g.classes) {
			s.left[c] = uint32(r.word())
			possible = possible && s.left[c] <= whole
			left += s.left[c]
		}
		if !r.check(possible && left > 0 && left < t.nodes[node].copies, "the sides of node %d are not possible", node) {
			return
		}
		t.splitNode(node, &s)
	}
}
