package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// cellFlags say what is recorded of cells that are run, and which cells that have ended are run again.
type cellFlags struct {
	Record      []string `placeholder:"WORDS" help:"Data to record of each run, for the figures of reports: curve (the learning curve), predictions (of 6 test samples), or both (default: the key record of the spec)."`
	RecordAgain bool     `help:"Repeat the runs that ended without the data of --record."`
	RetryFailed bool     `help:"Repeat the runs that failed."`
}

// set takes the flags into a spec.
func (f *cellFlags) set(s *experiment.Spec) error {
	if len(f.Record) > 0 {
		if err := s.SetRecorded(f.Record); err != nil {
			return usagef("--record: %v", err)
		}
	}
	if f.RecordAgain && !s.Record.Any() {
		return usagef("--record-again: nothing is to be recorded; give --record, or the key record in the spec")
	}
	return nil
}

// wants reports whether a cell that has ended is run again.
func (f *cellFlags) wants(r *experiment.Record, of *experiment.Recorded) bool {
	return f.RetryFailed && r.Outcome.Error != "" || f.RecordAgain && r.Lacks(of)
}

// planThere puts the datasets on the cluster and plans their cells.
func (s *specArg) planThere(a *app, cl *client.Client, of *experiment.Spec) (plans []submission.Plan, skipped []string, err error) {
	var mistakes experiment.Errors
	for i := range of.Datasets {
		d := &of.Datasets[i]
		if d.File != "" && len(mistakes) > 0 { // nothing is run, so nothing is imported
			m := newMeter(a.stderr)
			err := s.checkFile(a, m, of, d)
			m.clear()
			if err != nil && !a.collect(&mistakes, err) {
				return nil, nil, err
			}
			continue
		}
		there, err := true, error(nil)
		if d.File != "" {
			there, err = s.isThere(of, d)
		}
		if err == nil && !there {
			a.note("skipped: dataset %s, because %s does not exist", d.Name, s.path(d.File))
			skipped = append(skipped, d.Name)
			continue
		}
		var p submission.Plan
		if err == nil {
			p, err = s.planOne(a, cl, of, d)
		}
		if err != nil && !a.collect(&mistakes, err) {
			return nil, nil, err
		}
		plans = append(plans, p)
	}
	if err := mistakes.Sorted(); err != nil {
		return nil, nil, err
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("%s: the files of all datasets are missing", s.Spec)
	}
	return plans, skipped, nil
}

func (s *specArg) planOne(a *app, cl *client.Client, of *experiment.Spec, d *experiment.Dataset) (none submission.Plan, _ error) {
	set, err := s.send(a, cl, of, d)
	if err != nil {
		return none, err
	}
	data := &experiment.Data{Manifest: set.Manifest}
	if g := set.Manifest.Groups; g != nil && d.Folds.Way == folds.Groups {
		b, err := cl.Blob(a.ctx, g.Digest)
		if err != nil {
			return none, err
		}
		if data.Groups, err = dataset.DecodeFolds(b, set.Manifest.Rows); err != nil {
			return none, err
		}
	}
	if data.Splits, err = s.splits(of, d, set.Manifest); err != nil {
		return none, err
	}
	p, err := experiment.NewPlan(of, d, data)
	return submission.Plan{Plan: p, On: set.Name}, err
}

