// Package scaletest has what tests of algorithms that predict numbers share: rows on a scale,
// jobs on them, and leave-one-person-out on FG-Net.
package scaletest

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
)

// Problem is a dataset with a split.
type Problem struct {
	Manifest *dataset.Manifest
	Shards   []*dataset.Rows
	Split    dataset.Split
}

// Rows is a Source of rows on a scale from 3, with exact numbers: a quadratic function of the
// features, which are multiples of 1/8. Every second number is rounded down to a whole one.
type Rows struct {
	N, Features int
	Density     float64 // share of features that are not 0
	Seed        uint64
}

// low and labels are the scale of Rows.
const low, labels = 3, 12

// Info implements dataset.Source.
func (s Rows) Info() dataset.Info {
	return dataset.Info{
		Rows: s.N, Features: s.Features, Labels: labels, HasValues: true, Sparse: s.Density < 1,
		LabelType: dataset.LabelType{Scale: &dataset.Scale{Low: low, True: dataset.TrueValue}},
	}
}

// Scan implements dataset.Source.
func (s Rows) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Labels: make([]float64, labels)}
	for i := range s.N {
		x := s.features(i)
		row.Number, row.Sparse, row.Values, row.Columns = i, s.Density < 1, x, nil
		if row.Sparse {
			row.Values = nil
			for k, v := range x {
				if v != 0 {
					row.Columns, row.Values = append(row.Columns, uint32(k)), append(row.Values, v)
				}
			}
		}
		row.Value = low + number(x)
		if i%2 == 0 {
			row.Value = math.Floor(row.Value)
		}
		clear(row.Labels)
		row.Labels[int(row.Value)-low] = 1
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

func (s Rows) features(i int) []float64 {
	stream := num.NewStream(num.NewKey(s.Seed, "scaletest/rows"), uint64(i), 0)
	x := make([]float64, s.Features)
	for k := range x {
		if v := float64(stream.Uint64n(33))/8 - 2; stream.Float64() < s.Density {
			x[k] = v
		}
	}
	return x
}

// number is from 0 to below labels.
func number(x []float64) float64 {
	v := 2.0
	for k, u := range x {
		v += u * float64(1-k%3)
		if k%2 == 0 {
			v += u * u / 4
		}
	}
	return min(max(v, 0), labels-0.125)
}

// New builds a source; a tenth of the rows are test rows.
func New(t testing.TB, src dataset.Source) *Problem {
	t.Helper()
	m, shards := datatest.Build(t, src)
	return &Problem{m, shards, dataset.Split{Seed: 5, TestFraction: 0.1}}
}

// Data returns the data of a job.
func (p *Problem) Data(t testing.TB) *dataset.Data {
	t.Helper()
	return datatest.Data(t, p.Manifest, p.Shards, p.Split, nil)
}

// Job resolves settings.
func (p *Problem) Job(t testing.TB, a algorithms.Algorithm, given param.Values) *round.Job {
	t.Helper()
	r, err := a.Resolve(given, p.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 7, Dataset: p.Manifest.Digest(), Split: p.Split,
		Params: r.Params}
}

// Run runs a job to its end; each, if set, sees the trainer before every round and may return
// another.
func (p *Problem) Run(t testing.TB, a algorithms.Algorithm, given param.Values, lanes int,
	each func(j *round.Job, tr algorithms.Trainer) algorithms.Trainer) algorithms.Trainer {
	t.Helper()
	j := p.Job(t, a, given)
	tr, k := contract.Begin(t, a, j, p.Manifest)
	if each == nil {
		return contract.Follow(t, tr, contract.Lanes(t, k, p.Data(t), lanes), nil)
	}
	next := func(tr algorithms.Trainer) algorithms.Trainer { return each(j, tr) }
	return contract.Follow(t, next(tr), contract.Lanes(t, k, p.Data(t), lanes), next)
}

// Model is the model of Run on one lane.
func (p *Problem) Model(t testing.TB, a algorithms.Algorithm, given param.Values) algorithms.Model {
	t.Helper()
	m, err := p.Run(t, a, given, 1, nil).Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Predict predicts the rows of some roles.
func (p *Problem) Predict(t testing.TB, m algorithms.Model, roles dataset.Roles) []float32 {
	t.Helper()
	refs := p.Data(t).Select(0, len(p.Shards), roles)
	dst := make([]float32, len(refs))
	m.Predict(dst, refs, func(i uint32) *dataset.Rows { return p.Shards[i] }, m.NewScratch())
	return dst
}

// Widened returns the features and the numbers of the rows of some roles.
func (p *Problem) Widened(t testing.TB, roles dataset.Roles) (x [][]float64, y []float64) {
	t.Helper()
	for _, ref := range p.Data(t).Select(0, len(p.Shards), roles) {
		rows, row := p.Shards[ref.Shard], make([]float64, p.Manifest.Features)
		if columns, values := nonZeros(rows, int(ref.Pos)); columns != nil {
			for i, c := range columns {
				row[c] = float64(values[i])
			}
		} else {
			for i, v := range values {
				row[i] = float64(v)
			}
		}
		x, y = append(x, row), append(y, rows.Value[ref.Pos])
	}
	return x, y
}

func nonZeros(r *dataset.Rows, i int) (columns []uint32, values []float32) {
	if r.Sparse {
		return r.NonZeros(i)
	}
	return nil, r.Dense(i)
}

// Persons trains once for each person of FG-Net without its rows, on the first 200 features, and
// returns the mean absolute errors over all rows: of the predictions, of the floors, and of the
// floors of predictions that are cut to 0 to 69.
func Persons(t testing.TB, a algorithms.Algorithm, given param.Values) (mae, floored, cut float64) {
	t.Helper()
	return persons(t, a, given, func(j *round.Job) { j.Folds = j.Split.Folds })
}

// Person is Persons for one person alone.
func Person(t testing.TB, a algorithms.Algorithm, given param.Values, person int) (mae, floored, cut float64) {
	t.Helper()
	return persons(t, a, given, func(j *round.Job) { j.Split.Fold = person })
}

func persons(t testing.TB, a algorithms.Algorithm, given param.Values, choose func(*round.Job)) (mae, floored,
	cut float64) {
	t.Helper()
	d := fgNet(t)
	r, err := a.Resolve(given, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{
		Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Dataset: d.Manifest.Digest(), Params: r.Params,
		Predictions: 1 << 24,
		Split:       dataset.Split{Seed: 1, Folds: int(slices.Max(d.Assigned)) + 1, Assigned: "persons"},
	}
	choose(j)
	o, err := local.Run(t.Context(), j, d, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := predictions.Decode(o.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	n := float64(len(p.Row))
	for i := range p.Row {
		v, truth := float64(p.Predicted[i]), p.True[i]
		mae += math.Abs(v-truth) / n
		floored += math.Abs(math.Floor(v)-truth) / n
		cut += math.Abs(math.Floor(min(max(v, 0), 69))-truth) / n
	}
	return mae, floored, cut
}

// fgNet reads FG-Net with its persons as folds.
func fgNet(t testing.TB) *local.Data {
	t.Helper()
	src, err := read.Open(testkit.Shared(t, "data/FG-Net.mat"), read.OpenOptions{
		Labels: read.LabelOptions{Ordered: true, Low: 0, High: 69}, Beside: read.BesideOptions{Values: "age"},
		FeatureColumns: []string{"0:199"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, shards, err := importer.Build(src, importer.Options{Checks: importer.Checks{Normalize: true}})
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := read.FoldsFile(testkit.Shared(t, "folds/FG-Net-persons.csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return &local.Data{Manifest: m, Shards: shards, Assigned: of}
}
