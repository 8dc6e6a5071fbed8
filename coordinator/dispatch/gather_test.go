package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// gatherRound returns a gather round of so many tasks, each with a payload of its own.
func gatherRound(tasks int) *round.Round {
	r := &round.Round{Op: 4, Tasks: tasks, How: &round.Gather{}, Scope: round.Whole}
	for task := range tasks {
		r.Gather().Payloads = append(r.Gather().Payloads, []byte{byte(task), 9})
	}
	return r
}

// gathers waits for the end of a gather round and checks its results. The trainer has some of them itself.
func (d *doing) gathers() {
	d.l.t.Helper()
	if err := d.wait(); err != nil {
		d.l.t.Fatal(err)
	}
	if d.res.Sum != nil || len(d.res.Gathered) != d.r.Tasks {
		d.l.t.Fatalf("%d results of %d tasks", len(d.res.Gathered), d.r.Tasks)
	}
	for task, got := range d.res.Gathered {
		want := string(resultOf(uint32(task)))
		if d.r.Gather().Skips(task) {
			want = ""
		}
		if string(got) != want {
			d.l.t.Errorf("task %d: result %q, want %q", task, got, want)
		}
	}
}

// TestGather: the lowest task is given out first, each with its payload, and a worker has one more than slots. Results
// are recorded.
func TestGather(t *testing.T) {
	l, w, x := withOne(t, 2)
	d := l.do(x, 3, gatherRound(5))
	var busy []*assignment
	busy = append(busy, w.first(0), w.run(), w.run())
	for u := range uint32(5) {
		task := busy[0]
		if task.task() != u || string(task.run.Payload[0]) != string(d.r.Gather().Payloads[u]) || !task.run.Gather ||
			task.run.Scope != round.Whole || task.run.SubJob {
			t.Errorf("task %d: run %+v", u, task.run)
		}
		w.idle() // two slots, three tasks
		if live, _ := l.d.Live(jobID); live.InFlight > 2 {
			t.Errorf("%d tasks in flight on two slots", live.InFlight)
		}
		task.announce(u)
		busy = busy[1:]
		if u < 2 {
			busy = append(busy, w.run())
		}
	}
	d.gathers()
	l.until("five results to be recorded", func() bool { return len(l.results.tasks()) == 5 })
	if got := l.results.tasks(); !slices.Equal(got, []uint32{0, 1, 2, 3, 4}) || l.results.of != 5 {
		t.Errorf("tasks %v were recorded, of %d", got, l.results.of)
	}
	l.counted("tasks_dispatched_total", "", 5)
	l.counted("tasks_retried_total", "", 0)
	l.free(t, 2)
}

// leases counts the slots of workers that are taken.
func (l *lab) leases() (n int) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	for _, w := range l.d.workers.View(time.Now()) {
		n += w.Leases
	}
	return n
}

// free checks how many slots of usable workers are free.
func (l *lab) free(t *testing.T, want int) {
	t.Helper()
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	free := 0
	for _, w := range l.d.workers.View(time.Now()) {
		if w.Refused == "" && !w.Unreachable {
			free += w.Slots - w.Leases
		}
	}
	if free != want {
		t.Errorf("%d slots are free, want %d", free, want)
	}
}

// TestGatherSkipsWhatIsThere: results that an earlier leader recorded, and tasks that the trainer has, are not computed
// again.
func TestGatherSkipsWhatIsThere(t *testing.T) {
	l, w, x := withOne(t, 9)
	l.results.known = map[uint32]string{1: digestOf(1), 4: digestOf(4), 99: digestOf(99)}
	r := gatherRound(6)
	r.Gather().Has = []bool{true, false, false, true, false, false}
	d := l.do(x, 3, r)
	for _, u := range []uint32{2, 5} {
		var task *assignment
		if u == 2 {
			task = w.first(0)
		} else {
			task = w.run()
		}
		if task.task() != u {
			t.Fatalf("task %d was given out, want %d", task.task(), u)
		}
		task.announce(u)
	}
	d.gathers()
	w.idle()
	l.results.known = nil
	all := l.do(x, 4, &round.Round{Tasks: 2, How: &round.Gather{Has: []bool{true, true}}})
	all.gathers() // nothing is left to do
}

