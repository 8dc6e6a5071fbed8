package pipeline

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/version"
)

// The pipeline's own operations and variables. Algorithms have smaller numbers.
const (
	opMean     = 250 // sums of the training rows' label degrees
	opEvaluate = 251 // sums of the measures of the model and of the mean
	opPredict  = 252 // predictions of the held-out rows

	varModel = 0xff00
	varMean  = 0xff01
)

// The phases of a job, in order.
const (
	phaseTrain = iota
	phaseMean
	phaseLinear // only if the job has a linear baseline and test rows
	phaseEvaluate
	phasePredict // only if predictions are stored
	phaseDone
)

// single trains one model and evaluates it.
type single struct {
	job      *round.Job
	manifest *dataset.Manifest
	plan     *measures.Plan
	inner    algorithms.Trainer
	fill     *fill   // nil: the job fills no missing values
	linear   *linear // nil: the job has no linear baseline

	phase  uint8
	mean   []float64 // mean label distribution of the rows trained on, and median if a number is predicted, once known
	counts [3]uint64 // rows by role: train, validation, test
	sums   []float64 // of opEvaluate, once known
	// predicted is the encoded predictions of held-out rows, once known.
	predicted []byte

	round  round.Round
	chunks []round.Chunk // of the model while it is evaluated, if the algorithm has chunks
	model  []byte        // the model file without provenance, from its first use until Outcome
	shared *sharedModel  // nil unless the kernel is in this process
}

// ErrNumerics is wrapped by the errors of New and NewKernel about a job with the numerics of
// another version of Coppice.
var ErrNumerics = errors.New("the arithmetic versions differ")

func checkNumerics(j *round.Job) error {
	if j.Numerics != round.Numerics {
		return fmt.Errorf("%w: the job needs arithmetic version %d, but this version of Coppice has %d", ErrNumerics, j.Numerics, round.Numerics)
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
		return newCells(j, state)
	case j.Folds > 0:
		return newFolds(j, m, state)
	}
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	plan, err := JobPlan(j, m)
	if err != nil {
		return nil, err
	}
	t := &single{job: j, manifest: m, plan: plan}
	if j.Fill != m.Fill() {
		return nil, fmt.Errorf("the job fills missing values with %.20q, but its dataset with %.20q", j.Fill, m.Fill())
	}
	if j.Fill != "" {
		t.fill = &fill{by: j.Fill, manifest: m}
	}
	if t.linear, err = newLinear(j, m); err != nil {
		return nil, err
	}
	if state != nil {
		return t, t.restore(state, a)
	}
	t.inner, err = a.NewTrainer(j, m, nil)
	return t, err
}

// Next implements round.Trainer.
func (t *single) Next() (*round.Round, error) {
	if !t.fill.done() {
		t.round = round.Round{Tasks: len(t.manifest.Shards), Scope: round.Sharded}
		t.fill.next(&t.round)
		return &t.round, nil
	}
	if t.phase == phaseTrain {
		r, err := t.inner.Next()
		if err != nil || r != nil {
			return t.filling(r), err
		}
		t.phase = phaseMean
	}
	if t.phase == phaseLinear {
		r, err := t.linear.next()
		if err != nil || r != nil {
			return t.filling(r), err
		}
		t.phase = phaseEvaluate
	}
	t.round = round.Round{Tasks: len(t.manifest.Shards), Scope: round.Sharded}
	switch t.phase {
	case phaseMean:
		t.round.Op, t.round.Kind, t.round.Roles = opMean, "label mean", dataset.AllRows
		t.round.How = round.Sums(3 + t.manifest.Labels)
		if t.plan.Number { // of each task its sums and all of its rows' numbers, since a median is no sum
			t.round.How = &round.Gather{}
			t.round.Tasks = t.gatheringTasks(8 * int64(t.manifest.Rows))
		}
	case phaseEvaluate:
		return &t.round, t.evaluateRound()
	case phasePredict:
		return &t.round, t.predictRound()
	default:
		return nil, nil
	}
	return &t.round, nil
}

// filling returns a round of the algorithm or of the linear baseline with what kernels fill missing values with.
func (t *single) filling(r *round.Round) *round.Round {
	if t.fill == nil || r == nil {
		return r
	}
	t.round = *r
	t.round.Vars = append(slices.Clone(r.Vars), t.fill.variable())
	return &t.round
}

