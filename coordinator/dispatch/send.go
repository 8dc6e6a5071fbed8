package dispatch

import (
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/protocol"
)

// outbox encodes what workers are sent of one job. Messages for a worker that are small travel in one, so that it is woken
// once.
type outbox struct {
	peers map[string]*peer
	// checkpoints is how far the sub-jobs of the round are, by task. Workers go on from there. The next leader hears of them
	// again from the workers.
	checkpoints map[uint32]checkpoint

	buf   []byte // a protocol.Bundle
	msgs  int    // in buf
	run   protocol.Run
	value protocol.Value
}

// peer is a worker that has the job.
type peer struct {
	at      address
	bundles bool // true if it takes several messages in one
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

// keepCheckpoint keeps how far a sub-job is, or drops it if the round's checkpoints become too large: the task begins from its
// start elsewhere.
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

// sendOrder sends a worker what an action says.
func (x *Executor) sendOrder(a *schedule.Action) {
	d, o := x.d, &x.outbox
	switch a.Kind {
	case schedule.SendHold:
		at := d.addressOf(a.Worker)
		d.send(&at, (&protocol.Hold{Epoch: d.cfg.Epoch, Shards: a.Shards}).Append(nil))
		return
	case schedule.SendSetup:
		p := &peer{at: d.addressOf(a.Worker)}
		d.mu.Lock()
		if s := d.said[a.Worker]; s != nil {
			p.bundles = s.beat.Bundles
		}
		d.mu.Unlock()
		o.peers[a.Worker] = p
		d.send(&p.at, (&protocol.Setup{Epoch: d.cfg.Epoch, Start: x.start, ID: x.id, Job: x.job, Manifest: x.manifest}).Append(nil))
		return
	}
	p := o.peers[a.Worker]
	if p == nil {
		return
	}
	switch a.Kind {
	case schedule.SendValue:
		v := &x.r.Vars[a.Var]
		m := &o.value
		*m = protocol.Value{Epoch: d.cfg.Epoch, Job: x.id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Data: v.Data}
		if len(v.Chunks) > 0 {
			m.Data = v.Whole()
		}
		if len(m.Data) < longValue {
			x.post(p, m)
		} else {
			x.flush(p) // messages keep their order
			d.publish(p.at.work, p.at.reply, m.AppendHead(nil), m.Data)
		}
		m.Data = nil
	case schedule.SendChunks:
		for i := a.Chunk; i < a.Chunk+a.N; i++ {
			x.sendChunk(p, &x.r.Vars[a.Var], i, a.Known)
		}
	case schedule.SendRun:
		x.describe(a.Tasks)
		x.post(p, &o.run)
		x.flush(p)
		d.cfg.Metrics.TasksDispatched.Add(float64(len(a.Tasks)))
	case schedule.SendStop:
		d.send(&p.at, (&protocol.Forget{Epoch: d.cfg.Epoch, Job: x.id, Round: x.number, Tasks: []uint32{uint32(a.Task)}}).Append(nil))
	case schedule.SendForget:
		d.send(&p.at, (&protocol.Forget{Epoch: d.cfg.Epoch, Job: x.id}).Append(nil))
	}
}

// sendChunk sends a worker a chunk of a value, or only its name if the worker has it.
func (x *Executor) sendChunk(p *peer, v *round.Var, i int, known bool) {
	c := v.Chunks[i]
	m := protocol.Chunk{
		Epoch: x.d.cfg.Epoch, Job: x.id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Of: uint32(len(v.Chunks)),
		Index: uint32(i), Digest: c.Digest(), Here: !known,
	}
	if m.Here {
		var err error
		if m.Data, err = c.Bytes(); err != nil { // the worker asks for it again
			x.d.cfg.Log.Warn("a chunk of a value could not be sent", "job", x.id, "piece", i, "error", err)
			return
		}
	}
	x.post(p, &m)
}

// describe fills x.outbox.run for tasks of the round.
func (x *Executor) describe(tasks []uint32) {
	r, m := x.r, &x.outbox.run
	m.Stamp = protocol.Stamp{Epoch: x.d.cfg.Epoch, Job: x.id, Round: x.number}
	m.Kind, m.Op, m.Of, m.Scope, m.How, m.Roles = r.Kind, r.Op, uint32(r.Tasks), r.Scope, r.How, r.Roles
	m.Steps, m.Keep, m.Shape, m.SubJob = r.Steps, r.DerivedVersion, r.Shape, r.SubJob != nil
	m.Tasks, m.Refs, m.Payload = tasks, m.Refs[:0], m.Payload[:0]
	for i := range r.Vars {
		m.Refs = append(m.Refs, protocol.Ref{ID: r.Vars[i].ID, Version: r.Vars[i].Version})
	}
	if r.How != round.Gather {
		return
	}
	for _, t := range tasks {
		var payload []byte
		if r.SubJob == nil && r.Payloads != nil {
			payload = r.Payloads[t]
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
func (x *Executor) post(p *peer, m interface{ Append([]byte) []byte }) {
	o := &x.outbox
	if o.msgs == 0 {
		o.buf = protocol.BeginBundle(o.buf[:0])
	}
	o.buf = protocol.AddToBundle(o.buf, m)
	o.msgs++
	if !p.bundles || len(o.buf) >= maxBundle {
		x.flush(p)
	}
}

// flush sends a worker the collected messages.
func (x *Executor) flush(p *peer) {
	o := &x.outbox
	if o.msgs == 1 {
		x.d.send(&p.at, protocol.OnlyInBundle(o.buf))
	} else if o.msgs > 1 {
		x.d.send(&p.at, o.buf)
	}
	o.msgs = 0
}