// TestGatherQueuesAgain: if a worker leaves, its tasks are given out again. The first answer counts, even from the
// worker that left, and the other worker stops. A second answer is wasted.
func TestGatherQueuesAgain(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 2)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(2))
	task0, task1 := w1.first(0), w1.run()
	w2 := l.join("w2", 1)
	l.silent("w1")
	again := w2.first(0)
	if again.task() != 0 {
		t.Fatalf("task %d goes to the other worker first", again.task())
	}
	w2.run(1) // it waits behind the other
	again.announce(0)
	l.until("task 0", func() bool { return len(l.results.tasks()) == 1 })
	task0.announce(0) // w1 is alive after all
	l.until("a wasted task", func() bool { return l.metric("tasks_wasted_total", "") == 1 })
	task1.announce(1)
	w2.stops(1)
	d.gathers()
	w2.idle()
	l.counted("tasks_retried_total", "", 2)
	late := l.do(x, 4, gatherRound(1))
	task := w2.run()
	task0.announce(0) // of a round that is over
	l.until("another wasted task", func() bool { return l.metric("tasks_wasted_total", "") == 2 })
	late.pending()
	task.announce(0)
	late.gathers()
}

// TestGatherReminds: a worker that has had a task for long is sent it again: it may have been started again, or have
// lost the message.
func TestGatherReminds(t *testing.T) {
	l := newLab(t, quick)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(1))
	w.first(0) // it is lost
	task := w.run(0)
	task.need(protocol.Need{Setup: true})
	for o := range w.orders { // reminders may come in between
		if o.kind == protocol.KindSetup {
			break
		}
	}
	w.run(0).announce(0)
	d.gathers()
	if got := l.metric("tasks_dispatched_total", ""); got < 3 {
		t.Errorf("%v tasks dispatched, want three at least", got)
	}
}

// TestGatherFails: a task that fails goes to another worker once that has a slot. A permanent failure fails the job,
// and its slots are free again.
func TestGatherFails(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 2), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(3))
	a, b, c := w1.first(0), w1.run(), w2.first(0)
	a.fail(a.task(), false)
	w1.idle() // it has a free slot, and is not asked again
	c.announce(c.task())
	again := w2.run(a.task())
	a.fail(a.task(), false)
	l.dropped(metrics.DropStale, 1)
	b.fail(7, false)
	l.dropped(metrics.DropMisshapen, 1)
	again.announce(a.task())
	b.announce(b.task())
	d.gathers()
	l.free(t, 3)

	d = l.do(x, 4, gatherRound(3))
	a = w1.run()
	w1.run()
	a.fail(a.task(), true)
	if err := d.wait(); err == nil || !strings.Contains(err.Error(), "on worker w1") {
		t.Errorf("a permanent failure: error %v", err)
	}
	l.free(t, 3)
}

// TestGatherFetchesAgain: a task whose result could not be brought here is computed again. While one result is on its
// way the other tasks go on.
func TestGatherFetchesAgain(t *testing.T) {
	l, w, x := withOne(t, 2)
	fetching, fetch := make(chan struct{}), make(chan struct{})
	failed := false
	l.results.fetch = func(c *protocol.Result) error {
		if c.Task == 0 && !failed {
			failed = true
			close(fetching)
			<-fetch
			return errors.New("no such blob")
		}
		return nil
	}
	d := l.do(x, 3, gatherRound(2))
	task0, task1 := w.first(0), w.run()
	task0.announce(0)
	<-fetching
	task0.announce(0) // it is repeated while the result is fetched
	l.until("a wasted task", func() bool { return l.metric("tasks_wasted_total", "") == 1 })
	task1.announce(1)
	l.until("task 1", func() bool { return len(l.results.tasks()) == 1 })
	d.pending()
	close(fetch)
	again := w.run()
	if again.task() != 0 {
		t.Fatalf("task %d is computed again", again.task())
	}
	again.announce(0)
	d.gathers()
	l.counted("tasks_retried_total", "", 1)
	l.free(t, 2)
}

