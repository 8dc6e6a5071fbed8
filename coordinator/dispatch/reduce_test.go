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
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestRounds: a job goes out once, each version of a value once, and every unit to
// exactly one of the workers; what they answer is added along the tree.
func TestRounds(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 5, summed(8, variable(1, 10), variable(2, 20)))
	var units []uint32
	for _, w := range []*fake{w1, w2} {
		setup := w.next(protocol.KindSetup).setup
		if setup.Epoch != epoch || setup.ID != jobID || setup.Job.Seed != jobID || len(setup.Manifest.Shards) != labShards {
			t.Errorf("setup %+v", setup)
		}
		for _, want := range d.r.Vars {
			if v := w.next(protocol.KindValue).value; v.Job != jobID || v.Epoch != epoch || v.ID != want.ID || v.Version != want.Version || !bytes.Equal(v.Data, want.Data) {
				t.Errorf("value %+v, want %+v", v, want)
			}
		}
		task := w.run()
		if want := (protocol.Stamp{Epoch: epoch, Job: jobID, Round: 5}); task.run.Stamp != want || task.run.Of != 8 || task.run.Op != 3 || task.run.Shape != labShape || task.run.Steps != d.r.Steps || len(task.run.Units) != 4 {
			t.Errorf("run %+v", task.run)
		}
		units = append(units, task.run.Units...)
		d.pending()
		task.parts()
	}
	if slices.Sort(units); !slices.Equal(units, []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("units %v were given out", units)
	}
	d.sums()

	// The next round has a newer version of one value, and inner nodes for answers.
	d = l.do(x, 6, summed(8, variable(1, 11), variable(2, 20)))
	for _, w := range []*fake{w1, w2} {
		if v := w.next(protocol.KindValue).value; v.ID != 1 || v.Version != 11 {
			t.Errorf("value %+v", v)
		}
		if n := w.run().nodes(); n != 1 {
			t.Errorf("four units in a row fill %d nodes", n)
		}
	}
	d.sums()
	l.counted("tasks_dispatched_total", "", 16)
	l.counted("tasks_retried_total", "", 0)
	l.counted("tasks_wasted_total", "", 0)
}

// TestNeed: a worker that lacks the job, or a value, is sent it with its units.
func TestNeed(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, summed(4, variable(1, 10), variable(2, 20)))
	task := w.first(2)
	task.need(protocol.Need{Setup: true})
	task = w.first(2) // all of it again
	task.need(protocol.Need{Refs: []protocol.Ref{{ID: 2, Version: 20}}})
	if v := w.next(protocol.KindValue).value; v.ID != 2 {
		t.Errorf("value %d was sent, 2 was asked for", v.ID)
	}
	task = w.run(0, 1, 2, 3)
	task.part(1, nil)
	task.part(2, nil)
	l.until("two parts", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 2 })
	task.need(protocol.Need{})
	again := w.run(0, 3) // the others are in
	old := *again
	oldRun := *again.run
	oldRun.Round--
	old.run = &oldRun
	old.need(protocol.Need{Setup: true})
	l.dropped(metrics.DropStale, 1)
	again.part(0, nil)
	again.part(3, nil)
	d.sums()
	w.idle()
}

// TestLostRun: a Run that got lost is sent again, to the worker where it is the
// only one, to the standby otherwise.
func TestLostRun(t *testing.T) {
	l := newLab(t, 4*quick)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(1))
	w1.first(0) // is lost
	w1.run(0).parts()
	d.sums()

	w2 := l.join("w2", 1)
	d = l.do(x, 2, summed(2))
	task1, task2 := w1.run(), w2.first(0)
	task1.parts()
	standby := w1.run(task2.run.Units...) // w2 is slow
	standby.parts()
	d.sums()
	if got := l.metric("tasks_retried_total", ""); got < 2 {
		t.Errorf("%v units retried, want two at least", got)
	}
}

