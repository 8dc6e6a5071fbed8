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
		o.stepper.step(&batch.Run{Run: &o.run, Reply: m.Reply})
	case protocol.KindValue:
		return o.onValue(m)
	case protocol.KindChunk:
		return o.onChunk(m)
	case protocol.KindSetup:
		var s protocol.Setup
		if err := protocol.Read(&s, m.Data); err != nil {
			return err
		}
		spec, err := json.Marshal(s.Job) // it names the dataset by its digest, so it tells jobs apart
		if err != nil {
			spec = nil // it is like no other
		}
		o.stepper.step(&batch.Setup{Setup: &s, Spec: string(spec)})
	case protocol.KindForget:
		var f protocol.Forget
		if err := protocol.Read(&f, m.Data); err != nil {
			return err
		}
		o.stepper.step(&batch.Forget{Forget: &f})
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

// onValue reports a value, and copies it if it is kept and not lent. The copy needs no lock,
// because nothing reads the value before the next message.
func (o *orders) onValue(m bus.Message) error {
	v := &o.value
	defer func() { v.Data = nil }()
	if err := protocol.Read(v, m.Data); err != nil {
		return err
	}
	e := &batch.Value{Epoch: v.Epoch, Job: v.Job, Ref: v.Ref, Bytes: len(v.Data)}
	if len(v.Data) >= lentFrom && num.Aligned(v.Data) {
		e.Local = &value{data: v.Data, message: m.Data}
	}
	a := o.stepper.step(e)
	if k, ok := a.(batch.Keep); ok && e.Local == nil {
		copy(k.Version.Local.(*value).data, v.Data)
	}
	return refusal(a)
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
	a := o.stepper.step(&batch.Chunk{
		Epoch: p.Epoch, Job: p.Job, Ref: p.Ref, Index: int(p.Index), Of: int(p.Of),
		Bytes: len(p.Data), Sent: p.Here, Found: c.own != nil, Local: c,
	})
	if _, kept := a.(batch.KeepChunk); !kept {
		c.release()
	}
	return refusal(a)
}

// refusal returns why a message is refused, if that is what a step has left to do.
func refusal(a batch.Action) error {
	if r, ok := a.(batch.RefuseMessage); ok {
		return r.Err
	}
	return nil
}