// TestGatherApart: results of a round that keeps them apart are read one by one at its end, also results that were
// recorded before. The round tells how long the others took.
func TestGatherApart(t *testing.T) {
	l, w, x := withOne(t, 2)
	l.results.known = map[uint32]string{1: digestOf(1)}
	r := gatherRound(3)
	r.Gather().Apart = true
	d := l.do(x, 3, r)
	w.first(0).announceAfter(0, 3*time.Second)
	w.run(2).announceAfter(2, time.Second)
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	if d.res.Gathered != nil || !slices.Equal(d.res.Took, []uint64{3e9, 0, 1e9}) {
		t.Errorf("%d results are in memory; they took %v", len(d.res.Gathered), d.res.Took)
	}
	for u := range uint32(3) {
		if b, err := d.res.Load(int(u)); err != nil || string(b) != string(resultOf(u)) {
			t.Errorf("task %d: %q, error %v", u, b, err)
		}
	}
}

// TestRecordsAsynchronously: a round ends once its short results are here, and they are recorded asynchronously. A
// later round waits while that fails. Long results are recorded before their round ends.
func TestRecordsAsynchronously(t *testing.T) {
	l, w, x := withOne(t, 2)
	record := make(chan error)
	l.results.record = func(*protocol.Result) error { return <-record }
	d := l.do(x, 3, gatherRound(1))
	w.first(0).brief(0)
	d.gathers()
	if got := l.results.tasks(); len(got) > 0 {
		t.Errorf("recorded %v", got)
	}
	record <- errors.New("no quorum")
	l.until("the executor to be told", func() bool {
		x.mail.mu.Lock()
		defer x.mail.mu.Unlock()
		if len(x.mail.ends) != 1 {
			return false
		}
		_, late := x.mail.ends[0].(*schedule.RecordingLate)
		return late
	})
	d = l.do(x, 4, gatherRound(1))
	w.run(0).brief(0)
	l.until("free slots", func() bool { return l.leases() == 0 })
	d.pending()
	record <- nil
	record <- nil
	d.gathers()
	l.until("two results to be recorded", func() bool { return len(l.results.tasks()) == 2 })

	d = l.do(x, 5, gatherRound(1))
	w.run(0).announce(0)
	record <- errors.New("no quorum")
	d.pending()
	record <- nil
	d.gathers()
	l.counted("tasks_retried_total", "", 0)
}

// TestRecordingGivenUp: a round does not wait for a result of an earlier round if the log has it that this round is
// over.
func TestRecordingGivenUp(t *testing.T) {
	l, w, x := withOne(t, 2)
	record, tries := make(chan error), make(chan struct{}, 2)
	l.results.record = func(r *protocol.Result) error {
		if r.Round == 3 {
			tries <- struct{}{}
			return <-record
		}
		return nil
	}
	d := l.do(x, 3, gatherRound(1))
	w.first(0).brief(0)
	d.gathers()
	record <- errors.New("no quorum")
	for range 2 { // at the second try, it is known that the recording is late
		<-tries
	}
	d = l.do(x, 4, gatherRound(1))
	w.run(0).brief(0)
	l.until("free slots", func() bool { return l.leases() == 0 })
	d.pending()
	record <- ErrOver
	d.gathers()
}

// TestImpossibleRecords: a task is computed again if its result is here no longer. A round ends if none of its results
// can be recorded. A result that is not recorded when the job is closed never is.
func TestImpossibleRecords(t *testing.T) {
	l, w, x := withOne(t, 2)
	record := make(chan error)
	l.results.record = func(*protocol.Result) error { return <-record }
	d := l.do(x, 3, gatherRound(2))
	task, other := w.first(0), w.run(1)
	task.brief(0)
	record <- fmt.Errorf("the result: %w", blobs.ErrMissing)
	w.run(0).brief(0)
	l.counted("tasks_retried_total", "", 1)
	record <- fmt.Errorf("another leads: %w", ErrOver)
	if err := d.wait(); !errors.Is(err, ErrOver) {
		t.Errorf("a result that can never be recorded: error %v", err)
	}
	other.brief(1)
	close(record)
	x.results.close()
	x.results.progress = make(map[int]*round.Progress)
	x.mem.in.stored = &storedResult{}
	x.results.record(&schedule.Record{Task: 1, Result: schedule.Result{Took: 1}, Async: true})
	x.results.close()
	if slices.Contains(l.results.tasks(), 1) {
		t.Error("a result was recorded after the end")
	}
}

