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
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// collecting is a collected round; each unit has bytes of its own.
func collecting(units int) *round.Round {
	r := &round.Round{Op: 4, Units: units, How: round.Collect, Scope: round.Whole}
	for u := range units {
		r.Payloads = append(r.Payloads, []byte{byte(u), 9})
	}
	return r
}

// collects waits for the end of a collected round and checks its parts, but for
// those that the trainer has.
func (d *doing) collects() {
	d.l.t.Helper()
	if err := d.wait(); err != nil {
		d.l.t.Fatal(err)
	}
	if d.res.Sum != nil || len(d.res.Collected) != d.r.Units {
		d.l.t.Fatalf("%d parts of %d units", len(d.res.Collected), d.r.Units)
	}
	for u, got := range d.res.Collected {
		want := string(partOf(uint32(u)))
		if d.r.Has != nil && d.r.Has[u] {
			want = ""
		}
		if string(got) != want {
			d.l.t.Errorf("unit %d: part %q, want %q", u, got, want)
		}
	}
}

// TestCollect: units go out lowest first, one more at a time than a worker has
// slots, each with its payload; parts are recorded.
func TestCollect(t *testing.T) {
	l, w, x := withOne(t, 2)
	d := l.do(x, 3, collecting(5))
	var busy []*task
	busy = append(busy, w.first(0), w.run(), w.run())
	for u := range uint32(5) {
		task := busy[0]
		if task.unit() != u || string(task.run.Payload[0]) != string(d.r.Payloads[u]) || task.run.How != round.Collect || task.run.Scope != round.Whole || task.run.Child {
			t.Errorf("unit %d: run %+v", u, task.run)
		}
		w.idle() // two slots, three units
		if live, _ := l.d.Live(jobID); live.InFlight > 2 {
			t.Errorf("%d units in flight on two slots", live.InFlight)
		}
		task.collected(u)
		busy = busy[1:]
		if u < 2 {
			busy = append(busy, w.run())
		}
	}
	d.collects()
	l.until("five parts recorded", func() bool { return len(l.parts.units()) == 5 })
	if got := l.parts.units(); !slices.Equal(got, []uint32{0, 1, 2, 3, 4}) || l.parts.of != 5 {
		t.Errorf("units %v were recorded, of %d", got, l.parts.of)
	}
	l.counted("tasks_dispatched_total", "", 5)
	l.counted("tasks_retried_total", "", 0)
	l.free(t, 2)
}

// busy counts the slots of workers that are taken.
func (l *lab) busy() (n int) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	for _, w := range l.d.crew.workers {
		n += w.busy
	}
	return n
}

// free checks how many slots of workers are free.
func (l *lab) free(t *testing.T, want int) {
	t.Helper()
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	free := 0
	for _, w := range l.d.crew.usable() {
		free += w.beat.Slots - w.busy
	}
	if free != want {
		t.Errorf("%d slots are free, want %d", free, want)
	}
}

// TestCollectSkipsWhatIsThere: parts that an earlier leader recorded, and units
// that the trainer has, are not computed again.
func TestCollectSkipsWhatIsThere(t *testing.T) {
	l, w, x := withOne(t, 9)
	l.parts.known = map[uint32]string{1: digestOf(1), 4: digestOf(4), 99: digestOf(99)}
	r := collecting(6)
	r.Has = []bool{true, false, false, true, false, false}
	d := l.do(x, 3, r)
	for _, u := range []uint32{2, 5} {
		var task *task
		if u == 2 {
			task = w.first(0)
		} else {
			task = w.run()
		}
		if task.unit() != u {
			t.Fatalf("unit %d was given out, want %d", task.unit(), u)
		}
		task.collected(u)
	}
	d.collects()
	w.idle()
	l.parts.known = nil
	all := l.do(x, 4, &round.Round{Units: 2, How: round.Collect, Has: []bool{true, true}})
	all.collects() // nothing is left to do
}

