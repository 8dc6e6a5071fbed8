package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
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

func (d *DeletedJob) fields(c *wire.Coder) {
	wire.Numbers(c, "number", &d.ID)
	wire.Numbers(c, "time", &d.Time)
	c.Text("name", &d.Name)
	c.Text("token", &d.Token)
}

// Jobs lists the jobs by ID.
func (t *jobTable) Jobs() []*Job { return t.jobs }

// Job returns the job with an ID, or nil.
func (t *jobTable) Job(id uint64) *Job {
	return find(t.jobs, id, jobID)
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
	return find(t.deleted, id, deletedID)
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

func jobID(j *Job) uint64 { return j.ID }

func deletedID(d *DeletedJob) uint64 { return d.ID }

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
	i, _ := search(t.jobs, j.ID, jobID)
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

// noteLeader adds to the jobs that run that a coordinator became the leader after another one.
func (t *jobTable) noteLeader(before string, e *protocol.LeadEntry) {
	text := fmt.Sprintf("coordinator %s became the leader", e.Node)
	switch before {
	case "":
	case e.Node:
		text += " again"
	default:
		text += " after " + before
	}
	for i, j := range t.jobs {
		if j.State != protocol.Running {
			continue
		}
		event := j.event(protocol.EventLeader, e.Time, e.Millis, text)
		event.Coordinator = e.Node
		event.Clip()
		next := *j
		next.events = j.events.with(event)
		t.jobs = replaced(t.jobs, i, &next)
	}
}

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
	if g := e.Job.Split.Groups; g != "" && !isDigest(g) {
		return nil, invalid("the digest of the list of groups is not valid: %.80q", g)
	}
	if w := e.Job.Weights; w != "" && !isDigest(w) {
		return nil, invalid("the digest of the initial weights is not valid: %.80q", w)
	}
	if e.Name != "" {
		if err := checkName(e.Name); err != nil {
			return nil, err
		}
		if j, err := s.SameJob(e); j != nil || err != nil {
			return j, err
		}
	}
	unended, owned := 0, 0
	for _, j := range s.jobs {
		if !j.State.Final() {
			unended++
			if j.Owner == e.Owner {
				owned++
			}
		}
	}
	if e.MaxOwned > 0 && owned >= int(e.MaxOwned) {
		return nil, fmt.Errorf("%w for %s: this user has %s that did not end, and the quota of the token or certificate is "+
			"%d; cancel some, or ask an admin", ErrQueue, e.Owner, units.Plural(owned, "job"), e.MaxOwned)
	}
	if e.MaxQueue > 0 && unended >= int(e.MaxQueue) {
		return nil, fmt.Errorf("%w: the cluster already has %s queued, running or paused, and at most %d are possible "+
			"(coppice coordinator --max-queue)", ErrQueue, units.Plural(unended, "job"), e.MaxQueue)
	}
	return queue(s, e)
}

// SameJob returns the job that has the name and the spec of a submission, or nil. It returns an error if a job with
// another spec has the name.
func (s *State) SameJob(e *protocol.SubmitEntry) (*Job, error) {
	j := s.JobByName(e.Name)
	switch {
	case j == nil || j.givesNameUp():
		return nil, nil
	case j.Dataset == e.Dataset && j.AuditPPM == e.AuditPPM && bytes.Equal(jobJSON(j.Job), jobJSON(e.Job)):
		return j, nil
	}
	return nil, fmt.Errorf("%v %w and is %s; %s: choose another name", j, ErrExists, j.State, difference(j, e))
}

