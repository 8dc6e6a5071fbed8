package worker

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/internal/local"
	"github.com/coppice-ldl/coppice/protocol"
)

// childRunner runs a unit's child job on the shards of its parent, from where the
// payload says that it got to elsewhere. It hands checkpoints to the leader.
func (w *worker) childRunner(j *job, c *collected, payload []byte) engine.ChildRunner {
	return func(ctx context.Context, child *algorithms.Job) ([]byte, error) {
		var from local.Checkpoint
		if len(payload) > 0 {
			var resume protocol.Resume
			if err := resume.Decode(payload); err != nil {
				return nil, fmt.Errorf("worker: where the fold goes on: %w", err)
			}
			from = local.Checkpoint(resume)
			w.log.Info("a fold goes on here", "job", j.id, "unit", c.unit, "round", resume.Rounds)
		}
		return local.Child(ctx, child, j.whole(), from, func(at local.Checkpoint) { w.checkpoint(c, at) })
	}
}

// whole is the job's dataset, every shard of which is at hand.
func (j *job) whole() *local.Data {
	d := &local.Data{Manifest: j.manifest, Assigned: j.assigned}
	for s := range j.manifest.Shards {
		d.Shards = append(d.Shards, j.data.Shard(s))
	}
	return d
}

// checkpoint tells the leader how far a child job is.
func (w *worker) checkpoint(c *collected, at local.Checkpoint) {
	w.mu.Lock()
	m := protocol.Checkpoint{Stamp: c.stamp, Worker: w.id, Unit: c.unit, Resume: protocol.Resume(at)}
	reply := c.reply
	w.mu.Unlock()
	w.send(reply, m.Append(nil))
}
