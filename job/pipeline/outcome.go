// Package pipeline makes a whole job of an algorithm: training, then evaluation
// on the test rows beside the mean predictor; or one such job for each fold. It
// is a Trainer and a Kernel like those it wraps, so the engine sees rounds only.
package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Outcome is what a job ends with.
type Outcome struct {
	// ModelDigest identifies the model; for a job of folds it is the SHA-256 of
	// the folds' digests in order.
	ModelDigest string `json:"model_digest"`
	Steps       uint64 `json:"steps"` // with the steps of a refit
	// BestStep is the step of the state with the least validation loss; 0 if there are no
	// validation rows, and for a job of folds.
	BestStep uint64 `json:"best_step,omitempty"`
	// RefitSteps is the number of refit steps, on training and validation rows.
	RefitSteps uint64  `json:"refit_steps,omitempty"`
	Samples    uint64  `json:"samples_drawn"`
	Loss       float64 `json:"loss"` // the last training loss, as K-L
	// Group is the name of the group that was tested, if the folds are groups.
	Group string `json:"group,omitempty"`
	// EvaluatedOn says which samples the measures are of: "test samples", or "training
	// samples" if the job has no test samples.
	EvaluatedOn string `json:"evaluated_on"`
	Rows        Counts `json:"samples"`
	// Measures are over rows; for a job of folds they are over folds.
	Measures measures.Report `json:"measures"`
	Baselines
	// Added are the measures beside these, which the type of the labels and what is
	// predicted allow; nil: there are none. Of a fold they are without confusion matrices.
	Added *Added `json:"added,omitempty"`
	// Clipped are the measures of clipped degrees; of runs of distributions only.
	Clipped *Clipped `json:"clipped,omitempty"`
	// Counters are the algorithm's counts by name (algorithms.Trainer.Counters); for a job of folds they
	// are sums.
	Counters map[string]uint64 `json:"counters,omitempty"`
	// Mixture says how the model adds up others; nil: it does not.
	Mixture *algorithms.Mixture `json:"mixture,omitempty"`
	Folds   []*Outcome          `json:"folds,omitempty"`
	// Error says why a run failed. Then the other fields are empty.
	Error string `json:"error,omitempty"`
	// CellCount is the number of runs of a job of runs.
	CellCount int `json:"run_count,omitempty"`
	CellsWithout
	// CellsSpent are the seconds of computing of the runs of each budget, by its name.
	CellsSpent map[string]float64 `json:"runs_spent_seconds,omitempty"`

	// Spent are the seconds that the job's rounds took, by their kind, and "waiting", the
	// rest of the job's time; nil if they were not measured. They are not in the encoded
	// outcome of a fold. For concurrent folds they are sums.
	Spent map[string]float64 `json:"spent_seconds,omitempty"`

	// Curve is the learning curve; nil if none was recorded, and for a job of folds.
	Curve *curve.Curve `json:"-"`
	// Model is the model file; empty for a job of folds, which has its models in
	// Folds.
	Model []byte `json:"-"`
	// Predictions is the encoded predictions.Set of the held-out rows, for a job of folds
	// of all folds; empty if there are no such rows or too many to store.
	Predictions []byte `json:"-"`
	// Cell reads the encoded outcome of a task of a job of CellCount runs, none: it was not run; and
	// CellEnds says how each ended.
	Cell     func(unit int) ([]byte, error) `json:"-"`
	CellEnds []CellEnd                      `json:"-"`
}

// CellsWithout are the runs without results of a job of runs.
type CellsWithout struct {
	// CellsFailed is the number of failed runs. CellsNotRun is how many were not run, since their budget was used up.
	CellsFailed int `json:"runs_failed,omitempty"`
	CellsNotRun int `json:"runs_not_run,omitempty"`
	// Failed and NotRun are the tasks of these runs, ascending. They are empty if there are too many.
	Failed []int `json:"failed_runs,omitempty"`
	NotRun []int `json:"not_run_runs,omitempty"`
}

// CellEnd says how a run of a job of runs ended.
type CellEnd struct {
	Took uint64 // nanoseconds of computing; 0 if not known
	Well bool   // true if the run was run and did not fail
}

