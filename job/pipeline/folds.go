package pipeline

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
)

// folds runs the job once for each fold, as sub-jobs, in one gather round.
// Each child has the digest of the same job run alone.
type folds struct {
	job      *round.Job
	encoded  [][]byte // the children's encoded outcomes, once collected
	outcomes []*Outcome
	round    round.Round
}

func newFolds(j *round.Job, m *dataset.Manifest, state []byte) (Finisher, error) {
	t := &folds{job: j}
	if state == nil {
		return t, nil
	}
	return t, t.restore(state)
}

// SubJob returns the job of one fold of a job of folds.
func SubJob(j *round.Job, fold int) *round.Job {
	child := *j
	child.Folds = 0
	child.Split.Fold = fold
	return &child
}

// NameFold says which fold, or which group that is tested, an error of a sub-job of parent is of.
func NameFold(parent, child *round.Job, m *dataset.Manifest, err error) error {
	if err == nil || parent.Folds == 0 {
		return err
	}
	if group := testedGroup(child, m); group != "" {
		return fmt.Errorf("without the group %q: %w", group, err)
	}
	return fmt.Errorf("fold %d: %w", child.Split.Fold, err)
}

// ChildOf returns the job of a task of a round of sub-jobs: a fold, a run, or what the job's
// algorithm says. Errors are the algorithm's, or say that there is no such run.
func SubJobOf(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error) {
	switch {
	case j.Cells != nil:
		return Cell(j, unit)
	case j.Folds > 0:
		return SubJob(j, unit), nil
	}
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	p, ok := a.(algorithms.Parent)
	if !ok {
		return nil, fmt.Errorf("%s has no sub-jobs", j.Algorithm)
	}
	return p.SubJob(j, m, unit)
}

// Next implements round.Trainer.
func (t *folds) Next() (*round.Round, error) {
	t.round = round.Round{Done: t.outcomes != nil}
	if t.round.Done {
		return &t.round, nil
	}
	t.round.Kind = "fold"
	t.round.Tasks, t.round.Scope, t.round.How = t.job.Folds, round.Whole, round.Gather
	t.round.SubJob = func(fold int) *round.Job { return SubJob(t.job, fold) }
	return &t.round, nil
}

// Fold implements round.Trainer.
func (t *folds) Fold(res *round.Result) error {
	return t.decode(res.Gathered)
}

func (t *folds) decode(encoded [][]byte) error {
	if len(encoded) != t.job.Folds {
		return fmt.Errorf("got %d results for %d folds", len(encoded), t.job.Folds)
	}
	var outcomes []*Outcome
	for f, b := range encoded {
		o, err := DecodeOutcome(b)
		if err != nil {
			return fmt.Errorf("fold %d: %w", f, err)
		}
		outcomes = append(outcomes, o)
	}
	t.encoded, t.outcomes = encoded, outcomes
	return nil
}

// Progress implements round.Trainer: it sums over the folds.
func (t *folds) Progress() round.Progress {
	units := make([]round.TaskProgress, t.job.Folds)
	for f, o := range t.outcomes {
		units[f] = round.TaskProgress{Progress: o.progress(), Known: true, Done: true}
	}
	return SumFolds(units)
}

// ResultProgress implements algorithms.TaskReporter.
func (t *folds) ResultProgress(encoded []byte) (round.Progress, error) {
	o, err := DecodeOutcome(encoded)
	if err != nil {
		return round.Progress{Loss: -1}, err
	}
	return o.progress(), nil
}

// SumFolds returns the progress of a job of folds from the progress of each fold.
func SumFolds(folds []round.TaskProgress) round.Progress {
	sum, done := childjob.Sum(folds)
	sum.Phase = fmt.Sprintf("%d of %d folds done", done, len(folds))
	return sum
}

// RoundProgress implements algorithms.TaskReporter.
func (t *folds) RoundProgress(units []round.TaskProgress) round.Progress {
	return SumFolds(units)
}

// Counters implements algorithms.Trainer: each fold counts for itself.
func (t *folds) Counters() map[string]uint64 { return nil }

// Model implements algorithms.Trainer: a job of folds has one model for each fold,
// in its Outcome, and none of its own.
func (t *folds) Model() (algorithms.Model, error) {
	return nil, errors.New("a job with folds has no single model: each fold has its own")
}

// Outcome implements Finisher.
func (t *folds) Outcome() (*Outcome, error) {
	if t.outcomes == nil {
		return nil, errors.New("the job is not finished yet")
	}
	o := &Outcome{ModelDigest: foldsDigest(t.outcomes), EvaluatedOn: t.outcomes[0].EvaluatedOn, Rows: t.outcomes[0].Rows, Added: addedOverFolds(t.outcomes)}
	var reports, meanPredictors []measures.Report
	for _, f := range t.outcomes {
		o.Folds = append(o.Folds, withoutConfusion(f))
		o.Steps += f.Steps
		o.RefitSteps += f.RefitSteps
		o.Samples += f.Samples
		reports = append(reports, f.Measures)
		meanPredictors = append(meanPredictors, f.MeanPredictor)
		o.count(f.Counters)
	}
	o.Loss = meanLoss(t.outcomes)
	o.Measures, o.MeanPredictor = measures.OverFolds(reports), measures.OverFolds(meanPredictors)
	var err error
	o.Predictions, err = mergePredictions(t.outcomes)
	return o, err
}

// meanLoss is the mean of the folds' training losses; -1 if one is unknown.
func meanLoss(folds []*Outcome) (mean float64) {
	for _, f := range folds {
		if f.Loss < 0 {
			return -1
		}
		mean += f.Loss / float64(len(folds))
	}
	return mean
}

// count adds counters to the outcome's.
func (o *Outcome) count(counters map[string]uint64) {
	for name, n := range counters {
		if o.Counters == nil {
			o.Counters = make(map[string]uint64)
		}
		o.Counters[name] += n
	}
}

// AppendState implements round.Trainer.
func (t *folds) AppendState(dst []byte) ([]byte, error) {
	return fields.Append(dst, stateVersion, t.state)
}

// state lists the fields of the state: the encoded outcomes, once they are collected.
func (t *folds) state(l *fields.List) {
	n := l.Count(len(t.encoded), t.job.Folds)
	if l.Reading() && n > 0 {
		t.encoded = make([][]byte, n)
	}
	for i := range t.encoded {
		l.Bytes(&t.encoded[i])
	}
}

func (t *folds) restore(b []byte) error {
	if err := fields.Read(b, stateVersion, t.state); err != nil || t.encoded == nil {
		return err
	}
	return t.decode(t.encoded)
}
