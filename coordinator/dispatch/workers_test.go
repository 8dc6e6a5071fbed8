package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// vanish ends the worker's connection, as the end of its process does, and returns
// when the server knows.
func (f *fake) vanish() {
	f.l.t.Helper()
	f.work.Close()
	if err := f.conn.Flush(f.l.ctx()); err != nil {
		f.l.t.Fatal(err)
	}
	f.conn.Close()
}

// comeBack connects the worker anew and beats.
func (f *fake) comeBack() {
	f.l.t.Helper()
	f.conn = f.l.connect()
	f.listen()
	f.beat(func(*protocol.Beat) {})
}

// patient makes an executor that never takes a unit of a summed round for overdue:
// what is given out again was so because of a worker's connection.
func (l *lab) patient() *Executor {
	l.t.Helper()
	x := l.executor(jobID)
	for op := range x.pace {
		x.pace[op] = never
	}
	return x
}

// TestVanishedWorker: the units of a worker whose connection is gone go to another,
// though neither its silence nor patience tells; when the same process is back it is
// used again, and has what it was sent.
func TestVanishedWorker(t *testing.T) {
	l := newLab(t, 20*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.patient()
	defer x.Close()
	d := l.do(x, 1, summed(8, variable(1, 10)))
	task1, task2 := w1.first(1), w2.first(1)
	w1.vanish()
	rest := w2.run(task1.run.Units...)
	if got := l.d.Workers(); got[0].State != "unreachable" || got[1].State != "alive" {
		t.Errorf("workers %+v", got)
	}
	task2.parts()
	rest.parts()
	d.sums()
	w1.comeBack()
	l.until("w1", func() bool { return l.metric("workers", "alive") == 2 })
	d = l.do(x, 2, summed(8, variable(1, 10)))
	again := w1.run() // no Setup, no Value
	again.parts()
	w2.run().parts()
	d.sums()
	l.counted("tasks_retried_total", "", 4)
}

// TestVanishedWorkerOfOne: with nobody else, its units wait until it is back, and
// go out again then; a collected one likewise, and no slot is lost.
func TestVanishedWorkerOfOne(t *testing.T) {
	l := newLab(t, 20*quick)
	w := l.join("w", 1)
	x := l.patient()
	defer x.Close()
	d := l.do(x, 1, summed(2))
	w.first(0)
	w.vanish()
	l.until("an empty crew", func() bool { return l.metric("workers", "alive") == 0 })
	d.pending()
	w.comeBack()
	w.run(0, 1).parts()
	d.sums()
	d = l.do(x, 2, collecting(1))
	w.run(0)
	w.vanish()
	l.until("an empty crew", func() bool { return l.metric("workers", "alive") == 0 })
	w.comeBack()
	w.run(0).collected(0)
	d.collects()
	l.free(t, 1)
}

// TestVanishedAtOnce: a Run to nobody tells without a probe.
func TestVanishedAtOnce(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, summed(2))
	w1.first(0).parts()
	w2.first(0).parts()
	d.sums()
	w1.idle() // it has all that was sent to it: no Hold tells in place of the Run
	w1.vanish()
	d = l.do(x, 2, summed(2))
	w2.run(1).parts()
	w2.run(0).parts()
	d.sums()
}

// TestVanishedAcrossRoutes: the worker's connection is to another server of the
// NATS cluster.
func TestVanishedAcrossRoutes(t *testing.T) {
	l := newLab(t, 20*quick)
	far := natstest.Server(t, bus.ServerOptions{Name: "far", Cluster: "lab", Routes: []string{l.server.RouteURL()}})
	near := l.server
	l.server = far
	w1 := l.join("w1", 1)
	l.server = near
	w2 := l.join("w2", 1)
	x := l.patient()
	defer x.Close()
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	w1.vanish()
	w2.run(task1.run.Units...).parts()
	task2.parts()
	d.sums()
}

// TestLeaderOffline: while the leader itself has no connection nobody is taken for
// silent.
func TestLeaderOffline(t *testing.T) {
	l := newLab(t, never)
	l.join("w", 1)
	l.d.crew.dead = time.Nanosecond
	l.conn.Close()
	l.d.expire(time.Now().Add(time.Second))
	if got := l.d.Workers(); len(got) != 1 {
		t.Errorf("workers %+v", got)
	}
}