// Baselines are the measures of what a model must beat.
type Baselines struct {
	// MeanPredictor are the measures of predicting the training mean.
	MeanPredictor measures.Report `json:"mean_baseline"`
	// Against compares the model with the mean baseline on the test rows, for a job of folds on the test rows of all
	// folds. nil: there are no test rows, or a number is predicted.
	Against *measures.AgainstBaseline `json:"against_mean_baseline,omitempty"`
	// Linear are the measures of the linear baseline; nil: the job has none.
	Linear *LinearBaseline `json:"linear_baseline,omitempty"`
	// Screening compares the model with small models of other algorithms; nil: the job is not screened. A job of folds
	// has the screening of its first fold. Model files have none.
	Screening *Screening `json:"screening,omitempty"`
}

// Screening compares the model of a job with small models of other algorithms on the validation samples.
type Screening struct {
	// Samples is the number of validation samples.
	Samples int `json:"samples"`
	// KL is the K-L of the job's algorithm on them, trained without them.
	KL           float64         `json:"kl"`
	MeanBaseline float64         `json:"mean_baseline_kl"`
	Others       []ScreenedModel `json:"others"`
}

// UnmarshalJSON implements json.Unmarshaler. It refuses a screening without other models, and negative numbers.
func (s *Screening) UnmarshalJSON(b []byte) error {
	type plain Screening
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return fmt.Errorf("screening: %w", err)
	}
	wrong := len(s.Others) == 0 || s.Samples < 0 || s.KL < 0 || s.MeanBaseline < 0
	for _, o := range s.Others {
		wrong = wrong || o.Samples < 0 || o.KL < 0
	}
	if wrong {
		return errors.New("the screening has no other models or negative numbers")
	}
	return nil
}

// ScreenedModel is a small model of another algorithm.
type ScreenedModel struct {
	Algorithm string `json:"algorithm"`
	// Samples is the number of samples that it was trained on.
	Samples int     `json:"samples"`
	KL      float64 `json:"kl"`
}

// Counts is the number of rows of each role.
type Counts struct {
	Train      int `json:"train"`
	Validation int `json:"validation"`
	Test       int `json:"test"`
}

// Finisher is a Trainer that knows its outcome once it is done.
type Finisher interface {
	round.Trainer
	Outcome() (*Outcome, error)
}

var (
	_ round.TaskReporter = (*single)(nil)
	_ round.TaskReporter = (*folds)(nil)
	_ round.TaskReporter = (*cells)(nil)
)

// Waiting is the key of Spent for the time that was not spent on rounds.
const Waiting = "waiting"

// SetSpent sets Spent from the seconds of rounds of each kind and the total seconds. For
// concurrent jobs total is the sum over all slots.
func (o *Outcome) SetSpent(rounds map[string]float64, total float64) {
	o.Spent = make(map[string]float64)
	for kind, seconds := range rounds {
		o.Spent[kind] = seconds
		total -= seconds
	}
	o.Spent[Waiting] = max(0, total)
}

// progress returns the last progress of the job.
func (o *Outcome) progress() round.Progress {
	return round.Progress{Step: o.Steps, Steps: o.Steps, Samples: o.Samples, Loss: o.Loss}
}

// Ending is the part of an Outcome that says how a run ended. To decode it alone takes a fraction of the time: there
// may be very many runs.
type Ending struct {
	ModelDigest string  `json:"model_digest"`
	Steps       uint64  `json:"steps"`
	Samples     uint64  `json:"samples_drawn"`
	Loss        float64 `json:"loss"`
	Error       string  `json:"error"`
}

// EndingOf reads the Ending of an encoded outcome. It checks only that the other fields are JSON.
func EndingOf(c *childjob.Outcome) (*Ending, error) {
	e := new(Ending)
	if err := json.Unmarshal(c.Head, e); err != nil {
		return nil, fmt.Errorf("%w: %w", childjob.ErrFormat, err)
	}
	return e, nil
}

// ErrorOf reads why a run failed; empty: it ended well. The outcome of such a run has no key for errors and is not
// decoded.
func ErrorOf(c *childjob.Outcome) (string, error) {
	if !bytes.Contains(c.Head, []byte(`"error"`)) {
		return "", nil
	}
	e, err := EndingOf(c)
	if err != nil {
		return "", err
	}
	return e.Error, nil
}

// decodeEnding is EndingOf what Encode wrote.
func decodeEnding(b []byte) (*Ending, error) {
	c, err := childjob.Decode(b)
	if err != nil {
		return nil, err
	}
	return EndingOf(c)
}

