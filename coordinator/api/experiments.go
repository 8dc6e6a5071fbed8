package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/childjob"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/round"
)

// submitExperiment queues the jobs of an experiment, all of them or none. The same token again
// answers with the jobs that it made.
func (s *Server) submitExperiment(r *http.Request) (any, error) {
	var req protocol.ExperimentRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken-8 {
		return nil, fmt.Errorf("%w: a submission needs a token, of at most %d characters", errBad, protocol.MaxToken-8)
	}
	if err := checkName("experiment", req.Name); err != nil {
		return nil, err
	}
	if n := len(req.Jobs); n == 0 && req.Outline == "" || n > protocol.MaxExperimentJobs {
		return nil, fmt.Errorf("%w: %d jobs of an experiment, want 1 to %d", errBad, n, protocol.MaxExperimentJobs)
	}
	if a := req.Outline; a != "" {
		if err := s.sent(r.Context(), "the outline", a); err != nil {
			return nil, err
		}
	}
	e := protocol.ExperimentEntry{Name: req.Name, Outline: req.Outline}
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
		return nil, fmt.Errorf("%w: job %s of an experiment has no cells, or is of another version", errBad, j.Name)
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
	if c := j.Job.Cells; c.Models && c.Count() > protocol.MaxCellModels {
		return nil, fmt.Errorf("%w: job %s keeps the models of %d cells, at most %d are possible", errBad, j.Name, c.Count(), protocol.MaxCellModels)
	}
	if err := checkRecords(j, d.Manifest); err != nil {
		return nil, err
	}
	if j.Job.Weights != "" {
		return nil, fmt.Errorf("%w: job %s of an experiment begins from weights; only single jobs may", errBad, j.Name)
	}
	if err := s.haveBlobs(ctx, j.Job); err != nil {
		return nil, err
	}
	if err := s.cfg.Quotas.checkMemory(j.Job, d.Manifest); err != nil {
		return nil, err
	}
	return &protocol.SubmitEntry{Name: j.Name, Dataset: d.Name, Spec: j.Spec, Job: j.Job, MaxQueue: uint32(s.cfg.Quotas.Queue), Time: time.Now().Unix()}, nil
}

// checkRecords refuses cells that keep too much beside their outcomes.
func checkRecords(j *protocol.ExperimentJob, m *dataset.Manifest) error {
	one := pipeline.RecordBytes(j.Job, m)
	if all := one * int64(j.Job.Cells.Count()); one > protocol.MaxCellRecord || all > protocol.MaxCellRecords {
		return fmt.Errorf("%w: job %s keeps up to %d bytes of records of each of %d cells, at most %d of each and %d of all are possible",
			errBad, j.Name, one, j.Job.Cells.Count(), protocol.MaxCellRecord, protocol.MaxCellRecords)
	}
	return nil
}

// cells answers with the outcomes of cells that have ended, from a unit on, at most a page.
func (s *Server) cells(r *http.Request) (any, error) {
	j, err := s.findJob(s.cfg.Store.State(), r)
	if err != nil {
		return nil, err
	}
	if j.Job.Cells == nil {
		return nil, fmt.Errorf("%w: %v has no cells", errBad, j)
	}
	from := 0
	if text := r.URL.Query().Get("from"); text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 0 {
			return nil, fmt.Errorf("%w: from=%.80q: want the number of a cell", errBad, text)
		}
	}
	answer := &cellsAnswer{JobCells: protocol.JobCells{Cells: []protocol.CellOutcome{}}, records: r.URL.Query().Get("records") == "true"}
	if j.State == protocol.Done {
		err = s.storedCells(r.Context(), answer, j, from)
	} else {
		err = s.recordedCells(r.Context(), answer, j, from)
	}
	return &answer.JobCells, err
}

// cellsAnswer is an answer in the making.
type cellsAnswer struct {
	protocol.JobCells
	records bool // curves and predictions are asked for
}

// storedCells reads the blob that has the outcome of a cell of a job that is done.
func (s *Server) storedCells(ctx context.Context, answer *cellsAnswer, j *state.Job, from int) error {
	first := 0
	for _, ref := range j.Cells {
		next := first + ref.Count
		if from >= next {
			first = next
			continue
		}
		b, err := s.cfg.Blobs.Get(ctx, ref.Blob)
		if err != nil {
			return err
		}
		parts, took, err := childjob.Cells(b, ref.Count)
		if err != nil {
			return fmt.Errorf("%v: blob %s: %w", j, ref.Blob, err)
		}
		for i := from - first; i < len(parts); i++ {
			ns := uint64(0)
			if took != nil {
				ns = took[i]
			}
			if len(parts[i]) == 0 { // it was not run
				continue
			}
			if err := answer.add(first+i, parts[i], ns); err != nil {
				return err
			}
		}
		if next < j.Job.Cells.Count() {
			answer.Next = next
		}
		return nil
	}
	return nil
}

// recordedCells reads what is recorded of a job that is not done. While it has not ended, a
// result that is not at hand is left out: it may be there later.
func (s *Server) recordedCells(ctx context.Context, answer *cellsAnswer, j *state.Job, from int) error {
	bytes := uint64(0)
	for part := range j.PartsFrom(j.Round+1, uint32(from)) {
		if len(answer.Cells) == protocol.CellsPage || bytes > maxFoldReads || ctx.Err() != nil {
			answer.Next = int(part.Unit)
			break
		}
		if part.Digest == "" { // it is not run
			continue
		}
		bytes += part.Bytes
		get := s.cfg.Blobs.Folder.Get
		if j.State.Final() {
			get = func(digest string) ([]byte, error) { return s.cfg.Blobs.Get(ctx, digest) }
		}
		b, err := get(part.Digest)
		switch {
		case err != nil && j.State.Final():
			return fmt.Errorf("cell %d of %v: %w", part.Unit, j, err)
		case err != nil:
			continue
		}
		if err := answer.add(int(part.Unit), b, part.Compute); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// add adds the outcome of a cell.
func (a *cellsAnswer) add(unit int, part []byte, took uint64) error {
	o, err := childjob.Decode(part)
	if err != nil {
		return err
	}
	c := protocol.CellOutcome{Unit: unit, Outcome: json.RawMessage(o.Head), Seconds: float64(took) / 1e9}
	if a.records {
		c.Curve, c.Predictions = o.Curve, o.Predictions
	}
	a.Cells = append(a.Cells, c)
	return nil
}
