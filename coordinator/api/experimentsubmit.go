package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment"
	experiments "github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// FindDataset implements submission.Cluster.
func (h *experimentHandlers) FindDataset(name string) *protocol.Dataset {
	return h.store.State().Dataset(name)
}

// MayTrain implements submission.Cluster.
func (h *experimentHandlers) MayTrain(ctx context.Context, d *protocol.Dataset) error {
	return readDataset(ctx, d)
}

// ReadSent implements submission.Cluster.
func (h *experimentHandlers) ReadSent(ctx context.Context, digest string) ([]byte, error) {
	blob := h.submissions.blobs
	if err := blob.present(ctx, digest, blob.unread(ctx, digest)); err != nil {
		return nil, notSent("the list", digest, err)
	}
	return blob.blobs.Folder.Get(digest)
}

// submit plans the runs of a spec and queues them, all of them or none. With check=true it only says what it would do.
// The same token is answered with the jobs that it made.
func (h *experimentHandlers) submit(r *http.Request) (any, error) {
	check := false
	if err := protocol.ReadQuery(r.URL.Query(), "a submission", protocol.Flag("check", &check)); err != nil {
		return nil, bad{err}
	}
	var req protocol.ExperimentRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	return h.queue(r, req.Token, check, req.Shared, func(ctx context.Context) (*experiments.Submission, error) {
		sub, err := experiments.Decide(ctx, h, &req, check)
		if err == nil && sub.Plan.NeedsConsent() && !req.LeaveOut && !check {
			err = orphanError(&sub.Plan)
		}
		return sub, err
	})
}

// retry queues runs of the last submission of an experiment again.
func (h *experimentHandlers) retry(r *http.Request) (any, error) {
	var req protocol.ExperimentRetry
	if err := body(r, &req); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if _, err := jobsOf(h.store.State(), name); err != nil {
		return nil, err
	}
	return h.queue(r, req.Token, false, false, func(ctx context.Context) (*experiments.Submission, error) {
		e, err := experiments.Read(ctx, h, name)
		if err != nil {
			return nil, err
		}
		return e.Retry(ctx, experiments.Options{RetryFailed: true, OnlyFailed: req.Failed})
	})
}

// maxDecisions bounds how often a submission is decided, if the experiment changes meanwhile each time.
const maxDecisions = 5

// queue queues the jobs of the submission that decide returns, unless this is a check. A decision may take seconds, so
// other submissions are decided and queued meanwhile. A submission is queued only if the experiment has not changed
// since decide read it. So two submissions never add the same run. shared is true if all users may read the results of
// a new experiment.
func (h *experimentHandlers) queue(r *http.Request, token string, check, shared bool,
	decide func(context.Context) (*experiments.Submission, error)) (any, error) {
	ctx := r.Context()
	if !check && (token == "" || len(token) > protocol.MaxToken-8) {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken-8)
	}
	leave, err := h.deciding.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for range maxDecisions {
		if !check {
			if answer, err := h.repeated(ctx, token); answer != nil || err != nil {
				return answer, err
			}
		}
		sub, err := decide(ctx)
		if err != nil {
			return nil, planError(err)
		}
		if err := h.prepare(ctx, sub, check); err != nil {
			return nil, err
		}
		if check {
			return sub.Plan, nil
		}
		if answer, err := h.commit(r, token, shared, sub); answer != nil || err != nil {
			return answer, err
		}
	}
	return nil, fmt.Errorf("%w: the experiment changed while this submission was decided, %d times; try again", errBusy,
		maxDecisions)
}

