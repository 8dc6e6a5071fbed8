package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// submitFlags say how a job is submitted.
type submitFlags struct {
	Shared bool      `seldom:"" group:"cluster" help:"Let all users of the cluster read the data, models and predictions (default: only you and admins)."`
	Audit  auditRate `group:"cluster" seldom:"" placeholder:"RATE" help:"Fraction of the tasks, 0 to 1, that two workers compute, so that their results can be compared. A worker with a wrong result is reported and quarantined (default: 0)."`
}

// submit imports the data file, if there is one, checks the spec against the dataset, so that errors name lines of the
// spec, and submits the job. If it is interrupted during the submission, its error says that there may be a job. keep
// refuses a job that would not keep its predictions. An interrupted request has grace more time for its answer. made is
// true if there was no such job before.
func submit(a *app, cl *client.Client, s *specFlags, d *dataFlags, file *spec.File, flags submitFlags, keep bool, grace time.Duration) (job *protocol.JobInfo, made bool, err error) {
	set, err := s.dataset(a, cl, d, file, flags.Shared)
	if err != nil {
		return nil, false, err
	}
	file.Spec.Dataset = set.Name
	r, err := s.resolve(a, cl, file, set.Manifest)
	if err != nil {
		return nil, false, err
	}
	sent := slices.DeleteFunc([][]byte{r.folds, r.weights}, func(b []byte) bool { return b == nil })
	if keep {
		if r.assigned == nil {
			if r.assigned, err = assignedFolds(a, cl, r.Job, set.Manifest); err != nil {
				return nil, false, err
			}
		}
		if err := keepable(r.Job, set.Manifest, r.assigned); err != nil {
			return nil, false, err
		}
	}
	// The submission refuses a wrong name.
	before := uint64(0) // the number of the job that has the name
	if protocol.CheckName(file.Spec.Name) == nil {
		switch j, err := cl.Job(a.ctx, file.Spec.Name); {
		case err == nil:
			before = j.ID
		case !client.IsNotFound(err):
			return nil, false, err
		}
	}
	ctx, stop := lasting(a.ctx, grace)
	defer stop()
	err = client.Sending(ctx, cl, sent, func() error {
		job, err = cl.SubmitRequest(ctx, protocol.SubmitRequest{Spec: file.Spec, Audit: float64(flags.Audit), Shared: flags.Shared})
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil, false, interruptedBy("interrupted; the job may have been submitted: see coppice job list")
	}
	made = err == nil && before != job.ID
	if err == nil && !made && job.ModelDeleted == 0 {
		if text := wasThere(job); job.State != protocol.Done || !toLibrary(a.stderr, "note", text) {
			a.note("%s", text)
		}
	}
	if err == nil && flags.Shared && job.Private {
		noteNotShared(a, "job", job.Name)
	}
	return job, made, err
}

// wasThere says that a submission made no new job.
func wasThere(j *protocol.JobInfo) errtext.Text {
	if j.State == protocol.Done {
		return errtext.Sprintf("job %s with the same spec is already done (%s), so nothing was trained; to train again, give another {name}", j.Name, clock(j.Ended))
	}
	return errtext.Sprintf("job %s with the same spec was already submitted (%s) and is %s; no new job was made", j.Name, clock(j.Submitted), j.State)
}

// dataset returns the dataset to train on. It imports a data file, and if shared is true, all users may read that.
func (s *specFlags) dataset(a *app, cl *client.Client, d *dataFlags, file *spec.File, shared bool) (*protocol.Dataset, error) {
	if s.Data == "" {
		return cl.Dataset(a.ctx, file.Spec.Dataset)
	}
	src, checks, err := d.open(a, s.Data)
	if err != nil {
		return nil, err
	}
	m := newMeter(a)
	m.quiet = a.json
	defer m.clear()
	set, err := client.ImportFree(a.ctx, cl, protocol.DatasetPut{Name: datasetName(s.Data), Shared: shared}, src, m.reading(a.ctx, "reading data", checks))
	a.said = m.said
	if err == nil && shared && set.Private {
		noteNotShared(a, "dataset", set.Name)
	}
	return set, err
}

// keepable returns an error if the predictions of a job would not be kept.
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
		return usagef("{predictions-out}: the predictions take %s bytes; at most %s are possible", units.Count(bytes), units.Count(spec.MaxPredictions))
	case bytes > j.Predictions:
		return usagef("{predictions-out}: the predictions take %s bytes, more than the setting keep_predictions; give {set=keep_predictions=%d}", units.Count(bytes), bytes)
	}
	return nil
}

// assignedFolds reads the list of folds of a job; nil if it has none.
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

