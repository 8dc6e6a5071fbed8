package dispatch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// vanish ends the worker's connection, as the end of its process does, and returns once the server knows.
func (f *fake) vanish() {
	f.l.t.Helper()
	f.work.Close()
	if err := f.conn.Flush(f.l.ctx()); err != nil {
		f.l.t.Fatal(err)
	}
	f.conn.Close()
}

// comeBack connects the worker again and sends a heartbeat.
func (f *fake) comeBack() {
	f.l.t.Helper()
	f.conn = f.l.connect()
	f.listen()
	f.beat(func(*protocol.Heartbeat) {})
}

// newPatientLab returns a lab in which no task of a reduce round ever takes too long. A task is only given out again
// because of a worker's connection.
func newPatientLab(t *testing.T) *lab {
	t.Helper()
	return newLabWith(t, 20*quick, func(*Config) {}, func(limits *schedule.Limits) {
		limits.Slow, limits.Lost = never, never
	})
}

// TestVanishedWorker: the tasks of a worker whose connection is gone go to another, before its silence or patience
// tells. Once the same process is back it is used again, and has what it was sent.
func TestVanishedWorker(t *testing.T) {
	l := newPatientLab(t)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(8, variable(1, 10)))
	task1, task2 := w1.first(1), w2.first(1)
	w1.vanish()
	rest := w2.run(task1.run.Tasks...)
	if got := l.d.Workers(); got[0].State != "unreachable" || got[1].State != "alive" {
		t.Errorf("workers %+v", got)
	}
	task2.partials()
	rest.partials()
	d.sums()
	w1.comeBack()
	l.until("w1", func() bool { return l.metric("workers", "alive") == 2 })
	d = l.do(x, 2, reduceRound(8, variable(1, 10)))
	again := w1.run() // no Setup, no Value
	again.partials()
	w2.run().partials()
	d.sums()
	l.counted("tasks_retried_total", "", 4)
}

// TestVanishedWorkerOfOne: the tasks of the only worker wait until it is back, in both kinds of round, and no slot is
// lost.
func TestVanishedWorkerOfOne(t *testing.T) {
	l := newPatientLab(t)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	w.first(0)
	w.vanish()
	l.until("no worker", func() bool { return l.metric("workers", "alive") == 0 })
	d.pending()
	w.comeBack()
	w.run(0, 1).partials()
	d.sums()
	d = l.do(x, 2, gatherRound(1))
	w.run(0)
	w.vanish()
	l.until("no worker", func() bool { return l.metric("workers", "alive") == 0 })
	w.comeBack()
	w.run(0).announce(0)
	d.gathers()
	l.free(t, 1)
}

// TestVanishedAtOnce: a Run that nobody listens for tells without a probe.
func TestVanishedAtOnce(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, reduceRound(2))
	w1.first(0).partials()
	w2.first(0).partials()
	d.sums()
	w1.idle() // it has everything that was sent to it: no Hold tells in place of the Run
	w1.vanish()
	d = l.do(x, 2, reduceRound(2))
	w2.run(1).partials()
	w2.run(0).partials()
	d.sums()
}

// TestVanishedAcrossRoutes: the worker's connection is to another server of the NATS cluster.
func TestVanishedAcrossRoutes(t *testing.T) {
	l := newPatientLab(t)
	far := natstest.Server(t, bus.ServerOptions{Name: "far", Cluster: "lab", Routes: []string{l.server.RouteURL()}})
	near := l.server
	l.server = far
	w1 := l.join("w1", 1)
	l.server = near
	w2 := l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	w1.vanish()
	w2.run(task1.run.Tasks...).partials()
	task2.partials()
	d.sums()
}

// TestLeaderOffline: no worker dies of silence while the leader itself has no connection.
func TestLeaderOffline(t *testing.T) {
	l := newLabWith(t, never, func(*Config) {}, func(limits *schedule.Limits) { limits.Dead = time.Nanosecond })
	l.join("w", 1)
	l.conn.Close()
	l.d.expire(time.Now().Add(time.Second))
	if got := l.d.Workers(); len(got) != 1 {
		t.Errorf("workers %+v", got)
	}
}

