package worker

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// bench is a worker without a network that has a job and its shards.
type bench struct {
	*worker
	orders *orders
	round  *round.Round
	values []protocol.Value
	run    protocol.Run
	buf    []byte
}

// newBench prepares a gradient step of a job.
func newBench(t testing.TB, src dataset.Source, given param.Values) *bench {
	t.Helper()
	d := importData(t, src)
	dir := t.TempDir()
	cfg := must[Config](t)(Config{Join: []string{"x:1"}, Dir: dir, Slots: 2}.withDefaults())
	folder := must[*folder](t)(openFolder(dir, slog.New(slog.DiscardHandler)))
	folder.close()
	if err := os.Rename(d.dir, filepath.Join(dir, "shards")); err != nil {
		t.Fatal(err)
	}
	b := &bench{worker: must[*worker](t)(openWorker(cfg))}
	b.orders = b.worker.orders
	b.begin()
	t.Cleanup(func() { b.stop(nil) })
	j := newTestJob(t, d, 7, given)
	list, _ := rounds(t, d, j, 8)
	b.round = list[len(list)-1] // a step under a q that is not uniform any more
	for _, v := range b.round.Vars {
		b.values = append(b.values, protocol.Value{Epoch: 1, Job: 40, Ref: protocol.Ref{ID: v.ID, Version: v.Version},
			Data: v.Data})
	}
	l := &leader{epoch: 1}
	b.run = *l.message(40, 0, b.round, allTasks(b.round.Tasks))
	setup := protocol.Setup{Epoch: 1, ID: 40, Job: j, Manifest: d.manifest}
	b.deliver(setup.Append(nil))
	return b
}

func (b *bench) deliver(msg []byte) { b.orders.handle(bus.Message{Reply: "results", Data: msg}) }

// step delivers new versions of all values and the round, in one, and waits for the
// end of the work.
func (b *bench) step() {
	b.run.Round++
	b.buf = protocol.BeginBundle(b.buf[:0])
	for i := range b.values {
		b.values[i].Version++
		b.run.Refs[i].Version++
		b.buf = protocol.AddToBundle(b.buf, &b.values[i])
	}
	b.buf = protocol.AddToBundle(b.buf, &b.run)
	b.deliver(b.buf)
	for !b.quietNow() {
		runtime.Gosched()
	}
}

func (b *bench) quietNow() bool {
	b.jobs.mu.Lock()
	defer b.jobs.mu.Unlock()
	return !b.jobs.machine.Jobs()[40].InUse()
}

// A steady job's rounds do not allocate, from the message to the encoded parts.
func TestNoAllocations(t *testing.T) {
	for _, x := range []struct {
		name string
		src  dataset.Source
	}{{"dense", dense()}, {"sparse", sparse()}} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, x.src, nil)
			b.step()
			b.step()
			b.step()
			// The runtime's own goroutines allocate now and then: the least of some
			// tries counts.
			least := 1e9
			for range 5 {
				least = min(least, testing.AllocsPerRun(50, b.step))
			}
			if least > 0 {
				t.Errorf("%v allocations in a round of %d units", least, b.round.Tasks)
			}
			if n := counter(b.metrics.TasksFailed); n > 0 || counter(b.metrics.Needs) > 0 {
				t.Errorf("%v units failed, %v needs", n, counter(b.metrics.Needs))
			}
		})
	}
}

// BenchmarkRound is a gradient step as a worker sees it: values and Run in, parts
// out, without NATS.
func BenchmarkRound(b *testing.B) {
	for _, x := range []struct {
		name string
		src  dataset.Source
	}{
		{"data=artificial/batch=128", dense()},
		{"data=sparse/batch=128", sparse()},
	} {
		b.Run(x.name, func(b *testing.B) {
			w := newBench(b, x.src, nil)
			b.ReportAllocs()
			for b.Loop() {
				w.step()
			}
		})
	}
}

// partsFunc is algorithms.Parts as a function.
type partsFunc func(i int)

func (f partsFunc) Part(i int, _ any) { f(i) }

