package forest

import "slices"

// drawSample draws the bootstrap sample of a tree (Algorithm 2 of Chen et al. 2018):
// t.draws training rows with replacement.
func (g *grower) drawSample(t *Table, tree uint32) {
	counts := resized(&g.counts, len(t.rows))
	Draw(counts, g.sampling, tree, t.draws)
	g.numberRows(t, counts)
	g.sample.Tree, g.sample.Width = tree, t.labels
	resized(&g.sample.Class, len(g.origin))
	resized(&g.side, len(g.origin)+SideSlack)
	resized(&g.spare, len(g.origin)+VectorSlack)
	g.rows = slices.Grow(g.rows[:0], len(g.origin))
	for i := range g.origin {
		g.rows = append(g.rows, uint32(i))
	}
}

// numberRows gives each distinct row of the sample its local number, and copies the rows'
// labels. counts has how often each training row was drawn.
func (g *grower) numberRows(t *Table, counts []uint32) {
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
			s.Labels = append(s.Labels, t.Label(uint32(i))...)
			if t.rowValues != nil {
				s.RowValues = append(s.RowValues, t.rowValues[i])
			}
		}
	}
}

// absent stands for the local number of a training row that is not in the sample.
const absent = 1<<32 - 1

// fillColumns makes the sample's sorted columns, and a segment for each column with at least
// two values. If columns are sorted on demand, it makes none.
func (g *grower) fillColumns(t *Table) {
	g.segments = g.segments[:0]
	if g.onDemand.enabled {
		return
	}
	g.entries = nil // otherwise columns.resize cannot free the entries of the last tree
	if t.columns.entries == nil {
		g.columns.sort(t, g.origin, &g.sorter)
	} else {
		g.columns.selectSample(&t.columns, g.local, len(g.origin), len(t.rows))
	}
	for c := range t.features {
		if Varies(g.columns.column(c), len(g.origin)) {
			g.segments = append(g.segments, segment{uint32(c), uint32(g.columns.start[c]), uint32(g.columns.start[c+1])})
		}
	}
	g.entries = g.columns.entries
}

// selectSample sets c to the columns of a bootstrap sample. all are the columns of all
// training rows. local has the local number of each training row, or absent. distinct is
// the number of distinct rows of the sample, rows the number of training rows.
func (c *columns) selectSample(all *columns, local []uint32, distinct, rows int) {
	share := float64(distinct) / float64(rows)
	c.entries = slices.Grow(c.entries[:0], int(1.02*share*float64(len(all.entries)))+rows) // an estimate
	c.start = append(c.start[:0], 0)
	for i := range len(all.start) - 1 {
		column := all.column(i)
		c.entries = slices.Grow(c.entries, len(column))
		c.entries = selectDrawn(c.entries, column, local)
		c.start = append(c.start, len(c.entries))
	}
}

// selectDrawn appends to dst the entries of a sorted column whose rows are in the sample,
// with the rows' local numbers. An entry of the result has the flag NewValue if the entry in
// column has the flag, or one of the entries that were left out just before it. dst must have
// room for all of column.
func selectDrawn(dst, column, local []uint32) []uint32 {
	n := len(dst)
	dst = dst[:n+len(column)]
	done, kept, isNew := startSelectDrawn(dst[n:], column, local)
	n += kept
	for _, e := range column[done:] {
		isNew |= e & NewValue
		row := local[e&RowMask]
		dst[n] = row | e&Positive | isNew
		if row != absent {
			n++
			isNew = 0
		}
	}
	return dst[:n]
}

// Varies reports whether a column has at least two values in a node. entries are those of the
// node, rows is the number of its rows; a row without an entry has the value 0.
func Varies(entries []uint32, rows int) bool {
	if len(entries) != rows {
		return len(entries) > 0
	}
	for _, e := range entries[1:] {
		if e&NewValue != 0 {
			return true
		}
	}
	return false
}

// resized makes *v a slice of n elements and returns it. The elements may have any values.
// The memory of *v is used again if it is large enough.
func resized[T any](v *[]T, n int) []T {
	*v = slices.Grow((*v)[:0], n)[:n]
	return *v
}
