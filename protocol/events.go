package protocol

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// EventKind says in a word what happened to a job: a value of JobEvent.Kind.
type EventKind string

// The kinds of events.
const (
	EventLeader     EventKind = "leader_changed"     // a coordinator became the leader
	EventLost       EventKind = "worker_lost"        // a worker that computed the job cannot be used any longer
	EventRetried    EventKind = "tasks_retried"      // tasks failed, or took too long, and were given out again
	EventQuarantine EventKind = "worker_quarantined" // a worker that computed the job returned a wrong result
	EventRestarted  EventKind = "job_restarted"      // the job stopped, and continues from its last commit
	EventPaused     EventKind = "job_paused"
	EventResumed    EventKind = "job_resumed"
)

// EventKinds lists the kinds.
func EventKinds() []EventKind {
	return []EventKind{EventPaused, EventRestarted, EventResumed, EventLeader, EventRetried, EventLost, EventQuarantine}
}

// JobEvent is something that happened to a job and may show in its learning curve: a fault, or a pause.
type JobEvent struct {
	Time        float64   `json:"time"`                  // Unix seconds, by the clock of the leader
	Kind        EventKind `json:"kind"`                  // what happened, in a word
	Text        string    `json:"text"`                  // a sentence without a period
	Worker      string    `json:"worker,omitempty"`      // that the event is about; empty: it is about no worker
	Coordinator string    `json:"coordinator,omitempty"` // that the event is about; empty: it is about no coordinator
	Round       uint64    `json:"round"`                 // rounds that the job had finished
	Step        uint64    `json:"step"`                  // the step of the job, as in its learning curve
	Seconds     float64   `json:"seconds"`               // of running, as in the learning curve
}

// NumberedEvent is an event that only the leader knew. It comes with an entry about its job, perhaps with several.
type NumberedEvent struct {
	// Number counts the events of a job that the leader of an epoch noted, from 1. A number that is missing is an event
	// that the leader had no room for.
	Number uint64 `json:"number"`
	JobEvent
}

// The bounds of events.
const (
	MaxEvents    = 64 // that the state keeps of a job
	FirstEvents  = 16 // of these, the first that are kept; the others are the newest
	MaxNewEvents = 16 // that one entry brings

	maxEventText = 200 // bytes
	maxEventName = 64  // bytes of the name of a process
	maxEventKind = 32  // bytes
)

// Clip shortens the texts of an event to their bounds.
func (e *JobEvent) Clip() {
	e.Text, e.Worker, e.Coordinator = clip(e.Text, maxEventText), clip(e.Worker, maxEventName),
		clip(e.Coordinator, maxEventName)
}

// clip returns the first bytes of a text, and marks what is left out.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	const mark = "..."
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// Check returns an error if a field is out of bounds. A kind need not be one of EventKinds: a later version may have
// others.
func (e *JobEvent) Check() error {
	for _, f := range []struct {
		name, text string
		most       int
	}{{"kind", string(e.Kind), maxEventKind}, {"text", e.Text, maxEventText}, {"worker", e.Worker, maxEventName},
		{"coordinator", e.Coordinator, maxEventName}} {
		if len(f.text) > f.most || !utf8.ValidString(f.text) {
			return fmt.Errorf("the %s of an event: want UTF-8 of at most %d bytes, got %.80q", f.name, f.most, f.text)
		}
	}
	if e.Kind == "" || strings.Trim(string(e.Kind), "abcdefghijklmnopqrstuvwxyz_") != "" {
		return fmt.Errorf("the kind of an event: want letters in lower case, got %.80q", e.Kind)
	}
	for _, n := range []float64{e.Time, e.Seconds} {
		if !(n >= 0 && n <= math.MaxInt64) {
			return fmt.Errorf("the time of an event: want seconds of at least 0, got %v", n)
		}
	}
	return nil
}

// events codes the events of an entry at its end. Without events it codes nothing, as before there were events.
func (c *coder) events(list *[]NumberedEvent) {
	n := len(*list)
	if c.reads {
		if *list = nil; c.err != nil || len(c.b) == 0 {
			return
		}
	} else if n == 0 {
		return
	}
	count(c, &n, MaxNewEvents)
	if n == 0 {
		c.fail("the list of events is empty")
	}
	for i := range n {
		if c.reads {
			*list = append(*list, NumberedEvent{})
		}
		e := &(*list)[i]
		numbers(c, &e.Number)
		c.seconds(&e.Time)
		c.text((*string)(&e.Kind), maxEventKind)
		c.text(&e.Text, maxEventText)
		c.text(&e.Worker, maxEventName)
		c.text(&e.Coordinator, maxEventName)
		numbers(c, &e.Round, &e.Step)
		c.seconds(&e.Seconds)
		if c.err != nil {
			return
		}
	}
}

// seconds codes a time or a duration in eight bytes.
func (c *coder) seconds(v *float64) {
	bits := math.Float64bits(*v)
	if numbers(c, &bits); c.reads {
		*v = math.Float64frombits(bits)
	}
}
