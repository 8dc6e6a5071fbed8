package dispatch

import (
	"bytes"
	"context"
	"errors"
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

// TestReduce: a job is sent once, each version of a value once, and every task to exactly one of the workers. Their
// answers are added along the tree.
func TestReduce(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 5, reduceRound(8, variable(1, 10), variable(2, 20)))
	var tasks []uint32
	for _, w := range []*fake{w1, w2} {
		setup := w.next(protocol.KindSetup).setup
		if setup.Epoch != epoch || setup.ID != jobID || setup.Job.Seed != jobID || len(setup.Manifest.Shards) != labShards {
			t.Errorf("setup %+v", setup)
		}
		for _, want := range d.r.Vars {
			if v := w.next(protocol.KindValue).value; v.Job != jobID || v.Epoch != epoch || v.ID != want.ID ||
				v.Version != want.Version || !bytes.Equal(v.Data, want.Data) {
				t.Errorf("value %+v, want %+v", v, want)
			}
		}
		task := w.run()
		if want := (protocol.Stamp{Epoch: epoch, Job: jobID, Round: 5}); task.run.Stamp != want || task.run.Of != 8 ||
			task.run.Op != 3 || task.run.Shape != labShape || task.run.Steps != d.r.Reduce().Steps || len(task.run.Tasks) != 4 {
			t.Errorf("run %+v", task.run)
		}
		tasks = append(tasks, task.run.Tasks...)
		d.pending()
		task.partials()
	}
	if slices.Sort(tasks); !slices.Equal(tasks, []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("tasks %v were given out", tasks)
	}
	d.sums()

	// The next round has a newer version of one value, and inner nodes as answers.
	d = l.do(x, 6, reduceRound(8, variable(1, 11), variable(2, 20)))
	for _, w := range []*fake{w1, w2} {
		if v := w.next(protocol.KindValue).value; v.ID != 1 || v.Version != 11 {
			t.Errorf("value %+v", v)
		}
		if n := w.run().nodes(); n != 1 {
			t.Errorf("four tasks in a row fill %d nodes", n)
		}
	}
	d.sums()
	l.counted("tasks_dispatched_total", "", 16)
	l.counted("tasks_retried_total", "", 0)
	l.counted("tasks_wasted_total", "", 0)
}

// TestNeed: a worker that lacks the job, or a value, is sent it with its tasks.
func TestNeed(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, reduceRound(4, variable(1, 10), variable(2, 20)))
	task := w.first(2)
	task.need(protocol.Need{Setup: true})
	task = w.first(2) // all of it again
	task.need(protocol.Need{Refs: []protocol.Ref{{ID: 2, Version: 20}}})
	if v := w.next(protocol.KindValue).value; v.ID != 2 {
		t.Errorf("value %d was sent, 2 was asked for", v.ID)
	}
	task = w.run(0, 1, 2, 3)
	task.partial(1, nil)
	task.partial(2, nil)
	l.until("two partials", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 2 })
	task.need(protocol.Need{})
	again := w.run(0, 3) // the others are in
	old := *again
	oldRun := *again.run
	oldRun.Round--
	old.run = &oldRun
	old.need(protocol.Need{Setup: true})
	l.dropped(metrics.DropStale, 1)
	again.partial(0, nil)
	again.partial(3, nil)
	d.sums()
	w.idle()
}

// TestLostRun: a Run that was lost is sent again, to the standby, or to the same worker if that is the only one.
func TestLostRun(t *testing.T) {
	l := newLab(t, 4*quick)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(1))
	w1.first(0) // it is lost
	w1.run(0).partials()
	d.sums()

	w2 := l.join("w2", 1)
	d = l.do(x, 2, reduceRound(2))
	task1, task2 := w1.run(), w2.first(0)
	task1.partials()
	standby := w1.run(task2.run.Tasks...) // w2 is slow
	standby.partials()
	d.sums()
	if got := l.metric("tasks_retried_total", ""); got < 2 {
		t.Errorf("%v tasks retried, want two at least", got)
	}
}