// TestGatherIsCancelled: the round ends with the error of its context once nothing is on its way here, and its slots
// are free.
func TestGatherIsCancelled(t *testing.T) {
	l, w, x := withOne(t, 2)
	fetching := make(chan struct{})
	d := l.do(x, 3, gatherRound(3))
	l.results.fetch = func(*protocol.Result) error {
		close(fetching)
		d.cancel()
		return nil
	}
	w.first(0).announce(0)
	<-fetching
	if err := d.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	l.free(t, 2)
}

// TestLostResultsAreAnError that ends the job.
func TestLostResultsAreAnError(t *testing.T) {
	l := newLab(t, never)
	x := l.executor(jobID)
	defer x.Close()
	lost := digestOf(77)
	l.results.known = map[uint32]string{0: lost}
	if err := l.do(x, 3, gatherRound(1)).wait(); err == nil || !strings.Contains(err.Error(), lost) {
		t.Errorf("error %v", err)
	}
}

// TestSubJobsGoOnElsewhere: a sub-job begins without a payload. The worker that takes it over is told how far it is.
func TestSubJobsGoOnElsewhere(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	r := &round.Round{Tasks: 1, How: &round.Gather{SubJob: round.Jobs(&round.Job{Seed: 1})}, Scope: round.Whole}
	d := l.do(x, 3, r)
	task := w1.first(0)
	if !task.run.SubJob || len(task.run.Payload[0]) != 0 {
		t.Errorf("run %+v", task.run)
	}
	say := func(change func(*protocol.Checkpoint)) {
		m := protocol.Checkpoint{Stamp: task.run.Stamp, Worker: "w1", Resume: protocol.Resume{Rounds: 500,
			State: []byte("state")}}
		change(&m)
		task.send(m.Append(nil))
	}
	say(func(m *protocol.Checkpoint) { m.Rounds = 400 })
	say(func(*protocol.Checkpoint) {})
	say(func(m *protocol.Checkpoint) { m.Round--; m.Rounds = 600 })
	l.dropped(metrics.DropStale, 1)
	say(func(m *protocol.Checkpoint) { m.Task = 1 })
	l.dropped(metrics.DropMisshapen, 1)
	w2 := l.join("w2", 1)
	l.silent("w1")
	again := w2.first(0)
	var resume protocol.Resume
	if err := resume.Decode(again.run.Payload[0]); err != nil || resume.Rounds != 500 || string(resume.State) != "state" ||
		!again.run.SubJob {
		t.Errorf("resume %+v, error %v", resume, err)
	}
	again.announce(0)
	d.gathers()
	next := l.do(x, 4, r)
	if task := w2.run(); len(task.run.Payload[0]) != 0 {
		t.Error("another round's sub-job goes on where the last one was")
	} else {
		task.announce(0)
	}
	next.gathers()
}

// TestGatherStraggler: a task that takes much longer than the others is given to an idle worker as well if no other
// waits. The first answer counts, and the other worker is told to stop.
func TestGatherStraggler(t *testing.T) {
	l := newLab(t, 20*time.Millisecond)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(4))
	a, b := w1.first(0), w2.first(0)
	b.announce(b.task())
	b = w2.run()
	b.announce(b.task())
	b = w2.run()
	w2.idle() // the straggler waits while another task is computed there
	b.announce(b.task())
	copied := w2.run(a.task())
	w1.idle()
	copied.announce(a.task())
	w1.stops(a.task())
	d.gathers()
	next := l.do(x, 4, gatherRound(2))
	task1, task2 := w1.run(), w2.run()
	a.announce(a.task()) // late
	l.until("a wasted task", func() bool { return l.metric("tasks_wasted_total", "") == 1 })
	task1.announce(task1.task())
	task2.announce(task2.task())
	next.gathers()
	l.free(t, 2)
}