// queue makes the job of a submission that nothing speaks against.
func queue(s *State, e *protocol.SubmitEntry) (any, error) {
	d := s.Dataset(e.Dataset)
	if d == nil {
		return nil, fmt.Errorf("dataset %.80q: %w", e.Dataset, ErrNotFound)
	}
	if d.Digest != e.Job.Dataset {
		return nil, invalid("the job needs a dataset with the digest %.80q, but dataset %q has the digest %s", e.Job.Dataset,
			d.Name, d.Digest)
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
		Request: Request{Token: e.Token, Ownership: protocol.Ownership{Owner: e.Owner, Private: e.Private},
			Experiment: e.Experiment, Spec: e.Spec, AuditPPM: e.AuditPPM, Submitted: e.Time},
	}
	if j.Name == "" {
		j.Name = fmt.Sprintf("%s-%d", e.Job.Algorithm, j.ID)
		for n := 2; s.JobByName(j.Name) != nil; n++ { // a user gave this name to another job
			j.Name = fmt.Sprintf("%s-%d-%d", e.Job.Algorithm, j.ID, n)
		}
	}
	s.jobs = inserted(s.jobs, len(s.jobs), j)
	s.keep(e.Job.Split.Assigned, e.Job.Split.Groups, e.Job.Weights)
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
		return nil, invalid("want %[2]d to %[3]d jobs in a submission of an experiment, got %[1]d", n, least,
			protocol.MaxExperimentJobs)
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
			return fmt.Errorf("a newer outline of experiment %s %w: the experiment was submitted meanwhile; run the command "+
				"again", e.Name, ErrExists)
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
		{"test_fraction", fmt.Sprint(j.Split.TestFraction)},
		{"train_fraction", fmt.Sprint(cmp.Or(j.Split.TrainFraction, 1))}, {"folds", fmt.Sprint(j.Folds)},
		{"split file", cmp.Or(j.Split.Assigned, "none")}, {"groups", cmp.Or(j.Split.Groups, "none")},
		{"keep_predictions", fmt.Sprint(j.Predictions)},
		{"measures", cmp.Or(j.Measures, "ten")}, {"clip", cmp.Or(j.Clip, "none")},
		{"mask", cmp.Or(j.Split.Mask.String(), "none")}, {"screening", fmt.Sprint(j.Screen)},
		{"audit", fmt.Sprintf("%d of a million tasks", ppm)}, {"arithmetic version", fmt.Sprint(j.Numerics)},
	}
	if j.Enhance != nil {
		all = append(all, field{"enhance", j.Enhance.String()})
	}
	if j.WeightedMeasures {
		all = append(all, field{"weighted_measures", "true"})
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
		return nil, fmt.Errorf("%w: %s%s; nothing was deleted: cancel these jobs first", ErrNotEnded,
			strings.Join(live, ", "), more)
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

// share lets all users read a dataset, or jobs: all of them or none.
func share(s *State, e *protocol.ShareEntry) (any, error) {
	if n := len(e.Jobs); n > protocol.MaxDelete {
		return nil, invalid("want at most %d jobs to share, got %d", protocol.MaxDelete, n)
	}
	if e.Dataset == "" && len(e.Jobs) == 0 {
		return nil, invalid("the request shares neither a dataset nor a job")
	}
	other := func(what, owner string) error {
		if e.Owner != "" && owner != e.Owner {
			return fmt.Errorf("%s of %.80q: %w: it belongs to another user", what, e.Owner, ErrNotFound)
		}
		return nil
	}
	if e.Dataset != "" {
		i, ok := search(s.datasets, e.Dataset, datasetName)
		if !ok {
			return nil, fmt.Errorf("dataset %.80q: %w", e.Dataset, ErrNotFound)
		}
		d := *s.datasets[i]
		if err := other("dataset "+d.Name, d.Owner); err != nil {
			return nil, err
		}
		d.Private = false
		s.datasets = replaced(s.datasets, i, &d)
	}
	s.jobs = slices.Clone(s.jobs)
	var all []*Job
	for _, id := range e.Jobs {
		j, err := s.known(id)
		if err != nil {
			return nil, err
		}
		if err := other(j.String(), j.Owner); err != nil {
			return nil, err
		}
		shared := *j
		shared.Private = false
		i, _ := search(s.jobs, id, jobID)
		s.jobs[i] = &shared
		all = append(all, &shared)
	}
	return all, nil
}

// deleteModel deletes the models of a job that has ended. It is not fenced either.
func deleteModel(s *State, e *protocol.JobEntry) (any, error) {
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