// TestUnwantedParts: doubled, late, misshapen and foreign answers are dropped and
// counted, each under its reason, and change nothing.
func TestUnwantedParts(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 9, summed(4))
	task := w.first(0)
	bad := func(p *protocol.Part) { p.Partial.F64[0] = 1e9 }
	task.part(0, nil)
	task.part(0, bad)
	l.dropped(metrics.DropDuplicate, 1)
	task.part(1, nil)
	task.part(0, func(p *protocol.Part) { bad(p); p.Level = 1 }) // covered by its two children
	l.dropped(metrics.DropDuplicate, 2)
	l.counted("tasks_wasted_total", "", 1+2)

	for i, change := range []func(*protocol.Part){
		func(p *protocol.Part) { p.Round-- },
		func(p *protocol.Part) { p.Round++ },
		func(p *protocol.Part) { p.Epoch-- },
		func(p *protocol.Part) { p.Epoch++ },
		func(p *protocol.Part) { p.Job++ },
	} {
		task.part(2, func(p *protocol.Part) { bad(p); change(p) })
		l.dropped(metrics.DropStale, float64(i+1))
	}
	task.collected(2) // in a summed round
	l.dropped(metrics.DropStale, 6)

	misshapen := 0.0
	for _, change := range []func(*protocol.Part){
		func(p *protocol.Part) { p.Index = 4 },
		func(p *protocol.Part) { p.Level = 3 },
		func(p *protocol.Part) { p.Partial.F64 = p.Partial.F64[:1] },
		func(p *protocol.Part) { p.Partial.F32 = append(p.Partial.F32, 1) },
		func(p *protocol.Part) { p.Partial.Width = 3 },
		func(p *protocol.Part) { p.Partial.Index = []uint32{0, 4}; p.Partial.Values = make([]float32, 4) },
		func(p *protocol.Part) { p.Partial.Index = []uint32{1, 0}; p.Partial.Values = make([]float32, 4) },
		func(p *protocol.Part) { p.Partial.Index = []uint32{0}; p.Partial.Values = make([]float32, 4) },
	} {
		task.part(2, change)
		misshapen++
		l.dropped(metrics.DropMisshapen, misshapen)
	}
	stamp := task.run.Stamp
	whole := (&protocol.Part{Stamp: stamp, Partial: new(round.Partial)}).Append(nil)
	for _, b := range [][]byte{{}, {1}, {9, 6}} { // the bus drops these
		task.send(b)
	}
	for _, b := range [][]byte{whole[:10], whole[:len(whole)-1], append(slices.Clone(whole), 1), (&protocol.Forget{}).Append(nil)} {
		task.send(b)
		misshapen++
		l.dropped(metrics.DropMisshapen, misshapen)
	}
	d.pending()
	task.part(2, nil)
	task.part(3, nil)
	d.sums()
}

// TestSilentWorker: the units of a worker that goes silent, or says that it
// leaves, in the middle of a round go to another; what it had answered counts,
// and so does what it still answers.
func TestSilentWorker(t *testing.T) {
	for _, how := range []string{"goes silent", "leaves"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, never)
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, summed(8, variable(1, 10)))
			task1, task2 := w1.first(1), w2.first(1)
			task1.part(task1.run.Units[0], nil)
			l.until("w1's part", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 1 })
			if how == "leaves" {
				w1.beat(func(b *protocol.Beat) { b.Leaving = true })
			} else {
				l.silent("w1")
			}
			rest := w2.run(task1.run.Units[1:]...)
			task2.parts()
			task1.part(task1.run.Units[3], nil) // it was alive after all
			l.until("the late part", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 6 })
			d.pending()
			rest.parts()
			d.sums()
			l.counted("tasks_retried_total", "", 3)
		})
	}
}

