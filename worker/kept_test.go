package worker

import (
	"log/slog"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// keeper is a kernel that derives 10 bytes.
type keeper struct{ round.Kernel }

type tenBytes struct{ round.Unpooled }

func (tenBytes) Bytes() int { return 10 }

func (keeper) Derive(round.Unit, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return tenBytes{}, nil
}

func (keeper) Run(*round.Partial, round.Unit, *dataset.Data, round.Vars, round.Derived, any) error {
	return nil
}

// TestJobsGiveKeptMemoryBack: what a job keeps counts for all jobs of a worker, until the job is forgotten.
func TestJobsGiveKeptMemoryBack(t *testing.T) {
	dir, discard := t.TempDir(), slog.New(slog.DiscardHandler)
	w := must[*worker](t)(openWorker(must[Config](t)(Config{Join: []string{"x:1"}, Dir: dir, Log: discard, KeptBytes: 15}.withDefaults())))
	w.begin()
	defer w.stop(nil)
	for id := range uint64(2) {
		w.orders.onSetup(&protocol.Setup{ID: id, Job: &round.Job{}, Manifest: &dataset.Manifest{Rows: 1, Shards: make([]dataset.ShardRef, 1)}})
		w.jobs.mu.Lock()
		j := w.jobs.machine.Jobs()[id].Local.(*job)
		w.jobs.mu.Unlock()
		u := round.Unit{Of: 1, DerivedVersion: 1}
		if err := engine.RunUnit(new(round.Partial), keeper{}, u, nil, nil, j.kept.Load(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.jobs.kept.Used() != 10 {
		t.Errorf("two jobs keep %d bytes of 15; one value has 10", w.jobs.kept.Used())
	}
	w.jobs.step(batch.Event{Kind: batch.Reset})
	eventually(t, "forgotten jobs keep nothing", func() bool { return w.jobs.kept.Used() == 0 })
}
