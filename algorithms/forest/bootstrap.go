package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// drawSample draws the bootstrap sample of a tree (Algorithm 2): t.draws training
// rows with replacement.
func (g *grower) drawSample(t *table, tree uint32) {
	s := num.NewStream(g.sampling, 0, tree)
	n := len(t.rows)
	counts := resized(&g.counts, n)
	clear(counts)
	for range t.draws {
		counts[s.Uint64n(uint64(n))]++
	}
	g.numberRows(t, counts)
	g.sample.Tree, g.sample.Width = tree, t.labels
	resized(&g.sample.Class, len(g.origin))
	resized(&g.side, len(g.origin)+sideSlack)
	resized(&g.spare, len(g.origin)+vectorSlack)
	g.rows = slices.Grow(g.rows[:0], len(g.origin))
	for i := range g.origin {
		g.rows = append(g.rows, uint32(i))
	}
}

// numberRows numbers the rows that were drawn and copies their labels.
func (g *grower) numberRows(t *table, counts []uint32) {
	distinct := 0
	for _, count := range counts {
		if count > 0 {
			distinct++
		}
	}
	s, local := &g.sample, resized(&g.local, len(counts))
	g.origin = slices.Grow(g.origin[:0], distinct)
	s.Weight = slices.Grow(s.Weight[:0], distinct)
	s.Labels = slices.Grow(s.Labels[:0], distinct*t.labels)
	s.RowValues = s.RowValues[:0]
	for i, count := range counts {
		local[i] = absent
		if count > 0 {
			local[i] = uint32(len(g.origin))
			g.origin = append(g.origin, uint32(i))
			s.Weight = append(s.Weight, count)
			s.Labels = append(s.Labels, t.label(uint32(i))...)
			if t.rowValues != nil {
				s.RowValues = append(s.RowValues, t.rowValues[i])
			}
		}
	}
}

// absent marks a training row that was not drawn.
const absent = 1<<32 - 1

// fillColumns makes the sample's sorted columns and lists those that are not
// constant. If columns are sorted on demand, it makes none.
func (g *grower) fillColumns(t *table) {
	g.segments = g.segments[:0]
	if g.onDemand.enabled {
		return
	}
	g.entries = nil // of the tree before: see columns.resize
	if t.columns.entries == nil {
		g.columns.sort(t, g.origin, &g.sorter)
	} else {
		g.columns.selectDrawn(&t.columns, g.local, len(g.origin), len(t.rows))
	}
	for c := range t.features {
		if varies(g.columns.column(c), len(g.origin)) {
			g.segments = append(g.segments, segment{uint32(c), uint32(g.columns.start[c]), uint32(g.columns.start[c+1])})
		}
	}
	g.entries = g.columns.entries
}

// selectDrawn sets c to the columns of a bootstrap sample, given the columns from of all
// training rows: rows is the number of distinct rows of the sample, of that of training
// rows, and local has the sample's number of each training row, or absent.
func (c *columns) selectDrawn(from *columns, local []uint32, rows, of int) {
	share := float64(rows) / float64(of)
	c.entries = slices.Grow(c.entries[:0], int(1.02*share*float64(len(from.entries)))+of) // a guess
	c.start = append(c.start[:0], 0)
	for i := range len(from.start) - 1 {
		column := from.column(i)
		c.entries = slices.Grow(c.entries, len(column))
		c.entries = selectDrawn(c.entries, column, local)
		c.start = append(c.start, len(c.entries))
	}
}

// selectDrawn appends to dst the entries of a sorted column that are in the sample, with
// the sample's row numbers. An entry gets the flag newValue if it or an entry that was
// left out just before it has the flag.
func selectDrawn(dst, column, local []uint32) []uint32 {
	n := len(dst)
	dst = dst[:n+len(column)]
	done, kept, pending := startSelectDrawn(dst[n:], column, local)
	n += kept
	for _, e := range column[done:] {
		pending |= e & newValue
		row := local[e&rowMask]
		dst[n] = row | e&positive | pending
		if row != absent {
			n++
			pending = 0
		}
	}
	return dst[:n]
}

// varies reports whether a column has at least two values, in a node of so many rows;
// rows without an entry have the value 0.
func varies(entries []uint32, rows int) bool {
	if len(entries) != rows {
		return len(entries) > 0
	}
	for _, e := range entries[1:] {
		if e&newValue != 0 {
			return true
		}
	}
	return false
}

// resized resizes *v to n elements of any value, reusing its memory.
func resized[T any](v *[]T, n int) []T {
	*v = slices.Grow((*v)[:0], n)[:n]
	return *v
}
