package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/job/enhance"
)

// single trains one model and evaluates it.
type single struct {
	evaluation
	inner  algorithms.Trainer
	screen *screen // nil: the job is not screened
}

// ErrNumerics is wrapped by the errors of New and NewKernel about a job with the numerics of
// another version of Coppice.
var ErrNumerics = errors.New("the arithmetic versions differ")

func checkNumerics(j *round.Job) error {
	if j.Numerics != round.Numerics {
		return fmt.Errorf("%w: the job needs arithmetic version %d, but this version of Coppice has %d", ErrNumerics,
			j.Numerics, round.Numerics)
	}
	return nil
}

// New returns the trainer of a job: from the beginning if state is nil, else from the state,
// which AppendState wrote. Errors wrap ErrNumerics or fields.ErrState, or are the algorithm's.
func New(j *round.Job, m *dataset.Manifest, state []byte) (Finisher, error) {
	if err := checkNumerics(j); err != nil {
		return nil, err
	}
	switch {
	case j.Cells != nil:
		if err := checkCells(j); err != nil {
			return nil, err
		}
		t := &cells{job: j, tasks: j.Cells.Count()}
		return t, restoreOutcomes(state, t.tasks, t.decode)
	case j.Folds > 0:
		t := &folds{job: j, samples: m.Divided().Rows}
		return t, restoreOutcomes(state, j.Folds, t.decode)
	}
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	plan, err := JobPlan(j, m)
	if err != nil {
		return nil, err
	}
	t := &single{evaluation: evaluation{job: j, manifest: m, plan: plan}}
	if j.Fill != m.Fill() {
		return nil, fmt.Errorf("the job fills missing values with %.20q, but its dataset with %.20q", j.Fill, m.Fill())
	}
	if j.Fill != "" {
		t.fill = &fill{by: j.Fill, manifest: m}
	}
	if j.Enhance != nil {
		if err := CheckEnhance(a, j.Enhance, m); err != nil {
			return nil, err
		}
		t.enhance = enhance.NewStage(j.Enhance, m, enhance.Enhanced(&j.Split))
	}
	if t.bounds, err = newBounds(j, m); err != nil {
		return nil, err
	}
	if t.linear, err = newLinear(j, m); err != nil {
		return nil, err
	}
	if j.Screen {
		if !Screens(j, m) {
			return nil, fmt.Errorf("a job of %s on this dataset cannot be screened", j.Algorithm)
		}
		t.screen = &screen{job: j, manifest: m}
	}
	if state != nil {
		return t, t.restore(state, a)
	}
	t.inner, err = a.NewTrainer(j, m, nil)
	return t, err
}

// CheckEnhance returns an error if an algorithm cannot be trained with a label enhancement on a dataset.
func CheckEnhance(a algorithms.Algorithm, e *round.Enhance, m *dataset.Manifest) error {
	if err := enhance.Check(e, m); err != nil {
		return err
	}
	if a.Name() == ensemble.Name {
		return param.Errorf("enhance", "the jobs of an %s are tested on true distributions of training samples, which an "+
			"enhancement must not see; choose another algorithm, or train on the file of {coppice dataset enhance}", a.Name())
	}
	plan, err := PlanOf(a.Name(), m.Labels, m.LabelType)
	if err == nil && plan.Number {
		return param.Errorf("enhance", "%s predicts numbers, not distributions", a.Name())
	}
	return err
}

// Next implements round.Trainer.
func (t *single) Next() (*round.Round, error) {
	switch {
	case !t.fill.done():
		t.fill.next(t.sharded())
		return &t.round, nil
	case !t.enhance.Ended():
		t.enhance.Next(&t.round)
		return t.prepared(&t.round), nil
	case !t.bounds.done():
		r := t.sharded()
		r.How, r.Tasks = &round.Gather{}, t.gatheringTasks(16*int64(t.manifest.Labels)) // extremes are no sums
		t.bounds.next(r)
		return r, nil
	case t.phase == phaseTrain:
		r, err := t.inner.Next()
		if err != nil || r != nil {
			return t.prepared(r), err
		}
		if r, err = t.screen.next(); err != nil || r != nil {
			return r, err
		}
		t.phase = phaseMean
	}
	return t.next(t.inner)
}