// TestCollectRequeues the units of a worker that is gone; an answer that it still
// gives counts, a second one is wasted.
func TestCollectRequeues(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 2)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(2))
	task0, task1 := w1.first(0), w1.run()
	w2 := l.join("w2", 1)
	l.silent("w1")
	again := w2.first(0)
	if again.unit() != 0 {
		t.Fatalf("unit %d goes to the other worker first", again.unit())
	}
	w2.run(1)          // waits behind it
	task1.collected(1) // w1 was alive after all
	l.until("unit 1", func() bool { return len(l.parts.units()) == 1 })
	again.collected(0)
	task0.collected(0)
	d.collects()
	w2.idle()
	l.counted("tasks_retried_total", "", 2)
	late := l.do(x, 4, collecting(1))
	task := w2.run()
	task0.collected(0) // of a round that is over
	l.until("a wasted unit", func() bool { return l.metric("tasks_wasted_total", "") >= 1 })
	late.pending()
	task.collected(0)
	late.collects()
}

// TestCollectReminds: a worker that has had a unit for long is sent it again, in
// case it was started again or the message got lost.
func TestCollectReminds(t *testing.T) {
	l := newLab(t, quick)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(1))
	w.first(0) // is lost
	task := w.run(0)
	task.need(protocol.Need{Setup: true})
	for o := range w.orders { // reminders may come in between
		if o.kind == protocol.KindSetup {
			break
		}
	}
	w.run(0).collected(0)
	d.collects()
	if got := l.metric("tasks_dispatched_total", ""); got < 3 {
		t.Errorf("%v units dispatched, want three at least", got)
	}
}

// TestCollectFails: a unit that fails goes to another worker when that has a
// slot; one that fails for good fails the job, and its slots are free again.
func TestCollectFails(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 2), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(3))
	a, b, c := w1.first(0), w1.run(), w2.first(0)
	a.fail(a.unit(), false)
	w1.idle() // it has a free slot, and is not asked again
	c.collected(c.unit())
	again := w2.run(a.unit())
	a.fail(a.unit(), false)
	l.dropped(metrics.DropStale, 1)
	b.fail(7, false)
	l.dropped(metrics.DropMisshapen, 1)
	again.collected(a.unit())
	b.collected(b.unit())
	d.collects()
	l.free(t, 3)

	d = l.do(x, 4, collecting(3))
	a = w1.run()
	w1.run()
	a.fail(a.unit(), true)
	if err := d.wait(); err == nil || !strings.Contains(err.Error(), "on worker w1") {
		t.Errorf("a permanent failure: error %v", err)
	}
	l.free(t, 3)
}

// TestCollectFetchesAgain: what could not be brought here is computed again, and
// while one part is on its way the others go on.
func TestCollectFetchesAgain(t *testing.T) {
	l, w, x := withOne(t, 2)
	fetching, fetch := make(chan struct{}), make(chan struct{})
	failed := false
	l.parts.fetch = func(c *protocol.Collected) error {
		if c.Unit == 0 && !failed {
			failed = true
			close(fetching)
			<-fetch
			return errors.New("no such blob")
		}
		return nil
	}
	d := l.do(x, 3, collecting(2))
	task0, task1 := w.first(0), w.run()
	task0.collected(0)
	<-fetching
	task0.collected(0) // doubled while it is fetched
	l.until("a wasted unit", func() bool { return l.metric("tasks_wasted_total", "") == 1 })
	task1.collected(1)
	l.until("unit 1", func() bool { return len(l.parts.units()) == 1 })
	d.pending()
	close(fetch)
	again := w.run()
	if again.unit() != 0 {
		t.Fatalf("unit %d is computed again", again.unit())
	}
	again.collected(0)
	d.collects()
	l.counted("tasks_retried_total", "", 1)
	l.free(t, 2)
}

// TestCollectApart: parts of a round that are kept apart are read one by one at its end, those that
// were recorded before as well, and how long they took is said of the others.
func TestCollectApart(t *testing.T) {
	l, w, x := withOne(t, 2)
	l.parts.known = map[uint32]string{1: digestOf(1)}
	r := collecting(3)
	r.Apart = true
	d := l.do(x, 3, r)
	w.first(0).announce(0, 3*time.Second)
	w.run(2).announce(2, time.Second)
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	if d.res.Collected != nil || !slices.Equal(d.res.Took, []uint64{3e9, 0, 1e9}) {
		t.Errorf("%d parts are in memory; they took %v", len(d.res.Collected), d.res.Took)
	}
	for u := range uint32(3) {
		if b, err := d.res.Part(int(u)); err != nil || string(b) != string(partOf(u)) {
			t.Errorf("unit %d: %q, error %v", u, b, err)
		}
	}
}

