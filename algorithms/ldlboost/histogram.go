package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// flushRows is how many rows are added to a block: each number is at most 2^15 in size, so sums stay below 2^31.
const flushRows = 1 << 15

// mostNarrow is how many rows a bin may have whose sums are int32, for the same reason.
const mostNarrow = 1<<16 - 1

// sums are sums of bins, as layout says, in one of two types.
type sums struct {
	wide   []float64
	narrow []int32 // of bins of at most mostNarrow rows, without weights
}

// sumsOf returns the sums in a result, which has either no int32 sums or no others.
func sumsOf(p *round.Partial) sums {
	if len(p.I32) > 0 {
		return sums{narrow: p.I32}
	}
	return sums{wide: p.F64[1:]}
}

// next takes the first n sums away and returns them.
func (s *sums) next(n int) (first sums) {
	if s.narrow != nil {
		first.narrow, s.narrow = s.narrow[:n:n], s.narrow[n:]
	} else {
		first.wide, s.wide = s.wide[:n:n], s.wide[n:]
	}
	return first
}

// has reports whether there are n sums.
func (s *sums) has(n int) bool { return len(s.wide)+len(s.narrow) >= n }

// none reports whether there are no sums.
func (s *sums) none() bool { return s.wide == nil && s.narrow == nil }

// at returns n sums from a place on.
func (s *sums) at(from, n int) sums {
	if s.narrow != nil {
		return sums{narrow: s.narrow[from : from+n]}
	}
	return sums{wide: s.wide[from : from+n]}
}

// set sets the sums to others, whose type may be the other one: they are int32 only if they fit.
func (s *sums) set(from sums) {
	switch {
	case s.narrow != nil && from.narrow != nil:
		copy(s.narrow, from.narrow)
	case s.narrow != nil:
		for i, x := range from.wide {
			s.narrow[i] = int32(x)
		}
	case from.narrow != nil:
		widen(s.wide, from.narrow)
	default:
		copy(s.wide, from.wide)
	}
}

// subtract sets the sums to the differences of a and b. All are of one type.
func (s *sums) subtract(a, b sums) {
	if s.narrow != nil {
		subtract(s.narrow, a.narrow, b.narrow)
		return
	}
	copy(s.wide, a.wide)
	num.AddScaled64(s.wide, -1, b.wide)
}

// layout says where the sums of a node are. The first are over all its rows. The sums of each bin of the drawn columns
// follow. A bin has width numbers: see Config.width.
type layout struct {
	width   int
	stride  int   // words of a row: two numbers in each, unless weighted
	columns []int // drawn, ascending
	first   []int // of each of these, the place of its first bin
	bins    int   // places: 1 for the node, and the bins

	weighted bool
}

// newLayout returns the layout of the columns that are drawn for a tree.
func newLayout(c *Config, b *binning.Bins, labels int, weighted bool, key num.Key, tree uint64) *layout {
	l := &layout{width: c.width(labels, weighted), stride: c.stride(labels, weighted), bins: 1, weighted: weighted}
	l.columns = draw(len(b.Columns), c.FeatureFraction, key, tree)
	for _, i := range l.columns {
		l.first = append(l.first, l.bins)
		l.bins += b.Columns[i].Bins()
	}
	return l
}