// TestGatherSteals: a task that waits behind another on its worker goes to an idle worker at once.
func TestGatherSteals(t *testing.T) {
	l := newLab(t, 100*time.Millisecond)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(2))
	a, b := w1.first(0), w1.run(1)
	w2 := l.join("w2", 1)
	w2.first(0).announce(1)
	l.until("task 1", func() bool { return len(l.results.tasks()) == 1 })
	w1.stops(1)
	b.announce(1)
	a.announce(0)
	d.gathers()
	l.free(t, 2)
	l.counted("tasks_wasted_total", "", 1)
}

// TestGatherShares: a job that comes later gets the next free slots until it has as many as the job before.
func TestGatherShares(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w", 3)
	x1, x2 := l.executor(1), l.executor(2)
	defer x1.Close()
	defer x2.Close()
	d1 := l.do(x1, 1, gatherRound(8))
	tasks := []*assignment{w.first(0), w.run(), w.run(), w.run()}
	d2 := l.do(x2, 1, gatherRound(8))
	l.until("the second job to want a slot", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return x2.schedule.View(time.Now()).Ready == 8
	})
	for i := range 2 {
		tasks[i].announce(tasks[i].task())
		if i == 0 {
			w.next(protocol.KindSetup)
		}
		if got := w.run(); got.run.Job != 2 {
			t.Errorf("slot %d goes to job %d", i, got.run.Job)
		} else {
			tasks = append(tasks, got)
		}
	}
	for left := 14; left > 0; left-- { // two of sixteen have ended; both jobs end
		task := tasks[2]
		tasks = append(tasks[:2], tasks[3:]...)
		task.announce(task.task())
		if left > 4 {
			tasks = append(tasks, w.run())
		}
	}
	d1.gathers()
	d2.gathers()
	l.free(t, 3)
}

// TestGatherGoesOnDespiteAFailure: a task that failed on one worker waits for another. The other tasks do not.
func TestGatherGoesOnDespiteAFailure(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 3, gatherRound(3))
	a, b := w1.first(0), w2.first(0)
	a.fail(a.task(), false)
	other := w1.run(2)
	other.announce(2)
	w1.idle()
	b.announce(b.task())
	w2.run(a.task()).announce(a.task())
	d.gathers()
	l.free(t, 2)
}

// TestRunningWhileHeartbeatsCome: a round says which tasks are computed, and since when, while heartbeats come.
func TestRunningWhileHeartbeatsCome(t *testing.T) {
	l, w, x := withOne(t, 2)
	r := gatherRound(3)
	r.Gather().Groups = []int32{0, 0, 0}
	d := l.do(x, 1, r)
	task, last := w.first(0), w.run(1)
	task.announceAfter(0, 8*time.Second)
	other := w.run(2)
	for live := (Live{}); len(live.Running) < 2; live, _ = l.d.Live(jobID) {
		before := l.heard("w")
		w.beat(func(b *protocol.Heartbeat) { b.Slots = 2 })
		l.until("a heartbeat", func() bool { return l.heard("w").After(before) })
	}
	if live, _ := l.d.Live(jobID); live.InFlight != 2 || time.Since(live.Running[0].Since) > time.Minute ||
		live.Running[0].Task == live.Running[1].Task {
		t.Errorf("live is %+v", live)
	}
	last.announce(1)
	other.announce(2)
	d.gathers()
}

// TestLateResult: a result that comes in a later reduce round, which has fewer tasks, is late and not malformed.
func TestLateResult(t *testing.T) {
	l, w, x := withOne(t, 3)
	d := l.do(x, 1, gatherRound(3))
	first := w.first(0)
	first.announce(first.task())
	for range 2 {
		task := w.run()
		task.announce(task.task())
	}
	d.gathers()
	d = l.do(x, 2, reduceRound(1))
	task := w.run(0)
	first.announce(2)
	l.dropped(metrics.DropStale, 1)
	task.partials()
	d.sums()
}

// TestShortResultIsNoMail: the executor is not told of a short result that is recorded at the first try.
func TestShortResultIsNoMail(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, gatherRound(1))
	w.first(0).brief(0)
	d.gathers()
	l.until("the result to be recorded", func() bool { return len(l.results.tasks()) == 1 })
	x.results.close()
	if _, ends := x.mail.take(nil, nil); len(ends) > 0 {
		t.Errorf("%+v", ends)
	}
}
