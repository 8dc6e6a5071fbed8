package pipeline

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The screening of a job compares its model with small models of two other algorithms, so that a default that does not
// suit the data is noticed. After the training, one gather round has a sub-job for each of them. The sub-jobs train on
// some of the training rows, and test on the validation rows of the job (dataset.Held). Of the job's own model, the
// least validation loss is compared.

const (
	screenKind = "screening"

	minScreenRows    = 50        // of a dataset
	maxScreenWeights = 1_000_000 // of a linear model

	maxScreenTrain    = 5000       // training rows of a sub-job
	minScreenTrain    = 250        // also where products would allow fewer
	maxScreenProducts = 10_000_000 // of a feature value and a label, in the training rows of a sub-job
	// maxScreenValues bounds the feature values and labels of a dataset: a worker needs all of them for a sub-job. With
	// float32 values they take 64 MiB.
	maxScreenValues = 16 << 20
)

// screened lists the small models.
var screened = []struct {
	algorithm string
	values    param.Values
}{
	{sabfgs.Name, param.Values{"iterations": int64(100), "refit": false}},
	{structrf.Name, param.Values{"trees": int64(20)}},
}

// Screens reports whether a job can be screened: it predicts distributions, has validation rows with the labels of the
// dataset, has no sub-jobs but folds and no weights of samples, and its dataset is neither too small nor too large.
func Screens(j *round.Job, m *dataset.Manifest) bool {
	a, err := registry.Find(j.Algorithm)
	if err != nil || j.Cells != nil || j.Enhance != nil || j.Split.ValidationFraction <= 0 || m.Labels < 2 ||
		incomplete(j, m) || m.HasWeights || m.LabelType.Bounds != nil || a.Predicts() != algorithms.Distribution {
		return false
	}
	if a.Name() == ensemble.Name || m.Rows < minScreenRows || int64(m.Features)*int64(m.Labels) > maxScreenWeights ||
		m.NonZeros+int64(m.Rows)*int64(m.Labels) > maxScreenValues {
		return false
	}
	for unit := range screened { // an algorithm may refuse the dataset
		if _, err := screenJob(j, m, unit); err != nil {
			return false
		}
	}
	return true
}

// screenJob returns the sub-job of a small model.
func screenJob(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error) {
	if unit < 0 || unit >= len(screened) {
		return nil, fmt.Errorf("the screening has no sub-job %d", unit)
	}
	a, err := registry.Find(screened[unit].algorithm)
	if err != nil {
		return nil, err
	}
	r, err := a.Resolve(screened[unit].values, m)
	if err != nil {
		return nil, fmt.Errorf("screening: %w", err)
	}
	c := *j
	c.Algorithm, c.Params, c.Folds, c.Screen, c.NoModel = a.Name(), r.Params, 0, false, true
	c.Predictions, c.PredictedRows, c.LinearSamples, c.Measures, c.Clip, c.Weights = 0, 0, 0, "", "", ""
	products := (m.NonZeros/int64(max(1, m.Rows)) + 1) * int64(m.Labels)
	c.Split.Held = dataset.Held{Fraction: j.Split.ValidationFraction, Min: j.Split.ValidationMin,
		Train: int(min(maxScreenTrain, max(minScreenTrain, maxScreenProducts/products)))}
	c.Split.ValidationFraction, c.Split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &c, nil
}

// screen is the leader's half of the screening.
type screen struct {
	job      *round.Job
	manifest *dataset.Manifest

	running bool      // true if the last round was the screening
	values  []float64 // screenValues for each small model; nil before the end of the round
}

// screenValues are K-L, K-L of the mean baseline, and the numbers of test and training rows of a sub-job; all are 0 if
// the sub-job failed, since it may need more rows than the job itself.
const screenValues = 4

// next returns the round, or nil if the screening is over.
func (s *screen) next() (*round.Round, error) {
	if s == nil || s.values != nil {
		return nil, nil
	}
	var jobs []*round.Job
	for unit := range screened {
		c, err := screenJob(s.job, s.manifest, unit)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, c)
	}
	s.running = true
	return &round.Round{Kind: screenKind, Tasks: len(jobs), Scope: round.Whole,
		How: &round.Gather{SubJob: round.Jobs(jobs...)}}, nil
}

// runs reports whether the last round was the screening.
func (s *screen) runs() bool { return s != nil && s.running }

// fold takes the outcomes of the sub-jobs.
func (s *screen) fold(gathered [][]byte) error {
	if len(gathered) != len(screened) {
		return fmt.Errorf("got %d results of a screening, want %d", len(gathered), len(screened))
	}
	values := make([]float64, 0, screenValues*len(screened))
	for unit, b := range gathered {
		o, err := DecodeOutcome(b)
		if err != nil {
			return fmt.Errorf("screening by %s: %w", screened[unit].algorithm, err)
		}
		of := []float64{max(0, o.Measures[0].Mean), max(0, o.MeanPredictor[0].Mean), float64(o.Rows.Test),
			float64(o.Rows.Train) + float64(o.Rows.Validation)}
		if o.Error != "" || o.Rows.Test == 0 {
			clear(of)
		}
		if slices.ContainsFunc(of, impossible) {
			return fmt.Errorf("screening by %s: the result has the values %v, which are not possible",
				screened[unit].algorithm, of)
		}
		values = append(values, of...)
	}
	s.values, s.running = values, false
	return nil
}

// state lists the fields of a training state.
func (s *screen) state(l *fields.List) {
	if s == nil {
		return
	}
	l.Known(&s.values, screenValues*len(screened))
	l.Check(!slices.ContainsFunc(s.values, impossible),
		"the saved state has results of a screening that are not possible")
}

// impossible reports whether v is no value of a screening.
func impossible(v float64) bool { return !(v >= 0 && v-v == 0) }

// result returns what the screening of a job with this progress has found; nil: nothing.
func (s *screen) result(p *round.Progress) *Screening {
	if s == nil || s.values == nil || p.BestStep == 0 {
		return nil
	}
	r := &Screening{KL: p.BestLoss}
	for unit := range screened {
		if v := s.values[screenValues*unit:]; v[2] > 0 {
			r.MeanBaseline, r.Samples = v[1], int(v[2])
			r.Others = append(r.Others, ScreenedModel{screened[unit].algorithm, int(v[3]), v[0]})
		}
	}
	if r.Others == nil {
		return nil
	}
	return r
}
