// Package submission says what the jobs of an experiment on a cluster have, and which runs a spec adds to them.
package submission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// ReadBlob returns a blob by its digest.
	ReadBlob(ctx context.Context, digest string) ([]byte, error)
}

// ErrNone is the error of an experiment without jobs.
var ErrNone = errors.New("the cluster has no such experiment")

// errUnread is the error of a blob that is perhaps not lost.
var errUnread = errors.New("cannot be read now")

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
		return nil, fmt.Errorf("the jobs of experiment %s do not have its list of runs; coppice experiment run SPEC records the list again", e.Name)
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

// Table fills the table of a layout with the runs that have ended. LeftOut are the runs that have ended and are not in
// the layout.
func (e *Experiment) Table(ctx context.Context, l *experiment.Layout) (t *result.Table, leftOut []result.Name, err error) {
	all, err := e.ended(ctx, l.Record.Any(), func(*experiment.ClusterJob) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	records, known := make(map[string]*experiment.Record, len(all)), l.Has()
	for key, r := range all {
		records[key] = r.Record
		if !known[key] {
			leftOut = append(leftOut, r.name)
		}
	}
	slices.SortFunc(leftOut, result.Name.Compare)
	return l.Fill(records, nil), leftOut, nil
}

// endedRun is a run that has ended.
type endedRun struct {
	*experiment.Record
	name result.Name
	job  uint64
}

// ended reads the runs that have ended in the jobs for which of is true, by their keys. A run may have ended in several jobs: a
// later outcome counts if the earlier one failed or has less.
func (e *Experiment) ended(ctx context.Context, records bool, of func(*experiment.ClusterJob) bool) (map[string]endedRun, error) {
	all := make(map[string]endedRun)
	for _, j := range e.Jobs {
		if !of(j) {
			continue
		}
		runs, err := j.Cells()
		if err != nil {
			return nil, err
		}
		err = e.source.Outcomes(ctx, j.ID, records, func(o protocol.CellOutcome) error {
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
			if r.BetterThan(all[r.Key].Record) {
				all[r.Key] = endedRun{r, j.NameOf(run), j.ID}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
