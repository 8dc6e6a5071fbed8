package worker

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// lentFrom is the number of bytes from which a value stays in its message, if it is aligned there.
// So the parameters of a large network are not copied.
const lentFrom = 1 << 20

// orders handles the leader's messages to this worker, one at a time. It never waits: what takes
// long is done by others.
type orders struct {
	prefetch *backlog[dataset.ShardRef]

	mu      sync.Mutex // two sessions overlap for a moment. It guards what follows, which is memory of decoding.
	stepper stepper
	run     protocol.Run
	value   protocol.Value
	chunk   protocol.Chunk
	bundle  protocol.Bundle
}

// handle handles a message of Subjects.Work.
func (o *orders) handle(m bus.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind, _ := protocol.KindOf(m.Data); kind != protocol.KindBundle {
		o.bundle.Messages = append(o.bundle.Messages[:0], m.Data)
	} else if err := protocol.Read(&o.bundle, m.Data); err != nil {
		o.malformed(m, err)
		return
	}
	for _, data := range o.bundle.Messages {
		m.Data = data
		kind, err := protocol.KindOf(data)
		if err == nil {
			err = o.order(kind, m)
		}
		if err != nil {
			o.malformed(m, err)
		}
	}
	clear(o.bundle.Messages)
}

func (o *orders) malformed(m bus.Message, err error) {
	o.stepper.jobs.drops.malformed.Inc()
	o.stepper.jobs.log.Warn("a message was dropped", "subject", m.Subject, "error", err)
}

// order decodes a message that is not a bundle, and reports it to jobs.
func (o *orders) order(kind protocol.Kind, m bus.Message) error {
	j := o.stepper.jobs
	switch kind {
	case protocol.KindRun:
		if err := protocol.Read(&o.run, m.Data); err != nil {
			return err
		}
		j.metrics.Rounds.Inc()
		if m.Reply == "" {
			j.drops.malformed.Inc()
			return nil
		}
		return o.submit(batch.Event{Kind: batch.Run, Order: batch.Order{Run: &o.run, Reply: m.Reply}})
	case protocol.KindValue:
		return o.onValue(m)
	case protocol.KindChunk:
		return o.onChunk(m)
	case protocol.KindSetup:
		var s protocol.Setup
		if err := protocol.Read(&s, m.Data); err != nil {
			return err
		}
		return o.onSetup(&s)
	case protocol.KindForget:
		var f protocol.Forget
		if err := protocol.Read(&f, m.Data); err != nil {
			return err
		}
		return o.submit(batch.Event{Kind: batch.Forget, Order: batch.Order{Epoch: f.Epoch, ID: f.Job, Round: f.Round, Tasks: f.Tasks}})
	case protocol.KindHold:
		var h protocol.Hold
		if err := protocol.Read(&h, m.Data); err != nil {
			return err
		}
		if j.hear(h.Epoch) {
			o.prefetch.add(h.Shards...)
		}
	case protocol.KindProbe: // it is not answered: the leader only wants to know whether somebody receives it
		var p protocol.Probe
		if err := protocol.Read(&p, m.Data); err != nil {
			return err
		}
		j.hear(p.Epoch)
	default:
		j.drops.malformed.Inc()
	}
	return nil
}

// submit reports an order, and returns why it is refused.
func (o *orders) submit(e batch.Event) error {
	if a := o.stepper.step(e); a != nil {
		return a.Err
	}
	return nil
}

// onSetup reports a job. Specs name their dataset by its digest, so their JSON tells jobs apart.
func (o *orders) onSetup(s *protocol.Setup) error {
	spec, err := json.Marshal(s.Job)
	if err != nil {
		spec = nil // it is like no other
	}
	return o.submit(batch.Event{Kind: batch.Setup, Order: batch.Order{Setup: s, Spec: string(spec)}})
}

// onValue reports a value, and copies it if it is kept and not lent. The copy needs no lock,
// because nothing reads the value before the next message.
func (o *orders) onValue(m bus.Message) error {
	v := &o.value
	defer func() { v.Data = nil }()
	if err := protocol.Read(v, m.Data); err != nil {
		return err
	}
	e := batch.Event{Kind: batch.Value, Order: batch.Order{Epoch: v.Epoch, ID: v.Job, Ref: v.Ref}, Bytes: len(v.Data)}
	if len(v.Data) >= lentFrom && num.Aligned(v.Data) {
		e.Lent, e.Local = true, &lent{v.Data, m.Data}
	}
	a := o.stepper.step(e)
	if a == nil {
		return nil
	}
	if a.Kind == batch.Keep && !e.Lent {
		copy(a.Version.Local.(*value).data, v.Data)
	}
	return a.Err
}

// onChunk reports a chunk of a value. Its bytes are not copied, because the message belongs to the
// worker. A chunk without bytes may be a result of this worker.
func (o *orders) onChunk(m bus.Message) error {
	p := &o.chunk
	defer func() { p.Data = nil }()
	if err := protocol.Read(p, m.Data); err != nil {
		return err
	}
	if p.Here && blobs.Sum(p.Data) != p.Digest {
		return fmt.Errorf("%w: chunk %d of a value does not match its digest", protocol.ErrMessage, p.Index)
	}
	j := o.stepper.jobs
	c := &chunk{digest: p.Digest, data: p.Data, report: j.step}
	if !p.Here && j.results.retain(p.Digest) {
		c.own = j.results
	}
	a := o.stepper.step(batch.Event{
		Kind:  batch.Chunk,
		Order: batch.Order{Epoch: p.Epoch, ID: p.Job, Ref: p.Ref, Of: int(p.Of), Sent: p.Here, Found: c.own != nil},
		Index: int(p.Index), Bytes: len(p.Data), Local: c,
	})
	if a != nil && a.Kind == batch.KeepChunk {
		return nil
	}
	c.release()
	if a != nil {
		return a.Err
	}
	return nil
}
