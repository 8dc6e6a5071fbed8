// Package submission says what the jobs of an experiment on a cluster have, and which runs a spec adds to them.
package submission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// Source reads what a cluster has.
type Source interface {
	// ExperimentJobs lists the jobs of an experiment in full.
	ExperimentJobs(ctx context.Context, experiment string) ([]protocol.JobInfo, error)
	// Outcomes calls take with the outcome of each run of a job that has ended. With records, the outcomes have the
	// learning curves and predictions that the job keeps.
	Outcomes(ctx context.Context, job uint64, records bool, take func(protocol.CellOutcome) error) error
	// RunStates calls take with how each run of a job has ended that has ended or is not run.
	RunStates(ctx context.Context, job uint64, take func(protocol.CellState) error) error
	// ReadBlob returns a blob by its digest.
	ReadBlob(ctx context.Context, digest string) ([]byte, error)
}

// ErrNone is the error of an experiment without jobs.
var ErrNone = errors.New("the cluster has no such experiment")

// ErrNoDataset is wrapped by the error of a spec that names a dataset that the cluster does not have.
var ErrNoDataset = errors.New("the cluster has no dataset")

// errUnread is the error of a blob that is perhaps not lost.
var errUnread = errors.New("cannot be read now")

// RequestError is an error of the request that is at no place of the spec.
type RequestError struct{ error }

func requestErrorf(format string, args ...any) error {
	return &RequestError{fmt.Errorf(format, args...)}
}

// maxPath bounds the bytes of a path in a request. Each outline of the experiment has these paths.
const maxPath = 4 << 10

// Experiment is an experiment as a cluster has it.
type Experiment struct {
	Name   string
	Jobs   []*experiment.ClusterJob // by number, so the oldest comes first
	source Source
}

// Read reads the jobs of an experiment. There may be none.
func Read(ctx context.Context, from Source, name string) (*Experiment, error) {
	list, err := from.ExperimentJobs(ctx, name)
	if err != nil {
		return nil, err
	}
	e := &Experiment{Name: name, source: from}
	for i := range list {
		j := &experiment.ClusterJob{JobInfo: &list[i]}
		if j.Spec, err = experiment.DecodeJobSpec(j.JobInfo.Spec); err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		e.Jobs = append(e.Jobs, j)
	}
	slices.SortFunc(e.Jobs, func(a, b *experiment.ClusterJob) int { return cmp.Compare(a.ID, b.ID) })
	return e, nil
}

// states describes the jobs by what makes a decided submission outdated.
func (e *Experiment) states() (list []string) {
	for _, j := range e.Jobs {
		list = append(list, fmt.Sprintf("%d %s %s", j.ID, j.State, j.Outline))
	}
	return list
}

// Layout reads the layout of the last submission.
func (e *Experiment) Layout(ctx context.Context) (*experiment.Layout, error) {
	o, err := e.outline(ctx)
	if err != nil {
		return nil, err
	}
	return o.Layout()
}

