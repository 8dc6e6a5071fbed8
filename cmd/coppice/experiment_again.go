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