// evaluateRound asks for the measures of the model, which it makes available to kernels, in this
// process or in others.
func (t *single) evaluateRound() error {
	if t.model == nil && len(t.chunks) == 0 {
		m, err := t.inner.Model()
		if err != nil {
			return err
		}
		if c, ok := t.inner.(algorithms.Composite); ok && t.shared == nil {
			t.chunks = c.Pieces()
		}
		if t.shared != nil {
			t.shared.model = m
		} else if len(t.chunks) == 0 {
			t.model = modelfile.EncodeWithRoom(t.job.Algorithm, m.Tensors(), provenanceRoom)
		}
	}
	t.round.Op, t.round.Kind, t.round.Roles = opEvaluate, "evaluation", t.evaluated()
	t.round.How = round.Sums(t.linear.width(t.plan))
	t.round.Vars = []round.Var{{ID: varMean, Version: 1, Data: num.Bytes64(t.mean)}}
	if t.fill != nil {
		t.round.Vars = append(t.round.Vars, t.fill.variable())
	}
	if t.linear.fitted() {
		t.round.Vars = append(t.round.Vars, round.Var{ID: varLinear, Version: 1, Data: num.Bytes64(t.linear.weights)})
	}
	switch {
	case t.shared != nil:
	case len(t.chunks) > 0:
		t.round.Vars = append(t.round.Vars, round.Var{ID: varModel, Version: 1, Chunks: t.chunks})
	default:
		t.round.Vars = append(t.round.Vars, round.Var{ID: varModel, Version: 1, Data: t.model})
	}
	return nil
}

// evaluated returns the roles of the rows that the measures are of.
func (t *single) evaluated() dataset.Roles {
	if t.counts[2] > 0 {
		return dataset.Test
	}
	return dataset.Train | dataset.Validation
}

// releaseModel frees what only the evaluation of a model needs.
func (t *single) releaseModel() {
	t.chunks, t.round.Vars = nil, nil
	if t.shared != nil {
		t.shared.model = nil
	}
}

// Fold implements round.Trainer.
func (t *single) Fold(res *round.Result) error {
	if !t.fill.done() {
		return t.fill.fold(res.Sum.F64)
	}
	switch t.phase {
	case phaseTrain:
		return t.inner.Fold(res)
	case phaseMean:
		if !t.plan.Number {
			t.setMean(res.Sum.F64)
		} else if err := t.setMedian(res.Gathered); err != nil {
			return err
		}
		if t.linear != nil && t.counts[2] > 0 {
			t.phase = phaseLinear
			return t.linear.begin(nil)
		}
		t.phase = phaseEvaluate
		return nil
	case phaseLinear:
		if err := t.linear.fit.Fold(res); err != nil { // the job ends without linear baseline
			t.linear.fit = nil
			t.phase = phaseEvaluate
		}
		return nil
	case phaseEvaluate:
		t.sums = append([]float64{}, res.Sum.F64...)
		if !t.keepsPredictions() {
			t.releaseModel()
			t.phase = phaseDone
			return nil
		}
	case phasePredict:
		t.releaseModel()
		if err := t.setPredictions(res.Gathered); err != nil {
			return err
		}
	}
	t.phase++
	return nil
}

func (t *single) setMean(sums []float64) {
	for i := range t.counts {
		t.counts[i] = uint64(sums[i])
	}
	n := sums[0] + sums[1]
	t.mean = make([]float64, t.manifest.Labels)
	for c := range t.mean {
		t.mean[c] = sums[3+c] / n
	}
}

