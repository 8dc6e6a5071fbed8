package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestFaultsAreTold: a job's driver hears of lost workers, in both kinds of rounds, with the number of tasks that
// others were given, and of failed tasks. It hears once of each.
func TestFaultsAreTold(t *testing.T) {
	l := newPatientLab(t)
	var told []Fault
	l.options.Fault = func(f Fault) { told = append(told, f) }
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	check := func(want ...Fault) { // after the end of a round
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told of %+v, want %+v", told, want)
		}
		told = nil
	}
	d := l.do(x, 1, reduceRound(8))
	task1, task2 := w1.first(0), w2.first(0)
	w1.vanish()
	rest := w2.run(task1.run.Tasks...)
	task2.partials()
	rest.partials()
	d.sums()
	check(Fault{Cause: Unusable, Worker: "w1", Reason: "lost its connection", Tasks: len(task1.run.Tasks)})
	d = l.do(x, 2, reduceRound(8)) // it is still away
	w2.run().partials()
	d.sums()
	check()
	w1.comeBack()
	l.until("w1", func() bool { return l.metric("workers", "alive") == 2 })
	d = l.do(x, 3, gatherRound(2))
	a, b := w1.run(), w2.run()
	w1.beat(func(b *protocol.Heartbeat) { b.Leaving = true })
	again := w2.run(a.task())
	b.fail(b.task(), false)
	second := w2.run(b.task())
	again.announce(again.task())
	second.announce(second.task())
	d.gathers()
	check(Fault{Cause: Unusable, Worker: "w1", Reason: "left", Tasks: 1}, Fault{Cause: TaskFailed, Worker: "w2",
		Reason: fmt.Sprintf("task %d is bad on w2", b.task()), Tasks: 1})
}

// TestAForgetfulWorkerIsTold: a worker that was started again, and lacks the job, is a fault with the tasks that it was
// sent again. A worker that lacks only a value is none.
func TestAForgetfulWorkerIsTold(t *testing.T) {
	var told []Fault
	l := newLab(t, never)
	l.options.Fault = func(f Fault) { told = append(told, f) }
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2, variable(1, 10)))
	task := w.first(1)
	task.need(protocol.Need{Refs: []protocol.Ref{{ID: 1, Version: 10}}})
	w.next(protocol.KindValue)
	w.run()
	task.need(protocol.Need{Setup: true})
	w.first(1).partials()
	d.sums()
	if want := []Fault{{Cause: LacksJob, Worker: "w", Tasks: 2}}; !slices.Equal(told, want) {
		t.Errorf("told of %+v, want %+v", told, want)
	}
}