// TestStraggler: once the other tasks of a round have ended, a slow one goes to its standby, long before patience with
// lost messages ends. The first answer is used, and the second is counted.
func TestStraggler(t *testing.T) {
	const heartbeat = 200 * time.Millisecond
	l := newLab(t, heartbeat)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	began := time.Now()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	task1.partials()
	copied := w1.run(task2.run.Tasks...)
	if took := time.Since(began); took < protocol.SlowBeats*heartbeat {
		t.Errorf("the copy went out after %v", took)
	}
	copied.partials()
	d.sums()
	d = l.do(x, 2, reduceRound(2))
	w1.run(0, 1).partials() // w2 is slow
	d.sums()
	d = l.do(x, 3, reduceRound(2))
	task := w1.run(0, 1)
	task2.partials()
	l.dropped(metrics.DropStale, 1)
	task.partials()
	d.sums()
	d = l.do(x, 4, reduceRound(2)) // it answered, and is asked again
	w1.run().partials()
	w2.run().partials()
	d.sums()
}

// TestFarWorker: the delay of a worker's answers is added to what they may take, so that no task of a worker that is
// far away is given out twice. What a worker says of its delay is bounded.
func TestFarWorker(t *testing.T) {
	l := newLab(t, 4*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	late := func(name string) time.Duration {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return time.Duration(l.d.said[name].beat.Late) * time.Microsecond
	}
	w2.beat(func(b *protocol.Heartbeat) { b.Late = maxLate.Microseconds() })
	l.until("the heartbeat", func() bool { return late("w2") == maxLate })
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	task1.partials()
	passedOver(t, 4*quick)
	task2.partials()
	d.sums()
	l.counted("tasks_retried_total", "", 0)

	own := New(Config{Heartbeat: time.Second})
	now := time.Now()
	for name, late := range map[string]int64{"near": 0, "far": 300_000, "most": 1 << 62, "odd": -1 << 62} {
		b := beatOf(name)
		b.Late = late
		own.hear(b, now)
	}
	const dead = protocol.DeadBeats * time.Second
	for _, step := range []struct {
		after time.Duration
		gone  []string
	}{
		{dead, nil},
		{dead + time.Millisecond, []string{"near", "odd"}},
		{dead + 301*time.Millisecond, []string{"far"}},
		{dead + maxLate + 1, []string{"most"}},
	} {
		if gone := own.workers.Expire(now.Add(step.after)); !slices.Equal(gone, step.gone) {
			t.Errorf("after %v of silence %v are gone, want %v", step.after, gone, step.gone)
		}
	}
}

// passedOver returns once a task of a worker that is near, which began here and now, was given out again.
func passedOver(t *testing.T, heartbeat time.Duration) {
	t.Helper()
	l := newLab(t, heartbeat)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	task1.partials()
	w1.run(task2.run.Tasks...).partials()
	d.sums()
}

// TestHoldIsRepeated for the shards that a worker does not say it has.
func TestHoldIsRepeated(t *testing.T) {
	l := newLabWith(t, never, func(*Config) {}, func(limits *schedule.Limits) { limits.Hold = 10 * quick })
	w1 := l.join("w1", 1, 0, 1, 2, 3, 4, 5, 6)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(8))
	task := w1.first(0)
	if h := w1.next(protocol.KindHold).hold; len(h.Shards) != labShards {
		t.Errorf("hold %+v", h)
	}
	if h := w1.next(protocol.KindHold).hold; len(h.Shards) != 1 || h.Shards[0].Digest != manifest().Shards[7].Digest {
		t.Errorf("hold %+v", h)
	}
	task.partials()
	d.sums()
	w1.idle()
	l.counted("tasks_retried_total", "", 0)
}

