package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// submit imports the data where it is a file, checks the spec against the
// dataset, so that errors name its lines, and submits the job. Interrupted while the
// answer is due, it says that there may be a job. With keep, a job that would not keep
// its predictions is refused.
func submit(a *app, cl *client.Client, s *specFlags, d *dataFlags, file *spec.File, audit auditRate, keep bool) (*protocol.JobInfo, error) {
	set, err := s.dataset(a, cl, d, file)
	if err != nil {
		return nil, err
	}
	file.Spec.Dataset = set.Name
	r, err := s.resolve(a, cl, file, set.Manifest)
	if err != nil {
		return nil, err
	}
	for _, blob := range [][]byte{r.folds, r.weights} {
		if blob == nil {
			continue
		}
		if _, err := cl.PutBlob(a.ctx, blob); err != nil {
			return nil, err
		}
	}
	if keep {
		if r.assigned == nil {
			if r.assigned, err = assignedFolds(a, cl, r.Job, set.Manifest); err != nil {
				return nil, err
			}
		}
		if err := keepable(r.Job, set.Manifest, r.assigned); err != nil {
			return nil, err
		}
	}
	before := uint64(0) // the number of the job that has the name
	if protocol.CheckName(file.Spec.Name) == nil {
		switch j, err := cl.Job(a.ctx, file.Spec.Name); {
		case err == nil:
			before = j.ID
		case !client.IsNotFound(err):
			return nil, err
		}
	}
	job, err := cl.SubmitRequest(a.ctx, protocol.SubmitRequest{Spec: file.Spec, Audit: float64(audit)})
	if errors.Is(err, context.Canceled) {
		return nil, interrupted{"interrupted; the job may have been submitted: see coppice job list"}
	}
	if err == nil && before == job.ID && job.ModelDeleted == 0 {
		a.note("%s", wasThere(job))
	}
	return job, err
}

// wasThere says of a job that a submission was answered with that no other one was made.
func wasThere(j *protocol.JobInfo) string {
	if j.State == protocol.Done {
		return fmt.Sprintf("job %s with the same spec is already done (%s), so nothing was trained; to train again, give another --name", j.Name, clock(j.Ended))
	}
	return fmt.Sprintf("job %s with the same spec was already submitted (%s) and is %s; no new job was made", j.Name, clock(j.Submitted), j.State)
}

// dataset returns the dataset that a job is to train on, importing a file.
func (s *specFlags) dataset(a *app, cl *client.Client, d *dataFlags, file *spec.File) (*protocol.Dataset, error) {
	if s.Data == "" {
		return cl.Dataset(a.ctx, file.Spec.Dataset)
	}
	src, checks, err := d.open(a, s.Data)
	if err != nil {
		return nil, err
	}
	m := newMeter(a.stderr)
	m.quiet = a.json
	defer m.clear()
	set, err := importAs(a.ctx, cl, datasetName(s.Data), src, readingFor(a.ctx, "reading data", checks, m))
	a.said = m.said
	return set, err
}

// importAs imports a file of a job under its own name, or, where other data or the same
// with other names of columns, numbers of rows, labels or groups has that, with the beginning of its
// digest added, and a number where the same with others has that too.
func importAs(ctx context.Context, cl *client.Client, name string, src dataset.Source, o dataset.ImportOptions) (*protocol.Dataset, error) {
	dir, err := tempdir.Make("import")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	m, err := dataset.Import(src, dir.Path, o)
	if err != nil {
		return nil, err
	}
	free := name
	for n := 1; ; n++ {
		have, err := cl.Dataset(ctx, free)
		switch {
		case client.IsNotFound(err), err == nil && have.Digest == m.Digest() && m.Same(have.Manifest) == nil:
			return cl.Upload(ctx, free, m, dir.Path, o.Progress) // of one that is there: what the cluster has lost of it
		case err != nil:
			return nil, err
		}
		if free = name + "-" + m.Digest()[:8]; n > 1 {
			free += fmt.Sprintf("-%d", n)
		}
	}
}

// keepable refuses to train for predictions that would not be kept.
func keepable(j *round.Job, m *dataset.Manifest, assigned []uint16) error {
	roles, err := j.Split.Assign(m.Rows, assigned)
	if err != nil {
		return err
	}
	n := 0
	for _, r := range roles {
		if r == dataset.Test {
			n++
		}
	}
	switch bytes := pipeline.PredictionBytes(j, m, n); {
	case bytes > spec.MaxPredictions:
		return usagef("--predictions-out: the predictions take %s bytes; at most %s are possible", count(bytes), count(spec.MaxPredictions))
	case bytes > j.Predictions:
		return usagef("--predictions-out: the predictions take %s bytes, more than the setting keep_predictions; give --set keep_predictions=%d", count(bytes), bytes)
	}
	return nil
}

// assignedFolds reads the list of folds of a job that was given one.
func assignedFolds(a *app, cl *client.Client, j *round.Job, m *dataset.Manifest) ([]uint16, error) {
	if j.Split.Assigned == "" {
		return nil, nil
	}
	b, err := cl.Blob(a.ctx, j.Split.Assigned)
	if err != nil {
		return nil, err
	}
	return j.Split.Decode(b, m.Rows)
}

// watch shows a job's progress until it ends, however often the cluster changes its
// leader or is away meanwhile. Interrupted, it says that the job goes on.
func watch(a *app, cl *client.Client, j *protocol.JobInfo) (*protocol.JobInfo, error) {
	m := newMeter(a.stderr)
	m.told = a.newProgressLines()
	last, err := cl.Watch(a.ctx, strconv.FormatUint(j.ID, 10), m.job)
	m.clear()
	return last, left(j.Name, err)
}

// job shows a job's state.
func (m *meter) job(j *protocol.JobInfo) {
	switch {
	case j.WaitingFor != "":
		m.first = nil // what comes counts from there
		m.waiting(fmt.Sprintf("job %s is %s and waits: %s", j.Name, j.State, j.Waiting))
	case j.State == protocol.Queued:
		m.first = nil
		m.show(fmt.Sprintf("job %s is queued", j.Name))
	case j.State == protocol.Paused:
		m.first = nil
		m.show(fmt.Sprintf("job %s is paused; to resume it: coppice job resume %s", j.Name, j.Name))
	case j.Progress != nil:
		m.training(*j.Progress)
	}
}

// left says of an interrupted command that its job goes on.
func left(job string, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return interrupted{fmt.Sprintf("job %s continues without this command; to watch it: coppice job watch %s; to cancel it: coppice job cancel %s", job, job, job)}
}

// warnSuspect says that a job's results may be wrong.
func (a *app) warnSuspect(j *protocol.JobInfo) {
	if j.Suspect != "" {
		a.note("warning: the model of job %s may be wrong: %s", j.Name, j.Suspect)
	}
}