// TestRecordsBesideTheRound: a round ends when its short parts are here, and they are
// recorded beside it, but not while that fails; long ones are recorded before.
func TestRecordsBesideTheRound(t *testing.T) {
	l, w, x := withOne(t, 2)
	record := make(chan error)
	l.parts.record = func(*protocol.Collected) error { return <-record }
	d := l.do(x, 3, collecting(1))
	w.first(0).brief(0)
	d.collects()
	if got := l.parts.units(); len(got) > 0 {
		t.Errorf("recorded %v", got)
	}
	record <- errors.New("no majority")
	l.until("a part behind", func() bool { return x.records.behind.Load() == 1 })
	d = l.do(x, 4, collecting(1))
	w.run(0).brief(0)
	l.until("free slots", func() bool { return l.busy() == 0 })
	d.pending()
	record <- nil
	record <- nil
	d.collects()
	l.until("two parts recorded", func() bool { return len(l.parts.units()) == 2 })

	d = l.do(x, 5, collecting(1))
	w.run(0).collected(0)
	record <- errors.New("no majority")
	d.pending()
	record <- nil
	d.collects()
	l.counted("tasks_retried_total", "", 0)
}

// TestRecordsThatCannotBe: a part that is here no more is computed again; where none of
// the round can be recorded it ends; what is not recorded when the job is closed never is.
func TestRecordsThatCannotBe(t *testing.T) {
	l, w, x := withOne(t, 2)
	record := make(chan error)
	l.parts.record = func(*protocol.Collected) error { return <-record }
	d := l.do(x, 3, collecting(2))
	task, other := w.first(0), w.run(1)
	task.brief(0)
	record <- fmt.Errorf("the part: %w", blobs.ErrMissing)
	w.run(0).brief(0)
	l.counted("tasks_retried_total", "", 1)
	record <- fmt.Errorf("another leads: %w", ErrOver)
	if err := d.wait(); !errors.Is(err, ErrOver) {
		t.Errorf("a part that can never be recorded: error %v", err)
	}
	other.brief(1)
	close(record)
	x.records.end()
	x.records.beside(&protocol.Collected{Unit: 7, Compute: 1}, 8)
	x.records.end()
	if slices.Contains(l.parts.units(), 7) {
		t.Error("recorded after the end")
	}
}

// TestCollectIsCancelled: the round ends with ctx's error once what is on its way
// here has come to an end, and its slots are free.
func TestCollectIsCancelled(t *testing.T) {
	l, w, x := withOne(t, 2)
	fetching := make(chan struct{})
	d := l.do(x, 3, collecting(3))
	l.parts.fetch = func(*protocol.Collected) error {
		close(fetching)
		d.cancel()
		return nil
	}
	w.first(0).collected(0)
	<-fetching
	if err := d.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	l.free(t, 2)
}

// TestLostPartsAreAnError that the job cannot go on with.
func TestLostPartsAreAnError(t *testing.T) {
	l := newLab(t, never)
	x := l.executor(jobID)
	defer x.Close()
	lost := digestOf(77)
	l.parts.known = map[uint32]string{0: lost}
	if err := l.do(x, 3, collecting(1)).wait(); err == nil || !strings.Contains(err.Error(), lost) {
		t.Errorf("error %v", err)
	}
}

