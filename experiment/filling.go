package experiment

import "github.com/coppice-ldl/coppice/experiment/result"

// Filling fills the table of a layout with one record after the other. It does not keep the outcomes, which take several
// times as much memory as the table.
type Filling struct {
	layout *Layout
	first  map[string]int32  // the number of the first run with a key
	next   []int32           // by run: the number of the next one with the same key; 0: there is none
	filled map[string]filled // of the runs that have a record
}

// Filling returns the table of the layout, which it fills: there is no copy.
func (l *Layout) Filling() *Filling {
	f := &Filling{layout: l, first: make(map[string]int32, len(l.Keys)), next: make([]int32, len(l.Keys)), filled: make(map[string]filled)}
	for i := len(l.Keys) - 1; i >= 0; i-- {
		if key := l.Keys[i]; key != "" {
			f.next[i] = f.first[key]
			f.first[key] = int32(i)
		}
	}
	return f
}

// Put fills the runs of the table that have the key of a record, unless an earlier record with the key is as good: see
// BetterThan. counts is false then, and has is false if no run has the key.
func (f *Filling) Put(r *Record) (counts, has bool) {
	i, has := f.first[r.Key]
	before, again := f.filled[r.Key]
	if counts = !again || r.content().betterThan(before.content); counts {
		before.content = r.content()
	}
	before.attempts++
	f.filled[r.Key] = before
	for runs := f.layout.Table.Runs; has; {
		c := &runs[i]
		if counts {
			*c = result.Run{Dataset: c.Dataset, Method: c.Method, Repeat: c.Repeat, Fold: c.Fold, State: result.Missing}
			f.layout.fill(c, r)
		}
		if c.State == result.Failed {
			c.Attempts = before.attempts
		}
		if i = f.next[i]; i == 0 {
			break
		}
	}
	return counts, has
}

// filled is the record that fills the runs with a key, and how many records had the key.
type filled struct {
	content
	attempts int
}