// Fold implements round.Trainer.
func (t *single) Fold(res *round.Result) error {
	switch {
	case !t.fill.done():
		return t.fill.fold(res.Sum.F64)
	case !t.enhance.Ended():
		return t.enhance.Fold(res)
	case !t.bounds.done():
		return t.bounds.fold(res.Gathered)
	case t.screen.runs():
		return t.screen.fold(res.Gathered)
	case t.phase == phaseTrain:
		return t.inner.Fold(res)
	}
	return t.fold(res)
}

// Progress implements round.Trainer.
func (t *single) Progress() round.Progress {
	p := t.inner.Progress()
	if t.phase == phaseLinear {
		p.Phase = linearKind
	} else if t.phase > phaseTrain {
		p.Phase = "evaluation"
	} else if !t.fill.done() {
		p.Phase = "missing values"
	} else if !t.enhance.Ended() {
		p.Phase = t.enhance.Phase()
	} else if !t.bounds.done() {
		p.Phase = boundsKind
	} else if t.screen.runs() {
		p.Phase = screenKind
	}
	return p
}

// StepLosses implements curve.Stepped; nil if the algorithm does not.
func (t *single) StepLosses() []float64 {
	if s, ok := t.inner.(curve.Stepped); ok {
		return s.StepLosses()
	}
	return nil
}

// ResultProgress implements algorithms.TaskReporter.
func (t *single) ResultProgress(result []byte) (round.Progress, error) {
	if g := t.reporter(); g != nil {
		return g.ResultProgress(result)
	}
	return round.Progress{Loss: -1}, nil
}

// RoundProgress implements algorithms.TaskReporter.
func (t *single) RoundProgress(units []round.TaskProgress) round.Progress {
	if g := t.reporter(); g != nil {
		return g.RoundProgress(units)
	}
	return t.Progress()
}

// reporter returns the algorithm's TaskReporter while it trains; else nil.
func (t *single) reporter() round.TaskReporter {
	if !t.trains() {
		return nil
	}
	g, _ := t.inner.(round.TaskReporter)
	return g
}

// trains reports whether the rounds are the algorithm's.
func (t *single) trains() bool {
	return t.phase == phaseTrain && t.fill.done() && t.enhance.Ended() && t.bounds.done() && !t.screen.runs()
}

// TakeResult implements round.ResultTaker; what the algorithm does not keep is taken by Fold.
func (t *single) TakeResult(unit int, part []byte) error {
	if k, ok := t.inner.(round.ResultTaker); ok && t.trains() {
		return k.TakeResult(unit, part)
	}
	return nil
}

// provenanceRoom is the memory for the provenance of a model file, which mostly fits.
const provenanceRoom = 16 << 10

// Outcome implements Finisher.
func (t *single) Outcome() (*Outcome, error) { return t.outcome(nil) }