// TestUnwantedPartials: repeated, late, malformed and foreign answers are dropped and counted, each by its reason, and
// change nothing.
func TestUnwantedPartials(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 9, reduceRound(4))
	task := w.first(0)
	bad := func(p *protocol.Partial) { p.Partial.F64[0] = 1e9 }
	task.partial(0, nil)
	task.partial(0, bad)
	l.dropped(metrics.DropDuplicate, 1)
	task.partial(1, nil)
	task.partial(0, func(p *protocol.Partial) { bad(p); p.Level = 1 }) // covered by its two children
	l.dropped(metrics.DropDuplicate, 2)
	l.counted("tasks_wasted_total", "", 1+2)

	for i, change := range []func(*protocol.Partial){
		func(p *protocol.Partial) { p.Round-- },
		func(p *protocol.Partial) { p.Round++ },
		func(p *protocol.Partial) { p.Epoch-- },
		func(p *protocol.Partial) { p.Epoch++ },
		func(p *protocol.Partial) { p.Job++ },
	} {
		task.partial(2, func(p *protocol.Partial) { bad(p); change(p) })
		l.dropped(metrics.DropStale, float64(i+1))
	}
	task.announce(2) // in a reduce round
	l.dropped(metrics.DropStale, 6)

	malformed := 0.0
	for _, change := range []func(*protocol.Partial){
		func(p *protocol.Partial) { p.Index = 4 },
		func(p *protocol.Partial) { p.Level = 3 },
		func(p *protocol.Partial) { p.Partial.F64 = p.Partial.F64[:1] },
		func(p *protocol.Partial) { p.Partial.F32 = append(p.Partial.F32, 1) },
		func(p *protocol.Partial) { p.Partial.Width = 3 },
		func(p *protocol.Partial) { p.Partial.Index = []uint32{0, 4}; p.Partial.Values = make([]float32, 4) },
		func(p *protocol.Partial) { p.Partial.Index = []uint32{1, 0}; p.Partial.Values = make([]float32, 4) },
		func(p *protocol.Partial) { p.Partial.Index = []uint32{0}; p.Partial.Values = make([]float32, 4) },
	} {
		task.partial(2, change)
		malformed++
		l.dropped(metrics.DropMisshapen, malformed)
	}
	stamp := task.run.Stamp
	whole := (&protocol.Partial{Stamp: stamp, Worker: w.id, Partial: new(round.Partial)}).Append(nil)
	for _, b := range [][]byte{{}, {1}, {9, 6}} { // the bus drops these
		task.send(b)
	}
	for _, b := range [][]byte{whole[:10], whole[:len(whole)-1], append(slices.Clone(whole), 1), (&protocol.Forget{}).
		Append(nil)} {
		task.send(b)
		malformed++
		l.dropped(metrics.DropMisshapen, malformed)
	}
	d.pending()
	task.partial(2, nil)
	task.partial(3, nil)
	d.sums()
}

// TestSilentWorker: the tasks of a worker that goes silent, or says that it leaves, in the middle of a round go to
// another. What it had answered counts, and so does what it still answers.
func TestSilentWorker(t *testing.T) {
	for _, how := range []string{"goes silent", "leaves"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, never)
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, reduceRound(8, variable(1, 10)))
			task1, task2 := w1.first(1), w2.first(1)
			task1.partial(task1.run.Tasks[0], nil)
			l.until("w1's partial", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 1 })
			if how == "leaves" {
				w1.beat(func(b *protocol.Heartbeat) { b.Leaving = true })
			} else {
				l.silent("w1")
			}
			rest := w2.run(task1.run.Tasks[1:]...)
			task2.partials()
			task1.partial(task1.run.Tasks[3], nil) // it was alive after all
			l.until("the late partial", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 6 })
			d.pending()
			rest.partials()
			d.sums()
			l.counted("tasks_retried_total", "", 3)
		})
	}
}