// send returns the dataset on the cluster, importing a file.
func (s *specArg) send(a *app, cl *client.Client, of *experiment.Spec, d *experiment.Dataset) (*protocol.Dataset, error) {
	if d.On != "" {
		set, err := cl.Dataset(a.ctx, d.On)
		if client.IsNotFound(err) {
			return nil, of.Error(d.At, "the cluster has no dataset %q", d.On)
		}
		return set, err
	}
	src, checks, err := s.source(a, of, d)
	if err != nil {
		return nil, err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	set, err := importAs(a.ctx, cl, d.Name, src, readingFor(a.ctx, "reading data", checks, m))
	if client.IsConflict(err) {
		return nil, of.Error(d.At, "%v; give this experiment another name with the key name", err)
	}
	return set, located(of, d, err)
}

// noExperiment says that a cluster has no experiment of that name.
func noExperiment(name string) error {
	return absent{fmt.Errorf("the cluster has no experiment %q; coppice experiment list shows its experiments", name)}
}

// clusterSource reads experiments from a cluster.
type clusterSource struct{ *client.Client }

// ExperimentJobs implements submission.Source.
func (s clusterSource) ExperimentJobs(ctx context.Context, experiment string) ([]protocol.JobInfo, error) {
	list, err := s.ListJobs(ctx, protocol.JobQuery{Experiment: experiment, Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	return list.Jobs, nil
}

// Outcomes implements submission.Source.
func (s clusterSource) Outcomes(ctx context.Context, job uint64, records bool, take func(protocol.CellOutcome) error) error {
	return s.Experiments().Outcomes(ctx, job, records, take)
}

// ReadBlob implements submission.Source.
func (s clusterSource) ReadBlob(ctx context.Context, digest string) ([]byte, error) {
	return s.Blob(ctx, digest)
}

// clusterTable is the table of an experiment so far.
type clusterTable struct {
	*tables.Table
	layout *experiment.Layout
	state  string
	notes  []string // about runs that have ended and are not in the table
}

// tableThere reads the table of an experiment on a cluster so far, in a layout; nil: in the layout of the last submission. spec
// is the file of the spec; empty: the command was not given it.
func tableThere(a *app, cl *client.Client, name string, l *experiment.Layout, spec string, f *serverFlags) (*clusterTable, error) {
	e, err := submission.Read(a.ctx, clusterSource{cl}, name)
	if err == nil && len(e.Jobs) == 0 {
		err = noExperiment(name)
	}
	if err == nil && l == nil {
		l, err = e.Layout(a.ctx)
	}
	if err != nil {
		return nil, err
	}
	t, leftOut, err := e.Table(a.ctx, l)
	if err != nil {
		return nil, err
	}
	var jobs []state.Job
	for _, j := range slices.Backward(e.Jobs) {
		jobs = append(jobs, state.Job{JobInfo: j.JobInfo})
	}
	err = addCommandsThere(a, cl, e, t, l, spec, f)
	return &clusterTable{t, l, string(state.Of(jobs).State), experiment.LeftOutNote(leftOut)}, err
}

// noteAll prints notes.
func (a *app) noteAll(list []string) {
	for _, text := range list {
		a.note("%s", text)
	}
}

// submit submits the runs of a spec that no job of its experiment has, and the runs that flags repeat. models: their
// models are kept.
func (s *specArg) submit(a *app, cl *client.Client, of *experiment.Spec, flags *cellFlags, models bool) (*submission.Submission, error) {
	e, err := submission.Read(a.ctx, clusterSource{cl}, of.Name)
	if err != nil {
		return nil, err
	}
	plans, skipped, err := s.planThere(a, cl, of)
	if err != nil {
		return nil, err
	}
	sub, err := e.Add(a.ctx, of, plans, skipped, submission.Options{RetryFailed: flags.RetryFailed, RecordAgain: flags.RecordAgain, Models: models})
	if err != nil {
		return nil, err
	}
	a.noteAll(sub.Notes)
	return sub, sendSubmission(a, cl, sub)
}

// sendSubmission sends a submission, unless it is empty.
func sendSubmission(a *app, cl *client.Client, sub *submission.Submission) error {
	if sub.Empty {
		return nil
	}
	for _, b := range sub.Blobs {
		if _, err := cl.PutBlob(a.ctx, b); err != nil {
			return err
		}
	}
	_, err := cl.Experiments().Submit(a.ctx, sub.Request)
	if errors.Is(err, context.Canceled) {
		err = interrupted{"interrupted; the experiment may have been submitted: see coppice experiment list"}
	}
	return err
}
