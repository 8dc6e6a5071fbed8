package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// submit queues a job. The token means the job that it made for ever, so it is looked up
// first; then the name; then the bound on the queue. This order is the same for all
// submissions.
func submit(s *State, e *protocol.SubmitEntry) (any, error) {
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
			if j.Dataset == e.Dataset && j.AuditPPM == e.AuditPPM && bytes.Equal(jobJSON(j.Job), jobJSON(e.Job)) {
				return j, nil
			}
			return nil, fmt.Errorf("%v %w and is %s; %s: choose another name", j, ErrExists, j.State, difference(j, e))
		}
	}
	unended := 0
	for _, j := range s.jobs {
		if !j.State.Final() {
			unended++
		}
	}
	if e.MaxQueue > 0 && unended >= int(e.MaxQueue) {
		return nil, fmt.Errorf("%w: %d jobs are already queued, running or paused, and at most %d are possible (--max-queue)", ErrQueue, unended, e.MaxQueue)
	}
	return queue(s, e)
}

// queue makes the job of a submission that nothing speaks against.
func queue(s *State, e *protocol.SubmitEntry) (any, error) {
	d := s.Dataset(e.Dataset)
	if d == nil {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Dataset, ErrNotFound)
	}
	if d.Digest != e.Job.Dataset {
		return nil, invalid("the job needs a dataset with the digest %.80q, but dataset %q has the digest %s", e.Job.Dataset, d.Name, d.Digest)
	}
	id := s.index // or the next free ID if that is higher: an entry may make several jobs
	if n := len(s.jobs); n > 0 {
		id = max(id, s.jobs[n-1].ID+1)
	}
	if n := len(s.deleted); n > 0 {
		id = max(id, s.deleted[n-1].ID+1)
	}
	j := &Job{
		ID: id, Name: e.Name, Dataset: e.Dataset, Manifest: d.Manifest, Job: e.Job, State: protocol.Queued,
		Request: Request{Token: e.Token, Experiment: e.Experiment, Spec: e.Spec, AuditPPM: e.AuditPPM, Submitted: e.Time},
	}
	if j.Name == "" {
		j.Name = fmt.Sprintf("%s-%d", e.Job.Algorithm, j.ID)
		for n := 2; s.JobByName(j.Name) != nil; n++ { // a user gave this name to another job
			j.Name = fmt.Sprintf("%s-%d-%d", e.Job.Algorithm, j.ID, n)
		}
	}
	s.jobs = inserted(s.jobs, len(s.jobs), j)
	s.keep(e.Job.Split.Assigned, e.Job.Weights)
	return j, nil
}

// givesNameUp reports whether another job may have the name of j, since j ended without a
// result.
func (j *Job) givesNameUp() bool {
	return j.State == protocol.Failed || j.State == protocol.Cancelled
}

func jobJSON(j *round.Job) []byte {
	b, err := json.Marshal(j)
	if err != nil {
		panic(fmt.Sprintf("state: a job that was read from JSON does not marshal: %v", err))
	}
	return b
}

// submitExperiment queues the jobs of an experiment: all or none, since the changes of a
// refused entry are thrown away. Without jobs it brings a new outline.
func submitExperiment(s *State, e *protocol.ExperimentEntry) (any, error) {
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	least := 1
	if e.Outline != "" && slices.ContainsFunc(s.jobs, func(j *Job) bool { return j.Experiment == e.Name }) {
		least = 0
	}
	if n := len(e.Jobs); n < least || n > protocol.MaxExperimentJobs {
		return nil, invalid("want %[2]d to %[3]d jobs in a submission of an experiment, got %[1]d", n, least, protocol.MaxExperimentJobs)
	}
	if e.Outline != "" && !isDigest(e.Outline) {
		return nil, invalid("the digest of the experiment's outline is not valid: %.80q", e.Outline)
	}
	if len(e.Jobs) == 0 {
		return []*Job(nil), replaceOutline(s, e)
	}
	before := len(s.jobs)
	var made []*Job
	for i := range e.Jobs {
		one := e.Jobs[i]
		if one.Name == "" || one.Job == nil || one.Job.Cells == nil {
			return nil, invalid("job %d of the experiment has no name, or no runs", i)
		}
		one.Experiment = e.Name
		v, err := submit(s, &one)
		if err != nil {
			return nil, err
		}
		j := v.(*Job)
		if j.Experiment != e.Name {
			return nil, fmt.Errorf("%v %w and is not a job of the experiment %s", j, ErrExists, e.Name)
		}
		made = append(made, j)
	}
	if len(s.jobs) > before { // a submission that is repeated may be late
		setOutline(s, e.Name, e.Outline)
	}
	for i, j := range made {
		made[i] = s.Job(j.ID)
	}
	return made, nil
}

// replaceOutline sets the outline of a submission without jobs. It refuses an outline if a
// later one has come since its sender read the experiment: the submission is repeated, and
// late.
func replaceOutline(s *State, e *protocol.ExperimentEntry) error {
	for _, j := range s.jobs {
		if j.Experiment == e.Name && j.Outline == e.Outline {
			return nil // all jobs have it
		}
		if j.Experiment == e.Name && e.After > 0 && j.Outlined > e.After {
			return fmt.Errorf("a newer outline of experiment %s %w: the experiment was submitted meanwhile; run the command again", e.Name, ErrExists)
		}
	}
	setOutline(s, e.Name, e.Outline)
	return nil
}

// setOutline gives all jobs of an experiment its newest outline, so that the blob stays as
// long as any of them.
func setOutline(s *State, experiment, digest string) {
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

// field is one thing that a job was asked for, by the name that users give it.
type field struct{ key, value string }

// otherSettings describes jobs of one algorithm that have settings with different names, as
// two versions may have.
const otherSettings = "it has different settings"

// difference names the first thing in which a submission differs from the job that has its
// name.
func difference(j *Job, e *protocol.SubmitEntry) string {
	has, wants := fieldsOf(j.Dataset, j.AuditPPM, j.Job), fieldsOf(e.Dataset, e.AuditPPM, e.Job)
	for i, f := range has[:min(len(has), len(wants))] {
		if wants[i].key != f.key {
			return otherSettings
		}
		if wants[i] != f {
			return fmt.Sprintf("its %s is %.100s, but the new job has %.100s", f.key, f.value, wants[i].value)
		}
	}
	if len(has) != len(wants) {
		return otherSettings
	}
	return "its division into training and test samples is different"
}

// fieldsOf lists what a job was asked for: what is plainest first, then the settings in
// their order.
func fieldsOf(dataset string, ppm uint32, j *round.Job) []field {
	all := []field{
		{"algorithm", j.Algorithm}, {"dataset", dataset}, {"dataset's digest", j.Dataset}, {"seed", fmt.Sprint(j.Seed)},
		{"test_fraction", fmt.Sprint(j.Split.TestFraction)}, {"folds", fmt.Sprint(j.Folds)}, {"split file", cmp.Or(j.Split.Assigned, "none")},
		{"keep_predictions", fmt.Sprint(j.Predictions)},
		{"measures", cmp.Or(j.Measures, "ten")}, {"clip", cmp.Or(j.Clip, "none")},
		{"audit", fmt.Sprintf("%d of a million tasks", ppm)}, {"arithmetic version", fmt.Sprint(j.Numerics)},
	}
	return append(all, settingsOf(j.Params)...)
}

// settingsOf reads the keys and values of a JSON object, in their order.
func settingsOf(raw json.RawMessage) (all []field) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return all
		}
		all = append(all, field{fmt.Sprint(key), string(value)})
	}
	return all
}