// prepare checks the jobs of a submission, and keeps its blobs.
func (h *experimentHandlers) prepare(ctx context.Context, sub *experiments.Submission, check bool) error {
	if n := len(sub.Jobs); n > protocol.MaxExperimentJobs {
		return fmt.Errorf("%w: the experiment has new runs on %d datasets; at most %d are allowed in a submission", errBad, n,
			protocol.MaxExperimentJobs)
	}
	for i := range sub.Jobs {
		if err := h.submissions.checkExperimentJob(ctx, &sub.Jobs[i], check); err != nil {
			return err
		}
	}
	if check || sub.Empty {
		return nil
	}
	// The blobs may have parts of an experiment of another user. With keep, the caller could read them.
	if of, err := jobsOf(h.store.State(), sub.Name); err == nil {
		if err := access.Own(ctx, "experiment "+sub.Name, of[0].Owner); err != nil {
			return err
		}
	}
	for _, b := range sub.Blobs {
		if err := h.submissions.blobs.keep(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// commit queues the jobs of a submission. A nil answer says that the experiment has changed since the submission was
// decided. One submission is committed at a time.
func (h *experimentHandlers) commit(r *http.Request, token string, shared bool,
	sub *experiments.Submission) (any, error) {
	ctx := r.Context()
	end, err := h.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	// An earlier try may have been accepted since this one began: its runs are then not new.
	if answer, err := h.repeated(ctx, token); answer != nil || err != nil {
		return answer, err
	}
	if current, err := sub.Current(ctx, h); err != nil || !current {
		return nil, err
	}
	if sub.Empty {
		return sub.Plan, nil
	}
	owner, private := access.Of(ctx).Name, isPrivate(ctx, shared)
	// the experiment exists: its owner stays, and who may read it
	if of, err := jobsOf(h.store.State(), sub.Name); err == nil {
		owner = of[0].Owner
		private = slices.ContainsFunc(of, func(j *state.Job) bool { return j.Private })
		if err := access.Own(ctx, "experiment "+sub.Name, owner); err != nil {
			return nil, err
		}
	}
	for i := range sub.Jobs { // an admin adds runs to the experiments of others
		if d := h.store.State().Dataset(sub.Jobs[i].Dataset); d != nil && d.Private && d.Owner != owner {
			return nil, fmt.Errorf("dataset %[1]s: %[2]w: it belongs to %[3]s, and the owner of experiment %[4]s would have "+
				"results on its samples; share the dataset first: coppice dataset share %[1]s",
				d.Name, access.ErrPrivate, d.Owner, sub.Name)
		}
	}
	quota := quotaOf(r, h.store.State())
	e := protocol.ExperimentEntry{Name: sub.Name, Outline: sub.Outline, After: sub.After}
	for i := range sub.Jobs {
		j := &sub.Jobs[i]
		if err := h.submissions.needBlobs(ctx, j.Job); err != nil {
			return nil, err
		}
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{
			Token: jobToken(token, i), Name: j.Name, Dataset: j.Dataset, Spec: j.Spec, Job: j.Job, Owner: owner,
			Private:  private,
			MaxQueue: uint32(h.submissions.quotas.Queue), MaxOwned: quota, Time: time.Now().Unix(),
		})
	}
	_, made, err := commit(r, h.store, protocol.EntryExperiment, e)
	if err != nil {
		return nil, err
	}
	jobs := made.([]*state.Job)
	sub.Plan.Jobs = h.describe(h.store.State(), jobs, len(jobs), false).Jobs
	return sub.Plan, nil
}

// jobToken names job i of a submission.
func jobToken(token string, i int) string { return token + "/" + strconv.Itoa(i) }

// repeated answers a submission that was sent again, because its first answer was lost; nil: it is the first.
func (h *experimentHandlers) repeated(ctx context.Context, token string) (any, error) {
	st := h.store.State()
	if d := st.DeletedByToken(jobToken(token, 0)); d != nil {
		return nil, d.Repeated()
	}
	var jobs []*state.Job
	for j := st.JobByToken(jobToken(token, 0)); j != nil; j = st.JobByToken(jobToken(token, len(jobs))) {
		if j.Experiment == "" {
			return nil, fmt.Errorf("%w: the token of the submission names job %s, which is of no experiment; choose another "+
				"token", errBad, j.Name)
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	// an admin adds to experiments of others
	if jobs[0].Owner != access.Of(ctx).Name && access.Of(ctx).Role != rights.Admin {
		return nil, fmt.Errorf("the token of the submission %w: another user has sent it; choose another token",
			state.ErrExists)
	}
	p := protocol.ExperimentPlan{Name: jobs[0].Experiment, Jobs: h.describe(st, jobs, len(jobs), false).Jobs}
	for _, j := range jobs {
		p.Runs += j.Job.Cells.Count()
	}
	return p, nil
}

// maxMistakes bounds the mistakes that an answer lists.
const maxMistakes = 1000

// planError lists the mistakes in a spec and its data. The status is 400 unless the only mistake is that datasets do
// not exist.
func planError(err error) error {
	var mistakes experiment.Errors
	if !mistakes.Add(err) {
		return err
	}
	d := &detailed{error: err}
	if n := len(mistakes); n > 1 {
		d.error = fmt.Errorf("%d mistakes in the spec and its data", n)
	}
	if slices.ContainsFunc(mistakes, func(one error) bool { return !errors.Is(one, experiments.ErrNoDataset) }) {
		d.error = bad{d.error}
	} else {
		d.error = lacking{d.error}
	}
	for _, one := range mistakes[:min(len(mistakes), maxMistakes)] {
		d.mistakes, d.forms = append(d.mistakes, one.Error()), append(d.forms, errtext.Of(one.Error(), one))
	}
	if more := len(mistakes) - maxMistakes; more > 0 {
		d.mistakes = append(d.mistakes, fmt.Sprintf("and %d more", more))
	}
	return d
}

// orphanError refuses a submission after which reports have fewer runs.
func orphanError(p *protocol.ExperimentPlan) error {
	plan, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return &detailed{plan: plan, error: fmt.Errorf("%w: the spec lacks %d runs of the last submission of experiment %s; "+
		"a submission with leave_out leaves them out of reports",
		errOrphans, p.Orphaned, p.Name)}
}

// checkExperimentJob refuses a job of an experiment that the cluster cannot run. For a check, the dataset need not be
// there.
func (h *submissionHandlers) checkExperimentJob(ctx context.Context, j *experiments.Job, check bool) error {
	if err := checkName("job", j.Name); err != nil {
		return err
	}
	if j.Job == nil || j.Job.Cells == nil || j.Job.Algorithm != round.AlgorithmCells || j.Job.Numerics != round.Numerics {
		return fmt.Errorf("%w: job %s of the experiment has no runs, or comes from another version of Coppice",
			errBad, j.Name)
	}
	manifest := j.Manifest
	if !check {
		d, err := findDataset(h.store.State(), j.Dataset)
		if err != nil {
			return err
		}
		if err := readDataset(ctx, d); err != nil {
			return err
		}
		manifest = d.Manifest
	}
	if err := j.Job.Split.Check(); err != nil {
		return bad{err}
	}
	runs := j.Job.Cells
	if err := runs.Check(j.Job.Split.Folds, j.Job.Split.Overlap); err != nil {
		return bad{fmt.Errorf("job %s: %w", j.Name, err)}
	}
	// The digest of a dataset does not cover the kind of its labels, but the keys of runs
	// do.
	if labels := &manifest.LabelType; !runs.Labels.Same(labels) {
		return fmt.Errorf("%w: job %s expects labels that are %s, but the labels of dataset %s are %s; submit the "+
			"experiment again",
			errBad, j.Name, runs.Labels.String(manifest.Labels), j.Dataset, labels.String(manifest.Labels))
	}
	if runs.Models && runs.Count() > protocol.MaxCellModels {
		return fmt.Errorf("%w: job %s keeps the models of %d runs, want at most %d", errBad, j.Name, runs.Count(),
			protocol.MaxCellModels)
	}
	one := pipeline.RecordBytes(j.Job, manifest)
	if all := one * int64(runs.Count()); one > protocol.MaxCellRecord || all > protocol.MaxCellRecords {
		return fmt.Errorf("%w: job %s records up to %d bytes in each of %d runs, want at most %d bytes in a run and %d in "+
			"all runs",
			errBad, j.Name, one, runs.Count(), protocol.MaxCellRecord, protocol.MaxCellRecords)
	}
	if j.Job.Weights != "" && !slices.ContainsFunc(runs.Rows, func(r round.CellRow) bool { return len(r.External) > 0 }) {
		return fmt.Errorf("%w: job %s of the experiment starts from the weights of a model; only a single job can do that",
			errBad, j.Name)
	}
	return h.quotas.checkMemory(j.Job, manifest)
}
