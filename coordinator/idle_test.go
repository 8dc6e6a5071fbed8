package coordinator_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker"
)

// The cluster says why a worker computes nothing: because no job runs, because its memory is too small for the
// tasks of the job that runs, or because the job is paused.
func TestTheClusterSaysWhyAWorkerIsIdle(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 1)
	c.equip = func(cfg *worker.Config) {
		if cfg.ID == "w1" {
			cfg.MemoryBytes = 1 << 10
		}
	}
	c.startAll(2)
	// idle waits until each worker that is named is idle for a reason, and returns their texts.
	idle := func(reasons map[string]protocol.IdleReason) map[string]string {
		t.Helper()
		texts := make(map[string]string)
		testkit.Until(t, "the workers to be idle", func() bool {
			info, err := c.client.Cluster(ctx)
			if err != nil {
				return false
			}
			n := 0
			for _, w := range info.Workers {
				if want, named := reasons[w.ID]; named && w.IdleReason == want {
					texts[w.ID] = w.Idle
					n++
				}
			}
			return n == len(reasons)
		})
		return texts
	}
	both := func(r protocol.IdleReason) map[string]protocol.IdleReason {
		return map[string]protocol.IdleReason{"w0": r, "w1": r}
	}
	if texts := idle(both(protocol.IdleNoJob)); texts["w0"] != "no job is running" {
		t.Errorf("without a job: %q", texts)
	}
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	job, err := c.client.Submit(ctx, protocol.Spec{
		Algorithm: "structrf", Dataset: "art", Name: "forest", Set: map[string]string{"trees": "5000", "min_samples": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := idle(map[string]protocol.IdleReason{"w0": "", "w1": protocol.IdleMemory})
	for _, part := range []string{"job forest: ", "needs up to ", "--memory of worker w1 is 1.0 KiB", "larger --memory"} {
		if !strings.Contains(texts["w1"], part) {
			t.Errorf("%q is missing in %q", part, texts["w1"])
		}
	}
	if _, err := c.client.Pause(ctx, job.Name); err != nil {
		t.Fatal(err)
	}
	if texts := idle(both(protocol.IdlePaused)); !strings.Contains(texts["w1"], "coppice job resume") {
		t.Errorf("paused: %q", texts)
	}
	if _, err := c.client.Cancel(ctx, job.Name); err != nil {
		t.Fatal(err)
	}
	idle(both(protocol.IdleNoJob))
}
