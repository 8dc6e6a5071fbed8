package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// submissionHandlers queue jobs. They check everything for which a job is refused before
// the log has it, except its name and the length of the queue. The state checks these
// when it applies the entry, since other submissions change them.
type submissionHandlers struct {
	jobView
	blobs  *blobHandlers
	quotas Quotas
}

// submitJob resolves the spec of a job against its dataset, and queues the job. The same
// token, or the same name with the same spec, is answered with the job that exists.
func (h *submissionHandlers) submitJob(r *http.Request) (any, error) {
	var req protocol.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken)
	}
	st := h.store.State()
	if j := st.JobByToken(req.Token); j != nil { // the first answer was lost
		return h.info(j, st.Index()), nil
	}
	if d := st.DeletedByToken(req.Token); d != nil {
		return nil, d.Repeated()
	}
	if !(req.Audit >= 0 && req.Audit <= 1) {
		return nil, fmt.Errorf("%w: audit: want a fraction from 0 to 1, got %v", errBad, req.Audit)
	}
	if req.Spec.Name != "" {
		if err := checkName("job", req.Spec.Name); err != nil {
			return nil, err
		}
	}
	d, err := findDataset(st, req.Spec.Dataset)
	if err != nil {
		return nil, err
	}
	job, err := spec.Resolve(req.Spec, d.Manifest)
	if err != nil {
		return nil, bad{err}
	}
	if err := h.needBlobs(r.Context(), job); err != nil {
		return nil, err
	}
	if job.Weights != "" {
		if err := h.checkWeights(job, d.Manifest); err != nil {
			return nil, err
		}
	}
	if err := h.quotas.checkMemory(job, d.Manifest); err != nil {
		return nil, err
	}
	given, err := json.Marshal(req.Spec)
	if err != nil {
		return nil, err
	}
	index, made, err := commit(r, h.store, protocol.EntrySubmit, protocol.SubmitEntry{
		Token: req.Token, Name: req.Spec.Name, Dataset: d.Name, Spec: given, Job: job,
		AuditPPM: uint32(math.Ceil(req.Audit * 1e6)), MaxQueue: uint32(h.quotas.Queue), Time: time.Now().Unix(),
	})
	if err != nil {
		return nil, err
	}
	return h.info(made.(*state.Job), index), nil
}

// needBlobs returns once a quorum has the blobs that a job names: its split, and the
// weights that it starts from.
func (h *submissionHandlers) needBlobs(ctx context.Context, j *round.Job) error {
	for _, b := range []struct{ what, digest string }{{"the list of folds", j.Split.Assigned}, {"the file of weights", j.Weights}} {
		if b.digest == "" {
			continue
		}
		if err := h.blobs.need(ctx, b.what, b.digest); err != nil {
			return err
		}
	}
	return nil
}

// checkWeights refuses a job if its weights do not fit its network. The blob of the
// weights is present.
func (h *submissionHandlers) checkWeights(j *round.Job, m *dataset.Manifest) error {
	b, err := h.blobs.blobs.Folder.Get(j.Weights)
	if err != nil {
		return err
	}
	with, err := j.WithWeights(b)
	if err == nil {
		err = pipeline.FitsWeights(with, m)
	}
	if err != nil {
		return bad{err}
	}
	return nil
}

// submitExperiment queues the jobs of an experiment, all of them or none. The same token
// is answered with the jobs that it made.
func (h *submissionHandlers) submitExperiment(r *http.Request) (any, error) {
	var req protocol.ExperimentRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken-8 {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken-8)
	}
	if err := checkName("experiment", req.Name); err != nil {
		return nil, err
	}
	if n := len(req.Jobs); n == 0 && req.Outline == "" || n > protocol.MaxExperimentJobs {
		return nil, fmt.Errorf("%[1]w: want 1 to %[3]d jobs in a submission of an experiment, got %[2]d", errBad, n, protocol.MaxExperimentJobs)
	}
	if req.Outline != "" {
		if err := h.blobs.need(r.Context(), "the outline", req.Outline); err != nil {
			return nil, err
		}
	}
	e := protocol.ExperimentEntry{Name: req.Name, Outline: req.Outline, After: req.After}
	for i := range req.Jobs {
		j := &req.Jobs[i]
		if err := h.checkExperimentJob(r.Context(), j); err != nil {
			return nil, err
		}
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{
			Token: fmt.Sprintf("%s/%d", req.Token, i), Name: j.Name, Dataset: j.Dataset, Spec: j.Spec, Job: j.Job,
			MaxQueue: uint32(h.quotas.Queue), Time: time.Now().Unix(),
		})
	}
	_, made, err := commit(r, h.store, protocol.EntryExperiment, e)
	if err != nil {
		return nil, err
	}
	jobs := made.([]*state.Job)
	return h.describe(h.store.State(), jobs, len(jobs), false), nil
}

// checkExperimentJob refuses a job of an experiment that the cluster cannot run.
func (h *submissionHandlers) checkExperimentJob(ctx context.Context, j *protocol.ExperimentJob) error {
	if err := checkName("job", j.Name); err != nil {
		return err
	}
	if j.Job == nil || j.Job.Cells == nil || j.Job.Algorithm != round.AlgorithmCells || j.Job.Numerics != round.Numerics {
		return fmt.Errorf("%w: job %s of the experiment has no runs, or comes from another version of Coppice", errBad, j.Name)
	}
	d, err := findDataset(h.store.State(), j.Dataset)
	if err != nil {
		return err
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
	if labels := &d.Manifest.LabelType; !runs.Labels.Same(labels) {
		return fmt.Errorf("%w: job %s expects labels that are %s, but the labels of dataset %s are %s; submit the experiment again",
			errBad, j.Name, runs.Labels.String(d.Manifest.Labels), d.Name, labels.String(d.Manifest.Labels))
	}
	if runs.Models && runs.Count() > protocol.MaxCellModels {
		return fmt.Errorf("%w: job %s keeps the models of %d runs, want at most %d", errBad, j.Name, runs.Count(), protocol.MaxCellModels)
	}
	one := pipeline.RecordBytes(j.Job, d.Manifest)
	if all := one * int64(runs.Count()); one > protocol.MaxCellRecord || all > protocol.MaxCellRecords {
		return fmt.Errorf("%w: job %s records up to %d bytes in each of %d runs, want at most %d bytes in a run and %d in all runs",
			errBad, j.Name, one, runs.Count(), protocol.MaxCellRecord, protocol.MaxCellRecords)
	}
	if j.Job.Weights != "" {
		return fmt.Errorf("%w: job %s of the experiment starts from the weights of a model; only a single job can do that", errBad, j.Name)
	}
	if err := h.needBlobs(ctx, j.Job); err != nil {
		return err
	}
	return h.quotas.checkMemory(j.Job, d.Manifest)
}
