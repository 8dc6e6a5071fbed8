package forest

import "slices"

// drawSample draws the bootstrap sample of a tree (Algorithm 2 of Chen et al. 2018):
// t.draws training rows with replacement.
func (g *grower) drawSample(t *Table, tree uint32) {
	Draw(Resized(&g.local, len(t.rows)), g.sampling, tree, t.draws)
	g.sample.Tree = tree
	g.numberRows(t)
}

// roomFor makes room for what is stored of each of n rows with so many labels, and lists the rows. valued says
// whether rows have a Variant.RowValue.
func (g *grower) roomFor(n, labels int, valued bool) {
	s := &g.sample
	s.Width, s.RowValues = labels, s.RowValues[:0]
	Resized(&s.Labels, n*labels)
	Resized(&s.Weight, n)
	Resized(&s.Class, n)
	if valued {
		Resized(&s.RowValues, n)
	}
	Resized(&g.origin, n)
	Resized(&g.side, n+SideSlack)
	Resized(&g.spare, n+VectorSlack)
	for i := range Resized(&g.rows, n) {
		g.rows[i] = uint32(i)
	}
}

// numberRows gives each distinct row of the sample its local number, in place of how often it was drawn, and
// copies the rows' labels.
func (g *grower) numberRows(t *Table) {
	distinct := 0
	for _, count := range g.local {
		if count > 0 {
			distinct++
		}
	}
	s, local := &g.sample, g.local
	g.roomFor(distinct, t.labels, t.rowValues != nil)
	distinct = 0
	for i, count := range local {
		local[i] = absent
		if count > 0 {
			row := uint32(distinct)
			distinct++
			local[i], g.origin[row], s.Weight[row] = row, uint32(i), count
			copy(s.Label(row), t.Label(uint32(i)))
			if t.rowValues != nil {
				s.RowValues[row] = t.rowValues[i]
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
	g.entries = nil // otherwise columns.sort cannot free the entries of the last tree
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
