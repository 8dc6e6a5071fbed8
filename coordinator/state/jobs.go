package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxDeleted bounds the deleted jobs that are remembered. Beyond it the jobs that were
	// submitted first are forgotten: nobody sends their tokens any longer.
	MaxDeleted = 1 << 16
	maxNamed   = 10 // jobs that one error names
)

// jobTable has the jobs, and what is kept of deleted ones. Both lists are by ID, which is
// the order of submission. No ID is in both.
type jobTable struct {
	jobs    []*Job
	deleted []*DeletedJob
}

// DeletedJob is what is kept of a deleted job, so that its submission is not run again if
// it is repeated. It is immutable.
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

// Jobs lists the jobs by ID.
func (t *jobTable) Jobs() []*Job { return t.jobs }

// Job returns the job with an ID, or nil.
func (t *jobTable) Job(id uint64) *Job {
	if i, ok := t.findJob(id); ok {
		return t.jobs[i]
	}
	return nil
}

// JobByName returns the newest job with a name, or nil. Older ones failed or were
// cancelled.
func (t *jobTable) JobByName(name string) *Job {
	for _, j := range slices.Backward(t.jobs) {
		if j.Name == name {
			return j
		}
	}
	return nil
}

// JobByToken returns the job that a submission with a token made, or nil.
func (t *jobTable) JobByToken(token string) *Job {
	if i := slices.IndexFunc(t.jobs, func(j *Job) bool { return token != "" && j.Token == token }); i >= 0 {
		return t.jobs[i]
	}
	return nil
}

// Deleted returns the deleted job with an ID, or nil.
func (t *jobTable) Deleted(id uint64) *DeletedJob {
	if i, ok := search(t.deleted, id, func(d *DeletedJob) uint64 { return d.ID }); ok {
		return t.deleted[i]
	}
	return nil
}

// DeletedByName returns the newest deleted job with a name, or nil.
func (t *jobTable) DeletedByName(name string) *DeletedJob {
	for _, d := range slices.Backward(t.deleted) {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// DeletedByToken returns the deleted job that a submission with a token made, or nil.
func (t *jobTable) DeletedByToken(token string) *DeletedJob {
	if i := slices.IndexFunc(t.deleted, func(d *DeletedJob) bool { return token != "" && d.Token == token }); i >= 0 {
		return t.deleted[i]
	}
	return nil
}

func (t *jobTable) findJob(id uint64) (int, bool) {
	return search(t.jobs, id, func(j *Job) uint64 { return j.ID })
}

// known returns a job, or why there is none.
func (t *jobTable) known(id uint64) (*Job, error) {
	if j := t.Job(id); j != nil {
		return j, nil
	}
	if d := t.Deleted(id); d != nil {
		return nil, fmt.Errorf("%v %w", d, ErrDeleted)
	}
	return nil, fmt.Errorf("job %d: %w", id, ErrNotFound)
}

// live returns a job that has not ended.
func (t *jobTable) live(id uint64) (*Job, error) {
	j, err := t.known(id)
	if err == nil && j.State.Final() {
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrFinal, j.State)
	}
	return j, err
}

// put replaces the record of a job.
func (t *jobTable) put(j *Job) *Job {
	i, _ := t.findJob(j.ID)
	t.jobs = replaced(t.jobs, i, j)
	return j
}

// dropPending forgets incomplete training states.
func (t *jobTable) dropPending() {
	for i, j := range t.jobs {
		if j.pending != nil {
			next := *j
			next.pending = nil
			t.jobs = replaced(t.jobs, i, &next)
		}
	}
}

// deleteJobs deletes all jobs of an entry or none. It is not fenced: any coordinator may
// pass a user's wish on. To delete a job twice is the same as once.
func deleteJobs(s *State, e *protocol.JobsDeleteEntry) (any, error) {
	if n := len(e.Jobs); n == 0 || n > protocol.MaxDelete {
		return nil, invalid("want 1 to %[2]d jobs to delete, got %[1]d", n, protocol.MaxDelete)
	}
	named := make(map[uint64]bool, len(e.Jobs))
	for _, id := range e.Jobs {
		named[id] = true
	}
	var kept, gone []*Job
	var live []string
	for _, j := range s.jobs {
		switch {
		case !named[j.ID]:
			kept = append(kept, j)
		case !j.State.Final():
			live = append(live, fmt.Sprintf("%v is %s", j, j.State))
		default:
			gone = append(gone, j)
		}
	}
	if len(live) > 0 {
		more := ""
		if n := len(live) - maxNamed; n > 0 {
			live, more = live[:maxNamed], fmt.Sprintf(" and %d more", n)
		}
		return nil, fmt.Errorf("%w: %s%s; nothing was deleted: cancel these jobs first", ErrNotEnded, strings.Join(live, ", "), more)
	}
	if len(gone) == 0 {
		return gone, nil
	}
	next := slices.Grow(slices.Clone(s.deleted), len(gone))
	for _, j := range gone {
		next = append(next, &DeletedJob{ID: j.ID, Name: j.Name, Token: j.Token, Time: e.Time})
	}
	slices.SortFunc(next, func(a, b *DeletedJob) int { return cmp.Compare(a.ID, b.ID) })
	s.jobs, s.deleted = kept, next[max(0, len(next)-MaxDeleted):]
	return gone, nil
}

// deleteModel deletes the models of a job that has ended. It is not fenced either.
func deleteModel(s *State, e *protocol.ModelDeleteEntry) (any, error) {
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

func (d *DeletedJob) fields(c *wire.Coder) {
	wire.Numbers(c, "number", &d.ID)
	wire.Numbers(c, "time", &d.Time)
	c.Text("name", &d.Name)
	c.Text("token", &d.Token)
}