// outcome makes the outcome, with the model file unless w is there to write it to.
func (t *single) outcome(w io.Writer) (*Outcome, error) {
	if t.phase != phaseDone {
		return nil, errors.New("the job is not finished yet")
	}
	p := t.inner.Progress()
	o := &Outcome{
		Steps: p.Step, BestStep: p.BestStep, RefitSteps: p.Refit, Samples: p.Samples, Loss: p.Loss,
		Group: testedGroup(t.job, t.manifest),
	}
	t.measures(o)
	beaten := o.Baselines
	o.Screening = t.screen.result(&p)
	o.Counters = t.inner.Counters()
	if x, ok := t.inner.(algorithms.Mixer); ok {
		o.Mixture = x.Mixture()
	}
	m, err := t.inner.Model()
	if err != nil {
		return nil, err
	}
	learns, d := *t.job, t.manifest
	learns.Predictions, learns.PredictedRows, learns.LinearSamples, learns.Screen = 0, 0, 0, false // the model is the same
	from := &Provenance{
		Job: &learns, Version: version.String, Steps: o.Steps, BestStep: o.BestStep, RefitSteps: o.RefitSteps, Loss: o.Loss,
		EvaluatedOn: o.EvaluatedOn, Group: o.Group, Rows: o.Rows, Measures: o.Measures, Baselines: beaten,
		Counters:     o.Counters,
		FeatureNames: d.FeatureNames, LabelNames: d.LabelNames, LabelColumns: d.LabelColumns, MeanLabel: t.mean[:d.Labels],
		Missing: d.Missing, CountedFrom: d.CountedFrom, Added: o.Added, Mixture: o.Mixture, LabelType: d.LabelType,
		Shape: d.Shape, Reading: d.Reading,
	}
	if len(t.mean) > d.Labels {
		from.Median = &t.mean[d.Labels]
	}
	if t.fill != nil {
		from.Fill = t.fill.values
	}
	if t.bounds != nil {
		from.LabelType.Bounds = t.bounds.of
	}
	provenance, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("the model's provenance cannot be written: %w", err)
	}
	switch {
	case w != nil:
		o.ModelDigest, err = modelfile.Write(w, t.job.Algorithm, m.Tensors(), provenance)
	case t.job.NoModel:
		o.ModelDigest = modelfile.Digest(t.job.Algorithm, m.Tensors())
	case t.model != nil: // as it was evaluated
		o.Model, o.ModelDigest = modelfile.SetProvenance(t.model, provenance)
		t.model = nil
	default:
		o.Model, o.ModelDigest = modelfile.Encode(t.job.Algorithm, m.Tensors(), provenance)
	}
	return o, err
}

// stateVersion is the version of the fields of both kinds of states.
const stateVersion = 2

// AppendState implements round.Trainer.
func (t *single) AppendState(dst []byte) ([]byte, error) {
	return fields.Append(dst, stateVersion, func(l *fields.List) { t.state(l, nil) })
}

// WriteState implements round.StateWriter.
func (t *single) WriteState(w io.Writer) error {
	return fields.Write(w, stateVersion, func(l *fields.List) { t.state(l, nil) })
}

// state lists the fields of the state: the pipeline's, then the algorithm's, which are read by
// restore.
func (t *single) state(l *fields.List, restore func(inner []byte) error) {
	t.fields(l)
	t.screen.state(l)
	l.Rest(t.inner, restore)
}

// restore reads a state; the algorithm's part makes its trainer.
func (t *single) restore(b []byte, a algorithms.Algorithm) error {
	return fields.Read(b, stateVersion, func(l *fields.List) {
		t.state(l, func(inner []byte) (err error) {
			t.predicted = bytes.Clone(t.predicted)
			t.inner, err = a.NewTrainer(t.job, t.manifest, inner)
			return err
		})
	})
}

// sharedModel is the model that the trainer and the kernel of a job share if they are in one
// process. In different processes the model travels as bytes, and each has a copy.
type sharedModel struct{ model algorithms.Model }

// ShareModel makes t and k, which New and NewKernel returned for one job, share the model,
// which saves memory if all tasks are computed in this process. Call it before the first
// round. The outcome has the same bits. For a job of folds there is no difference.
func ShareModel(t Finisher, k round.Kernel) {
	if s, ok := t.(*single); ok {
		s.shared = new(sharedModel)
		k.(*kernel).shared = s.shared
	}
}

// WriteOutcome is t.Outcome but writes the model file to w and leaves Outcome.Model
// empty. For a job of folds it writes nothing: the models are in Outcome.Folds.
func WriteOutcome(t Finisher, w io.Writer) (*Outcome, error) {
	if s, ok := t.(*single); ok {
		return s.outcome(w)
	}
	return t.Outcome()
}

// FitsWeights returns an error, a *param.Error if a setting is at fault, if the weights that a job
// begins from (Job.WeightsFile) are not of its network.
func FitsWeights(j *round.Job, m *dataset.Manifest) error {
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return err
	}
	b, ok := a.(algorithms.Beginner)
	if !ok {
		return fmt.Errorf("%s cannot start from given weights", j.Algorithm)
	}
	return b.FitsWeights(j, m)
}
