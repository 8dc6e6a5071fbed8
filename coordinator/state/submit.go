package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// million is the greatest audit: every unit.
const million = 1_000_000

func (s *State) submit(e *protocol.SubmitEntry) (any, error) {
	if j := s.JobByToken(e.Token); j != nil {
		return j, nil
	}
	if len(e.Token) > protocol.MaxToken {
		return nil, invalid("want a token of at most %[2]d bytes, got %[1]d", len(e.Token), protocol.MaxToken)
	}
	if d := s.DeletedByToken(e.Token); d != nil {
		return nil, d.Repeated()
	}
	if e.Job == nil || e.Job.Algorithm == "" {
		return nil, invalid("the job has no algorithm")
	}
	if e.AuditPPM > million {
		return nil, invalid("want at most 1000000 audited tasks in 1000000 tasks, got %d", e.AuditPPM)
	}
	if a := e.Job.Split.Assigned; a != "" && !isDigest(a) {
		return nil, invalid("the digest of the list of folds is not valid: %.80q", a)
	}
	if w := e.Job.Weights; w != "" && !isDigest(w) {
		return nil, invalid("the digest of the initial weights is not valid: %.80q", w)
	}
	if e.Name != "" {
		if err := checkName(e.Name); err != nil {
			return nil, err
		}
		if j := s.JobByName(e.Name); j != nil && !j.givesNameUp() {
			return resubmitted(j, e)
		}
	}
	if n := s.unended(); e.MaxQueue > 0 && n >= int(e.MaxQueue) {
		return nil, fmt.Errorf("%w: %d jobs are already queued, running or paused, and at most %d are possible (--max-queue)", ErrQueue, n, e.MaxQueue)
	}
	return s.queue(e)
}

// JobByToken returns the job that a submission with that token made, or nil.
func (s *State) JobByToken(token string) *Job {
	if token == "" {
		return nil
	}
	for _, j := range s.jobs {
		if j.Token == token {
			return j
		}
	}
	return nil
}

// resubmitted returns the job that has the name already, if it is the same.
func resubmitted(j *Job, e *protocol.SubmitEntry) (any, error) {
	if j.Dataset == e.Dataset && j.AuditPPM == e.AuditPPM && bytes.Equal(jobJSON(j.Job), jobJSON(e.Job)) {
		return j, nil
	}
	return nil, fmt.Errorf("%v %w and is %s; %s: choose another name", j, ErrExists, j.State, difference(j, e))
}

// givesNameUp reports whether another job may have the name of this one: it ended
// without a result.
func (j *Job) givesNameUp() bool {
	return j.State == protocol.Failed || j.State == protocol.Cancelled
}

// unended counts the jobs that have not ended.
func (s *State) unended() (n int) {
	for _, j := range s.jobs {
		if !j.State.Final() {
			n++
		}
	}
	return n
}

func jobJSON(j *round.Job) []byte {
	b, err := json.Marshal(j)
	if err != nil {
		panic(fmt.Sprintf("state: a job that was read from JSON does not marshal: %v", err))
	}
	return b
}

func (s *State) queue(e *protocol.SubmitEntry) (any, error) {
	d := s.Dataset(e.Dataset)
	if d == nil {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Dataset, ErrNotFound)
	}
	if d.Digest != e.Job.Dataset {
		return nil, invalid("the job needs a dataset with the digest %.80q, but dataset %q has the digest %s", e.Job.Dataset, d.Name, d.Digest)
	}
	j := &Job{
		ID: s.nextID(), Name: e.Name, Experiment: e.Experiment, Token: e.Token, Dataset: e.Dataset, Manifest: d.Manifest, Spec: e.Spec,
		Job: e.Job, State: protocol.Queued, AuditPPM: e.AuditPPM, Submitted: e.Time,
	}
	if j.Name == "" {
		j.Name = s.freeName(fmt.Sprintf("%s-%d", e.Job.Algorithm, j.ID))
	}
	s.jobs = inserted(s.jobs, len(s.jobs), j) // the greatest ID so far
	s.keep(e.Job.Split.Assigned, e.Job.Weights)
	return j, nil
}

// nextID returns the ID of a new job: the entry's index, or, where the entry makes several, or
// one before it made many, the next that is above all others.
func (s *State) nextID() uint64 {
	id := s.index
	if n := len(s.jobs); n > 0 {
		id = max(id, s.jobs[n-1].ID+1)
	}
	if n := len(s.deleted); n > 0 {
		id = max(id, s.deleted[n-1].ID+1)
	}
	return id
}

// experiment queues the jobs of an experiment. What a refused entry changed is thrown away, so
// all of them are queued or none.
func (s *State) experiment(e *protocol.ExperimentEntry) (any, error) {
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	least := 1
	if e.Outline != "" && s.hasExperiment(e.Name) {
		least = 0
	}
	if n := len(e.Jobs); n < least || n > protocol.MaxExperimentJobs {
		return nil, invalid("want %[2]d to %[3]d jobs in a submission of an experiment, got %[1]d", n, least, protocol.MaxExperimentJobs)
	}
	if e.Outline != "" && !isDigest(e.Outline) {
		return nil, invalid("the digest of the experiment's outline is not valid: %.80q", e.Outline)
	}
	if len(e.Jobs) == 0 {
		return []*Job(nil), s.outlineAlone(e)
	}
	before := len(s.jobs)
	var made []*Job
	for i := range e.Jobs {
		one := e.Jobs[i]
		if one.Name == "" || one.Job == nil || one.Job.Cells == nil {
			return nil, invalid("job %d of the experiment has no name, or no runs", i)
		}
		one.Experiment = e.Name
		v, err := s.submit(&one)
		if err != nil {
			return nil, err
		}
		j := v.(*Job)
		if j.Experiment != e.Name {
			return nil, fmt.Errorf("%v %w and is not a job of the experiment %s", j, ErrExists, e.Name)
		}
		made = append(made, j)
	}
	if len(s.jobs) > before { // else it was sent again, perhaps late
		s.outline(e.Name, e.Outline)
	}
	for i, j := range made {
		made[i] = s.Job(j.ID)
	}
	return made, nil
}

// outlineAlone takes the outline of a submission without jobs, unless a later one has come meanwhile: then it was sent
// again, and is late.
func (s *State) outlineAlone(e *protocol.ExperimentEntry) error {
	for _, j := range s.jobs {
		if j.Experiment == e.Name && j.Outline == e.Outline {
			return nil // all jobs have it
		}
		if j.Experiment == e.Name && e.After > 0 && j.Outlined > e.After {
			return fmt.Errorf("a newer outline of experiment %s %w: the experiment was submitted meanwhile; run the command again", e.Name, ErrExists)
		}
	}
	s.outline(e.Name, e.Outline)
	return nil
}

// hasExperiment reports whether there is a job of an experiment.
func (s *State) hasExperiment(name string) bool {
	return slices.ContainsFunc(s.jobs, func(j *Job) bool { return j.Experiment == name })
}

// outline gives all jobs of an experiment its newest outline, so that it stays as long as any of
// them.
func (s *State) outline(experiment, digest string) {
	s.jobs = slices.Clone(s.jobs)
	for i, j := range s.jobs {
		if j.Experiment == experiment {
			next := *j
			next.Outline, next.Outlined = digest, s.index
			s.jobs[i] = &next
		}
	}
	s.keep(digest)
}

// freeName returns name, or name with a number behind it where a user gave
// another job that name.
func (s *State) freeName(name string) string {
	free := name
	for n := 2; s.JobByName(free) != nil; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
