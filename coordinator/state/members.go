package state

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// memberTable has the addresses of the coordinators, by ID.
type memberTable struct{ members []protocol.MemberEntry }

// Members lists the coordinators that made themselves known, by ID.
func (t *memberTable) Members() []protocol.MemberEntry { return t.members }

// Member returns the addresses of a coordinator.
func (t *memberTable) Member(id string) (protocol.MemberEntry, bool) {
	if i, ok := t.findMember(id); ok {
		return t.members[i], true
	}
	return protocol.MemberEntry{}, false
}

func (t *memberTable) findMember(id string) (int, bool) {
	return search(t.members, id, func(m protocol.MemberEntry) string { return m.ID })
}

func putMember(s *State, e *protocol.MemberEntry) (any, error) {
	if e.ID == "" {
		return nil, invalid("the member has no ID")
	}
	if i, ok := s.findMember(e.ID); ok {
		s.members = replaced(s.members, i, *e)
	} else {
		s.members = inserted(s.members, i, *e)
	}
	return nil, nil
}

func removeMember(s *State, e *protocol.MemberRemoveEntry) (any, error) {
	if i, ok := s.findMember(e.ID); ok {
		s.members = removed(s.members, i)
	}
	return nil, nil
}

// MaxQuarantined bounds the workers in quarantine. Beyond it, the worker that has been there
// longest is released.
const MaxQuarantined = 1024

// quarantine lists the workers that are not used, by worker.
type quarantine struct{ workers []quarantinedWorker }

// quarantinedWorker is a worker in quarantine.
type quarantinedWorker struct {
	protocol.Quarantined
	index uint64 // of the entry
}

// Quarantined returns the workers that must not be used, each with the reason. The map is
// the caller's.
func (q *quarantine) Quarantined() map[string]string {
	list := make(map[string]string, len(q.workers))
	for _, d := range q.workers {
		list[d.Worker] = d.Reason
	}
	return list
}

// QuarantinedWorkers lists the workers that must not be used, by worker, for display.
func (q *quarantine) QuarantinedWorkers() []protocol.Quarantined {
	var list []protocol.Quarantined
	for _, d := range q.workers {
		list = append(list, d.Quarantined)
	}
	return list
}

func (q *quarantine) findQuarantined(worker string) (int, bool) {
	return search(q.workers, worker, func(d quarantinedWorker) string { return d.Worker })
}

// suspect puts a worker in quarantine and marks the jobs that it served, running or ended:
// their results may be wrong. The first mark of a job and the first reason of a worker
// stay.
func suspect(s *State, e *protocol.SuspectEntry) (any, error) {
	if err := s.fence(e.Epoch, fmt.Sprintf("worker %.80q", e.Worker)); err != nil {
		return nil, err
	}
	if e.Worker == "" || len(e.Worker) > protocol.MaxText || len(e.Jobs) > protocol.MaxSuspects {
		return nil, invalid("the report of a wrong result is not valid: worker %.80q, %d jobs", e.Worker, len(e.Jobs))
	}
	reason := e.Reason[:min(len(e.Reason), protocol.MaxReason)]
	s.jobs = slices.Clone(s.jobs)
	for _, id := range e.Jobs {
		if i, ok := s.findJob(id); ok && s.jobs[i].Suspect == "" {
			next := *s.jobs[i]
			next.Suspect = fmt.Sprintf("worker %s: %s", e.Worker, reason)
			s.jobs[i] = &next
		}
	}
	if i, ok := s.findQuarantined(e.Worker); !ok {
		d := quarantinedWorker{protocol.Quarantined{Worker: e.Worker, Reason: reason, Time: e.Time}, s.index}
		s.workers = inserted(s.workers, i, d)
	}
	if len(s.workers) > MaxQuarantined {
		oldest := 0
		for i := range s.workers {
			if s.workers[i].index < s.workers[oldest].index {
				oldest = i
			}
		}
		s.workers = removed(s.workers, oldest)
	}
	return nil, nil
}

func trust(s *State, e *protocol.TrustEntry) (any, error) {
	i, ok := s.findQuarantined(e.Worker)
	if !ok {
		return nil, fmt.Errorf("quarantined worker %.80q: %w", e.Worker, ErrNotFound)
	}
	s.workers = removed(s.workers, i)
	return nil, nil
}

func (d *quarantinedWorker) fields(c *wire.Coder) {
	c.Text("worker", &d.Worker)
	c.Text("reason", &d.Reason)
	wire.Numbers(c, "time", &d.Time)
	wire.Numbers(c, "log index", &d.index)
}
