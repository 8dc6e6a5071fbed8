package worker

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
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
		b.values = append(b.values, protocol.Value{Epoch: 1, Job: 40, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Data: v.Data})
	}
	l := &leader{epoch: 1}
	b.run = *l.message(40, 0, b.round, allUnits(b.round.Units))
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
				t.Errorf("%v allocations in a round of %d units", least, b.round.Units)
			}
			if n := counter(b.metrics.UnitsFailed); n > 0 || counter(b.metrics.Needs) > 0 {
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
