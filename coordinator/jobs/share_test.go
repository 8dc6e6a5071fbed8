package jobs

import (
	"fmt"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// bounded queues an experiment of two jobs, each of two rows of three cells that share a budget of 100 s, of which
// earlier cells took 10, and has the first one run.
func (o *office) bounded() []*state.Job {
	o.t.Helper()
	e := protocol.ExperimentEntry{Name: "e"}
	for i := range 2 {
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{
			Token: fmt.Sprintf("t/%d", i), Name: fmt.Sprintf("e.%d", i), Dataset: "art",
			Job: &round.Job{Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: 1, Dataset: o.m.Digest(), Cells: &round.Cells{
				Rows: []round.CellRow{{Algorithm: "a", Budget: 1}, {Algorithm: "b", Budget: 1, Ended: 2, EndedSeconds: 40}}, Repeats: 1, Folds: 3,
				Budgets: []round.CellBudget{{Of: "x", Seconds: 100, Spent: 10}},
			}},
		})
	}
	made := o.propose(protocol.EntryExperiment, e).([]*state.Job)
	o.begin(made[0])
	return made
}

func (o *office) begin(j *state.Job) {
	o.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: o.cfg.Epoch, Job: j.ID, State: protocol.Running})
}

// record records a unit that took so many seconds.
func (o *office) record(j *state.Job, unit uint32, seconds float64) {
	o.propose(protocol.EntryCollected, protocol.CollectedEntry{
		Epoch: o.cfg.Epoch, Job: j.ID, Round: 1, Unit: unit, Of: 6, Digest: blobs.Sum([]byte{byte(unit)}), Compute: uint64(seconds * 1e9),
	})
}

// opened is the share of a job whose units are open that are not recorded.
func (o *office) opened(a *accounts, j *state.Job) *share {
	s := a.open(o.job(j.ID))
	known := (&Parts{Store: o.cfg.Store}).Known(j.ID, 0)
	s.Open([]int32{0, 1, 0, 1, 0, 1}, func(u int) bool { _, ok := known[uint32(u)]; return !ok })
	return s
}

// TestShare: what is spent is what the log has of all jobs of the submission, and what ended here; another
// leader decides the same.
func TestShare(t *testing.T) {
	o, now := newOffice(t), time.Now()
	made := o.bounded()
	o.record(made[0], 0, 30)
	for range 2 { // two leaders
		a := &accounts{store: o.cfg.Store, of: make(map[string]*account)}
		s := o.opened(a, made[0])
		// 60 s are left: the other cells of the first row need 60, those of the second, which took 20 each, as much
		if !s.May(0, now) || s.May(1, now) || s.Over(1, now) {
			t.Fatalf("first row %v, second %v", s.May(0, now), s.May(1, now))
		}
		if s.Begin(1, now) || !s.Begin(2, now) || s.Started(2, now) != 60*time.Second {
			t.Error("of two runs not the one begins that fits")
		}
		if s.May(1, now) || s.Over(1, now.Add(time.Second)) {
			t.Error("while a run runs the others wait for its end")
		}
		s.Return(2) // its worker is gone
		if !s.May(0, now) || !s.Begin(4, now) {
			t.Error("a run that was given back does not fit any more")
		}
		s.End(4, 50*time.Second)
		if s.May(0, now) || s.May(1, now) || !s.Over(0, now) || !s.Over(1, now) {
			t.Error("runs of 40 s fit into 10")
		}
		s.close()
	}
}

// TestShareOfJobs: the jobs of a submission share their budgets, those that run, those that are done and those
// that wait; another submission has its own.
func TestShareOfJobs(t *testing.T) {
	o, now := newOffice(t), time.Now()
	made := o.bounded()
	a := &accounts{store: o.cfg.Store, of: make(map[string]*account)}
	first := o.opened(a, made[0])
	o.begin(made[1])
	second := o.opened(a, made[1])
	if !first.Begin(0, now) || !second.Begin(0, now) {
		t.Fatal("the first runs do not begin")
	}
	first.End(0, 85*time.Second)
	o.record(made[0], 0, 85)
	if second.May(1, now) || second.Over(1, now) {
		t.Error("5 s are left, and the run of another job runs")
	}
	second.End(0, time.Second)
	o.record(made[1], 0, 1)
	if !second.May(0, now) || second.May(1, now) {
		t.Error("of 4 s not those runs go on that take 1")
	}
	o.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: o.cfg.Epoch, Job: made[0].ID, Round: 1, Units: []uint32{1}, Compute: 3e9})
	first.close() // 3 s more are known of the log
	if b := a.of[second.key].budgets["x"]; b.Spent != 10+85+3+1 {
		t.Errorf("%v s are spent of jobs that run", b.Spent)
	}
	took := []uint64{85e9, 3e9, 0, 0, 0, 0}
	if spent := spentBy(made[0].Job.Cells, took); spent["x"] != 88 {
		t.Errorf("%v", spent)
	}
	o.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: o.cfg.Epoch, Job: made[0].ID, Outcome: []byte(`{"runs_spent_seconds":{"x":88.5}}`)})
	second.close()
	if again := o.opened(a, made[1]); a.of[again.key].budgets["x"].Spent != 10+88.5+1 {
		t.Errorf("%v s are spent, of jobs that are done too", a.of[again.key].budgets["x"].Spent)
	}
}