// draw returns the columns of a tree, of n, ascending.
func draw(n int, fraction float64, key num.Key, tree uint64) (drawn []int) {
	take := max(min(n, 1), int(float64(float64(n)*fraction)))
	chosen := make([]bool, n)
	if n > 0 {
		p := num.NewPermutation(key, tree, 0, uint64(n))
		for i := range take {
			chosen[p.At(uint64(i))] = true
		}
	}
	for i, is := range chosen {
		if is {
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// size is how many numbers a node has.
func (l *layout) size() int { return l.bins * l.width }

// complete sets the zero bin of a sparse column, which rows do not list: what its other bins lack of the node.
func (l *layout) complete(bins sums, node []float64, c *binning.Column) {
	zero := bins.at(c.Zero*l.width, l.width)
	if copy(zero.wide, node); zero.narrow != nil {
		for i, x := range node {
			zero.narrow[i] = int32(int64(x)) // the difference fits
		}
	}
	for bin := range c.Bins() {
		if bin != c.Zero {
			zero.subtract(zero, bins.at(bin*l.width, l.width))
		}
	}
}

// groupBytes is how many bytes the bins have that samples are added to at a time, about: a core's second cache keeps
// them, and the words of a row are read once for all columns of a group.
const groupBytes = 256 << 10

// adder adds up the sums of nodes. It is the scratch of a lane.
type adder struct {
	request request
	bins    *binning.Bins // of layout
	tree    uint64        // of layout
	layout  *layout
	groups  []group
	to      []int32 // the place of each sparse bin in the block; -1: its column is not drawn

	block []int64

	order []uint32 // 0, 1, 2, ...
	words []int64  // of the rows at work, one after the other, as their codes
	codes []uint8
}

// group is columns whose bins are in the block at a time: some dense ones, or all sparse ones.
type group struct {
	columns []int    // numbers in layout.columns
	at      []uint32 // of each of them, which are dense, its place among these columns; nil: they are sparse
	first   []uint32 // of each of them, the place of its first bin in the block
	bins    int
}

// add adds the sums of some rows, ascending, to the bins of dst.
func (a *adder) add(dst sums, rows []uint32, p *part, b *binning.Bins, l *layout) {
	for len(rows) > 0 {
		own := rows[:min(flushRows, len(rows))]
		rows = rows[len(own):]
		words, codes, order := p.words, p.codes.Dense, own
		if scattered := int(own[len(own)-1]-own[0]) >= len(own); scattered && len(a.groups) > 1 && b.Dense > 0 {
			words, codes, order = a.collect(own, p, b.Dense, l.stride)
		}
		for i := range a.groups {
			g := &a.groups[i]
			if g.at != nil {
				addBins(a.block, words, l.stride, codes, b.Dense, order, g.at, g.first)
			} else {
				addLists(a.block[:g.bins*l.stride], p.words, l.stride, p.codes.Listed, p.codes.Start, a.to, own)
			}
			a.flush(dst, g, b, l)
		}
	}
}

// collect copies the words and codes of rows, so that they are read in order for each group.
func (a *adder) collect(rows []uint32, p *part, dense, stride int) (words []int64, codes []uint8, order []uint32) {
	a.words, a.codes = a.words[:0], a.codes[:0]
	for i, row := range rows {
		a.words = append(a.words, p.words[int(row)*stride:][:stride]...)
		a.codes = append(a.codes, p.codes.Dense[int(row)*dense:][:dense]...)
		if i == len(a.order) {
			a.order = append(a.order, uint32(i))
		}
	}
	return a.words, a.codes, a.order[:len(rows)]
}

// addNode adds the numbers of rows to the sums of their node, which dst begins with.
func (a *adder) addNode(dst sums, rows []uint32, p *part, l *layout) {
	sum, dst := a.block[:l.stride], dst.next(l.width)
	for len(rows) > 0 {
		own := rows[:min(flushRows, len(rows))]
		rows = rows[len(own):]
		for _, row := range own {
			addWords(sum, p.words[int(row)*l.stride:][:l.stride])
		}
		l.flush(dst, sum)
	}
}

// flush adds the bins of a group to dst and clears them.
func (a *adder) flush(dst sums, g *group, b *binning.Bins, l *layout) {
	for i, c := range g.columns {
		bins, rest := b.Columns[l.columns[c]].Bins(), dst
		rest.next(l.first[c] * l.width)
		l.flush(rest.next(bins*l.width), a.block[int(g.first[i])*l.stride:][:bins*l.stride])
	}
}

// flush adds the words of bins to their sums and clears them.
func (l *layout) flush(dst sums, words []int64) {
	if dst.narrow != nil {
		unpackNarrow(dst.narrow, words, l.width, l.stride)
		return
	}
	for ; len(words) > 0; words = words[l.stride:] {
		sums, own := dst.next(l.width).wide, words[:l.stride]
		if int32(own[0]) == 0 { // it has no row
			continue
		}
		if l.weighted {
			for i, w := range own[:len(sums)] {
				sums[i] += float64(w)
			}
		} else {
			unpack(sums, own)
		}
		clear(own)
	}
}

// prepare makes the layout of a tree and says where the bins of sparse columns are in the sums of its nodes.
func (a *adder) prepare(k *job, b *binning.Bins, key num.Key, tree uint64) *layout {
	if a.layout != nil && a.bins == b && a.tree == tree {
		return a.layout
	}
	l := newLayout(k.cfg, b, k.labels, k.weighted, key, tree)
	a.layout, a.bins, a.tree, a.groups = l, b, tree, a.groups[:0]
	if cap(a.to) < b.All {
		a.to = make([]int32, b.All)
	}
	a.to = a.to[:b.All]
	num.Fill(a.to, -1)
	var sparse group
	dense, most, largest := new(group), groupBytes/(8*l.stride), 1
	for i, at := range l.columns {
		c := &b.Columns[at]
		g := &sparse
		if !c.Sparse {
			if dense.bins > 0 && dense.bins+c.Bins() > most {
				a.groups, dense = append(a.groups, *dense), new(group)
			}
			g = dense
			g.at = append(g.at, uint32(c.At))
		} else {
			for bin := range c.Bins() {
				a.to[c.Base+bin] = int32(g.bins + bin)
			}
		}
		g.columns, g.first = append(g.columns, i), append(g.first, uint32(g.bins))
		g.bins += c.Bins()
		largest = max(largest, g.bins)
	}
	for _, g := range []*group{dense, &sparse} {
		if g.bins > 0 {
			a.groups = append(a.groups, *g)
		}
	}
	if n := largest * l.stride; cap(a.block) < n {
		a.block = make([]int64, n)
	} else {
		a.block = a.block[:n]
	}
	return l
}
