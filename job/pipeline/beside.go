package pipeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

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

// JobPlan returns which measures a job has. Errors are those of PlanOf, or say that the job asks
// for what a model of numbers has not.
func JobPlan(j *round.Job, m *dataset.Manifest) (*measures.Plan, error) {
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
// says that the algorithm predicts numbers and the labels are none.
func PlanOf(algorithm string, labels int, t dataset.LabelType) (*measures.Plan, error) {
	p := &measures.Plan{Labels: labels, Type: t, Number: registry.Output(algorithm) == algorithms.Number}
	if p.Number && t.Scale == nil {
		return nil, fmt.Errorf("%s predicts numbers, but the labels are %s; --range makes labels numeric", algorithm, t.String(labels))
	}
	return p, nil
}

// meanLength is the length of single.mean: the mean distribution, and the median where a
// number is predicted.
func (t *single) meanLength() int {
	if t.plan.Number {
		return t.manifest.Labels + 1
	}
	return t.manifest.Labels
}

// meanRound asks for the sums of the labels; where a number is predicted, for each task's
// sums and all of its rows' numbers, since a median is no sum.
func (t *single) meanRound() {
	t.round.Op, t.round.Kind, t.round.Roles = opMean, "label mean", dataset.AllRows
	t.round.Shape = round.Shape{F64: 3 + t.manifest.Labels}
	if t.plan.Number {
		t.round.How, t.round.Shape = round.Gather, round.Shape{}
		t.round.Tasks = t.gatheringTasks(8 * int64(t.manifest.Rows))
	}
}

// collectNumbers returns what meanRound asks of a task: the sums, then the numbers of the
// rows that are not test rows, as float64.
func (k *kernel) gatherNumbers(u round.Task, d *dataset.Data) []byte {
	sums := make([]float64, 3+d.Manifest.Labels)
	sumLabels(sums, u, d)
	for _, ref := range u.Rows(d) {
		if rows := d.Shard(int(ref.Shard)); d.Role(rows.Row[ref.Pos]) != dataset.Test {
			sums = append(sums, k.plan.Type.Scale.Number(rows, int(ref.Pos)))
		}
	}
	return num.Bytes64(sums)
}

// setMedian folds what tasks collected: the sums as setMean does, and the median of the
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

// Measured returns the measures that the sums of a model say, and those of what it must beat.
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
		model, mean, middle = append(model, f.Added.Model), append(mean, f.Added.MeanPredictor), append(middle, f.Added.MedianPredictor)
	}
	a := &Added{Model: measures.AddedOverFolds(model), MeanPredictor: measures.AddedOverFolds(mean), MedianPredictor: measures.AddedOverFolds(middle)}
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

// testedGroup returns the name of the group whose rows a job tests; empty: it tests no group.
func testedGroup(j *round.Job, m *dataset.Manifest) string {
	g, s := m.Groups, j.Split
	if g == nil || s.Assigned != g.Digest || s.Overlap || s.Inner > 0 || s.Fold >= len(g.Names) {
		return ""
	}
	return g.Names[s.Fold]
}
