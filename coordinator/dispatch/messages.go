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
	"github.com/coppice-ldl/coppice/protocol"
)

// outbox encodes what workers are sent of one job. Messages for a worker that are small travel in one, so that it is
// woken once.
type outbox struct {
	peers map[string]*address // workers that have the job
	// checkpoints is how far the sub-jobs of the round are, by task. Workers go on from there. The next leader hears of
	// them again from the workers.
	checkpoints map[uint32]checkpoint

	buf   []byte // a protocol.Bundle
	msgs  int    // in buf
	run   protocol.Run
	value protocol.Value
}

// checkpoint is how far a sub-job is, and which worker said so.
type checkpoint struct {
	worker string
	bytes  []byte
}

const (
	// maxBundle is the size at which collected messages are sent. A large message is not copied to save a small one.
	maxBundle = 256 << 10
	// longValue is the size from which on a value is not copied before it is sent: it may be all parameters of a network.
	longValue = 1 << 20
	// maxCheckpoints bounds the bytes of a round's checkpoints.
	maxCheckpoints = 2 * protocol.MaxMessage
)

// keepCheckpoint keeps how far a sub-job is, or drops it if the round's checkpoints become too large: the task begins
// from its start elsewhere.
func (o *outbox) keepCheckpoint(task uint32, worker string, m *protocol.Checkpoint) {
	kept := len(m.State)
	for other, c := range o.checkpoints {
		if other != task {
			kept += len(c.bytes)
		}
	}
	if kept > maxCheckpoints {
		delete(o.checkpoints, task)
		return
	}
	if o.checkpoints == nil {
		o.checkpoints = make(map[uint32]checkpoint)
	}
	o.checkpoints[task] = checkpoint{worker, m.Resume.Append(nil)}
}

func (x *Executor) sendSetup(worker string) {
	d, at := x.d, x.d.addressOf(worker)
	x.outbox.peers[worker] = &at
	d.send(&at, (&protocol.Setup{Epoch: d.cfg.Epoch, Start: x.start, ID: x.id, Job: x.job, Manifest: x.manifest}).
		Append(nil))
}

func (x *Executor) sendValue(worker string, v *round.Var) {
	d, to := x.d, x.outbox.peers[worker]
	if to == nil {
		return
	}
	m := &x.outbox.value
	*m = protocol.Value{Epoch: d.cfg.Epoch, Job: x.id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Data: v.Data}
	if len(m.Data) < longValue {
		x.post(to, m)
	} else {
		x.flush(to) // messages keep their order
		d.publish(to.work, to.reply, m.AppendHead(nil), m.Data)
	}
	m.Data = nil
}

// sendChunks sends a worker chunks of a value, or only their names if the worker has them.
func (x *Executor) sendChunks(a *schedule.SendChunks) {
	to, v := x.outbox.peers[a.Worker], &x.r.Vars[a.Var]
	if to == nil {
		return
	}
	for i := a.From; i < a.From+a.N; i++ {
		c := v.Chunks[i]
		m := protocol.Chunk{
			Epoch: x.d.cfg.Epoch, Job: x.id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Of: uint32(len(v.Chunks)),
			Index: uint32(i), Digest: c.Digest(), Here: !a.Known,
		}
		if m.Here {
			var err error
			if m.Data, err = c.Bytes(); err != nil { // the worker asks for it again
				x.d.cfg.Log.Warn("a chunk of a value could not be sent", "job", x.id, "piece", i, "error", err)
				continue
			}
		}
		x.post(to, &m)
	}
}

func (x *Executor) sendRun(worker string, tasks []uint32) {
	to := x.outbox.peers[worker]
	if to == nil {
		return
	}
	x.describe(tasks)
	x.post(to, &x.outbox.run)
	x.flush(to)
	x.d.cfg.Metrics.TasksDispatched.Add(float64(len(tasks)))
}

// sendForget tells a worker to forget tasks of a round, or the whole job if there are none.
func (x *Executor) sendForget(worker string, round uint64, tasks ...uint32) {
	if to := x.outbox.peers[worker]; to != nil {
		x.d.send(to, (&protocol.Forget{Epoch: x.d.cfg.Epoch, Job: x.id, Round: round, Tasks: tasks}).Append(nil))
	}
}