// TestResultsAreLife: a result is a sign of life of a worker whose heartbeats wait behind its results.
func TestResultsAreLife(t *testing.T) {
	l := newLab(t, 20*quick)
	w := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(1))
	task := w.first(0)
	before := l.heard("w1")
	task.partials()
	d.sums()
	if !l.heard("w1").After(before) {
		t.Error("a result is no sign of life")
	}
}

// heard returns when the leader heard a worker last.
func (l *lab) heard(name string) time.Time {
	w, _ := l.view(name)
	return w.Heard
}

// beatOf returns a heartbeat of a worker with one slot.
func beatOf(name string) *protocol.Heartbeat {
	return &protocol.Heartbeat{Worker: name, Protocol: protocol.Version, Numerics: round.Numerics, Slots: 1}
}

// TestFullHeartbeats: what a full heartbeat says is known until the next full one.
func TestFullHeartbeats(t *testing.T) {
	d, now := New(Config{Heartbeat: time.Second}), time.Now()
	b := beatOf("w1")
	b.Full, b.Holds, b.Host, b.Address, b.Load = true, []string{"s1"}, "node-7", "10.0.0.1:9", 2.5
	d.hear(b, now)
	b = beatOf("w1")
	b.Busy = 3
	d.hear(b, now)
	if w := d.Workers()[0]; w.Host != "node-7" || w.Address != "10.0.0.1:9" || w.Load != 2.5 || w.Busy != 3 ||
		w.Shards != 1 {
		t.Errorf("known is %+v", w)
	}
}

// TestSpeedOfReturningWorker: a worker that loses its connection for a while keeps its speed, so that it is not
// compared by its first tasks. After a long time, it does not.
func TestSpeedOfReturningWorker(t *testing.T) {
	l := newLab(t, never)
	l.join("w1", 1)
	now := time.Now()
	for range 20 {
		l.d.computed(&schedule.Computed{Worker: "w1", N: 1, Took: time.Second}, "step", now)
	}
	for _, away := range []time.Duration{time.Minute, 2 * speedKept} {
		b := beatOf("w1")
		b.Leaving = true
		locked(&l.d.mu, func() { l.d.hear(b, now) })
		if len(l.d.Workers()) != 0 {
			t.Fatal("the worker has not left")
		}
		now = now.Add(away)
		b.Leaving = false
		locked(&l.d.mu, func() { l.d.hear(b, now) })
		w := l.d.Workers()[0]
		if known := w.MainKind == "step" && w.TaskSeconds["step"] == 1 && w.Tasks == 20; known != (away <= speedKept) {
			t.Errorf("after %v, known is %+v", away, w)
		}
	}
}

// TestRefusedWorkers: refused workers get no tasks, and are told why, with the numbers of both sides.
func TestRefusedWorkers(t *testing.T) {
	l := newLab(t, quick)
	leads := make(chan protocol.Lead, 1000)
	sub, err := l.connect().Subscribe(subjects.Lead(), func(m bus.Message) {
		var lead protocol.Lead
		if err := lead.Decode(m.Data); err != nil {
			t.Error(err)
		}
		leads <- lead
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	good := l.join("good", 1)
	alien := &fake{l: l, id: "alien", conn: l.connect(), orders: make(chan order, 10)}
	if _, err := alien.conn.Subscribe(subjects.Work("alien"), alien.take); err != nil {
		t.Fatal(err)
	}
	alien.beat(func(b *protocol.Heartbeat) { b.Protocol = 9 })
	old := &fake{l: l, id: "old", conn: alien.conn}
	old.beat(func(b *protocol.Heartbeat) { b.Numerics = 77 })
	var last protocol.Lead
	l.until("two refusals", func() bool {
		last = <-leads
		return len(last.Refused) == 2
	})
	if last.Epoch != epoch || last.Coordinator != "a" ||
		!strings.Contains(last.Refused["alien"], fmt.Sprintf("protocol version 9, this coordinator has %d",
			protocol.Version)) || !strings.Contains(last.Refused["old"], "arithmetic version 77, this coordinator has 1") {
		t.Errorf("lead %+v", last)
	}
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(8))
	good.first(0).partials()
	d.sums()
	alien.idle()
	workers := l.d.Workers()
	if len(workers) != 3 || workers[0].ID != "alien" || !strings.HasPrefix(workers[0].State, "refused: ") ||
		workers[1].State != "alive" {
		t.Errorf("workers %+v", workers)
	}
	l.counted("workers", "alive", 1)
	l.counted("workers", "refused", 2)
}

// TestHold: each shard is to be on the disks of two workers, and a worker computes the tasks whose shards it has.
func TestHold(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 1, 4, 5, 6, 7), l.join("w2", 1, 0, 1, 2, 3)
	l.counted("shard_copies", "", labShards)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(8))
	w1.next(protocol.KindSetup)
	w2.next(protocol.KindSetup)
	w1.run(4, 5, 6, 7).partials()
	w2.run(0, 1, 2, 3).partials()
	d.sums()
	copies := make(map[string]int)
	for _, w := range []*fake{w1, w2} {
		h := w.next(protocol.KindHold).hold
		if h.Epoch != epoch {
			t.Errorf("epoch %d", h.Epoch)
		}
		for _, s := range h.Shards {
			copies[s.Digest]++
		}
	}
	if len(copies) != labShards {
		t.Errorf("%d shards are held", len(copies))
	}
	for digest, n := range copies {
		if n != 2 {
			t.Errorf("shard %s is held %d times", digest, n)
		}
	}
}

