package dispatch

import (
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

func (d *Dispatcher) publishLead() {
	lead := protocol.Lead{Epoch: d.cfg.Epoch, Coordinator: d.cfg.ID}
	d.mu.Lock()
	for id, w := range d.crew.workers {
		if w.refused != "" {
			if lead.Refused == nil {
				lead.Refused = make(map[string]string)
			}
			lead.Refused[id] = w.refused
		}
	}
	d.mu.Unlock()
	d.publish(d.cfg.Subjects.Lead(), "", lead.Append(nil))
}

// send publishes a message for a worker. A failure needs no care here: what is
// lost is sent again when the worker asks, or when its units are overdue.
func (d *Dispatcher) send(to *address, msg []byte) {
	d.publish(to.work, to.reply, msg)
}

func (d *Dispatcher) publish(subject, reply string, msg []byte) {
	d.published(subject, d.cfg.Conn.Send(subject, reply, msg))
}

// sendParts is send of a message that is parts, one behind the other.
func (d *Dispatcher) sendParts(to *address, parts ...[]byte) {
	d.published(to.work, d.cfg.Conn.SendParts(to.work, to.reply, parts...))
}

func (d *Dispatcher) published(subject string, err error) {
	if err != nil {
		d.cfg.Log.Debug("a message could not be sent", "subject", subject, "error", err)
	}
}

// address is where a worker's orders go and its answers come: a subject for each
// worker, so that the server's word that nobody listens names the worker.
type address struct{ work, reply string }

func (d *Dispatcher) addressOf(worker string) address {
	return address{d.cfg.Subjects.Work(worker), protocol.ResultsOf(d.results, worker)}
}

// probe sends every worker a message that nobody answers: where nobody is there
// to hear it, the server says so at once. While there is no job, silence will do.
func (d *Dispatcher) probe() {
	msg := (&protocol.Probe{Epoch: d.cfg.Epoch}).Append(nil)
	for _, to := range d.listeners() {
		d.send(&to, msg)
	}
}

// listeners lists the addresses of the workers that are believed to be there.
func (d *Dispatcher) listeners() []address {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.jobs) == 0 {
		return nil
	}
	var list []address
	for id, w := range d.crew.workers {
		if w.usable() {
			list = append(list, d.addressOf(id))
		}
	}
	return list
}

// onNobody takes a worker out of use whose subject nobody listens to. Its units go
// to others now. If it only reconnects, its next beat brings it back.
func (d *Dispatcher) onNobody(reply string) {
	id := strings.TrimPrefix(reply, d.results+".")
	d.mu.Lock()
	lost := d.crew.lose(id)
	d.observeCrew()
	d.mu.Unlock()
	if lost {
		d.cfg.Log.Warn("the connection to a worker is lost", "worker", id)
		d.wakeAll()
	}
}

func (d *Dispatcher) onBeat(m bus.Message) {
	var b protocol.Beat
	if err := b.Decode(m.Data); err != nil || !lawful(b.Worker) {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
		return
	}
	d.mu.Lock()
	changed, joined := d.crew.hear(&b, time.Now())
	refused := ""
	if w := d.crew.workers[b.Worker]; w != nil {
		refused = w.refused
	}
	if changed { // else a large crew's beats would cost its size each
		d.observeCrew()
	}
	d.mu.Unlock()
	switch {
	case joined && refused != "":
		d.cfg.Log.Warn("a worker is refused", "worker", b.Worker, "reason", refused)
	case joined:
		d.cfg.Log.Info("a worker joined", "worker", b.Worker, "slots", b.Slots)
	case b.Leaving && changed:
		d.cfg.Log.Info("a worker left", "worker", b.Worker)
	}
	if changed {
		d.wakeAll()
	}
}

// onResult hands a worker's message to the job that it is for.
func (d *Dispatcher) onResult(m bus.Message) {
	stamp, err := protocol.PeekStamp(m.Data)
	if err != nil {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
		return
	}
	if stamp.Epoch != d.cfg.Epoch {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropStale).Inc()
		return
	}
	d.mu.Lock()
	x := d.jobs[stamp.Job]
	d.crew.sign(strings.TrimPrefix(m.Subject, d.results+"."), time.Now())
	d.mu.Unlock()
	if x == nil {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropStale).Inc()
		return
	}
	if !x.mail.put(m.Data) {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropFull).Inc()
	}
}
