package pipeline_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// shifted is an algorithm for tests that predicts numbers: the first feature and a constant,
// the mean of the middles of the training rows' intervals. Its settings are those of rf.
type shifted struct{ algorithms.Algorithm }

func init() { registry.Register(shifted{Algorithm: rf.New()}) }

func (shifted) Name() string                { return "test-shifted" }
func (shifted) Predicts() algorithms.Output { return algorithms.Number }

func (shifted) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	t := &shiftedTrainer{shards: len(m.Shards), model: shiftedModel{features: m.Features, labels: m.Labels}}
	switch len(state) {
	case 0:
	case 8:
		t.done, t.model.constant = true, math.Float64frombits(binary.LittleEndian.Uint64(state))
	default:
		return nil, errors.New("a state of another length")
	}
	return t, nil
}

func (shifted) NewKernel(_ *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	return shiftedKernel{scale: m.LabelType.Scale}, nil
}

func (shifted) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	if len(tensors) != 2 || len(tensors[0].U32) != 2 || len(tensors[1].F64) != 1 {
		return nil, errors.New("other tensors")
	}
	return &shiftedModel{features: int(tensors[0].U32[0]), labels: int(tensors[0].U32[1]), constant: tensors[1].F64[0]},
		nil
}

type shiftedTrainer struct {
	shards int
	done   bool
	model  shiftedModel
}

func (t *shiftedTrainer) Next() (*round.Round, error) {
	if t.done {
		return nil, nil
	}
	return &round.Round{Op: 1, Kind: "middles", Tasks: t.shards, How: round.Sums(2), Roles: dataset.Train}, nil
}

func (t *shiftedTrainer) Fold(r *round.Result) error {
	t.done, t.model.constant = true, r.Sum.F64[1]/r.Sum.F64[0]
	return nil
}

func (t *shiftedTrainer) AppendState(dst []byte) ([]byte, error) {
	if !t.done {
		return dst, nil
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(t.model.constant)), nil
}

func (t *shiftedTrainer) Progress() round.Progress         { return round.Progress{Loss: -1} }
func (t *shiftedTrainer) Counters() map[string]uint64      { return nil }
func (t *shiftedTrainer) Model() (algorithms.Model, error) { return &t.model, nil }

type shiftedKernel struct{ scale *dataset.Scale }

func (shiftedKernel) NewScratch() any { return nil }
func (shiftedKernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

func (k shiftedKernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, _ round.Vars, _ round.Derived,
	_ any) error {
	for _, ref := range u.Rows(d) {
		low, high := k.scale.Interval(d.Shard(int(ref.Shard)), int(ref.Pos))
		dst.F64[0]++
		dst.F64[1] += (low + high) / 2
	}
	return nil
}

type shiftedModel struct {
	features, labels int
	constant         float64
}

func (m *shiftedModel) Tensors() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "shape", Dims: []int{2}, U32: []uint32{uint32(m.features), uint32(m.labels)}},
		{Name: "constant", Dims: []int{1}, F64: []float64{m.constant}},
	}
}
func (m *shiftedModel) Shape() (int, int)        { return m.features, m.labels }
func (m *shiftedModel) NewScratch() any          { return nil }
func (m *shiftedModel) Describe() [][2]string    { return nil }
func (m *shiftedModel) number(x float32) float32 { return float32(m.constant + float64(x)) }

func (m *shiftedModel) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, _ any) {
	for i, ref := range refs {
		dst[i] = m.number(shard(ref.Shard).Dense(int(ref.Pos))[0])
	}
}

// ages is a Source of rows on a scale from 10, with exact numbers and intervals.
type ages struct{ rows int }

func (a ages) Info() dataset.Info {
	return dataset.Info{
		Rows: a.rows, Features: 2, Labels: 30, HasValues: true, HasIntervals: true,
		LabelType: dataset.LabelType{Scale: &dataset.Scale{Low: 10, True: dataset.TrueValue}},
	}
}