// Encode returns the bytes by which a sub-job reports its outcome, model, curve and
// predictions.
func (o *Outcome) Encode() ([]byte, error) {
	head, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("the result of the fold cannot be written: %w", err)
	}
	c := childjob.Outcome{Head: head, Model: o.Model, Predictions: o.Predictions}
	if o.Curve != nil {
		c.Curve = o.Curve.Append(nil)
	}
	return c.Encode(), nil
}

// DecodeOutcome reads what Encode wrote. If the curve cannot be decoded, Curve is nil, since
// no model depends on it.
func DecodeOutcome(b []byte) (*Outcome, error) {
	c, err := childjob.Decode(b)
	if err != nil {
		return nil, err
	}
	o := new(Outcome)
	if err := json.Unmarshal(c.Head, o); err != nil {
		return nil, fmt.Errorf("%w: %w", childjob.ErrFormat, err)
	}
	o.Model, o.Predictions = c.Model, c.Predictions
	if len(c.Curve) > 0 {
		if line, err := curve.Decode(c.Curve); err == nil {
			o.Curve = line
		}
	}
	return o, nil
}

// Provenance says how the model of a model file was made. The model's digest does not cover
// it. It has no time and no host, so the same job writes the same file.
type Provenance struct {
	Job         *round.Job      `json:"job"`
	Version     string          `json:"version"`
	Steps       uint64          `json:"steps"`
	BestStep    uint64          `json:"best_step,omitempty"`
	RefitSteps  uint64          `json:"refit_steps,omitempty"`
	Loss        float64         `json:"loss"`
	EvaluatedOn string          `json:"evaluated_on"`
	Group       string          `json:"group,omitempty"` // that was tested
	Rows        Counts          `json:"samples"`
	Measures    measures.Report `json:"measures"`
	Baselines
	Added    *Added            `json:"added,omitempty"`
	Counters map[string]uint64 `json:"counters,omitempty"`
	// Mixture says how the model adds up others.
	Mixture      *algorithms.Mixture `json:"mixture,omitempty"`
	FeatureNames []string            `json:"feature_names,omitempty"`
	LabelNames   []string            `json:"label_names,omitempty"`
	// LabelType says what the labels are. Bounds of targets are known in a model: a pair for each label.
	LabelType dataset.LabelType `json:"label_type,omitzero"`
	// Shape is the shape of the images that the model reads.
	Shape dataset.Shape `json:"shape,omitzero"`
	// Missing and CountedFrom say how the data file was read, as dataset.Manifest has them.
	Missing     string           `json:"missing,omitempty"`
	CountedFrom dataset.Counting `json:"counted_from,omitempty"`
	// LabelColumns says which columns of the file that was trained on were labels.
	LabelColumns dataset.LabelColumns `json:"label_columns,omitzero"`
	// Reading says how that file was read.
	Reading dataset.Reading `json:"reading,omitzero"`
	// Fill takes the place of missing features, by feature: their means or medians in the rows
	// trained on.
	Fill []float64 `json:"fill,omitempty"`
	// MeanLabel is what the mean predictor predicts: the mean label distribution of the
	// training and validation rows.
	MeanLabel []float64 `json:"mean_label"`
	// Median is the median of these rows' numbers, which a model of numbers must beat.
	Median *float64 `json:"median,omitempty"`
}

// Added are the measures beside the ten of distributions, of a model and of what it must
// beat: the mean predictor (for classes it predicts the shares of the training rows), or,
// for a model that predicts numbers, the median of the training rows' numbers.
type Added struct {
	Model           *measures.Added `json:"model"`
	MeanPredictor   *measures.Added `json:"mean_baseline,omitempty"`
	MedianPredictor *measures.Added `json:"median_baseline,omitempty"`
}

// Baseline returns the measures of what a model must beat.
func (a *Added) Baseline() *measures.Added { return cmp.Or(a.MeanPredictor, a.MedianPredictor) }

// Clipped are the measures of distributions whose degrees are clipped as PyLDL does, of a model and
// of the mean predictor.
type Clipped struct {
	Model         *measures.Clipped `json:"model"`
	MeanPredictor *measures.Clipped `json:"mean_baseline"`
}