// describe fills x.outbox.run for tasks of the round.
func (x *Executor) describe(tasks []uint32) {
	r, m := x.r, &x.outbox.run
	m.Stamp = protocol.Stamp{Epoch: x.d.cfg.Epoch, Job: x.id, Round: x.number}
	m.Kind, m.Op, m.Of, m.Scope, m.Roles = r.Kind, r.Op, uint32(r.Tasks), r.Scope, r.Roles
	m.Tasks, m.Refs, m.Payload = tasks, m.Refs[:0], m.Payload[:0]
	for i := range r.Vars {
		m.Refs = append(m.Refs, protocol.Ref{ID: r.Vars[i].ID, Version: r.Vars[i].Version})
	}
	if how := r.Reduce(); how != nil {
		m.Gather, m.SubJob, m.Steps, m.Keep, m.Shape = false, false, how.Steps, how.DerivedVersion, how.Shape
		return
	}
	how := r.Gather()
	m.Gather, m.SubJob, m.Steps, m.Keep, m.Shape = true, how.SubJob != nil, [2]uint64{}, 0, round.Shape{}
	for _, t := range tasks {
		var payload []byte
		if how.SubJob == nil && how.Payloads != nil {
			payload = how.Payloads[t]
		} else if c, ok := x.outbox.checkpoints[t]; ok {
			x.d.mu.Lock()
			if x.d.workers.Trusts(c.worker) {
				payload = c.bytes
			}
			x.d.mu.Unlock()
		}
		m.Payload = append(m.Payload, payload)
	}
}

// post sends a message to a worker, by the next flush at the latest. Messages keep their order.
func (x *Executor) post(to *address, m interface{ Append([]byte) []byte }) {
	o := &x.outbox
	if o.msgs == 0 {
		o.buf = protocol.BeginBundle(o.buf[:0])
	}
	o.buf = protocol.AddToBundle(o.buf, m)
	o.msgs++
	if len(o.buf) >= maxBundle {
		x.flush(to)
	}
}

// flush sends a worker the collected messages.
func (x *Executor) flush(to *address) {
	o := &x.outbox
	if o.msgs == 1 {
		x.d.send(to, protocol.OnlyInBundle(o.buf))
	} else if o.msgs > 1 {
		x.d.send(to, o.buf)
	}
	o.msgs = 0
}

