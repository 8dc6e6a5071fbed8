package coordinator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker"
)

// startLiar runs a worker that flips one bit of its first answer, or of each.
func (c *cluster) startLiar(id string, each bool) {
	var join []string
	for _, p := range c.peers {
		join = append(join, fmt.Sprintf("127.0.0.1:%d", p.Port))
	}
	cfg := worker.Config{Join: join, ID: id, Dir: filepath.Join(c.dir, id), Slots: 1, NATS: c.natsOf, Log: c.log.With("node", id)}
	var answers atomic.Int64
	cfg.Spoil = func(_ uint32, sum *round.Partial, part []byte) {
		if answers.Add(1) > 1 && !each {
			return
		}
		if sum != nil {
			if part = num.Bytes64(sum.F64); len(part) == 0 {
				part = num.Bytes32(sum.F32)
			}
		}
		part[len(part)/2] ^= 1
	}
	c.run(id, func(ctx context.Context) error { return worker.Run(ctx, cfg) })
}

// workers lists the workers that the leader knows.
func (c *cluster) workers(ctx context.Context) []protocol.Worker {
	c.t.Helper()
	info, err := c.client.Cluster(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Workers
}

// TestAuditFindsALiar: a worker that flips one bit is found, named, put out of use
// and recorded: with all units audited at once, and the model is right all the
// same; with a sample within the job, where it goes on to do so.
func TestAuditFindsALiar(t *testing.T) {
	ldlf := testSpec(map[string]string{"steps": lasting(400), "trees": "2", "depth": "5"})
	forest := protocol.Spec{Algorithm: "structrf", Dataset: "art", TestFraction: 0.1, Set: map[string]string{"trees": "6"}}
	for _, run := range []struct {
		name   string
		spec   protocol.Spec
		audit  float64
		honest int
	}{
		{"every unit of an LDLF", ldlf, 1, 2},
		{"a twentieth of the units", ldlf, 0.05, 2},
		{"trees", forest, 1, 2},
	} {
		t.Run(run.name, func(t *testing.T) {
			ctx := deadline(t)
			want := localDigest(t, run.spec)
			c := start(t, 1, run.honest)
			if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
				t.Fatal(err)
			}
			c.startLiar("liar", run.audit < 1)
			testkit.Until(t, "all workers", func() bool { return len(c.workers(ctx)) > run.honest })
			job, err := c.client.SubmitRequest(ctx, protocol.SubmitRequest{Spec: run.spec, Audit: run.audit})
			if err != nil {
				t.Fatal(err)
			}
			end, err := c.client.Watch(ctx, job.Name, func(*protocol.JobInfo) {})
			if err != nil || end.State != protocol.Done {
				t.Fatalf("job %+v, error %v", end, err)
			}
			if !strings.Contains(end.Suspect, "worker liar: task ") {
				t.Errorf("suspect %q", end.Suspect)
			}
			if got := end.Models[0].Digest; run.audit == 1 && got != want {
				t.Errorf("digest %s, --local has %s", got, want)
			}
			for _, w := range c.workers(ctx) {
				if refused := strings.Contains(w.State, "quarantined"); refused != (w.ID == "liar") {
					t.Errorf("worker %+v", w)
				}
			}
		})
	}
}