// TestNobodyIsThere: a round waits for a first worker, and for another if the only one leaves. The same worker, started
// again, is sent everything once more.
func TestNobodyIsThere(t *testing.T) {
	l := newLab(t, never)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2, variable(1, 10)))
	w1 := l.join("w1", 1)
	w1.first(1).partial(0, nil)
	l.silent("w1")
	l.until("no worker", func() bool { return len(l.d.Workers()) == 0 })
	d.pending()
	w1.beat(func(b *protocol.Heartbeat) { b.Full = true })
	task := w1.first(1)
	for _, at := range task.run.Tasks {
		task.partial(at, nil)
	}
	d.sums()
}

// TestSlowWorker: a worker that sends heartbeats and does not answer gets no tasks until it answers.
func TestSlowWorker(t *testing.T) {
	l := newLab(t, 8*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	late := w2.first(0)
	w1.first(0).partials()
	w1.run(late.run.Tasks...).partials()
	d.sums()
	d = l.do(x, 2, reduceRound(2))
	w1.run(0, 1).partials()
	d.sums()
	w2.idle()
	late.partials() // of a round that is over
	d = l.do(x, 3, reduceRound(2))
	l.dropped(metrics.DropStale, 1)
	w1.run(0, 1).partials()
	d.sums()
	d = l.do(x, 4, reduceRound(2))
	w2.run(late.run.Tasks...).partials()
	w1.run().partials()
	d.sums()
}

// TestRestartedWorker: a worker that leaves, and is back before the executor sees it, is another worker: it is sent
// everything once more, and its tasks.
func TestRestartedWorker(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, reduceRound(2, variable(1, 10)))
	w.first(1).partial(0, nil)
	l.until("the partial", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 1 })
	l.restart("w")
	task := w.first(1)
	if !slices.Equal(task.run.Tasks, []uint32{1}) {
		t.Errorf("tasks %v again", task.run.Tasks)
	}
	task.partials()
	d.sums()
	c := l.do(x, 2, gatherRound(1))
	w.run(0)
	l.restart("w")
	w.first(0).announce(0)
	c.gathers()
}

// restart has the leader hear that a worker left and is back. The executors see nothing of it before it is over.
func (l *lab) restart(name string) {
	l.d.mu.Lock()
	l.d.hear(&protocol.Heartbeat{Worker: name, Leaving: true}, time.Now())
	l.d.hear(beatOf(name), time.Now())
	l.d.mu.Unlock()
	l.d.wake(nil)
}

// TestFail: a task that fails on one worker is tried by another, a few times. A permanent failure, and a failure too
// many, fail the job with task, worker and reason.
func TestFail(t *testing.T) {
	const giveUp = 300 * time.Millisecond
	l := newLabWith(t, never, func(*Config) {}, func(limits *schedule.Limits) { limits.GiveUp = giveUp })
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	task := task1.run.Tasks[0]
	task1.fail(task, false)
	again := w2.run(task)
	task1.fail(task, false) // it is said twice: another has the task by now
	l.dropped(metrics.DropStale, 1)
	task1.fail(9, false)
	l.dropped(metrics.DropMisshapen, 1)
	again.partials()
	task2.partials()
	d.sums()

	began := time.Now()
	d = l.do(x, 2, reduceRound(1))
	at, other := w1.run(0), w2
	at.fail(0, false)
	tries, err := 1, error(nil)
	for err == nil {
		select {
		case o := <-other.orders:
			if o.kind == protocol.KindRun {
				at, other = &assignment{other, o.run, o.reply}, at.f
				at.fail(0, false)
				tries++
			}
		case err = <-d.done:
		}
	}
	if !strings.Contains(err.Error(), "task 0 on worker "+at.f.id+": task 0 is bad on "+at.f.id) {
		t.Errorf("a task that fails everywhere: error %v", err)
	}
	// two at once, then pauses of 50 ms, 100 ms, 200 ms
	if took := time.Since(began); tries < 2 || tries > 7 || took < giveUp {
		t.Errorf("%d tries in %v", tries, took)
	}
	d = l.do(x, 3, reduceRound(1))
	w1.run(0).fail(0, true)
	if err := d.wait(); err == nil || !strings.Contains(err.Error(), "task 0 on worker w1") {
		t.Errorf("a permanent failure: error %v", err)
	}
	d = l.do(x, 4, reduceRound(1)) // the executor still works
	w1.run(0).partials()
	d.sums()
}

