package jobs

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// quiet is the least time between two events about the same trouble with the same worker.
	quiet = 10 * time.Second
	// sendAgain is the time after which events are sent again that the log does not have yet.
	sendAgain = 500 * time.Millisecond
)

// Journal has the events of jobs that only this leadership knows, until the log has them. They come into the log with
// entries that are proposed anyway: so nobody can make entries by making trouble. Events of one trouble are one event
// until it is sent. Only a quiet time later is the next one about this trouble sent. A nil Journal has no events.
type Journal struct {
	epoch uint64
	state func() *state.State // the latest

	mu   sync.Mutex
	jobs map[uint64]*page // guarded by mu
}

// page has the events of one job.
type page struct {
	number uint64 // of the last event that has one
	// sent have been given to an entry. The log may have some of them. Invariant: ascending numbers.
	sent []protocol.NumberedEvent
	// open have no number yet. Invariant: sent and open are at most protocol.MaxEvents.
	open  []*trouble
	at    time.Time // when sent was given to an entry last
	quiet map[subject]time.Time
}

// subject is what several troubles have in common that are one event.
type subject struct {
	cause  dispatch.Cause
	worker string
}

// trouble is one event, which may have happened several times.
type trouble struct {
	subject
	times, tasks int
	reason       string            // of the first time
	first        protocol.JobEvent // of the first time, without a text
}

// NewJournal returns the journal of a leadership. The function state returns the latest state.
func NewJournal(epoch uint64, state func() *state.State) *Journal {
	return &Journal{epoch: epoch, state: state, jobs: make(map[uint64]*page)}
}

// Epoch returns the leader epoch of the journal.
func (j *Journal) Epoch() uint64 {
	if j == nil {
		return 0
	}
	return j.epoch
}

// Note takes in a fault. at says how far the job is, and when.
func (j *Journal) Note(job uint64, f dispatch.Fault, at protocol.JobEvent) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.jobs[job]
	if p == nil {
		for other := range j.jobs { // of jobs that have ended
			j.recent(other)
		}
		p = &page{quiet: make(map[subject]time.Time)}
		j.jobs[job] = p
	}
	of := subject{f.Cause, f.Worker}
	i := slices.IndexFunc(p.open, func(t *trouble) bool { return t.subject == of })
	switch {
	case i >= 0:
	case len(p.sent)+len(p.open) < protocol.MaxEvents:
		i = len(p.open)
		p.open = append(p.open, &trouble{subject: of, reason: f.Reason, first: at})
	default:
		p.number++ // the state counts it
		return
	}
	p.open[i].times++
	p.open[i].tasks += f.Tasks
}

// Take returns the events of a job that are due, at most protocol.MaxNewEvents, for an entry that is about to be
// proposed. If all is true it returns all events, for an entry that may end or pause the job.
func (j *Journal) Take(job uint64, all bool) []protocol.NumberedEvent {
	return j.take(job, all, time.Now())
}

func (j *Journal) take(job uint64, all bool, now time.Time) []protocol.NumberedEvent {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.recent(job)
	if p == nil || !all && now.Sub(p.at) < sendAgain { // an entry is on its way; a later one could overtake it
		return nil
	}
	p.open = slices.DeleteFunc(p.open, func(t *trouble) bool {
		due := all || now.Sub(p.quiet[t.subject]) >= quiet
		if due {
			p.number++
			p.sent = append(p.sent, protocol.NumberedEvent{Number: p.number, JobEvent: t.event()})
			p.quiet[t.subject] = now
		}
		return due
	})
	for of, at := range p.quiet {
		if now.Sub(at) >= quiet {
			delete(p.quiet, of)
		}
	}
	if len(p.sent) > 0 {
		p.at = now
	}
	if all {
		return slices.Clone(p.sent)
	}
	return slices.Clone(p.sent[:min(len(p.sent), protocol.MaxNewEvents)])
}

// Unrecorded returns Epoch, and the events of a job that the log does not have yet, for people.
func (j *Journal) Unrecorded(job uint64) (epoch uint64, events []protocol.NumberedEvent) {
	if j == nil {
		return 0, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.recent(job)
	if p == nil {
		return 0, nil
	}
	events = slices.Clone(p.sent)
	for i, t := range p.open {
		events = append(events, protocol.NumberedEvent{Number: p.number + uint64(i) + 1, JobEvent: t.event()})
	}
	return j.epoch, events
}

// recent returns the page of a job without the events that the log has. It is nil if there is none. The page of a job
// that has ended is dropped.
func (j *Journal) recent(job uint64) *page {
	p := j.jobs[job]
	if p == nil {
		return nil
	}
	known := j.state().Job(job)
	if known == nil || known.State.Final() {
		delete(j.jobs, job)
		return nil
	}
	has := known.Noted(j.epoch)
	p.sent = slices.DeleteFunc(p.sent, func(e protocol.NumberedEvent) bool { return e.Number <= has })
	return p
}

// event returns the event with its kind and its text.
func (t *trouble) event() protocol.JobEvent {
	e := t.first
	e.Kind, e.Worker = protocol.EventRetried, t.worker
	who, reason := "worker "+t.worker, ""
	if t.worker == "" {
		who = "the leader"
	}
	if t.reason != "" {
		reason = ": " + t.reason
	}
	were := units.Plural(t.tasks, "task") + " were"
	if t.tasks == 1 {
		were = "1 task was"
	}
	switch t.cause {
	case dispatch.Unusable:
		e.Kind, e.Text = protocol.EventLost, fmt.Sprintf("%s %s%s", who, t.reason, t.often())
		if t.tasks > 0 {
			e.Text += "; " + were + " given to other workers"
		}
	case dispatch.TooSlow:
		e.Text = fmt.Sprintf("%s was too slow; %s given to other workers", who, were)
	case dispatch.LacksJob:
		e.Text = fmt.Sprintf("%s did not have the job any longer; %s sent to it again", who, were)
	case dispatch.TaskFailed:
		e.Text = fmt.Sprintf("%s tried again after a failure on %s%s", were, who, reason)
	case dispatch.ResultLost:
		e.Text = were + " computed again, since results could not be stored" + reason
	case dispatch.NotFinite:
		e.Text = fmt.Sprintf("%s computed twice, since results of %s were not finite%s", were, who, reason)
	case dispatch.JobStopped:
		e.Kind = protocol.EventRestarted
		e.Text = fmt.Sprintf("the job stopped%s and continues from its last commit%s", t.often(), reason)
	}
	e.Clip()
	return e
}

// often says how often the trouble was there, if that is more than once.
func (t *trouble) often() string {
	if t.times < 2 {
		return ""
	}
	return fmt.Sprintf(" %s times", units.Count(t.times))
}