// TestIdleExecutorHelps: an executor without a task computes parts of another one; a part that panics
// is the panic of its task, in whichever executor it was.
func TestIdleExecutorHelps(t *testing.T) {
	b := newBench(t, dense(), nil)
	b.step() // the job is set up
	b.jobs.mu.Lock()
	j := b.jobs.machine.Jobs()[40].Local.(*job)
	b.jobs.mu.Unlock()
	pool := newExecutors(batch.Reduce)
	helper := &executor{stepper: stepper{jobs: b.jobs}, pool: pool, number: 1}
	pool.running.Go(helper.run)
	x := &executor{stepper: stepper{jobs: b.jobs}, pool: pool, number: 0, job: j}
	for range 20 {
		var here sync.WaitGroup
		here.Add(2)
		x.Do(2, partsFunc(func(int) {
			here.Done()
			here.Wait()
		}))
	}
	func() {
		defer func() {
			if r := recover(); r != "bad luck" {
				t.Errorf("panic %v", r)
			}
		}()
		var here sync.WaitGroup
		here.Add(2)
		x.Do(2, partsFunc(func(i int) {
			here.Done()
			here.Wait()
			if i == 1 {
				panic("bad luck")
			}
		}))
	}()
	pool.close()
	if len(pool.sharing) > 0 {
		t.Errorf("%d executors still ask for help", len(pool.sharing))
	}
	if n := b.jobs.busy.Load(); n != 0 {
		t.Errorf("%d executors are at work", n)
	}
}

// keeper is a kernel that derives 10 bytes.
type keeper struct{ round.Kernel }

type tenBytes struct{ round.Unpooled }

func (tenBytes) Bytes() int { return 10 }

func (keeper) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return tenBytes{}, nil
}

func (keeper) Run(*round.Partial, round.Task, *dataset.Data, round.Vars, round.Derived, any) error {
	return nil
}

// TestCheck: the check of a worker fails if its sessions have done nothing for long. It passes if the worker has just
// begun.
func TestCheck(t *testing.T) {
	w := must[*worker](t)(openWorker(must[Config](t)(Config{Join: []string{"x:1"}, Dir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler)}.withDefaults())))
	w.begin()
	defer w.stop(nil)
	if err := w.check(t.Context()); err != nil {
		t.Error(err)
	}
	past := time.Now().Add(-longestTurn - time.Second)
	w.sessions.coordinators.turned.Store(&past)
	if err := w.check(t.Context()); err == nil || !strings.Contains(err.Error(), "has not checked its session for 2m1s") {
		t.Errorf("after %v: %v", longestTurn, err)
	}
	w.sessions.coordinators.ask(t.Context(), time.Millisecond, func(*protocol.Cluster) bool { return true })
	if err := w.check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestJobsGiveKeptMemoryBack: what a job keeps counts for all jobs of a worker, until the job is forgotten.
func TestJobsGiveKeptMemoryBack(t *testing.T) {
	dir, discard := t.TempDir(), slog.New(slog.DiscardHandler)
	w := must[*worker](t)(openWorker(must[Config](t)(Config{Join: []string{"x:1"}, Dir: dir, Log: discard,
		KeptBytes: 15}.withDefaults())))
	w.begin()
	defer w.stop(nil)
	for id := range uint64(2) {
		w.jobs.step(&batch.Setup{Setup: &protocol.Setup{ID: id, Job: &round.Job{}, Manifest: &dataset.Manifest{Rows: 1,
			Shards: make([]dataset.ShardRef, 1)}}})
		w.jobs.mu.Lock()
		j := w.jobs.machine.Jobs()[id].Local.(*job)
		w.jobs.mu.Unlock()
		u := round.Task{Of: 1, DerivedVersion: 1}
		if err := engine.RunTask(new(round.Partial), keeper{}, u, nil, nil, j.kept.Load(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.jobs.kept.Used() != 10 {
		t.Errorf("two jobs keep %d bytes of 15; one value has 10", w.jobs.kept.Used())
	}
	w.jobs.step(&batch.Reset{})
	eventually(t, "forgotten jobs keep nothing", func() bool { return w.jobs.kept.Used() == 0 })
}
