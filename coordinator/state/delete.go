package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// MaxDeleted bounds the deleted jobs that are remembered; beyond it those that were
// submitted first are forgotten, whose tokens nobody sends any more.
const MaxDeleted = 1 << 16

// maxNamed bounds the jobs that one error names.
const maxNamed = 10

// DeletedJob is what is kept of a job that was deleted, so that its submission is not
// run again when it is repeated. It is immutable.
type DeletedJob struct {
	ID    uint64
	Name  string
	Token string
	Time  int64 // of the deletion, in Unix seconds, for display
}

func (d *DeletedJob) String() string { return fmt.Sprintf("job %d (%s)", d.ID, d.Name) }

// Repeated is the error of a submission with the token of the deleted job.
func (d *DeletedJob) Repeated() error {
	return fmt.Errorf("this submission made %v, which %w: submit the job with another token", d, ErrDeleted)
}

// Deleted returns the deleted job of that ID, or nil.
func (s *State) Deleted(id uint64) *DeletedJob {
	i, ok := s.findDeleted(id)
	if !ok {
		return nil
	}
	return s.deleted[i]
}

// DeletedByName returns the newest deleted job of that name, or nil.
func (s *State) DeletedByName(name string) *DeletedJob {
	for _, d := range slices.Backward(s.deleted) {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// DeletedByToken returns the deleted job that a submission with that token made, or
// nil.
func (s *State) DeletedByToken(token string) *DeletedJob {
	if token == "" {
		return nil
	}
	for _, d := range s.deleted {
		if d.Token == token {
			return d
		}
	}
	return nil
}

func (s *State) findDeleted(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.deleted, id, func(d *DeletedJob, id uint64) int { return cmp.Compare(d.ID, id) })
}

// jobsDelete is not fenced: any coordinator may pass a user's wish on. To delete
// twice is the same as once, and of all jobs of an entry or of none.
func (s *State) jobsDelete(e *protocol.JobsDeleteEntry) (any, error) {
	if n := len(e.Jobs); n == 0 || n > protocol.MaxDelete {
		return nil, invalid("want 1 to %[2]d jobs to delete, got %[1]d", n, protocol.MaxDelete)
	}
	going := make(map[uint64]bool, len(e.Jobs))
	for _, id := range e.Jobs {
		going[id] = true
	}
	var stay, gone []*Job
	var live []string
	for _, j := range s.jobs {
		switch {
		case !going[j.ID]:
			stay = append(stay, j)
		case !j.State.Final():
			live = append(live, fmt.Sprintf("%v is %s", j, j.State))
		default:
			gone = append(gone, j)
		}
	}
	if len(live) > 0 {
		return nil, notEnded(live)
	}
	if len(gone) > 0 {
		s.jobs = stay
		s.remember(gone, e.Time)
	}
	return gone, nil
}

// notEnded names jobs that cannot be deleted.
func notEnded(live []string) error {
	more := ""
	if n := len(live) - maxNamed; n > 0 {
		live, more = live[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %s%s; nothing was deleted: cancel these jobs first", ErrNotEnded, strings.Join(live, ", "), more)
}

// remember keeps what is needed to know jobs that were deleted.
func (s *State) remember(gone []*Job, at int64) {
	next := slices.Grow(slices.Clone(s.deleted), len(gone))
	for _, j := range gone {
		next = append(next, &DeletedJob{ID: j.ID, Name: j.Name, Token: j.Token, Time: at})
	}
	slices.SortFunc(next, func(a, b *DeletedJob) int { return cmp.Compare(a.ID, b.ID) })
	s.deleted = next[max(0, len(next)-MaxDeleted):]
}

// modelDelete is not fenced either.
func (s *State) modelDelete(e *protocol.ModelDeleteEntry) (any, error) {
	j, err := s.known(e.Job)
	switch {
	case err != nil:
		return nil, err
	case !j.State.Final():
		return nil, fmt.Errorf("%v %w: it is %s", j, ErrNotEnded, j.State)
	case j.ModelDeleted != 0:
		return j, nil
	case len(j.Models) == 0:
		return nil, fmt.Errorf("%v %w: it is %s", j, ErrNoModel, j.State)
	}
	next := *j
	next.Models, next.ModelDeleted = nil, max(1, e.Time)
	return s.put(&next), nil
}
