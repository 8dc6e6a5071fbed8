package state

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
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

// event returns an event for an entry of some Unix time: the job is as far as its last commit.
func (j *Job) event(kind protocol.EventKind, at, millis int64, text string) protocol.JobEvent {
	return protocol.JobEvent{Time: max(0, protocol.Seconds(at*1000+millis)), Kind: kind, Text: text, Round: j.Round,
		Step: j.Step(), Seconds: max(0, protocol.Seconds(j.ran(at, millis)))}
}

// Step returns the step of the last commit.
func (j *Job) Step() uint64 {
	p := new(round.Progress)
	if json.Unmarshal(j.Progress, p) != nil { // there is none
		return 0
	}
	return p.Step
}

// Events returns the events of the job, with events that the leader of an epoch knows and
// the log may not have yet, and counts those that are not kept.
func (j *Job) Events(epoch uint64, more []protocol.NumberedEvent) (events []protocol.JobEvent, dropped uint64) {
	l := j.events.noted(epoch, more)
	return l.events, l.dropped
}

// Noted returns the highest number of the events that the leader of an epoch noted and the
// log has, or 0.
func (j *Job) Noted(epoch uint64) uint64 {
	if j.events.epoch != epoch {
		return 0
	}
	return j.events.number
}

// noteLeader adds to the jobs that run that a coordinator became the leader after another one.
func (t *jobTable) noteLeader(before string, e *protocol.LeadEntry) {
	text := fmt.Sprintf("coordinator %s became the leader", e.Node)
	switch before {
	case "":
	case e.Node:
		text += " again"
	default:
		text += " after " + before
	}
	for i, j := range t.jobs {
		if j.State != protocol.Running {
			continue
		}
		event := j.event(protocol.EventLeader, e.Time, e.Millis, text)
		event.Coordinator = e.Node
		event.Clip()
		next := *j
		next.events = j.events.with(event)
		t.jobs = replaced(t.jobs, i, &next)
	}
}

// quarantined returns the events of a job that has not ended with the quarantine of a worker.
// The entry may be repeated.
func (j *Job) quarantined(e *protocol.SuspectEntry) eventList {
	event := j.event(protocol.EventQuarantine, e.Time, e.Millis,
		fmt.Sprintf("worker %s was quarantined: %s", e.Worker, e.Reason))
	event.Worker = e.Worker
	event.Clip()
	if j.State.Final() || slices.ContainsFunc(j.events.events, func(other protocol.JobEvent) bool {
		return other.Kind == event.Kind && other.Worker == event.Worker && other.Text == event.Text
	}) {
		return j.events
	}
	return j.events.with(event)
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
