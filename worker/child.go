package worker

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
)

// childRunner runs a unit's child job on the shards of its parent, from where the
// payload says that it got to elsewhere. It hands checkpoints to the leader.
func (w *worker) childRunner(j *job, c *collected, payload []byte) engine.ChildRunner {
	return func(ctx context.Context, child *round.Job) ([]byte, error) {
		options := local.Options{Kept: w.kept, Checkpoint: func(at local.Checkpoint) { w.checkpoint(c, at) }, CheckpointEvery: w.cfg.CheckpointEvery,
			Report: func(rounds uint64, p round.Progress) { w.report(c, rounds, p) }}
		if len(payload) > 0 {
			var resume protocol.Resume
			if err := resume.Decode(payload); err != nil {
				return nil, fmt.Errorf("worker: the saved state of the fold cannot be read: %w", err)
			}
			options.Resume = local.Checkpoint(resume)
			w.log.Info("a fold continues on this worker", "job", j.id, "unit", c.unit, "round", resume.Rounds)
		}
		return local.Child(ctx, j.open, child, options)
	}
}

// told is what leaders were told of a child job.
type told struct {
	last   protocol.Progress // empty where Worker is
	before protocol.Work     // of which an earlier leader was told
}

// report tells the leader the numbers of a child job.
func (w *worker) report(c *collected, rounds uint64, p round.Progress) {
	loss := p.Loss
	if loss-loss != 0 { // no number
		loss = -1
	}
	w.mu.Lock()
	m := protocol.Progress{
		Stamp: c.stamp, Worker: w.id, Unit: c.unit, Done: protocol.Work{Rounds: rounds, Steps: p.Step, Samples: p.Samples},
		Steps: p.Steps, Most: p.MostSteps, Loss: loss,
	}
	m = c.told.tell(m)
	reply := c.reply
	w.mu.Unlock()
	w.send(reply, m.Append(nil))
}

// tell notes what a leader is told and returns it with what an earlier one was told.
func (t *told) tell(m protocol.Progress) protocol.Progress {
	if t.last.Worker != "" && t.last.Epoch != m.Epoch {
		t.before = t.last.Done
	}
	m.Counted = t.before
	t.last = m
	return m
}

// again returns what was told last, for the leader of a stamp.
func (t *told) again(s protocol.Stamp) protocol.Progress {
	m := t.last
	m.Stamp = s
	return t.tell(m)
}

// checkpoint tells the leader how far a child job is.
func (w *worker) checkpoint(c *collected, at local.Checkpoint) {
	w.mu.Lock()
	m := protocol.Checkpoint{Stamp: c.stamp, Worker: w.id, Unit: c.unit, Resume: protocol.Resume(at)}
	reply := c.reply
	w.mu.Unlock()
	w.send(reply, m.Append(nil))
}