// TestStraggler: when the other units of a round are in, a slow one goes to its
// standby long before patience with lost messages ends; the first answer wins and
// the second is counted.
func TestStraggler(t *testing.T) {
	const heartbeat = 200 * time.Millisecond
	l := newLab(t, heartbeat)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	began := time.Now()
	task1, task2 := w1.first(0), w2.first(0)
	task1.parts()
	copied := w1.run(task2.run.Units...)
	if took := time.Since(began); took < slowBeats*heartbeat || x.patience(true) >= x.patience(false) {
		t.Errorf("the copy went out after %v", took)
	}
	copied.parts()
	d.sums()
	d = l.do(x, 2, summed(2))
	w1.run(0, 1).parts() // w2 is passed over
	d.sums()
	d = l.do(x, 3, summed(2))
	task := w1.run(0, 1)
	task2.parts()
	l.dropped(metrics.DropStale, 1)
	task.parts()
	d.sums()
	d = l.do(x, 4, summed(2)) // it answered, and is asked again
	w1.run().parts()
	w2.run().parts()
	d.sums()
}

// TestFarWorker: the way to a worker comes on top of what it may take, so one that is far
// away is given no unit twice; and its silence may last as much longer.
func TestFarWorker(t *testing.T) {
	l := newLab(t, 4*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	w2.beat(func(b *protocol.Beat) { b.Late = maxLate.Microseconds() })
	l.until("the beat", func() bool { return l.d.late("w2") == maxLate })
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	task1.parts()
	passedOver(t, 4*quick)
	task2.parts()
	d.sums()
	l.counted("tasks_retried_total", "", 0)

	c := newCrew(time.Second, nil)
	now := time.Now()
	for id, late := range map[string]int64{"near": 0, "far": 300_000, "liar": 1 << 62, "odd": -1 << 62} {
		b := aBeat(id)
		b.Late = late
		c.hear(b, now)
	}
	for _, step := range []struct {
		after time.Duration
		gone  []string
	}{
		{c.dead, nil},
		{c.dead + time.Millisecond, []string{"near", "odd"}},
		{c.dead + 301*time.Millisecond, []string{"far"}},
		{c.dead + maxLate + 1, []string{"liar"}},
	} {
		if gone := c.expire(now.Add(step.after)); !slices.Equal(gone, step.gone) {
			t.Errorf("after %v of silence %v are gone, want %v", step.after, gone, step.gone)
		}
	}
}

// passedOver returns once a unit that began here and now, of a worker that is near, was
// given out again.
func passedOver(t *testing.T, heartbeat time.Duration) {
	t.Helper()
	l := newLab(t, heartbeat)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	task1.parts()
	w1.run(task2.run.Units...).parts()
	d.sums()
}

// TestSlowWorker: one that always answers late costs a wait now and then, not in
// each round.
func TestSlowWorker(t *testing.T) {
	c := newCrew(time.Second, nil)
	c.dead = never
	now := time.Now()
	c.hear(aBeat("w"), now)
	for i, rest := range []time.Duration{0, strikeBeats, 2 * strikeBeats, 4 * strikeBeats} {
		c.stall("w", now)
		now = now.Add(time.Second / 2)
		answered := c.revive(c.get("w"), now)
		if want := rest == 0; answered != want {
			t.Errorf("stall %d: trusted at once: %v, want %v", i, answered, want)
		}
		if rest == 0 {
			continue
		}
		c.excuse(now)
		if c.expire(now.Add((rest - 1) * time.Second)); c.get("w").stalled.IsZero() {
			t.Errorf("stall %d ended too early", i)
		}
		now = now.Add(rest * time.Second)
		c.excuse(now)
		if c.expire(now); !c.get("w").stalled.IsZero() {
			t.Errorf("stall %d has not ended", i)
		}
	}
}

// TestHoldIsRepeated where a worker does not say that it has the shards.
func TestHoldIsRepeated(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1, 0, 1, 2, 3, 4, 5, 6)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(8))
	w1.first(0).parts()
	d.sums()
	w1.next(protocol.KindHold)
	l.counted("tasks_retried_total", "", 0)
	x.held = time.Now().Add(-never)
	x.repeatHold(time.Now()) // not yet
	if err := l.conn.Flush(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := w1.conn.Flush(l.ctx()); err != nil || len(w1.orders) > 0 {
		t.Errorf("%d orders, error %v", len(w1.orders), err)
	}
	x.held = time.Now().Add(-holdBeats * never)
	x.repeatHold(time.Now())
	if h := w1.next(protocol.KindHold).hold; len(h.Shards) != 1 || h.Shards[0].Digest != manifest().Shards[7].Digest {
		t.Errorf("hold %+v", h)
	}
	w1.idle()
}

// TestResultsAreLife: a worker whose beats are stuck behind its results is not given up.
func TestResultsAreLife(t *testing.T) {
	l := newLab(t, 20*quick)
	w := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(1))
	task := w.first(0)
	before := l.heard("w1")
	task.parts()
	d.sums()
	if !l.heard("w1").After(before) {
		t.Error("a result is no sign of life")
	}
}

// heard returns when the leader heard a worker last.
func (l *lab) heard(id string) time.Time {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if w := l.d.crew.workers[id]; w != nil {
		return w.heard
	}
	return time.Time{}
}
