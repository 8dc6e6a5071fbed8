package state

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// withhold notes units that are not run: parts without a blob.
func (s *State) withhold(e *protocol.WithholdEntry) (any, error) {
	j, err := s.running(e.Epoch, e.Job)
	switch {
	case err != nil:
		return nil, err
	case e.Round <= j.Round:
		return nil, staleRound(j, e.Round)
	case j.Job.Cells == nil || len(e.Units) == 0 || len(e.Units) > protocol.MaxWithheld:
		return nil, invalid("the list of tasks that are not run is not valid: %d tasks of %v", len(e.Units), j)
	}
	of := uint32(min(j.Job.Cells.Count(), protocol.MaxUnits))
	if most := slices.Max(e.Units); most >= of {
		return nil, invalid("a task that is not run does not exist: task %d, counted from 0, of %d", most, of)
	}
	next := *j
	for _, u := range e.Units {
		var added bool
		if next.collected, added = next.collected.put(Part{Round: e.Round, Unit: u, Of: of, Compute: e.Compute}); added {
			next.notRun++
		}
	}
	return s.put(&next), nil
}

// notRunIn reads off the outcome of a job of cells how many were not run.
func notRunIn(outcome json.RawMessage) int {
	var o struct {
		CellsNotRun int `json:"runs_not_run"`
	}
	if json.Unmarshal(outcome, &o) != nil {
		return 0
	}
	return o.CellsNotRun
}

// CellsSpent returns the seconds of computing that the cells of a done job took, by the name of their
// budget.
func (j *Job) CellsSpent() map[string]float64 {
	var o struct {
		Spent map[string]float64 `json:"runs_spent_seconds"`
	}
	if json.Unmarshal(j.Outcome, &o) != nil {
		return nil
	}
	return o.Spent
}

// Submission names the submission that made the job: the jobs of one experiment entry have the
// same; empty: the job is of no experiment.
func (j *Job) Submission() string {
	if j.Experiment == "" {
		return ""
	}
	return j.Token[:max(0, strings.LastIndexByte(j.Token, '/'))]
}
