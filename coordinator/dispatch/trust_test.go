package dispatch

import (
	"errors"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestJudgedIsFetchedAgain: a part that the leader judged and that could not be
// brought here is computed and compared once more.
func TestJudgedIsFetchedAgain(t *testing.T) {
	l, court := inCourt(t, million)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	failed := false
	l.parts.fetch = func(*protocol.Collected) error {
		if !failed {
			failed = true
			return errors.New("no such blob")
		}
		return nil
	}
	d := l.do(x, 1, collecting(1))
	task1, task2 := w1.first(0), w2.first(0)
	task1.says(0, blobs.Sum([]byte("other bytes")))
	task2.says(0, blobs.Sum(honest(0)))
	w2.run(0).says(0, blobs.Sum(honest(0)))
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	court.accused(l, "w1")
	l.free(t, 1)
}

// TestFailureOfALiar: a job does not fail for what a worker says that is not
// trusted any more.
func TestFailureOfALiar(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	l.d.SetDistrusted(map[string]string{"w1": "it lied"})
	again := w2.run(task1.run.Units...)
	task1.fail(task1.run.Units[0], true)
	l.dropped(metrics.DropStale, 1)
	task2.parts()
	again.parts()
	d.sums()
}

// TestCheckpointOfALiar: a child job does not go on from what a worker said that is
// not trusted any more.
func TestCheckpointOfALiar(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, &round.Round{Units: 1, How: round.Collect, Scope: round.Whole, Child: round.Jobs(&round.Job{Seed: 1})})
	task := w1.first(0)
	say := func(unit uint32) {
		m := protocol.Checkpoint{Stamp: task.run.Stamp, Worker: "w1", Unit: unit, Resume: protocol.Resume{Rounds: 500, State: []byte("state")}}
		task.send(m.Append(nil))
	}
	say(0)
	say(1) // there is no such unit: what came before has been taken in
	l.dropped(metrics.DropMisshapen, 1)
	l.d.SetDistrusted(map[string]string{"w1": "it lied"})
	again := l.join("w2", 1).first(0)
	say(0) // of a unit that is in work
	l.dropped(metrics.DropStale, 1)
	if got := again.run.Payload[0]; len(got) != 0 {
		t.Errorf("the child job goes on from %d bytes", len(got))
	}
	again.collected(0)
	d.collects()
}

// TestSumOverCompared: a sum that has a unit whose answers are compared is not used,
// after they were either.
func TestSumOverCompared(t *testing.T) {
	l, _ := inCourt(t, 0)
	x := l.executor(jobID)
	defer x.Close()
	x.r, x.units, x.checks = summed(2), newUnits(2), []int{0}
	x.units[0].check = audited
	x.tree.Reset(2, x.r.Shape)
	if _, err := x.tree.Put(0, 0, x.tree.Partial()); err != nil {
		t.Fatal(err)
	}
	x.part = protocol.Part{Level: 1, Partial: x.tree.Partial()}
	if mine, err := x.checkPart(l.ctx()); !mine || err != nil {
		t.Errorf("taken %v, error %v", mine, err)
	}
	x.part = protocol.Part{Index: 1, Partial: x.tree.Partial()}
	if mine, err := x.checkPart(l.ctx()); mine || err != nil {
		t.Errorf("another unit: taken %v, error %v", mine, err)
	}
}

// TestAuditTellsAgain: a single worker is told again of a unit that is compared: the
// message may be lost.
func TestAuditTellsAgain(t *testing.T) {
	c := &court{round: 1}
	l := newLabWith(t, quick, func(cfg *Config) { cfg.Referee, cfg.Suspect = c, c.suspect })
	l.options.AuditPPM = million
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(1))
	w.first(0)
	w.run(0).part(0, nil)
	d.sums()
	l.counted("audits_total", "", 1)
}

// TestNotAllAreUnable: a failure that passes does not fail the job, though whoever
// else is there can never compute the unit.
func TestNotAllAreUnable(t *testing.T) {
	l := newLab(t, never)
	l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	x.r, x.units = collecting(1), newUnits(1)
	x.fail = protocol.Fail{Worker: "w1", Unable: true}
	if x.rest(0, time.Now()) == nil {
		t.Error("the only worker is unable, and there is hope")
	}
	x.fail = protocol.Fail{Worker: "w2"} // which has left since
	if err := x.rest(0, time.Now()); err != nil {
		t.Errorf("error %v", err)
	}
}

// TestFirstIsWhoCan: a job lets another go first only where that can use the slot.
func TestFirstIsWhoCan(t *testing.T) {
	l := newLab(t, never)
	l.join("w", 2)
	x, y := l.executor(1), l.executor(2)
	defer x.Close()
	defer y.Close()
	l.d.mu.Lock()
	x.r, x.given, y.wants = collecting(3), 1, true
	l.d.mu.Unlock()
	if x.reserve(1, "") != nil {
		t.Error("the other job does not go first")
	}
	l.d.mu.Lock()
	y.unable["w"] = "it lacks the memory"
	l.d.mu.Unlock()
	w := x.reserve(1, "")
	if w == nil {
		t.Fatal("the slot is for nobody")
	}
	x.giveBack(w)
}