// incoming is what came with the event of a step. Its memory serves all messages of a job.
type incoming struct {
	part       protocol.Partial
	need       protocol.Need
	fail       protocol.Fail
	gathered   protocol.Result
	checkpoint protocol.Checkpoint
	progress   protocol.Progress

	arrived schedule.PartialArrived
	partial *round.Partial // of PartialArrived and LeaderComputed; nil once an action has taken it
	stored  *storedResult  // of ResultStored
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
		x.mem.in.stored = nil
	}()
	if len(x.mem.msgs)+len(x.mem.ends) == 0 {
		return x.step(ctx, &schedule.Woken{})
	}
	for _, msg := range x.mem.msgs {
		e, err := x.decode(msg)
		if err != nil {
			_, sender, _ := protocol.PeekStamp(msg)
			x.d.cfg.malformed(string(sender), err)
			continue
		}
		if err := x.step(ctx, e); err != nil {
			return err
		}
	}
	for _, e := range x.mem.ends {
		var event schedule.Event
		switch e := e.(type) {
		case schedule.Event:
			event = e
		case *storedResult:
			event, x.mem.in.stored = e.event, e
		case *verifiedResult:
			event, x.mem.in.partial = e.event, e.partial
			if e.event.Err != nil {
				e.event.BlobLost = x.isBlobLost()
			}
			if e.event.Round == x.number && x.r.Gather() != nil {
				x.results.own[e.event.Task] = e.bytes
			}
		case *knownProgress:
			if e.round == x.number {
				x.progress.have(e.task, e.progress, 0, true)
			}
			continue
		case *roundOver:
			if e.round == x.number {
				return e.err
			}
			if !e.late {
				continue
			}
			event = &schedule.RecordingGivenUp{} // otherwise this round would wait for it
		}
		if err := x.step(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

// decode makes an event of a worker's message. An error says that the message is damaged, or of a task that there is
// not.
func (x *Executor) decode(msg []byte) (schedule.Event, error) {
	in, r := &x.mem.in, x.r
	// isTask reports whether a round may have a task; another round than this one may have more tasks.
	isTask := func(round uint64, task uint32) bool { return round != x.number || int(task) < max(1, r.Tasks) }
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindResult, protocol.KindCheckpoint, protocol.KindProgress:
		if r.Gather() == nil { // it is late: this round may have no such task
			return &schedule.ResultAnnounced{}, nil
		}
	}
	switch kind {
	case protocol.KindPartial:
		return x.decodePart(msg)
	case protocol.KindNeed:
		m := &in.need
		if err := protocol.Read(m, msg); err != nil {
			return nil, err
		}
		in.values = in.values[:0]
		for _, ref := range m.Refs {
			in.values = append(in.values, schedule.Value{ID: ref.ID, Version: ref.Version})
		}
		return &schedule.WorkerLacks{Round: m.Round, Worker: m.Worker, Setup: m.Setup, Values: in.values}, nil
	case protocol.KindFail:
		m := &in.fail
		if err := protocol.Read(m, msg); err != nil {
			return nil, err
		}
		if isTask(m.Round, m.Task) {
			return &schedule.TaskFailed{
				Round: m.Round, Worker: m.Worker, Task: int(m.Task), Reason: m.Reason,
				Permanent: m.Permanent, Unable: m.Unable, NotFinite: m.NonFinite, BlobLost: x.isBlobLost(),
			}, nil
		}
	case protocol.KindResult:
		m := &in.gathered
		if err := protocol.Read(m, msg); err != nil {
			return nil, err
		}
		if digest, ok := digests.Parse(m.Digest); ok && blobs.Valid(m.Digest) && isTask(m.Round, m.Task) {
			return &schedule.ResultAnnounced{
				Round: m.Round, Worker: m.Worker, Task: int(m.Task),
				Result: schedule.Result{Digest: digest, Bytes: m.Bytes, Took: time.Duration(m.Compute)},
			}, nil
		}
	case protocol.KindCheckpoint:
		m := &in.checkpoint
		*m = protocol.Checkpoint{}
		if err := protocol.Read(m, msg); err != nil {
			return nil, err
		}
		if isTask(m.Round, m.Task) && (m.Round != x.number || r.Gather().SubJob != nil) {
			return &schedule.CheckpointArrived{Round: m.Round, Worker: m.Worker, Task: int(m.Task)}, nil
		}
	case protocol.KindProgress:
		m := &in.progress
		if err := protocol.Read(m, msg); err != nil {
			return nil, err
		}
		if isTask(m.Round, m.Task) && (m.Round != x.number || r.Gather().SubJob != nil) {
			return &schedule.ProgressArrived{Round: m.Round, Worker: m.Worker, Task: int(m.Task)}, nil
		}
	}
	return nil, protocol.ErrMessage
}

// decodePart makes an event of a partial, and leaves its numbers in x.mem.in.partial.
func (x *Executor) decodePart(msg []byte) (schedule.Event, error) {
	in, e := &x.mem.in, &x.mem.in.arrived
	*e = schedule.PartialArrived{}
	if x.r.Gather() != nil {
		return e, nil
	}
	in.part.Partial = nil
	if len(msg) >= lentFrom {
		in.part.Partial = &round.Partial{Lent: true, Message: msg}
	} else {
		in.part.Partial = x.sum.tree.Partial()
	}
	in.partial = in.part.Partial
	if err := protocol.Read(&in.part, msg); err != nil {
		x.sum.tree.Release(in.takePartial())
		return nil, err
	}
	m := &in.part
	e.Round, e.Worker, e.Level, e.Task, e.Took = m.Round, m.Worker, int(m.Level), int(m.Index), time.Duration(m.Compute)
	if m.Round != x.number {
		return e, nil
	}
	if err := x.sum.tree.Check(e.Level, e.Task, m.Partial); err != nil {
		e.Malformed = true
		x.d.cfg.Log.Warn("a partial result was dropped", "job", x.id, "worker", m.Worker, "error", err)
	} else if e.Level == 0 && x.schedule.Compares(e.Task) {
		e.Digest = digestOfPartial(m.Partial)
	}
	return e, nil
}

// isBlobLost reports whether no coordinator that answers has some blob that the job's tasks need.
func (x *Executor) isBlobLost() bool {
	lost := x.d.cfg.Lost
	return lost != nil && (lost(x.job.Split.Assigned) || lost(x.job.Split.Groups) || lost(x.job.Weights) ||
		slices.ContainsFunc(x.manifest.Shards, func(s dataset.ShardRef) bool { return lost(s.Digest) }))
}