// outline reads the outline of the last submission.
func (e *Experiment) outline(ctx context.Context) (*experiment.Outline, error) {
	if len(e.Jobs) == 0 {
		return nil, ErrNone
	}
	digest := e.Jobs[len(e.Jobs)-1].Outline
	if digest == "" {
		return nil, requestErrorf("the jobs of experiment %s do not have its list of runs; coppice experiment run SPEC "+
			"records the list again", e.Name)
	}
	b, err := e.source.ReadBlob(ctx, digest)
	if err != nil && !errors.Is(err, blobs.ErrMissing) {
		return nil, fmt.Errorf("the list of runs of experiment %s %w: %w", e.Name, errUnread, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of runs of experiment %s: %w", e.Name, err)
	}
	return experiment.DecodeOutline(b)
}

// Sets returns the name on the cluster of each dataset of a table, and an empty name if the cluster does not have its
// samples. digest returns the digest of the cluster's dataset of a name, or an empty text.
func (e *Experiment) Sets(t *result.Table, digest func(name string) string) []string {
	on, sets := e.datasets(), make([]string, len(t.Datasets))
	for i := range t.Datasets {
		d := &t.Datasets[i]
		// A dataset without a job, because it refuses all methods, was imported under its name in the experiment.
		if name := cmp.Or(on[d.Name], d.Name); digest(name) == d.Digest {
			sets[i] = name
		}
	}
	return sets
}

// datasets returns, by the experiment's names of datasets, their names on the cluster, if a job has them.
func (e *Experiment) datasets() map[string]string {
	on := make(map[string]string)
	for _, j := range e.Jobs {
		on[j.Spec.Dataset] = j.Dataset
	}
	return on
}

// Table fills the table of the layout with the runs that have ended, and returns it. LeftOut are the runs that have
// ended and are not in the layout.
func (e *Experiment) Table(ctx context.Context, l *experiment.Layout) (t *result.Table, leftOut []result.Name,
	err error) {
	filling, others := l.Filling(), make(map[string]result.Name)
	for _, j := range e.Jobs {
		err := e.eachRecord(ctx, j, l.Record.Any(), func(run *experiment.Run, r *experiment.Record) {
			if counts, has := filling.Put(r); counts && !has {
				others[r.Key] = j.NameOf(run)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return l.Table, slices.SortedFunc(maps.Values(others), result.Name.Compare), nil
}

// eachRecord calls take with the record of each run of a job that has ended. With records, the outcomes have the
// learning curves and predictions that the job keeps.
func (e *Experiment) eachRecord(ctx context.Context, j *experiment.ClusterJob, records bool,
	take func(*experiment.Run, *experiment.Record)) error {
	runs, err := j.Runs()
	if err != nil {
		return err
	}
	return e.source.Outcomes(ctx, j.ID, records, func(o protocol.CellOutcome) error {
		if o.Task < 0 || o.Task >= len(runs) {
			return fmt.Errorf("job %s: run %d of %d", j.Name, o.Task, len(runs))
		}
		run := &runs[o.Task]
		r := &experiment.Record{Key: run.Key, Seconds: max(0, o.Seconds), Outcome: new(pipeline.Outcome)}
		if err := json.Unmarshal(o.Outcome, r.Outcome); err != nil {
			return fmt.Errorf("job %s, run %d: %w", j.Name, o.Task, err)
		}
		if err := r.SetRecorded(o.Curve, o.Predictions); err != nil {
			return fmt.Errorf("job %s, run %d: %w", j.Name, o.Task, err)
		}
		take(run, r)
		return nil
	})
}

// States is Table without values: each run of the table has its state and its error. No outcome is read.
func (e *Experiment) States(ctx context.Context, l *experiment.Layout) (t *result.Table, leftOut []result.Name,
	err error) {
	type end struct {
		why      string // empty: it ended well
		name     result.Name
		attempts int
	}
	ended := make(map[string]end, len(l.Keys))
	for _, j := range e.Jobs {
		runs, err := j.Runs()
		if err != nil {
			return nil, nil, err
		}
		err = e.source.RunStates(ctx, j.ID, func(s protocol.CellState) error {
			if s.Task < 0 || s.Task >= len(runs) {
				return fmt.Errorf("job %s: run %d of %d", j.Name, s.Task, len(runs))
			}
			run := &runs[s.Task]
			if s.NotRun {
				return nil
			}
			now, again := ended[run.Key]
			if !again || now.why != "" {
				now.why, now.name = s.Error, j.NameOf(run)
			}
			now.attempts++
			ended[run.Key] = now
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	t = l.Fill(nil)
	for i := range t.Runs {
		if end, ok := ended[l.Keys[i]]; ok {
			c := &t.Runs[i]
			c.Error, c.State = end.why, result.Done
			if end.why != "" {
				c.State, c.Attempts = result.Failed, end.attempts
			}
		}
	}
	known := l.Has()
	for key, end := range ended {
		if !known[key] {
			leftOut = append(leftOut, end.name)
		}
	}
	slices.SortFunc(leftOut, result.Name.Compare)
	return t, leftOut, nil
}

// endedRun is a run that has ended.
type endedRun struct {
	*experiment.Record
	job uint64
}

// ended reads the runs that have ended in the jobs for which of is true, by their keys. A run may have ended in several
// jobs: a later outcome counts if the earlier one failed or has less. Record.Attempts counts the jobs that were read.
func (e *Experiment) ended(ctx context.Context, records bool,
	of func(*experiment.ClusterJob) bool) (map[string]endedRun, error) {
	all := make(map[string]endedRun)
	for _, j := range e.Jobs {
		if !of(j) {
			continue
		}
		err := e.eachRecord(ctx, j, records, func(_ *experiment.Run, r *experiment.Record) {
			before, attempts := all[r.Key].Record, 1
			if before != nil {
				attempts += before.Attempts
			}
			if r.BetterThan(before) {
				all[r.Key] = endedRun{r, j.ID}
			}
			all[r.Key].Attempts = attempts
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
