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
	counts := grown(&g.counts, n)
	clear(counts)
	for range t.draws {
		counts[s.Uint64n(uint64(n))]++
	}
	g.sample.Tree, g.sample.Width = tree, t.labels
	g.sample.Weight, g.sample.Labels, g.origin = g.sample.Weight[:0], g.sample.Labels[:0], g.origin[:0]
	local := grown(&g.local, n)
	for i, count := range counts {
		local[i] = absent
		if count > 0 {
			local[i] = uint32(len(g.origin))
			g.origin = append(g.origin, uint32(i))
			g.sample.Weight = append(g.sample.Weight, count)
			g.sample.Labels = append(g.sample.Labels, t.label(uint32(i))...)
		}
	}
	rows := len(g.origin)
	grown(&g.sample.Class, rows)
	grown(&g.side, rows)
	grown(&g.spare, rows)
	g.rows = g.rows[:0]
	for i := range rows {
		g.rows = append(g.rows, uint32(i))
	}
}

// absent marks a training row that was not drawn.
const absent = 1<<32 - 1

// fillColumns copies the sorted columns of t, reduced to the sample's rows, and
// lists those that are not constant; a lazy grower has none.
func (g *grower) fillColumns(t *table) {
	g.entries, g.segments = g.entries[:0], g.segments[:0]
	if g.lazy.on {
		return
	}
	share := float64(len(g.origin)) / float64(len(t.rows))
	g.entries = slices.Grow(g.entries, int(1.02*share*float64(len(t.entries)))) // a guess at their number
	for c := range t.features {
		from := len(g.entries)
		g.entries = slices.Grow(g.entries, t.start[c+1]-t.start[c])
		g.entries = reduce(g.entries, t.entries[t.start[c]:t.start[c+1]], g.local)
		column := segment{column: uint32(c), from: uint32(from), to: uint32(len(g.entries))}
		if varies(g.entries[from:], len(g.origin)) {
			g.segments = append(g.segments, column)
		} else {
			g.entries = g.entries[:from]
		}
	}
}

// reduce appends the entries of a sorted column that are in the sample, with the
// sample's row numbers: an entry's value is new when any since the last one kept
// was.
func reduce(dst, column, local []uint32) []uint32 {
	n := len(dst)
	dst = dst[:n+len(column)]
	var pending uint32
	for _, e := range column {
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

// varies reports whether a column with these entries has two values among rows
// rows, of which those without an entry have 0.
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

// grown resizes *v to n elements of any value, reusing its memory.
func grown[T any](v *[]T, n int) []T {
	*v = slices.Grow((*v)[:0], n)[:n]
	return *v
}
