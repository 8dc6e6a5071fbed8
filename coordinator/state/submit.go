package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/protocol"
)

func (s *State) submit(e *protocol.SubmitEntry) (any, error) {
	if j := s.byToken(e.Token); j != nil {
		return j, nil
	}
	if e.Job == nil || e.Job.Algorithm == "" {
		return nil, invalid("a job without an algorithm")
	}
	if a := e.Job.Split.Assigned; a != "" && !isDigest(a) {
		return nil, invalid("a split with the digest %.80q", a)
	}
	if e.Name != "" {
		if err := CheckName(e.Name); err != nil {
			return nil, err
		}
		if j := s.JobByName(e.Name); j != nil {
			return resubmitted(j, e)
		}
	}
	return s.queue(e)
}

func (s *State) byToken(token string) *Job {
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
	if j.Dataset == e.Dataset && bytes.Equal(jobJSON(j.Job), jobJSON(e.Job)) {
		return j, nil
	}
	return nil, fmt.Errorf("state: %v %w with other settings: %s on dataset %q, seed %d, %s",
		j, ErrExists, j.Job.Algorithm, j.Dataset, j.Job.Seed, j.State)
}

func jobJSON(j *algorithms.Job) []byte {
	b, err := json.Marshal(j)
	if err != nil {
		panic(fmt.Sprintf("state: a job that was read from JSON does not marshal: %v", err))
	}
	return b
}

func (s *State) queue(e *protocol.SubmitEntry) (any, error) {
	d := s.Dataset(e.Dataset)
	if d == nil {
		return nil, fmt.Errorf("state: dataset %.80q: %w", e.Dataset, ErrNotFound)
	}
	if d.Digest != e.Job.Dataset {
		return nil, invalid("a job for content %.80q of dataset %q, which has %s", e.Job.Dataset, d.Name, d.Digest)
	}
	j := &Job{
		ID: s.index, Name: e.Name, Token: e.Token, Dataset: e.Dataset, Manifest: d.Manifest, Spec: e.Spec,
		Job: e.Job, State: protocol.Queued, Submitted: e.Time,
	}
	if j.Name == "" {
		j.Name = s.freeName(fmt.Sprintf("%s-%d", e.Job.Algorithm, s.index))
	}
	s.jobs = inserted(s.jobs, len(s.jobs), j) // the greatest ID so far
	s.keep(e.Job.Split.Assigned)
	return j, nil
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
