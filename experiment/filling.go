package experiment

import "github.com/coppice-ldl/coppice/experiment/result"

// Filling fills the table of a layout with one record after the other. It does not keep the outcomes, which take several
// times as much memory as the table.
type Filling struct {
	Table  *result.Table
	layout *Layout
	cells  map[string][]int // numbers of the cells with a key
	filled map[string]content
	ended  map[string]int // how often
}

// Filling returns the table without records.
func (l *Layout) Filling() *Filling {
	f := &Filling{Table: l.bare(), layout: l, cells: make(map[string][]int, len(l.Keys)), filled: make(map[string]content, len(l.Keys)), ended: make(map[string]int, len(l.Keys))}
	for i, key := range l.Keys {
		if key != "" {
			f.cells[key] = append(f.cells[key], i)
		}
	}
	return f
}

// Put fills the cells of a run, unless an earlier record of the run is as good: see BetterThan. counts is false then, and
// has is false if the table does not have the run.
func (f *Filling) Put(r *Record) (counts, has bool) {
	cells, has := f.cells[r.Key]
	f.ended[r.Key]++
	before, again := f.filled[r.Key]
	if counts = !again || r.content().betterThan(before); counts {
		f.filled[r.Key] = r.content()
	}
	for _, i := range cells {
		c := &f.Table.Cells[i]
		if counts {
			*c = f.layout.Table.Cells[i]
			f.layout.fill(c, r)
		}
		if c.State == result.Failed {
			c.Attempts = f.ended[r.Key]
		}
	}
	return counts, has
}
