package jobs

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// experiment submits an experiment of two jobs, each of two methods with three runs. They share a budget of 100 s.
// Earlier runs took 10 s of it. Both jobs run.
func (l *lab) experiment(name string) []*state.Job {
	l.t.Helper()
	e := protocol.ExperimentEntry{Name: name}
	for i := range 2 {
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{
			Token: fmt.Sprintf("%s/%d", name, i), Name: fmt.Sprintf("%s.%d", name, i), Dataset: "art",
			Job: &round.Job{Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: 1, Dataset: l.m.Digest(),
				Cells: &round.Cells{
					Rows:    []round.CellRow{{Algorithm: "a", Budget: 1}, {Algorithm: "b", Budget: 1, Ended: 2, EndedSeconds: 40}},
					Repeats: 1, Folds: 3,
					Budgets: []round.CellBudget{{Of: "x", Seconds: 100, Spent: 10}},
				}},
		})
	}
	made := l.propose(protocol.EntryExperiment, e).([]*state.Job)
	for _, j := range made {
		l.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: l.cfg.Epoch, Job: j.ID, State: protocol.Running})
	}
	return made
}

// record records the result of a task that took so many seconds.
func (l *lab) record(j *state.Job, task uint32, seconds float64) {
	l.t.Helper()
	l.propose(protocol.EntryResult, protocol.ResultEntry{
		Epoch: l.cfg.Epoch, Job: j.ID, Round: 1, Task: task, Of: 6, Digest: blobs.Sum([]byte{byte(task)}),
		Compute: uint64(seconds * 1e9),
	})
}

// TestBudgetOf: the part of a job in the budgets of its submission is what the log says of it. Every leader finds the
// same.
func TestBudgetOf(t *testing.T) {
	l := newLab(t)
	made := l.experiment("e")
	l.record(made[0], 0, 30)
	for range 2 { // two leaders
		got := budgetOf(l.cfg.Store, l.job(made[0].ID))
		want := schedule.ShareOptions{
			Limits: map[string]float64{"x": 100}, Before: map[string]float64{"x": 30},
			Rows: []schedule.Row{{Budget: "x"}, {Budget: "x", Ended: 2, Seconds: 40}},
		}
		if diff := cmp.Diff(want, got.Share); diff != "" {
			t.Error(diff)
		}
		if other := budgetOf(l.cfg.Store, l.job(made[1].ID)); other.Key != got.Key || other.Share.Before["x"] != 0 {
			t.Errorf("the other job has %+v, and not the key %q", other, got.Key)
		}
	}
	if got := budgetOf(l.cfg.Store, l.running("one")); got != nil {
		t.Errorf("a job without budgets has %+v", got)
	}
}

// TestSpentElsewhere: what the log has of jobs without an open share counts, if they run and once they are done.
// Another submission has its own budgets.
func TestSpentElsewhere(t *testing.T) {
	l := newLab(t)
	made, other := l.experiment("e"), l.experiment("f")
	check := func(want float64, open ...*state.Job) {
		t.Helper()
		got := budgetOf(l.cfg.Store, l.job(made[1].ID)).Elsewhere(func(id uint64) bool {
			for _, j := range open {
				if j.ID == id {
					return true
				}
			}
			return false
		})
		if !maps.Equal(got, map[string]float64{"x": want}) {
			t.Errorf("%v s are spent elsewhere, want %v", got["x"], want)
		}
	}
	check(10)
	l.record(made[0], 0, 85)
	l.record(made[1], 0, 1)
	l.record(other[0], 0, 7)
	check(10, made...)
	check(10+85, made[1])
	check(10+1, made[0])
	check(10 + 85 + 1)
	l.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: l.cfg.Epoch, Job: made[0].ID, Round: 1,
		Tasks: []uint32{1}, Compute: 3e9})
	check(10+85+3, made[1])
	l.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: l.cfg.Epoch, Job: made[0].ID,
		Outcome: []byte(`{"runs_spent_seconds":{"x":88.5}}`)})
	check(10+88.5, made[1])
	if spent := spentBy(made[0].Job.Cells, []uint64{85e9, 3e9, 0, 0, 0, 0}); spent["x"] != 88 {
		t.Errorf("%v", spent)
	}
}

// TestTimesBy: the known times of runs that ended well are added up by method.
func TestTimesBy(t *testing.T) {
	// tasks of rows 0, 2, 0, 1 and 2
	cells := &round.Cells{Rows: []round.CellRow{{}, {Only: []int{1}}, {}}, Repeats: 1, Folds: 2}
	got := timesBy(cells, []uint64{5, 7, 0, 11, 13}, []pipeline.CellEnd{{Well: true}, {Well: true}, {Well: true}, {},
		{Well: true}})
	if want := []protocol.RunTimes{{Runs: 1, Nanoseconds: 5}, {}, {Runs: 2, Nanoseconds: 20}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