// watch shows the progress of a job until it ends, also if the leader changes or the cluster does not answer for a
// while. If it is interrupted, its error says that the job continues.
func watch(a *app, cl *client.Client, j *protocol.JobInfo) (*protocol.JobInfo, error) {
	m := newMeter(a)
	last, err := cl.Watch(a.ctx, strconv.FormatUint(j.ID, 10), m.job)
	m.clear()
	return last, jobContinues(a, j.Name, err)
}

// left replaces the error of an interrupted command by an error that says that the job continues.
func jobContinues(a *app, job string, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return interruptedBy(fmt.Sprintf("job %s continues without this command; to watch it: %s; to cancel it: %s", job, a.command("job watch "+job), a.command("job cancel "+job)))
}

// submitGrace is how long the answer to an interrupted submission is awaited. It is less than endWithin.
const submitGrace = time.Second

// lasting returns a context that ends a while after ctx.
func lasting(ctx context.Context, while time.Duration) (longer context.Context, stop func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() { unlink(); cancel() }
}

// withdraw cancels a job of an interrupted command, and returns an error that says what became of the job.
func withdraw(a *app, cl *client.Client, j *protocol.JobInfo, within time.Duration) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(a.ctx), within)
	defer stop()
	if _, err := cl.Cancel(ctx, strconv.FormatUint(j.ID, 10)); err != nil {
		return interruptedBy(fmt.Sprintf("interrupted, but job %s could not be cancelled: %s; to cancel it: %s", j.Name, message(err), a.command("job cancel "+j.Name)))
	}
	return interruptedBy(fmt.Sprintf("interrupted; job %s was cancelled", j.Name))
}

// timedOut says in which state a job is after the wait.
func timedOut(a *app, j *protocol.JobInfo) error {
	text := fmt.Sprintf("job %s is still %s", j.Name, j.State)
	switch {
	case a.cluster.isSilent():
		text = fmt.Sprintf("the cluster does not answer; when it last did, job %s was %s", j.Name, j.State)
	case j.State == protocol.Paused:
		text += "; to resume it: " + a.command("job resume "+j.Name)
	case j.Waiting != "":
		text += " and waits: " + j.Waiting
	}
	return ofKindError(kindTimeout, errors.New(text))
}

// warnSuspect warns that the result of a job may be wrong.
func warnSuspect(a *app, j *protocol.JobInfo) {
	if j.Suspect != "" {
		a.note("warning: the model of job %s may be wrong: %s", j.Name, j.Suspect)
	}
}

// modelHint says how to download the models of a job.
func modelHint(a *app, j *protocol.JobInfo) string {
	if j.ModelDeleted != 0 {
		return "deleted " + clock(j.ModelDeleted)
	}
	if len(j.Models) > 1 {
		return a.command("model download "+j.Name+"/0 --out FILE") + ", and so on for each fold"
	}
	return a.command("model download " + j.Name + " --out FILE")
}

// addDataset adds the manifest of a job's dataset to the result and, if divide is true, the job's division. If the
// dataset was deleted, the manifest is not known, and the division is an error.
func addDataset(a *app, cl *client.Client, r *result, j *protocol.JobInfo, divide bool) error {
	set, err := cl.Dataset(a.ctx, j.Dataset)
	if err == nil && set.Digest == j.Job.Dataset {
		r.setDataset(set.Manifest)
	}
	switch {
	case !divide:
		return nil
	case client.IsNotFound(err) || err == nil && r.On == nil:
		return errtext.Errorf(errtext.WrongRequest, "{split-out}: dataset %s was deleted, together with the row numbers of its file; import the file again under this name, and repeat the command", j.Dataset)
	case err != nil:
		return err
	}
	assigned, err := assignedFolds(a, cl, j.Job, set.Manifest)
	if err != nil {
		return err
	}
	r.Division, err = divisionOf(j.Job, set.Manifest.Rows, assigned)
	return err
}

// divisionOf returns what --split-out writes of a job: its folds or overlapping splits, or else one split with its test
// samples. assigned is the list that j.Split.Assigned names.
func divisionOf(j *round.Job, rows int, assigned []uint16) (*dataset.SplitList, error) {
	s := j.Split
	switch {
	case j.Folds > 0 && s.Assigned != "":
		list := &dataset.SplitList{Assigned: assigned, Folds: s.Folds, Overlap: s.Overlap}
		return list.Disjoint(), nil
	case j.Folds > 0:
		return &dataset.SplitList{Assigned: s.Divide(rows), Folds: s.Folds}, nil
	}
	roles, err := s.Assign(rows, assigned)
	if err != nil {
		return nil, err
	}
	tests := make([]uint16, rows)
	for row, role := range roles {
		if role == dataset.Test {
			tests[row] = 1
		}
	}
	return &dataset.SplitList{Assigned: tests, Folds: 1, Overlap: true}, nil
}