func (a ages) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, 2), Labels: make([]float64, 30)}
	for i := range a.rows {
		row.Number = i
		row.Values[0], row.Values[1] = float64(i%11)-5.25, 1
		row.Value = 10 + float64(i*7%59)/2
		row.Interval = [2]float64{row.Value - 0.5, row.Value + 0.25}
		clear(row.Labels)
		row.Labels[29] = 0.25
		row.Labels[i*7%59/2] += 0.75
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// newNumbers builds a job that predicts numbers.
func newNumbers(t testing.TB, split dataset.Split) *work {
	w := newWork(t, ages{rows: 150}, split)
	w.job.Algorithm, w.job.Params = "test-shifted", []byte("{}")
	w.job.Split.ValidationFraction, w.job.Split.ValidationMin = 0.1, 3
	return w
}

// TestNumbers runs a job of a model of numbers: its errors are those that one gets row by row,
// the median is that of training and validation rows, and no measure of distributions is there.
func TestNumbers(t *testing.T) {
	w := newNumbers(t, dataset.Split{Seed: 5, TestFraction: 0.3})
	o := w.run(t, w.job)
	roles, err := w.job.Split.Assign(150, nil)
	if err != nil {
		t.Fatal(err)
	}
	middles, train := 0.0, 0.0
	var learnt []float64
	rows := map[int]dataset.Row{}
	ages{rows: 150}.Scan(func(r *dataset.Row) error {
		c := *r
		c.Values = slices.Clone(r.Values)
		rows[r.Number] = c
		if roles[r.Number] != dataset.Test {
			learnt = append(learnt, r.Value)
		}
		if roles[r.Number] == dataset.Train {
			middles, train = middles+r.Value-0.125, train+1
		}
		return nil
	})
	slices.Sort(learnt)
	n := len(learnt)
	median := (learnt[(n-1)/2] + learnt[n/2]) / 2
	mae, floored, beat, within, tested := 0.0, 0.0, 0.0, 0.0, 0.0
	for row, role := range roles {
		if role != dataset.Test {
			continue
		}
		truth, p := rows[row].Value, float64(float32(middles/train+rows[row].Values[0]))
		mae, floored, beat, tested = mae+math.Abs(p-truth), floored+math.Abs(math.Floor(p)-truth), beat+
			math.Abs(median-truth), tested+1
		if math.Abs(p-truth) <= 4 {
			within++
		}
	}
	got, base := o.Added.Model.Number, o.Added.Baseline().Number
	for what, pair := range map[string][2]float64{
		"MAE": {got.Number.MAE.Mean, mae / tested}, "floored": {got.Floored.MAE.Mean, floored / tested},
		"of the median": {base.Number.MAE.Mean, beat / tested}, "cumulative score": {got.Number.Scores[4], within / tested},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, row by row %v", what, pair[0], pair[1])
		}
	}
	if o.Added.MeanPredictor != nil || !math.IsNaN(o.Measures[0].Mean) || o.Rows.Test != 45 || o.Rows.Validation != 10 {
		t.Errorf("%+v", o)
	}
	w.numbersInFile(t, o, median)
}

// numbersInFile checks what the model file and the predictions have.
func (w *work) numbersInFile(t *testing.T, o *pipeline.Outcome, median float64) {
	t.Helper()
	f, m, err := registry.Model(o.Model)
	if err != nil || f.Digest != modelfile.Digest(w.job.Algorithm, m.Tensors()) {
		t.Fatal(err)
	}
	if p := provenance(t, f); p.Median == nil || *p.Median != median || len(p.MeanLabel) != 30 ||
		p.LabelType.Scale.Low != 10 {
		t.Errorf("provenance %+v, median %v", p, median)
	}
	set, err := predictions.Decode(o.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	mae := 0.0
	for i := range set.Row {
		mae += math.Abs(set.True[i]-float64(set.PredictedOf(i)[0])) / float64(len(set.Row))
	}
	if want := o.Added.Model.Number.Number.MAE.Mean; math.Abs(mae-want) > 1e-9 || len(set.Row) != 45 || !set.Number {
		t.Errorf("predictions of %d rows have the MAE %v, want %v", len(set.Row), mae, want)
	}
}

// TestNumbersAnywhere: from any state, over any number of lanes, and as folds the figures are
// the same.
func TestNumbersAnywhere(t *testing.T) {
	w := newNumbers(t, dataset.Split{Seed: 5, Folds: 3})
	want := w.run(t, w.job)
	if d := cmp.Diff(want.Added, w.runWith(t, w.job, local.Options{Lanes: 3}).Added); d != "" {
		t.Error(d)
	}
	mean := 0.0
	for f := range 3 {
		one := w.run(t, pipeline.SubJob(w.job, f))
		mean += one.Added.Model.Number.Number.MAE.Mean / 3
	}
	if got := want.Added.Model.Number.Number.MAE.Mean; math.Abs(got-mean) > 1e-12 {
		t.Errorf("MAE over folds %v, want %v", got, mean)
	}
	w = newNumbers(t, dataset.Split{Seed: 5, TestFraction: 0.3})
	var states [][]byte
	whole := w.drive(t, nil, 0, func(state []byte, _ string) { states = append(states, slices.Clone(state)) })
	for i, s := range states {
		again := w.drive(t, s, uint64(i+1), ignore)
		if d := cmp.Diff(whole.Added, again.Added); d != "" || whole.ModelDigest != again.ModelDigest {
			t.Errorf("from state %d: %s", i, d)
		}
	}
	if len(states) != 4 {
		t.Errorf("%d rounds, want those of training, median, evaluation and prediction", len(states))
	}
}

// TestNumbersNeedAScale: labels without numbers are refused, by trainer and kernel.
func TestNumbersNeedAScale(t *testing.T) {
	w := artificial(t)
	w.job.Algorithm = "test-shifted"
	_, trainer := pipeline.New(w.job, w.data.Manifest, nil)
	_, kernel := pipeline.NewKernel(w.job, w.data.Manifest)
	for _, err := range []error{trainer, kernel} {
		if err == nil || err.Error() != "test-shifted predicts numbers, but the labels are distributions; --range makes "+
			"labels numeric where the data are read or imported" {
			t.Errorf("error %v", err)
		}
	}
}