// TestLostBlobs: a blob that the job needs is lost if no coordinator that answers has it.
func TestLostBlobs(t *testing.T) {
	_, _, _, x := withTwo(t)
	if x.isBlobLost() {
		t.Error("a blob is lost, and nobody can tell")
	}
	lost := ""
	x.d.cfg.Lost = func(digest string) bool { return digest != "" && digest == lost }
	for _, test := range []struct {
		lost string
		want bool
	}{{"", false}, {blobs.Sum([]byte("another's")), false}, {x.manifest.Shards[0].Digest, true}} {
		if lost = test.lost; x.isBlobLost() != test.want {
			t.Errorf("with %q lost a blob of the job is lost: %v", test.lost, !test.want)
		}
	}
}

// TestCancelledRound: a round that is canceled ends with the error of its context. The next one uses what is still
// answered.
func TestCancelledRound(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, reduceRound(2))
	old := w.first(0)
	old.partial(0, nil)
	d.cancel()
	if err := d.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	d = l.do(x, 1, reduceRound(2)) // the same round once more, as after a failed commit
	old.partial(1, nil)            // the same bytes, for either round
	task := w.run(0, 1)
	task.partial(0, nil)
	d.sums()
}

// TestJobsDoNotMix: two jobs share a worker, and each gets its own answers. The worker forgets a job that is closed.
func TestJobsDoNotMix(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w", 1)
	x1, x2 := l.executor(1), l.executor(2)
	defer x2.Close()
	d1 := l.do(x1, 5, reduceRound(2))
	task1 := w.first(0)
	d2 := l.do(x2, 5, reduceRound(2))
	task2 := w.first(0)
	if task1.run.Job != 1 || task2.run.Job != 2 {
		t.Fatalf("jobs %d and %d", task1.run.Job, task2.run.Job)
	}
	task2.partials()
	d2.sums()
	d1.pending()
	task1.partials()
	d1.sums()
	x1.Close()
	if f := w.next(protocol.KindForget).forget; f.Job != 1 || f.Epoch != epoch {
		t.Errorf("forget %+v", f)
	}
	task1.partials()
	l.dropped(metrics.DropStale, 2)
	defer func() {
		if recover() == nil {
			t.Error("a second executor of the same job was made")
		}
	}()
	l.executor(2)
}

// TestHangingWorker: a worker that sends heartbeats and never answers costs a wait once, and not in each round. Once it
// answers it gets tasks again.
func TestHangingWorker(t *testing.T) {
	l := newLab(t, 4*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task1, hangs := w1.first(0), w2.first(0)
	task1.partials()
	w1.run(hangs.run.Tasks...).partials()
	d.sums()
	for n := uint64(2); n < 5; n++ {
		d = l.do(x, n, reduceRound(2))
		w1.run(0, 1).partials()
		d.sums()
	}
	w2.idle()
	d = l.do(x, 5, reduceRound(2))
	task1 = w1.run(0, 1)
	hangs.partial(hangs.run.Tasks[0], nil) // it is late, and yet a sign of life
	l.until("w2 to be used again", func() bool {
		w, known := l.view("w2")
		return known && w.SlowFor == 0
	})
	task1.partials()
	d.sums()
	d = l.do(x, 6, reduceRound(2))
	w1.run().partials()
	w2.run().partials()
	d.sums()
}
