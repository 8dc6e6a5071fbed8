package dispatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// resultSlack is what handling a message allocates beside what follows its size:
// rounds that begin anew, and what other goroutines do.
const resultSlack = 64 << 20

// FuzzResults hands a leader with a summed and a collected round on their way what
// comes on its subjects, for these rounds: their drivers neither die nor hang.
func FuzzResults(f *testing.F) {
	conn := natstest.Connect(f, natstest.Server(f, bus.ServerOptions{}))
	d := New(Config{
		ID: "a", Epoch: epoch, Heartbeat: never, Conn: conn, Subjects: subjects, Parts: newFakeParts(),
		Metrics: metrics.NewCoordinator(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var drivers sync.WaitGroup
	f.Cleanup(func() { cancel(); drivers.Wait() })
	collected := &round.Round{Op: 4, Units: 3, Scope: round.Whole, How: round.Collect}
	for id, r := range map[uint64]*round.Round{jobID: summed(4, variable(1, 10)), jobID + 1: collected} {
		x := d.Executor(id, &round.Job{Algorithm: "canary", Seed: id}, manifest(), ExecutorOptions{})
		drivers.Go(func() {
			defer x.Close()
			for ctx.Err() == nil { // again where it failed, or was answered
				var res round.Result
				x.Do(ctx, 5, r, &res)
			}
		})
	}
	for _, m := range answers(5) {
		if len(m) < 1<<20 {
			f.Add(m, true)
		}
	}
	p := new(round.Partial)
	p.Reset(labShape)
	stamp := protocol.Stamp{Epoch: epoch, Job: jobID, Round: 5}
	f.Add((&protocol.Part{Stamp: stamp, Worker: "w1", Level: 2, Partial: p}).Append(nil), true)
	f.Add((&protocol.Fail{Stamp: stamp, Worker: "w1", NonFinite: true}).Append(nil), false)
	beat := &protocol.Beat{Worker: "w1", Protocol: protocol.Version, Numerics: round.Numerics, Slots: 2, Full: true}
	f.Add(beat.Append(nil), false)
	f.Fuzz(func(t *testing.T, b []byte, first bool) {
		b = bytes.Clone(b)
		if kind, err := protocol.KindOf(b); err == nil && kind != protocol.KindBeat && len(b) >= 26 {
			binary.LittleEndian.PutUint64(b[2:], epoch)
			binary.LittleEndian.PutUint64(b[10:], jobID)
			if !first {
				b[10]++
			}
			binary.LittleEndian.PutUint64(b[18:], 5)
		}
		allocs.AtMost(t, 64*len(b)+resultSlack, "a result", func() {
			d.onBeat(bus.Message{Subject: subjects.Beats(), Data: beat.Append(nil)})
			d.onBeat(bus.Message{Subject: subjects.Beats(), Data: b})
			d.onResult(bus.Message{Subject: d.results + ".w1", Data: b})
		})
		d.mu.Lock()
		defer d.mu.Unlock()
		for id := range d.crew.workers {
			if !lawful(id) {
				t.Fatalf("there is a worker called %q", id)
			}
			if id != "w1" {
				d.crew.remove(id)
			}
		}
	})
}