// The values of round.Job.Measures: the ten, or More as well, or, of runs, these with clipped
// degrees as well: which of them are shown does not change a run.
const (
	TenMeasures   = ""
	AllMeasures   = "all"
	EveryMeasures = "every"
)

// JobPlan returns which measures a job has. Errors are as of PlanOf, or say that the job asks
// for what a model of numbers has not.
func JobPlan(j *round.Job, m *dataset.Manifest) (*measures.Plan, error) {
	if err := CheckLearns(j.Algorithm, m, j.Split.Mask); err != nil {
		return nil, err
	}
	p, err := PlanOf(j.Algorithm, m.Labels, m.LabelType)
	if err != nil {
		return nil, err
	}
	if j.Measures == EveryMeasures {
		p.More, p.Both = !p.Number, !p.Number
		return p, nil
	}
	p.More, p.Clip = j.Measures == AllMeasures, measures.Clip(j.Clip)
	return p, CheckPlan(p, j.Algorithm)
}

// CheckPlan returns an error if a plan asks for measures of distributions, and numbers are
// predicted.
func CheckPlan(p *measures.Plan, algorithm string) error {
	if p.Number && (p.More || p.Clip != measures.NoClip) {
		return fmt.Errorf("%s predicts numbers, but measures: all and clip need predicted distributions", algorithm)
	}
	return nil
}

// PlanOf returns which measures there are of a job's model on labels of a type. An error
// says that the algorithm predicts numbers or targets and the labels are none, or the other way round.
func PlanOf(algorithm string, labels int, t dataset.LabelType) (*measures.Plan, error) {
	p := &measures.Plan{Labels: labels, Type: t, Number: registry.Output(algorithm) == algorithms.Number}
	if err := registry.CheckTargets(algorithm, t.Bounds != nil, t.String(labels)); err != nil {
		return nil, err
	}
	if p.Number && t.Scale == nil {
		return nil, errtext.Errorf(errtext.WrongData, "%s predicts numbers, but the labels are %s; {range} makes labels "+
			"numeric where the data are read or imported", algorithm, t.String(labels))
	}
	return p, nil
}

// Measured returns the measures of a model from their sums, and the measures of what it must beat.
func Measured(p *measures.Plan, ofModel, ofMean []float64) (model, mean measures.Report, added *Added) {
	model, beside := p.Read(ofModel)
	mean, of := p.Read(ofMean)
	switch {
	case beside.None():
	case p.Number:
		added = &Added{Model: beside, MedianPredictor: of}
	default:
		added = &Added{Model: beside, MeanPredictor: of}
	}
	return model, mean, added
}

// addedOverFolds returns the measures beside the ten over folds; nil: there are none.
func addedOverFolds(folds []*Outcome) *Added {
	var model, mean, middle []*measures.Added
	for _, f := range folds {
		if f.Added == nil {
			return nil
		}
		model, mean, middle = append(model, f.Added.Model), append(mean, f.Added.MeanPredictor),
			append(middle, f.Added.MedianPredictor)
	}
	a := &Added{Model: measures.AddedOverFolds(model), MeanPredictor: measures.AddedOverFolds(mean),
		MedianPredictor: measures.AddedOverFolds(middle)}
	if a.Model == nil {
		return nil
	}
	return a
}

// withoutConfusion returns a fold's outcome without its confusion matrices: the job has
// their sum.
func withoutConfusion(o *Outcome) *Outcome {
	if o.Added == nil || o.Added.Model == nil || o.Added.Model.Classes == nil {
		return o
	}
	bare := *o
	bare.Added = &Added{Model: bareClasses(o.Added.Model), MeanPredictor: bareClasses(o.Added.MeanPredictor)}
	return &bare
}

func bareClasses(a *measures.Added) *measures.Added {
	if a == nil || a.Classes == nil {
		return a
	}
	c := *a.Classes
	c.Confusion = nil
	bare := *a
	bare.Classes = &c
	return &bare
}

// testedGroup returns the name of the group that a job tests; empty: it tests no group.
func testedGroup(j *round.Job, m *dataset.Manifest) string {
	g, s := m.Groups, j.Split
	if g == nil || s.Assigned != g.Digest || s.Overlap || s.Inner > 0 || s.Held.Fraction > 0 || s.Fold >= len(g.Names) {
		return ""
	}
	return g.Names[s.Fold]
}