// TestDamagedHeartbeats: damaged heartbeats are counted and change nothing.
func TestDamagedHeartbeats(t *testing.T) {
	l := newLab(t, never)
	conn := l.connect()
	for _, b := range [][]byte{{}, {protocol.Version, 1, '{'}, (&protocol.Lead{}).Append(nil)} {
		if err := conn.Send(subjects.Heartbeats("w"), "", b); err != nil {
			t.Fatal(err)
		}
	}
	l.dropped("malformed", 2) // the bus drops the first
	if w := l.d.Workers(); len(w) != 0 {
		t.Errorf("workers %+v", w)
	}
}

// logLines takes the lines of a log.
type logLines chan string

func (c logLines) Write(b []byte) (int, error) {
	c <- string(b)
	return len(b), nil
}

// drain returns the lines since the last call.
func (c logLines) drain() string {
	var b strings.Builder
	for len(c) > 0 {
		b.WriteString(<-c)
	}
	return b.String()
}

// TestForeignMessages: messages that name another worker than their subject are counted and change nothing. Each sender
// is logged once a minute.
func TestForeignMessages(t *testing.T) {
	log := make(logLines, 100)
	l := newLabWith(t, never, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	leaving := (&protocol.Heartbeat{Worker: "w1", Protocol: protocol.Version, Numerics: round.Numerics, Leaving: true}).
		Append(nil)
	if err := w2.conn.Send(subjects.Heartbeats("w2"), "", leaving); err != nil {
		t.Fatal(err)
	}
	as1 := func(p *protocol.Partial) { p.Worker = "w1"; p.Partial.F64[0]++ }
	task2.partial(task1.run.Tasks[0], as1)
	task2.send((&protocol.Fail{Stamp: task2.run.Stamp, Worker: "w1", Permanent: true}).Append(nil))
	task2.send((&protocol.Need{Stamp: task2.run.Stamp, Worker: "w1", Setup: true}).Append(nil))
	task2.send((&protocol.Result{Stamp: task2.run.Stamp, Worker: "w1"}).Append(nil))
	task2.send((&protocol.Checkpoint{Stamp: task2.run.Stamp, Worker: "w1"}).Append(nil))
	task2.send((&protocol.Progress{Stamp: task2.run.Stamp, Worker: "w1"}).Append(nil))
	task1.send((&protocol.Need{Stamp: task1.run.Stamp, Worker: "w2", Setup: true}).Append(nil))
	l.dropped(metrics.DropSender, 8)
	d.pending()
	task1.partials()
	task2.partials()
	d.sums()
	text := log.drain()
	for _, sender := range []string{"w1", "w2"} {
		if n := strings.Count(text, "name another worker\" worker="+sender); n != 1 {
			t.Errorf("%d lines about %s:\n%s", n, sender, text)
		}
	}
}

// TestTwins: two workers with one id are found by the processes that send their heartbeats, and logged once. A worker
// that connects or starts again is one worker.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(logLines, 100)
		d := New(Config{ID: "a", Metrics: metrics.NewCoordinator(prometheus.NewRegistry()),
			Log: slog.New(slog.NewTextHandler(log, nil))})
		beat := func(sent ...string) string { // PROCESS@ADDRESS each
			for _, from := range sent {
				process, address, _ := strings.Cut(from, "@")
				b := protocol.Heartbeat{
					Worker: "w", Slots: 1, Protocol: protocol.Version, Numerics: round.Numerics, Full: true, Process: process,
					Address: address,
				}
				locked(&d.mu, func() { d.hear(&b, time.Now()) })
			}
			return d.Workers()[0].State
		}
		if state := beat("p@h:1", "p@h:1", "p@h:2", "p@h:1", "p@h:2", "p@h:1", "p@h:2"); state != "alive" ||
			log.drain() != "" {
			t.Errorf("a worker that connects again, whose heartbeats of both connections overtake each other: %s", state)
		}
		if state := beat("q@h:2", "p@h:1", "q@h:2", "q@h:2"); state != "alive" || log.drain() != "" {
			t.Errorf("a worker that starts again, with a heartbeat that was on its way: %s", state)
		}
		if state := beat("r@h:3", "s@h:4", "r@h:3", "s@h:4", "r@h:3"); !strings.Contains(state,
			"two workers, at h:3 and h:4, have this id; give one of them another --id") {
			t.Errorf("two workers: %s", state)
		}
		if text := log.drain(); strings.Count(text, "two workers have the same id") != 1 {
			t.Errorf("the log has %s", text)
		}
		time.Sleep(twinsFor)
		if state := beat("r@h:3", "r@h:3"); state != "alive" {
			t.Errorf("one of them has ended: %s", state)
		}
	})
}

