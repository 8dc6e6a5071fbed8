package chaos

import (
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
)

// ledger holds what a cluster has acknowledged: it must all be there after any
// fault.
type ledger struct {
	mu      sync.Mutex
	entries map[uint64]*acknowledged // by job
}

// acknowledged is a job about which a client has an answer.
type acknowledged struct {
	name  string
	task  *task
	final protocol.JobState // that a client was told; empty while none was
	// cancelled: a client was told that it is; paused: and not yet that it goes on.
	cancelled, paused bool
	// deleting: a client asked to delete it; deleted: it was told that it is.
	deleting, deleted bool
}

func newLedger() *ledger { return &ledger{entries: make(map[uint64]*acknowledged)} }

// submitted notes an acknowledged submission.
func (l *ledger) submitted(j *protocol.JobInfo, t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[j.ID] == nil {
		l.entries[j.ID] = &acknowledged{name: j.Name, task: t}
	}
}

// told notes what a client was told of a job.
func (l *ledger) told(id uint64, f func(*acknowledged)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.entries[id])
}

// snapshot copies the entries: what a list that is asked for afterwards must have.
func (l *ledger) snapshot() map[uint64]acknowledged {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[uint64]acknowledged, len(l.entries))
	for id, a := range l.entries {
		m[id] = *a
	}
	return m
}

// audit holds a list of the cluster's jobs against what was acknowledged before
// the list was asked for.
func audit(known map[uint64]acknowledged, jobs []protocol.JobInfo) error {
	there := make(map[uint64]*protocol.JobInfo, len(jobs))
	for i := range jobs {
		there[jobs[i].ID] = &jobs[i]
	}
	for id, a := range known {
		j := there[id]
		switch {
		case j != nil && a.deleted:
			return fmt.Errorf("%w: the job %s (%d) was deleted, but exists and is %s", ErrFailed, a.name, id, j.State)
		case j == nil && a.deleting:
			continue
		case j == nil:
			return fmt.Errorf("%w: the job %s (%d) was acknowledged, but is lost", ErrFailed, a.name, id)
		}
		if err := a.holds(j); err != nil {
			return err
		}
	}
	return nil
}

// holds checks one job against what clients were told.
func (a *acknowledged) holds(j *protocol.JobInfo) error {
	switch {
	case j.Name != a.name:
		return fmt.Errorf("%w: the name of job %d changed from %s to %s", ErrFailed, j.ID, a.name, j.Name)
	case a.final != "" && j.State != a.final:
		return fmt.Errorf("%w: the job %s (%d) had ended as %s, but is %s", ErrFailed, j.Name, j.ID, a.final, j.State)
	case a.cancelled && j.State != protocol.Cancelled:
		return fmt.Errorf("%w: the job %s (%d) was cancelled, but is %s", ErrFailed, j.Name, j.ID, j.State)
	case a.cancelled && len(j.Models) > 0:
		return fmt.Errorf("%w: the cancelled job %s (%d) has a model", ErrFailed, j.Name, j.ID)
	case a.paused && j.State != protocol.Paused:
		return fmt.Errorf("%w: the job %s (%d) was paused, but is %s", ErrFailed, j.Name, j.ID, j.State)
	case j.State == protocol.Failed:
		return fmt.Errorf("%w: the job %s (%d) failed: %s", ErrFailed, j.Name, j.ID, j.Error)
	case j.State == protocol.Done:
		return a.task.check(j)
	}
	return nil
}

// complete checks at the end that there is no job that nobody asked for: a
// submission that was sent again made no second one.
func complete(known map[uint64]acknowledged, jobs []protocol.JobInfo) error {
	for _, j := range jobs {
		if _, ok := known[j.ID]; !ok {
			return fmt.Errorf("%w: the job %s (%d) exists, but no client submitted it", ErrFailed, j.Name, j.ID)
		}
		if !j.State.Final() {
			return fmt.Errorf("%w: the job %s (%d) should have ended, but is %s", ErrFailed, j.Name, j.ID, j.State)
		}
	}
	return audit(known, jobs)
}
