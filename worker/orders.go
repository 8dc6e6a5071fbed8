package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// orders handles the leader's messages to this worker, one at a time.
type orders struct {
	w *worker

	mu    sync.Mutex // two sessions overlap for a moment; what follows is scratch of decoding
	run   protocol.Run
	value protocol.Value
	piece protocol.Piece
	many  protocol.Bundle
	need  protocol.Need
	buf   []byte
}

// handle takes one message of Subjects.Work.
func (o *orders) handle(m bus.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind, _ := protocol.KindOf(m.Data); kind != protocol.KindBundle {
		o.one(m)
		return
	}
	if err := o.many.Decode(m.Data); err != nil {
		o.malformed(m, err)
		return
	}
	for _, one := range o.many.Messages {
		m.Data = one
		o.one(m)
	}
	clear(o.many.Messages)
}

// one handles a message that is no bundle.
func (o *orders) one(m bus.Message) {
	kind, err := protocol.KindOf(m.Data)
	if err == nil {
		switch kind {
		case protocol.KindRun:
			err = o.onRun(m)
		case protocol.KindValue:
			err = o.onValue(m)
		case protocol.KindPiece:
			if err = o.piece.Decode(m.Data); err == nil {
				err = o.onPiece(&o.piece)
			}
			o.piece.Data = nil
		case protocol.KindSetup:
			err = o.onSetup(m)
		case protocol.KindForget:
			err = o.onForget(m)
		case protocol.KindHold:
			err = o.onHold(m)
		case protocol.KindProbe:
			err = o.onProbe(m)
		default:
			o.w.drops.malformed.Inc()
		}
	}
	if err != nil {
		o.malformed(m, err)
	}
}

func (o *orders) malformed(m bus.Message, err error) {
	o.w.drops.malformed.Inc()
	o.w.log.Warn("a message was dropped", "subject", m.Subject, "error", err)
}

func (o *orders) onRun(m bus.Message) error {
	w := o.w
	if err := o.run.Decode(m.Data); err != nil {
		return err
	}
	w.metrics.Rounds.Inc()
	o.need = protocol.Need{Stamp: o.run.Stamp, Worker: w.id}
	again := w.take(&o.run, m.Reply, &o.need)
	if o.need.Setup || len(o.need.Refs) > 0 {
		w.metrics.Needs.Inc()
		o.buf = o.need.Append(o.buf[:0])
		w.send(m.Reply, o.buf)
	}
	for _, c := range again {
		w.announce(c)
	}
	return nil
}

// lentFrom is the size of a value from which on its bytes stay in the message, where they are aligned there: there is no
// second copy of the parameters of a large network.
const lentFrom = 1 << 20

// onValue copies a value into the job's memory, or keeps that of the message. Nobody else puts values, so the
// copy itself needs no lock of the worker's.
func (o *orders) onValue(m bus.Message) error {
	w := o.w
	if err := o.value.Decode(m.Data); err != nil {
		return err
	}
	defer func() { o.value.Data = nil }()
	w.mu.Lock()
	j := w.jobs[o.value.Job]
	if !w.obey(o.value.Epoch) || j == nil {
		w.mu.Unlock()
		return nil // a Run will ask for what it lacks
	}
	if y := j.values.find(o.value.Ref); y != nil && y.whole() {
		j.values.renew(y)
		w.mu.Unlock()
		return nil
	} else if y != nil {
		j.values.drop(y)
	}
	if !j.values.room(o.value.Ref, len(o.value.Data)) {
		w.mu.Unlock()
		return fmt.Errorf("%w: a value of %d bytes is larger than a worker keeps for a job", protocol.ErrMessage, len(o.value.Data))
	}
	if len(o.value.Data) >= lentFrom && num.Aligned(o.value.Data) {
		j.values.put(j.values.lend(o.value.Ref, o.value.Data, m.Data, w.reuse))
		w.mu.Unlock()
		return nil
	}
	y := j.values.blank(o.value.Ref, len(o.value.Data))
	w.mu.Unlock()
	copy(y.data, o.value.Data)
	w.mu.Lock()
	j.values.put(y)
	w.mu.Unlock()
	return nil
}

