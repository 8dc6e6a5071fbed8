package main

import (
	"github.com/coppice-ldl/coppice/experiment"
)

// cellFlags say what is recorded of cells that are run, and which cells that have ended are run again.
type cellFlags struct {
	Record      []string `placeholder:"WORDS" help:"Data to record of each run, for the figures of reports: curve (the learning curve), predictions (of 6 test samples), or both (default: the key record of the spec)."`
	RecordAgain bool     `help:"Repeat the runs that ended without the data of --record."`
	RetryFailed bool     `help:"Repeat the runs that failed."`
}

// set takes the flags into a spec.
func (f *cellFlags) set(s *experiment.Spec) error {
	if len(f.Record) > 0 {
		if err := s.SetRecorded(f.Record); err != nil {
			return usagef("--record: %v", err)
		}
	}
	if f.RecordAgain && !s.Record.Any() {
		return usagef("--record-again: nothing is to be recorded; give --record, or the key record in the spec")
	}
	return nil
}

// wants reports whether a cell that has ended is run again.
func (f *cellFlags) wants(r *experiment.Record, of *experiment.Recorded) bool {
	return f.RetryFailed && r.Outcome.Error != "" || f.RecordAgain && r.Lacks(of)
}

// noteLacking says how many cells have ended without what is recorded.
func noteLacking(a *app, n int) {
	if n > 0 {
		a.note("%s ended without the data that are recorded now; --record-again repeats them", plural(n, "run"))
	}
}

// lack finds the cells that jobs have, or will have, without what is recorded, as the jobs say, and lets
// them be run again where this is asked for.
func (k *knownCells) lack(jobs []*experiment.ClusterJob, all *endedCells, of *experiment.Recorded, again bool) error {
	if !of.Any() {
		return nil
	}
	recorded := make(map[string]bool)
	for _, j := range jobs {
		if j.Job == nil || j.Job.Cells == nil || !of.In(j.Job.Cells) {
			continue
		}
		cells, err := j.Cells()
		if err != nil {
			return err
		}
		for i := range cells {
			key := cells[i].Key
			recorded[key] = recorded[key] || live(j) || all.jobs[key] == j.ID
		}
	}
	for key, has := range k.has {
		if !has || recorded[key] {
			continue
		}
		if again {
			k.has[key], k.again[key] = false, true
		} else {
			k.lacking[key] = true
		}
	}
	return nil
}

// lackingOf counts the cells of a layout without what is recorded.
func (k *knownCells) lackingOf(l *experiment.Layout) (n int) {
	for _, key := range l.Keys {
		if k.lacking[key] {
			n++
		}
	}
	return n
}