// setMedian folds what tasks returned: the sums as setMean does, and the median of the
// numbers.
func (t *single) setMedian(collected [][]byte) error {
	sums := make([]float64, 3+t.manifest.Labels)
	var numbers []float64
	for u, b := range collected {
		if len(b)%8 != 0 || len(b) < 8*len(sums) {
			return fmt.Errorf("task %d: the predicted numbers have %d bytes, which is too few or too many", u, len(b))
		}
		for i := range sums {
			sums[i] += math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		for b = b[8*len(sums):]; len(b) > 0; b = b[8:] {
			numbers = append(numbers, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	t.setMean(sums)
	t.mean = append(t.mean, median(numbers))
	return nil
}

// median returns the number in the middle, or the mean of the two that are; NaN of none.
func median(numbers []float64) float64 {
	n := len(numbers)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(numbers)
	return (numbers[(n-1)/2] + numbers[n/2]) / 2
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
	if t.phase != phaseTrain || !t.fill.done() {
		return nil
	}
	g, _ := t.inner.(round.TaskReporter)
	return g
}

// TakeResult implements round.ResultTaker; what the algorithm does not keep is taken by Fold.
func (t *single) TakeResult(unit int, part []byte) error {
	if k, ok := t.inner.(round.ResultTaker); ok && t.phase == phaseTrain && t.fill.done() {
		return k.TakeResult(unit, part)
	}
	return nil
}

// Counters implements algorithms.Trainer.
func (t *single) Counters() map[string]uint64 { return t.inner.Counters() }

// Model implements algorithms.Trainer.
func (t *single) Model() (algorithms.Model, error) { return t.inner.Model() }

// Outcome implements Finisher.
func (t *single) Outcome() (*Outcome, error) {
	return t.outcome(func(o *Outcome, m algorithms.Model, provenance []byte) error {
		switch {
		case t.job.NoModel:
			o.ModelDigest = modelfile.Digest(t.job.Algorithm, m.Tensors())
		case t.model != nil: // as it was evaluated
			o.Model, o.ModelDigest = modelfile.SetProvenance(t.model, provenance)
			t.model = nil
		default:
			o.Model, o.ModelDigest = modelfile.Encode(t.job.Algorithm, m.Tensors(), provenance)
		}
		return nil
	})
}

// provenanceRoom is the memory for the provenance of a model file, which mostly fits.
const provenanceRoom = 16 << 10

// outcome makes the outcome; write writes the model file.
func (t *single) outcome(write func(o *Outcome, m algorithms.Model, provenance []byte) error) (*Outcome, error) {
	if t.phase != phaseDone {
		return nil, errors.New("the job is not finished yet")
	}
	p := t.inner.Progress()
	o := &Outcome{
		Steps: p.Step, BestStep: p.BestStep, RefitSteps: p.Refit, Samples: p.Samples, Loss: p.Loss,
		EvaluatedOn: "training samples", Predictions: t.predicted, Group: testedGroup(t.job, t.manifest),
		Rows: Counts{int(t.counts[0]), int(t.counts[1]), int(t.counts[2])},
	}
	width := t.plan.Width()
	ofModel, ofMean := t.sums[:width], t.sums[width:2*width]
	o.Measures, o.MeanPredictor, o.Added = Measured(t.plan, ofModel, ofMean)
	if c := t.plan.ReadClipped(ofModel); c != nil {
		o.Clipped = &Clipped{c, t.plan.ReadClipped(ofMean)}
	}
	if t.linear.fitted() {
		o.Linear = t.linear.read(t.plan, t.sums[2*width+measures.DifferenceWidth:], t.counts)
	}
	if t.evaluated() == dataset.Test {
		o.EvaluatedOn = "test samples"
		if !t.plan.Number {
			o.Against = measures.CompareWithBaseline(o.Rows.Test, t.sums[2*width:])
		}
	}
	o.Counters = t.inner.Counters()
	if x, ok := t.inner.(algorithms.Mixer); ok {
		o.Mixture = x.Mixture()
	}
	m, err := t.inner.Model()
	if err != nil {
		return nil, err
	}
	learns, d := *t.job, t.manifest
	learns.Predictions, learns.PredictedRows, learns.LinearSamples = 0, 0, 0 // they do not change the model
	from := &Provenance{
		Job: &learns, Version: version.String, Steps: o.Steps, BestStep: o.BestStep, RefitSteps: o.RefitSteps, Loss: o.Loss,
		EvaluatedOn: o.EvaluatedOn, Group: o.Group, Rows: o.Rows, Measures: o.Measures, Baselines: o.Baselines, Counters: o.Counters,
		FeatureNames: d.FeatureNames, LabelNames: d.LabelNames, LabelColumns: d.LabelColumns, MeanLabel: t.mean[:d.Labels],
		Missing: d.Missing, CountedFrom: d.CountedFrom, Added: o.Added, Mixture: o.Mixture, LabelType: d.LabelType, Shape: d.Shape, Reading: d.Reading,
	}
	if len(t.mean) > d.Labels {
		from.Median = &t.mean[d.Labels]
	}
	if t.fill != nil {
		from.Fill = t.fill.values
	}
	provenance, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("the model's provenance cannot be written: %w", err)
	}
	return o, write(o, m, provenance)
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
	l.Byte(&t.phase)
	l.Uint64(&t.counts[0], &t.counts[1], &t.counts[2])
	t.fill.state(l)
	l.Known(&t.mean, t.meanLength())
	if t.linear != nil {
		t.linear.state(l, t.phase == phaseLinear)
	}
	l.Known(&t.sums, t.linear.width(t.plan))
	l.Bytes(&t.predicted)
	predicted := t.phase == phaseDone && t.keepsPredictions()
	l.Check(t.phase <= phaseDone && (t.mean != nil) == (t.phase > phaseMean) && (t.phase != phaseLinear || t.linear != nil && t.counts[2] > 0) && (t.sums != nil) == (t.phase >= phasePredict) &&
		(t.predicted != nil) == predicted && (t.phase != phasePredict || t.keepsPredictions()),
		"phase %d of the saved state does not match its other fields", t.phase)
	l.Rest(t.inner, restore)
}

// meanLength is the length of single.mean: the mean distribution, and the median if a
// number is predicted.
func (t *single) meanLength() int {
	if t.plan.Number {
		return t.manifest.Labels + 1
	}
	return t.manifest.Labels
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
	s, ok := t.(*single)
	if !ok {
		return t.Outcome()
	}
	return s.outcome(func(o *Outcome, m algorithms.Model, provenance []byte) (err error) {
		o.ModelDigest, err = modelfile.Write(w, s.job.Algorithm, m.Tensors(), provenance)
		return err
	})
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
