package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/internal/num"
)

// flushRows is how many rows are added to a block: each number is at most 2^15 in size, so sums stay below 2^31.
const flushRows = 1 << 15

// chunkRows is how many rows are added to the bins of one column before the next column: their sums fit into the
// processor's cache.
const chunkRows = 256

// layout says where the sums of a node are. The first are over all its rows. The sums of each bin of the drawn columns
// follow. A bin has width numbers: see Config.width.
type layout struct {
	width   int
	words   int   // of a row: two numbers in each, unless weighted
	columns []int // drawn, ascending
	first   []int // of each of these, the place of its first bin
	bins    int   // places: 1 for the node, and the bins

	weighted bool
}

// newLayout returns the layout of the columns that are drawn for a tree.
func newLayout(c *Config, b *binning.Bins, labels int, weighted bool, key num.Key, tree uint64) *layout {
	l := &layout{width: c.width(labels, weighted), words: c.words(labels, weighted), bins: 1, weighted: weighted}
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

// complete sets the zero bins of sparse columns, which rows do not list: what the other bins lack of the node.
func (l *layout) complete(sums []float64, b *binning.Bins) {
	for i, at := range l.columns {
		c := &b.Columns[at]
		if !c.Sparse {
			continue
		}
		zero := sums[(l.first[i]+c.Zero)*l.width:][:l.width]
		copy(zero, sums[:l.width])
		for bin := range c.Bins() {
			if bin == c.Zero {
				continue
			}
			for k, x := range sums[(l.first[i]+bin)*l.width:][:l.width] {
				zero[k] -= x
			}
		}
	}
}

// adder adds up the sums of nodes. It is the scratch of a lane.
type adder struct {
	request request
	bins    *binning.Bins // of layout
	tree    uint64        // of layout
	layout  *layout

	block []int64 // places×words
	rows  []int64 // the words of a chunk's rows
	to    []int32 // the place of each sparse bin; -1: its column is not drawn
}

// add adds the sums of some rows to dst.
func (a *adder) add(dst []float64, rows []uint32, p *part, b *binning.Bins, l *layout) {
	if n := l.bins * l.words; cap(a.block) < n {
		a.block = make([]int64, n)
	} else {
		a.block = a.block[:n]
		clear(a.block)
	}
	if n := chunkRows * l.words; cap(a.rows) < n {
		a.rows = make([]int64, n)
	}
	for len(rows) > 0 {
		n := min(flushRows, len(rows))
		a.addBlock(rows[:n], p, b, l)
		a.flush(dst, l)
		rows = rows[n:]
	}
}

// addBlock adds rows, flushRows at most, to the block.
func (a *adder) addBlock(rows []uint32, p *part, b *binning.Bins, l *layout) {
	for len(rows) > 0 {
		chunk := rows[:min(chunkRows, len(rows))]
		rows = rows[len(chunk):]
		own := a.rows[:0]
		for _, row := range chunk {
			words := p.words[int(row)*l.words:][:l.words]
			own = append(own, words...)
			addWords(a.block, words)
		}
		for i, at := range l.columns {
			if c := &b.Columns[at]; !c.Sparse {
				a.addColumn(chunk, own, p.codes.Dense[c.At:], b.Dense, l.first[i], l.words)
			}
		}
		if len(p.codes.Listed) == 0 {
			continue
		}
		for i, row := range chunk {
			words := own[i*l.words:][:l.words]
			for _, bin := range p.codes.Listed[p.codes.Start[row]:p.codes.Start[row+1]] {
				if to := a.to[bin]; to >= 0 {
					addWords(a.block[int(to)*l.words:], words)
				}
			}
		}
	}
}

// addColumn adds rows to the bins of a dense column. codes[stride·row] is the bin of a row, and place first has the
// first bin.
func (a *adder) addColumn(rows []uint32, words []int64, codes []uint8, stride, first, width int) {
	block := a.block[first*width:]
	for _, row := range rows {
		dst := block[int(codes[int(row)*stride])*width:][:width]
		src := words[:width]
		words = words[width:]
		for len(src) >= 4 && len(dst) >= 4 {
			d, s := (*[4]int64)(dst), (*[4]int64)(src)
			d[0] += s[0]
			d[1] += s[1]
			d[2] += s[2]
			d[3] += s[3]
			dst, src = dst[4:], src[4:]
		}
		for i, x := range src {
			dst[i] += x
		}
	}
}

// addWords adds a row's words to those that dst begins with.
func addWords(dst, words []int64) {
	dst = dst[:len(words)]
	for i, x := range words {
		dst[i] += x
	}
}

// flush adds the block to dst and clears it.
func (a *adder) flush(dst []float64, l *layout) {
	for at := range l.bins {
		words := a.block[at*l.words:][:l.words]
		if int32(words[0]) == 0 {
			continue // no row
		}
		sums := dst[at*l.width:][:l.width]
		if l.weighted {
			for i, w := range words {
				sums[i] += float64(w)
			}
			clear(words)
			continue
		}
		for i, w := range words {
			low := int32(w)
			sums[2*i] += float64(low)
			if 2*i+1 < len(sums) {
				sums[2*i+1] += float64((w - int64(low)) >> 32)
			}
		}
		clear(words)
	}
}

// prepare makes the layout of a tree and says where the bins of sparse columns are in the sums of its nodes.
func (a *adder) prepare(k *job, b *binning.Bins, key num.Key, tree uint64) *layout {
	if a.layout != nil && a.bins == b && a.tree == tree {
		return a.layout
	}
	l := newLayout(k.cfg, b, k.labels, k.weighted, key, tree)
	a.layout, a.bins, a.tree = l, b, tree
	if cap(a.to) < b.All {
		a.to = make([]int32, b.All)
	}
	a.to = a.to[:b.All]
	num.Fill(a.to, -1)
	for i, at := range l.columns {
		if c := &b.Columns[at]; c.Sparse {
			for bin := range c.Bins() {
				a.to[c.Base+bin] = int32(l.first[i] + bin)
			}
		}
	}
	return l
}
