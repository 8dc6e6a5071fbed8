package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// incoming is what came with the event of a step. Its memory serves all messages of a job.
type incoming struct {
	part       protocol.Partial
	need       protocol.Need
	fail       protocol.Fail
	gathered   protocol.Result
	checkpoint protocol.Checkpoint
	progress   protocol.Progress

	partial *round.Partial // of PartialArrived and LeaderComputed; nil once an action has taken it
	end     end
	values  []schedule.Value
}

// takePartial returns the partial of the event, which belongs to the caller then.
func (in *incoming) takePartial() *round.Partial {
	p := in.partial
	in.partial = nil
	return p
}

// receive handles the mail.
func (x *Executor) receive(ctx context.Context) error {
	x.mem.msgs, x.mem.ends = x.mail.take(x.mem.msgs, x.mem.ends)
	defer func() {
		clear(x.mem.msgs)
		clear(x.mem.ends)
		x.mem.in.end = end{}
	}()
	if len(x.mem.msgs)+len(x.mem.ends) == 0 {
		return x.step(ctx, schedule.Event{Kind: schedule.Woken})
	}
	for _, msg := range x.mem.msgs {
		e, err := x.decode(msg)
		if err != nil {
			x.d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
			continue
		}
		if err := x.step(ctx, e); err != nil {
			return err
		}
	}
	for i := range x.mem.ends {
		e := &x.mem.ends[i]
		switch {
		case e.over != nil && e.event.Round == x.number:
			return e.over
		case e.before:
			if e.event.Round == x.number {
				x.progress.have(e.event.Task, e.progress, true)
			}
			continue
		}
		x.mem.in.end, x.mem.in.partial = *e, e.partial
		if e.event.Err != nil {
			e.event.BlobLost = x.isBlobLost()
		}
		if e.event.Kind == schedule.LeaderComputed && e.event.Round == x.number && x.r.How == round.Gather {
			x.results.own[e.event.Task] = e.bytes
		}
		if err := x.step(ctx, e.event); err != nil {
			return err
		}
	}
	return nil
}

// decode makes an event of a worker's message. An error says that the message is damaged, or of a task that there is not.
func (x *Executor) decode(msg []byte) (e schedule.Event, err error) {
	in, task := &x.mem.in, uint32(0)
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindResult, protocol.KindCheckpoint, protocol.KindProgress:
		if x.r.How != round.Gather { // it is late: this round may have no such task
			return schedule.Event{Kind: schedule.ResultAnnounced}, nil
		}
	}
	switch kind {
	case protocol.KindPartial:
		return x.decodePart(msg)
	case protocol.KindNeed:
		if err := in.need.Decode(msg); err != nil {
			return e, err
		}
		in.values = in.values[:0]
		for _, ref := range in.need.Refs {
			in.values = append(in.values, schedule.Value{ID: ref.ID, Version: ref.Version})
		}
		return schedule.Event{Kind: schedule.WorkerLacks, Round: in.need.Round, Worker: in.need.Worker, Setup: in.need.Setup, Values: in.values}, nil
	case protocol.KindFail:
		m := &in.fail
		if err := m.Decode(msg); err != nil {
			return e, err
		}
		task = m.Task
		e = schedule.Event{Kind: schedule.TaskFailed, Round: m.Round, Worker: m.Worker, Permanent: m.Permanent, Unable: m.Unable, Reason: m.Reason, BlobLost: x.isBlobLost()}
		if m.NonFinite {
			e.Result.NotFinite = m.Reason
		}
	case protocol.KindResult:
		m := &in.gathered
		if err := m.Decode(msg); err != nil {
			return e, err
		}
		digest, ok := digests.Parse(m.Digest)
		if !ok || !blobs.Valid(m.Digest) {
			return e, protocol.ErrMessage
		}
		task = m.Task
		e = schedule.Event{
			Kind: schedule.ResultAnnounced, Round: m.Round, Worker: m.Worker,
			Result: schedule.Result{Digest: digest, Bytes: m.Bytes, Took: computeTime(m.Compute)},
		}
	case protocol.KindCheckpoint:
		m := &in.checkpoint
		*m = protocol.Checkpoint{}
		if err := m.Decode(msg); err != nil {
			return e, err
		}
		task = m.Task
		e = schedule.Event{Kind: schedule.CheckpointArrived, Round: m.Round, Worker: m.Worker}
	case protocol.KindProgress:
		m := &in.progress
		if err := m.Decode(msg); err != nil {
			return e, err
		}
		task = m.Task
		e = schedule.Event{Kind: schedule.ProgressArrived, Round: m.Round, Worker: m.Worker}
	default:
		return e, protocol.ErrMessage
	}
	if e.Task = int(task); e.Task >= max(1, x.r.Tasks) {
		return e, protocol.ErrMessage
	}
	if subJob := e.Kind == schedule.CheckpointArrived || e.Kind == schedule.ProgressArrived; subJob && x.r.SubJob == nil {
		return e, protocol.ErrMessage
	}
	return e, nil
}

// decodePart makes an event of a partial, and leaves its numbers in x.mem.in.partial.
func (x *Executor) decodePart(msg []byte) (e schedule.Event, err error) {
	in := &x.mem.in
	if x.r.How == round.Gather {
		return schedule.Event{Kind: schedule.PartialArrived}, nil
	}
	in.part.Partial = nil
	if len(msg) >= lentFrom {
		in.part.Partial = &round.Partial{Lent: true, Message: msg}
	} else {
		in.part.Partial = x.sum.tree.Partial()
	}
	in.partial = in.part.Partial
	if err := in.part.Decode(msg); err != nil {
		x.sum.tree.Release(in.takePartial())
		return e, err
	}
	m := &in.part
	e = schedule.Event{
		Kind: schedule.PartialArrived, Round: m.Round, Worker: m.Worker, Level: int(m.Level), Task: int(m.Index), Took: computeTime(m.Compute),
	}
	if m.Round != x.number {
		return e, nil
	}
	if err := x.sum.tree.Check(e.Level, e.Task, m.Partial); err != nil {
		e.Malformed = true
		x.d.cfg.Log.Warn("a partial result was dropped", "job", x.id, "worker", m.Worker, "error", err)
	} else if e.Level == 0 && x.schedule.Compares(e.Task) {
		e.Result.Digest = digestOfPartial(m.Partial)
	}
	return e, nil
}

// isBlobLost reports whether no coordinator that answers has some blob that the job's tasks need.
func (x *Executor) isBlobLost() bool {
	lost := x.d.cfg.Lost
	return lost != nil && (lost(x.job.Split.Assigned) || lost(x.job.Weights) ||
		slices.ContainsFunc(x.manifest.Shards, func(s dataset.ShardRef) bool { return lost(s.Digest) }))
}

// maxCompute bounds what is believed of a worker that says how long it computed.
const maxCompute = 30 * 24 * time.Hour

// computeTime is how long a worker says that it computed, in nanoseconds.
func computeTime(ns uint64) time.Duration { return time.Duration(min(ns, uint64(maxCompute))) }