// TestNobodyIsThere: a round waits for a first worker, and for another when the
// only one is gone; the same one, started again, is told all of it once more.
func TestNobodyIsThere(t *testing.T) {
	l := newLab(t, never)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2, variable(1, 10)))
	w1 := l.join("w1", 1)
	w1.first(1).part(0, nil)
	l.silent("w1")
	l.until("an empty crew", func() bool { return len(l.d.Workers()) == 0 })
	d.pending()
	w1.beat(func(b *protocol.Beat) { b.Full = true })
	task := w1.first(1)
	for _, u := range task.run.Units {
		task.part(u, nil)
	}
	d.sums()
}

// TestStalledWorker: one that beats but lets its units wait gets none until it
// answers.
func TestStalledWorker(t *testing.T) {
	l := newLab(t, 8*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	late := w2.first(0)
	w1.first(0).parts()
	w1.run(late.run.Units...).parts()
	d.sums()
	d = l.do(x, 2, summed(2))
	w1.run(0, 1).parts()
	d.sums()
	w2.idle()
	late.parts() // of a round that is over
	d = l.do(x, 3, summed(2))
	l.dropped(metrics.DropStale, 1)
	w1.run(0, 1).parts()
	d.sums()
	d = l.do(x, 4, summed(2))
	w2.run(late.run.Units...).parts()
	w1.run().parts()
	d.sums()
}

// TestRestartedWorker: one that leaves and is back before anybody noticed is
// another one: it is told all of it once more, and its units.
func TestRestartedWorker(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, summed(2, variable(1, 10)))
	w.first(1).part(0, nil)
	l.until("the part", func() bool { return l.metric("phase_seconds", metrics.PhaseCompute) == 1 })
	l.d.mu.Lock() // so that the executor sees nothing of it before it is over
	l.d.crew.hear(&protocol.Beat{Worker: "w", Leaving: true}, time.Now())
	l.d.crew.hear(aBeat("w"), time.Now())
	l.d.mu.Unlock()
	l.d.wakeAll()
	task := w.first(1)
	if !slices.Equal(task.run.Units, []uint32{1}) {
		t.Errorf("units %v again", task.run.Units)
	}
	task.parts()
	d.sums()
	c := l.do(x, 2, collecting(1))
	w.run(0)
	l.d.mu.Lock()
	l.d.crew.hear(&protocol.Beat{Worker: "w", Leaving: true}, time.Now())
	l.d.crew.hear(aBeat("w"), time.Now())
	l.d.mu.Unlock()
	l.d.wakeAll()
	w.first(0).collected(0)
	c.collects()
}

// TestFail: a unit that fails on one worker is tried by another, a few times; a
// permanent failure, and one too many, fail the job with unit, worker and reason.
func TestFail(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	unit := task1.run.Units[0]
	task1.fail(unit, false)
	again := w2.run(unit)
	task1.fail(unit, false) // said twice: another has it by now
	l.dropped(metrics.DropStale, 1)
	task1.fail(9, false)
	l.dropped(metrics.DropMisshapen, 1)
	again.parts()
	task2.parts()
	d.sums()

	l.d.giveUp = 300 * time.Millisecond
	began := time.Now()
	d = l.do(x, 2, summed(1))
	at, other := w1.run(0), w2
	at.fail(0, false)
	tries, err := 1, error(nil)
	for err == nil {
		select {
		case o := <-other.orders:
			if o.kind == protocol.KindRun {
				at, other = &task{other, o.run, o.reply}, at.f
				at.fail(0, false)
				tries++
			}
		case err = <-d.done:
		}
	}
	if !strings.Contains(err.Error(), "task 0 on worker "+at.f.id+": unit 0 is bad on "+at.f.id) {
		t.Errorf("a unit that fails everywhere: error %v", err)
	}
	if took := time.Since(began); tries < 2 || tries > 7 || took < l.d.giveUp { // two at once, then pauses of 50 ms, 100 ms, 200 ms
		t.Errorf("%d tries in %v", tries, took)
	}
	d = l.do(x, 3, summed(1))
	w1.run(0).fail(0, true)
	if err := d.wait(); err == nil || !strings.Contains(err.Error(), "task 0 on worker w1") {
		t.Errorf("a permanent failure: error %v", err)
	}
	d = l.do(x, 4, summed(1)) // the executor is none the worse
	w1.run(0).parts()
	d.sums()
}