func (o *orders) onSetup(m bus.Message) error {
	var setup protocol.Setup
	if err := setup.Decode(m.Data); err != nil {
		return err
	}
	if err := checkSetup(&setup); err != nil {
		return err
	}
	o.w.setUp(&setup)
	return nil
}

func (o *orders) onForget(m bus.Message) error {
	var forget protocol.Forget
	if err := forget.Decode(m.Data); err != nil {
		return err
	}
	w := o.w
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[forget.Job]
	switch {
	case !w.obey(forget.Epoch) || j == nil:
	case len(forget.Units) == 0:
		w.forget(j)
	default:
		for _, u := range forget.Units {
			key := unitKey{forget.Round, u}
			if c := j.units[key]; c != nil {
				w.dropCollected(j, key, c)
			}
		}
	}
	return nil
}

func (o *orders) onHold(m bus.Message) error {
	var hold protocol.Hold
	if err := hold.Decode(m.Data); err != nil {
		return err
	}
	w := o.w
	w.mu.Lock()
	obeyed := w.obey(hold.Epoch)
	w.mu.Unlock()
	if obeyed {
		w.prefetch.want(hold.Shards)
	}
	return nil
}

// onProbe answers nothing: that somebody takes the message is what the leader wants
// to know.
func (o *orders) onProbe(m bus.Message) error {
	var probe protocol.Probe
	if err := probe.Decode(m.Data); err != nil {
		return err
	}
	w := o.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.obey(probe.Epoch)
	return nil
}

// onLead learns who leads. A leader that is new to this worker hears at once
// what the worker holds.
func (w *worker) onLead(m bus.Message) {
	var lead protocol.Lead
	if err := lead.Decode(m.Data); err != nil {
		w.drops.malformed.Inc()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.obey(lead.Epoch) {
		return
	}
	w.heard, w.vacant = time.Now(), lead.Coordinator == ""
	switch {
	case w.vacant:
		w.log.Info("the leader has stepped down", "coordinator", w.leader, "epoch", lead.Epoch)
		w.leader = ""
		w.tell()
	case w.leader != lead.Coordinator:
		w.leader = lead.Coordinator
		w.log.Info("the worker has a new leader", "coordinator", lead.Coordinator, "epoch", lead.Epoch)
		w.beat.full()
		w.tell()
	}
	if reason := lead.Refused[w.id]; reason != w.refused {
		w.refused = reason
		if reason != "" {
			w.log.Error("the leader refuses this worker", "reason", reason)
		}
	}
}

// obey reports whether a message of an epoch counts: the highest epoch seen
// does. A higher one supersedes all summed rounds asked for before; collected
// units go on, since the new leader will want the same bytes. mu is held.
func (w *worker) obey(epoch uint64) bool {
	if epoch < w.epoch {
		w.drops.epoch.Inc()
		return false
	}
	if epoch > w.epoch {
		w.epoch = epoch
		for _, j := range w.jobs {
			w.supersedeSums(j)
		}
		w.beat.full()
	}
	return true
}

// take makes a batch of a Run message, or fills need with what it lacks. The
// finished units among those asked for again are returned, to be announced.
func (w *worker) take(run *protocol.Run, reply string, need *protocol.Need) (again []*collected) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reply == "" {
		w.drops.malformed.Inc()
		return nil
	}
	if !w.obey(run.Epoch) {
		return nil
	}
	j := w.jobs[run.Job]
	if j != nil && j.lost() {
		w.forget(j)
		j = nil
	}
	if j == nil {
		need.Setup = true
		return nil
	}
	w.orders++
	j.touched = w.orders
	if !w.enter(j, run.Stamp) {
		w.drops.late.Inc()
		need.Setup = true // the leader tells whether it is late, or drives the job again
		return nil
	}
	if need.Refs = j.values.missing(run.Refs); need.Refs != nil {
		return nil
	}
	b := j.blank(run)
	if b.run.How == round.Collect {
		again = j.admitCollected(b, reply)
	} else {
		j.admit(b)
	}
	w.start(b, reply)
	return again
}

// enter makes s the job's round in work, or reports false where it is a round of
// before.
func (w *worker) enter(j *job, s protocol.Stamp) bool {
	if j.begun && s == j.stamp {
		return true
	}
	if j.begun && !newer(s, j.stamp) {
		return false
	}
	w.supersede(j, s.Round)
	j.begin(s)
	return true
}
