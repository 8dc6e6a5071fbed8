package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// MaxDistrusted bounds the workers that are distrusted at a time; beyond it the
// oldest distrust is forgotten.
const MaxDistrusted = 1024

// distrust is one worker that is not used.
type distrust struct {
	protocol.Distrusted
	index uint64 // of the entry
}

// Distrusted returns the workers that are not to be used, each with the reason.
// The map is the caller's.
func (s *State) Distrusted() map[string]string {
	list := make(map[string]string, len(s.distrusted))
	for _, d := range s.distrusted {
		list[d.Worker] = d.Reason
	}
	return list
}

// DistrustedWorkers lists them by worker, for display.
func (s *State) DistrustedWorkers() []protocol.Distrusted {
	var list []protocol.Distrusted
	for _, d := range s.distrusted {
		list = append(list, d.Distrusted)
	}
	return list
}

// suspect marks jobs whether they run or have ended: what they made may be wrong.
// The first mark of a job and the first reason of a worker stay.
func (s *State) suspect(e *protocol.SuspectEntry) (any, error) {
	if e.Epoch != s.epoch || e.Epoch == 0 {
		return nil, fmt.Errorf("worker %.80q: %w: the sender led in epoch %d, but %s leads since epoch %d", e.Worker, ErrStaleEpoch, e.Epoch, s.leader, s.epoch)
	}
	if e.Worker == "" || len(e.Worker) > protocol.MaxText || len(e.Jobs) > protocol.MaxSuspects {
		return nil, invalid("the report of a wrong result is not valid: worker %.80q, %d jobs", e.Worker, len(e.Jobs))
	}
	reason := e.Reason[:min(len(e.Reason), protocol.MaxReason)]
	s.mark(e.Jobs, fmt.Sprintf("worker %s: %s", e.Worker, reason))
	if i, ok := s.findDistrusted(e.Worker); !ok {
		d := distrust{protocol.Distrusted{Worker: e.Worker, Reason: reason, Time: e.Time}, s.index}
		s.distrusted = inserted(s.distrusted, i, d)
		s.forgetOldest()
	}
	return nil, nil
}

func (s *State) mark(ids []uint64, why string) {
	jobs := slices.Clone(s.jobs)
	for _, id := range ids {
		i, ok := s.findJob(id)
		if !ok || jobs[i].Suspect != "" {
			continue
		}
		next := *jobs[i]
		next.Suspect = why
		jobs[i] = &next
	}
	s.jobs = jobs
}

// forgetOldest keeps to MaxDistrusted.
func (s *State) forgetOldest() {
	if len(s.distrusted) <= MaxDistrusted {
		return
	}
	oldest := 0
	for i := range s.distrusted {
		if s.distrusted[i].index < s.distrusted[oldest].index {
			oldest = i
		}
	}
	s.distrusted = removed(s.distrusted, oldest)
}

func (s *State) trust(e *protocol.TrustEntry) (any, error) {
	i, ok := s.findDistrusted(e.Worker)
	if !ok {
		return nil, fmt.Errorf("quarantined worker %.80q: %w", e.Worker, ErrNotFound)
	}
	s.distrusted = removed(s.distrusted, i)
	return nil, nil
}

func (s *State) findDistrusted(worker string) (int, bool) {
	return slices.BinarySearchFunc(s.distrusted, worker, func(d distrust, worker string) int { return cmp.Compare(d.Worker, worker) })
}
