package state

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// eventList is what is kept of the events of a job: the first and the newest ones, by time.
// It is immutable, and no decision depends on it.
type eventList struct {
	events  []protocol.JobEvent
	dropped uint64
	// number is the highest number of the events that the leader of epoch noted, and 0 if
	// no leader noted any.
	epoch, number uint64
}

// with returns the list with one more event. Clocks of leaders differ, so it may not be the
// last one.
func (l eventList) with(e protocol.JobEvent) eventList {
	at := len(l.events)
	for at > 0 && l.events[at-1].Time > e.Time {
		at--
	}
	if l.events = inserted(l.events, at, e); len(l.events) > protocol.MaxEvents {
		l.events = removed(l.events, protocol.FirstEvents)
		l.dropped++
	}
	return l
}

// noted returns the list with the events that an entry brings from the leader of an epoch,
// but for those that another entry brought. Events that are not valid only count: no job
// may fail because of them.
func (l eventList) noted(epoch uint64, events []protocol.NumberedEvent) eventList {
	if epoch > l.epoch && len(events) > 0 {
		l.epoch, l.number = epoch, 0
	}
	if epoch < l.epoch { // which of them are known is not known any longer
		return l
	}
	for i := range events {
		e := &events[i]
		if e.Number <= l.number {
			continue
		}
		l.dropped += e.Number - l.number - 1
		if l.number = e.Number; e.Check() != nil {
			l.dropped++
			continue
		}
		l = l.with(e.JobEvent)
	}
	return l
}

// isEmpty reports whether the list has nothing that a snapshot needs.
func (l *eventList) isEmpty() bool { return len(l.events) == 0 && l.dropped == 0 && l.epoch == 0 }

// fields codes a list that is not empty in a snapshot.
func (l *eventList) fields(c *wire.Coder) {
	wire.List(c, "events", &l.events, protocol.MaxEvents, func(e *protocol.JobEvent) {
		secondsField(c, "time of an event", &e.Time)
		c.Text("kind of an event", (*string)(&e.Kind))
		c.Text("text of an event", &e.Text)
		c.Text("worker of an event", &e.Worker)
		c.Text("coordinator of an event", &e.Coordinator)
		wire.Numbers(c, "round of an event", &e.Round, &e.Step)
		secondsField(c, "seconds of an event", &e.Seconds)
	})
	wire.Numbers(c, "number of events", &l.dropped, &l.epoch, &l.number)
	if !c.Reads() || c.Failed() {
		return
	}
	for i := range l.events {
		if err := l.events[i].Check(); err != nil {
			c.Failf("%v", err)
		} else if i > 0 && l.events[i-1].Time > l.events[i].Time {
			c.Failf("the events are not sorted by time")
		}
	}
	if l.isEmpty() {
		c.Failf("a list without events takes no byte")
	}
}

// secondsField codes a number of seconds, bit by bit.
func secondsField(c *wire.Coder, field string, v *float64) {
	bits := math.Float64bits(*v)
	if wire.Numbers(c, field, &bits); c.Reads() {
		*v = math.Float64frombits(bits)
	}
}