// A job does not fail for units that no worker could compute for long while a blob that they need is on no coordinator.
func TestALostBlobFailsNoJob(t *testing.T) {
	_, _, _, x := withTwo(t)
	began := time.Now()
	late := began.Add(2 * x.d.giveUp)
	lost := ""
	x.d.cfg.Lost = func(digest string) bool { return digest != "" && digest == lost }
	for _, test := range []struct {
		lost string
		want bool
	}{{"", true}, {blobs.Sum([]byte("another's")), true}, {x.manifest.Shards[0].Digest, false}} {
		lost = test.lost
		a := &attempt{failing: began}
		if x.exhausted(a, began) {
			t.Error("it is exhausted at once")
		}
		if got := x.exhausted(a, late); got != test.want || a.failing.Equal(late) == got {
			t.Errorf("with %q lost it is exhausted: %v, failing since %v", test.lost, got, a.failing)
		}
	}
}

// TestCancelledRound ends with ctx's error; the next one is another's answers.
func TestCancelledRound(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, summed(2))
	old := w.first(0)
	old.part(0, nil)
	d.cancel()
	if err := d.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	d = l.do(x, 1, summed(2)) // the same round once more, as after a failed commit
	old.part(1, nil)          // the same bytes, whoever asked
	task := w.run(0, 1)
	task.part(0, nil)
	d.sums()
}

// TestJobsDoNotMix: two jobs share a worker, and each gets its own answers; when
// one is closed the worker forgets it.
func TestJobsDoNotMix(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w", 1)
	x1, x2 := l.executor(1), l.executor(2)
	defer x2.Close()
	d1 := l.do(x1, 5, summed(2))
	task1 := w.first(0)
	d2 := l.do(x2, 5, summed(2))
	task2 := w.first(0)
	if task1.run.Job != 1 || task2.run.Job != 2 {
		t.Fatalf("jobs %d and %d", task1.run.Job, task2.run.Job)
	}
	task2.parts()
	d2.sums()
	d1.pending()
	task1.parts()
	d1.sums()
	x1.Close()
	if f := w.next(protocol.KindForget).forget; f.Job != 1 || f.Epoch != epoch {
		t.Errorf("forget %+v", f)
	}
	task1.parts()
	l.dropped(metrics.DropStale, 2)
	defer func() {
		if recover() == nil {
			t.Error("a second executor of the same job was made")
		}
	}()
	l.executor(2)
}

// TestHangingWorker: one that beats and never answers costs a wait once, not in
// each round, and no wait makes the next one longer; once it answers it gets units
// again.
func TestHangingWorker(t *testing.T) {
	l := newLab(t, 4*quick)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	task1, hangs := w1.first(0), w2.first(0)
	task1.parts()
	w1.run(hangs.run.Units...).parts()
	d.sums()
	before := x.patience(true)
	for n := uint64(2); n < 5; n++ {
		d = l.do(x, n, summed(2))
		w1.run(0, 1).parts()
		d.sums()
	}
	w2.idle()
	if after := x.patience(true); after > before {
		t.Errorf("patience grew from %v to %v", before, after)
	}
	d = l.do(x, 5, summed(2))
	task1 = w1.run(0, 1)
	hangs.part(hangs.run.Units[0], nil) // late, and yet a sign of life
	l.until("w2 to be trusted", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return len(l.d.crew.prompt()) == 2
	})
	task1.parts()
	d.sums()
	d = l.do(x, 6, summed(2))
	w1.run().parts()
	w2.run().parts()
	d.sums()
}
