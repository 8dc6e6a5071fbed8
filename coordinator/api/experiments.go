package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// submitExperiment queues the jobs of an experiment, all of them or none. The same token again
// answers with the jobs that it made.
func (s *Server) submitExperiment(r *http.Request) (any, error) {
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
	if a := req.Outline; a != "" {
		if err := s.sent(r.Context(), "the outline", a); err != nil {
			return nil, err
		}
	}
	e := protocol.ExperimentEntry{Name: req.Name, Outline: req.Outline, After: req.After}
	for i := range req.Jobs {
		entry, err := s.experimentJob(r.Context(), &req.Jobs[i])
		if err != nil {
			return nil, err
		}
		entry.Token = fmt.Sprintf("%s/%d", req.Token, i)
		e.Jobs = append(e.Jobs, *entry)
	}
	_, made, err := s.cfg.Store.Propose(r.Context(), protocol.EncodeEntry(protocol.EntryExperiment, e))
	if err != nil {
		return nil, err
	}
	jobs := made.([]*state.Job)
	return s.list(s.cfg.Store.State(), jobs, len(jobs), false), nil
}

// experimentJob checks one job of an experiment.
func (s *Server) experimentJob(ctx context.Context, j *protocol.ExperimentJob) (*protocol.SubmitEntry, error) {
	if err := checkName("job", j.Name); err != nil {
		return nil, err
	}
	if j.Job == nil || j.Job.Cells == nil || j.Job.Algorithm != round.AlgorithmCells || j.Job.Numerics != round.Numerics {
		return nil, fmt.Errorf("%w: job %s of the experiment has no runs, or comes from another version of Coppice", errBad, j.Name)
	}
	d, err := s.findDataset(j.Dataset)
	if err != nil {
		return nil, err
	}
	if err := j.Job.Split.Check(); err != nil {
		return nil, bad{err}
	}
	if err := j.Job.Cells.Check(j.Job.Split.Folds, j.Job.Split.Overlap); err != nil {
		return nil, bad{fmt.Errorf("job %s: %w", j.Name, err)}
	}
	if labels := &d.Manifest.LabelType; !j.Job.Cells.Labels.Same(labels) { // no part of the digest: cells have their keys by them
		return nil, fmt.Errorf("%w: job %s expects labels that are %s, but the labels of dataset %s are %s; submit the experiment again",
			errBad, j.Name, j.Job.Cells.Labels.String(d.Manifest.Labels), d.Name, labels.String(d.Manifest.Labels))
	}
	if c := j.Job.Cells; c.Models && c.Count() > protocol.MaxCellModels {
		return nil, fmt.Errorf("%w: job %s keeps the models of %d runs, want at most %d", errBad, j.Name, c.Count(), protocol.MaxCellModels)
	}
	if err := checkRecorded(j, d.Manifest); err != nil {
		return nil, err
	}
	if j.Job.Weights != "" {
		return nil, fmt.Errorf("%w: job %s of the experiment starts from the weights of a model; only a single job can do that", errBad, j.Name)
	}
	if err := s.haveBlobs(ctx, j.Job); err != nil {
		return nil, err
	}
	if err := s.cfg.Quotas.checkMemory(j.Job, d.Manifest); err != nil {
		return nil, err
	}
	return &protocol.SubmitEntry{Name: j.Name, Dataset: d.Name, Spec: j.Spec, Job: j.Job, MaxQueue: uint32(s.cfg.Quotas.Queue), Time: time.Now().Unix()}, nil
}

// checkRecorded refuses cells that keep too much beside their outcomes.
func checkRecorded(j *protocol.ExperimentJob, m *dataset.Manifest) error {
	one := pipeline.RecordBytes(j.Job, m)
	if all := one * int64(j.Job.Cells.Count()); one > protocol.MaxCellRecord || all > protocol.MaxCellRecords {
		return fmt.Errorf("%w: job %s records up to %d bytes in each of %d runs, want at most %d bytes in a run and %d in all runs",
			errBad, j.Name, one, j.Job.Cells.Count(), protocol.MaxCellRecord, protocol.MaxCellRecords)
	}
	return nil
}
