package experiment

import "github.com/coppice-ldl/coppice/experiment/result"

// Filling fills the table of a layout with one record after the other. It does not keep the outcomes, which take several
// times as much memory as the table.
type Filling struct {
	layout *Layout
	runs   map[string][]int32 // the numbers of the runs with a key
	filled map[string]filled  // of the runs that have a record
}

// Filling returns the table of the layout, which it fills: there is no copy.
func (l *Layout) Filling() *Filling {
	f := &Filling{layout: l, runs: make(map[string][]int32, len(l.Keys)), filled: make(map[string]filled)}
	for i, key := range l.Keys {
		if key != "" {
			f.runs[key] = append(f.runs[key], int32(i))
		}
	}
	return f
}

// Put fills the runs of the table that have the key of a record, unless an earlier record with the key is as good: see
// BetterThan. counts is false then, and has is false if no run has the key.
func (f *Filling) Put(r *Record) (counts, has bool) {
	runs, has := f.runs[r.Key]
	before, again := f.filled[r.Key]
	if counts = !again || r.content().betterThan(before.content); counts {
		before.content = r.content()
	}
	before.attempts++
	f.filled[r.Key] = before
	for _, i := range runs {
		c := &f.layout.Table.Runs[i]
		if counts {
			*c = result.Run{Dataset: c.Dataset, Method: c.Method, Repeat: c.Repeat, Fold: c.Fold, State: result.Missing}
			f.layout.fill(c, r)
		}
		if c.State == result.Failed {
			c.Attempts = before.attempts
		}
	}
	return counts, has
}

// filled is the record that fills the runs with a key, and how many records had the key.
type filled struct {
	content
	attempts int
}
