package state

import (
	"fmt"

	"github.com/coppice-ldl/coppice/protocol"
)

// pause is not fenced, like cancel. Pieces of a trainer state that is not complete
// go: only the driver that stops now could complete them.
func (s *State) pause(e *protocol.PauseEntry) (any, error) {
	j, err := s.live(e.Job)
	if err != nil || j.State == protocol.Paused {
		return orNil(j, err)
	}
	next := *j
	next.Ran = j.ran(e.Time, e.Millis)
	next.State, next.pending = protocol.Paused, nil
	next.Pauses++
	return s.put(&next), nil
}

// resume queues a paused job again; it keeps its place in the queue, which is the
// order of submission.
func (s *State) resume(e *protocol.ResumeEntry) (any, error) {
	j, err := s.live(e.Job)
	if err != nil || j.State != protocol.Paused {
		return orNil(j, err)
	}
	next := *j
	next.State = protocol.Queued
	return s.put(&next), nil
}

// orNil makes a result of a job that stays as it is, or of an error.
func orNil(j *Job, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return j, nil
}

// moving is fenced for entries that move a job, which a paused one does not.
func (s *State) moving(epoch, id uint64) (*Job, error) {
	j, err := s.fenced(epoch, id)
	if err == nil && j.State == protocol.Paused {
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrNotRunning, j.State)
	}
	return j, err
}