// TestChildrenGoOnElsewhere: a child job begins without a payload; the worker that
// takes it over is told how far it got.
func TestChildrenGoOnElsewhere(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	r := &round.Round{Units: 1, How: round.Collect, Scope: round.Whole, Child: round.Jobs(&round.Job{Seed: 1})}
	d := l.do(x, 3, r)
	task := w1.first(0)
	if !task.run.Child || len(task.run.Payload[0]) != 0 {
		t.Errorf("run %+v", task.run)
	}
	say := func(change func(*protocol.Checkpoint)) {
		m := protocol.Checkpoint{Stamp: task.run.Stamp, Worker: "w1", Resume: protocol.Resume{Rounds: 500, State: []byte("state")}}
		change(&m)
		task.send(m.Append(nil))
	}
	say(func(m *protocol.Checkpoint) { m.Rounds = 400 })
	say(func(*protocol.Checkpoint) {})
	say(func(m *protocol.Checkpoint) { m.Round--; m.Rounds = 600 })
	l.dropped(metrics.DropStale, 1)
	say(func(m *protocol.Checkpoint) { m.Unit = 1 })
	l.dropped(metrics.DropMisshapen, 1)
	w2 := l.join("w2", 1)
	l.silent("w1")
	again := w2.first(0)
	var resume protocol.Resume
	if err := resume.Decode(again.run.Payload[0]); err != nil || resume.Rounds != 500 || string(resume.State) != "state" || !again.run.Child {
		t.Errorf("resume %+v, error %v", resume, err)
	}
	again.collected(0)
	d.collects()
	next := l.do(x, 4, r)
	if task := w2.run(); len(task.run.Payload[0]) != 0 {
		t.Error("another round's child goes on where the last one's was")
	} else {
		task.collected(0)
	}
	next.collects()
}

// TestCollectStraggler: a unit that takes much longer than the others is given to
// an idle worker as well when no other waits; the first answer counts, and the
// slot of the other comes back with its answer.
func TestCollectStraggler(t *testing.T) {
	l := newLab(t, 20*time.Millisecond)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(4))
	a, b := w1.first(0), w2.first(0)
	b.collected(b.unit())
	b = w2.run()
	b.collected(b.unit())
	b = w2.run()
	w2.idle() // the straggler waits while another unit is computed there
	b.collected(b.unit())
	copied := w2.run(a.unit())
	w1.idle()
	copied.collected(a.unit())
	d.collects()
	next := l.do(x, 4, collecting(2))
	task1, task2 := w1.run(), w2.run()
	a.collected(a.unit()) // late
	l.until("a wasted unit", func() bool { return l.metric("tasks_wasted_total", "") == 1 })
	task1.collected(task1.unit())
	task2.collected(task2.unit())
	next.collects()
	l.free(t, 2)
}

// TestCollectSteals: a unit that waits behind another on its worker goes to one
// that is idle at once.
func TestCollectSteals(t *testing.T) {
	l := newLab(t, 100*time.Millisecond)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(2))
	a, b := w1.first(0), w1.run(1)
	w2 := l.join("w2", 1)
	w2.first(0).collected(1)
	l.until("unit 1", func() bool { return len(l.parts.units()) == 1 })
	b.collected(1)
	a.collected(0)
	d.collects()
	l.free(t, 2)
	l.counted("tasks_wasted_total", "", 1)
}

// TestCollectShares: a job that comes later gets the next slots that are free
// until it has as many as the one before.
func TestCollectShares(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w", 3)
	x1, x2 := l.executor(1), l.executor(2)
	defer x1.Close()
	defer x2.Close()
	d1 := l.do(x1, 1, collecting(8))
	tasks := []*task{w.first(0), w.run(), w.run(), w.run()}
	d2 := l.do(x2, 1, collecting(8))
	l.until("the second job to want a slot", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return x2.wants
	})
	for i := range 2 {
		tasks[i].collected(tasks[i].unit())
		if i == 0 {
			w.next(protocol.KindSetup)
		}
		if got := w.run(); got.run.Job != 2 {
			t.Errorf("slot %d goes to job %d", i, got.run.Job)
		} else {
			tasks = append(tasks, got)
		}
	}
	for left := 14; left > 0; left-- { // two of sixteen are in; both jobs end
		task := tasks[2]
		tasks = append(tasks[:2], tasks[3:]...)
		task.collected(task.unit())
		if left > 4 {
			tasks = append(tasks, w.run())
		}
	}
	d1.collects()
	d2.collects()
	l.free(t, 3)
}

// TestCollectGoesOnBesideAFailure: a unit that failed on one worker waits for
// another; the other units do not.
func TestCollectGoesOnBesideAFailure(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 3, collecting(3))
	a, b := w1.first(0), w2.first(0)
	a.fail(a.unit(), false)
	other := w1.run(2)
	other.collected(2)
	w1.idle()
	b.collected(b.unit())
	w2.run(a.unit()).collected(a.unit())
	d.collects()
	l.free(t, 2)
}