// TestForeignMessagesOfMany: what is remembered of warnings is bounded, and forgotten after a minute.
func TestForeignMessagesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(logLines, 2*schedule.MaxWorkers)
		d := New(Config{ID: "a", Metrics: metrics.NewCoordinator(prometheus.NewRegistry()),
			Log: slog.New(slog.NewTextHandler(log, nil))})
		all := func() (lines int) {
			for i := range schedule.MaxWorkers + 10 {
				d.dropForeign(fmt.Sprint("w", i), "x")
			}
			return strings.Count(log.drain(), "\n")
		}
		if n := all(); n != schedule.MaxWorkers || len(d.warned) != n {
			t.Errorf("%d lines, %d senders are remembered", n, len(d.warned))
		}
		if n := all(); n != 0 {
			t.Errorf("%d lines within a minute", n)
		}
		time.Sleep(warnEvery)
		if n := all(); n != schedule.MaxWorkers || len(d.warned) != n {
			t.Errorf("%d lines after a minute, %d senders are remembered", n, len(d.warned))
		}
	})
}

// TestWorkersOf: a job has the usable workers that were given its tasks, while it runs.
func TestWorkersOf(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	l.join("w3", 1)
	if got := l.d.WorkersOf(jobID); got != nil {
		t.Errorf("before the job: %v", got)
	}
	x := l.executor(jobID)
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	if got := l.d.WorkersOf(jobID); !slices.Equal(got, []string{"w1", "w2"}) {
		t.Errorf("workers %v", got)
	}
	task1.partials()
	task2.partials()
	d.sums()
	l.d.SetQuarantined(map[string]string{"w1": "it was wrong"})
	if got := l.d.WorkersOf(jobID); !slices.Equal(got, []string{"w2"}) {
		t.Errorf("workers %v", got)
	}
	x.Close()
	if got := l.d.WorkersOf(jobID); got != nil {
		t.Errorf("after the job: %v", got)
	}
}
