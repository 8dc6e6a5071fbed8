// Package fittest has what the tests of algorithms have in common that fit a maximum-entropy model, or another model
// by a published objective: digests of small jobs, gradients against central differences, and figures on the folds
// of real datasets, which independent programs have computed.
package fittest

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Problem builds a generated dataset.
func Problem(t testing.TB, o generate.Options) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return datatest.Build(t, src)
}

// Targets builds a generated dataset of targets from 0 to 1, as algorithms read them.
func Targets(t testing.TB, rows, features, labels int) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	m, shards := Problem(t, generate.Options{Rows: rows, Features: features, Labels: labels, Density: 1, Seed: 3})
	asTargets(m, shards)
	return m, shards
}

// asTargets makes targets in the bounds 0 and 1 of degrees: their square roots; of one label, which has the degree 1,
// fractions of the first feature.
func asTargets(m *dataset.Manifest, shards []*dataset.Rows) {
	m.LabelType.Bounds = &dataset.Bounds{Low: []float64{0}, High: []float64{1}}
	for _, rows := range shards {
		for i, x := range rows.D {
			if rows.D[i] = float32(math.Sqrt(float64(x))); m.Labels == 1 && !m.Sparse {
				v := float64(rows.X[i*m.Features])
				rows.D[i] = float32(math.Abs(v - math.Floor(v)))
			}
		}
	}
}

// Digests compares the models of small jobs on dense and on sparse samples with their digests, by name: on one lane,
// on three, and cut after every round.
func Digests(t *testing.T, a algorithms.Algorithm, cases []contract.Case, want map[string]string) {
	t.Helper()
	MaskedDigests(t, a, dataset.Mask{}, cases, want)
}

// MaskedDigests is Digests where a mask hides degrees of the training samples.
func MaskedDigests(t *testing.T, a algorithms.Algorithm, mask dataset.Mask, cases []contract.Case,
	want map[string]string) {
	t.Helper()
	for _, o := range []generate.Options{{Rows: 200, Features: 6, Labels: 4, Density: 1, Seed: 2},
		{Rows: 200, Features: 40, Labels: 4, Density: 0.1, Seed: 2}} {
		m, shards := Problem(t, o)
		if a.Predicts() == algorithms.Targets {
			asTargets(m, shards)
		}
		for _, c := range cases {
			name := c.Name
			if m.Sparse {
				name += " sparse"
			}
			j := contract.Job(t, a, c.Set, m, dataset.Split{Seed: 5, TestFraction: 0.1, Mask: mask})
			d := masked(datatest.Data(t, m, shards, j.Split, nil), j.Split)
			one := contract.Digest(t, a, contract.Train(t, a, j, d, 1, nil))
			if one != want[name] {
				t.Errorf("%q: %q,", name, one)
			}
			if many := contract.Digest(t, a, contract.Train(t, a, j, d, 3, nil)); many != one {
				t.Errorf("%s: on three lanes %s", name, many)
			}
			if cut := contract.Digest(t, a, contract.Train(t, a, j, d, 1, contract.Cut(t, a, j, m))); cut != one {
				t.Errorf("%s: cut after every round %s", name, cut)
			}
		}
	}
}

// Loss is an objective by plain loops: the features x of samples, with a 1 behind them, their label distributions
// d, and weights w, a row for each value of x.
type Loss func(x, d, w [][]float64) float64

// Samples returns the training samples for a Loss. Features are standardised if standard is true.
func Samples(d *dataset.Data, standard bool) (x, labels [][]float64) {
	refs := d.Select(0, len(d.Manifest.Shards), dataset.Train)
	for _, ref := range refs {
		rows := d.Shard(int(ref.Shard))
		row := make([]float64, d.Manifest.Features+1)
		for i, v := range rows.Dense(int(ref.Pos)) {
			row[i] = float64(v)
		}
		row[d.Manifest.Features] = 1
		degrees := make([]float64, d.Manifest.Labels)
		if label := rows.Label(int(ref.Pos)); dataset.CountMissing(label) == 0 {
			maxent.Degrees(degrees, label)
		} else {
			for c, d := range label { // NaN for a missing one
				degrees[c] = float64(d)
			}
		}
		x, labels = append(x, row), append(labels, degrees)
	}
	for i := range d.Manifest.Features {
		if !standard {
			break
		}
		mean, square := 0.0, 0.0
		for _, row := range x {
			mean += row[i] / float64(len(x))
		}
		for _, row := range x {
			square += (row[i] - mean) * (row[i] - mean) / float64(len(x))
		}
		deviation := math.Sqrt(square)
		if deviation <= 1e-9*math.Abs(mean) {
			deviation = 1
		}
		for _, row := range x {
			row[i] = (row[i] - mean) / deviation
		}
	}
	return x, labels
}

// Matrix views a point as rows.
func Matrix(v []float64, columns int) (m [][]float64) {
	for ; len(v) > 0; v = v[columns:] {
		m = append(m, v[:columns])
	}
	return m
}

// Predict returns the softmax of wᵀx.
func Predict(x []float64, w [][]float64) []float64 {
	p, sum := make([]float64, len(w[0])), 0.0
	for c := range p {
		for i, v := range x {
			p[c] += v * w[i][c]
		}
	}
	most := p[0]
	for _, v := range p {
		most = math.Max(most, v)
	}
	for c, v := range p {
		p[c] = math.Exp(v - most)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// KL returns the K-L divergence of a sample.
func KL(d, p []float64) (sum float64) {
	for c, v := range d {
		if v > 0 {
			sum += v * math.Log(v/p[c])
		}
	}
	return sum
}

// Decay returns ½·l2·‖w‖² without the last row.
func Decay(w [][]float64, l2 float64) (sum float64) {
	for _, row := range w[:len(w)-1] {
		for _, v := range row {
			sum += l2 / 2 * v * v
		}
	}
	return sum
}

// Gradient compares the objective and the gradient of an algorithm whose trainer is a maxent.Trainer, at a random
// point, with a Loss and its central differences: for several labels and for two. Settings have bias and no scaling.
// of returns it of the algorithm's trainer.
func Gradient(t *testing.T, a algorithms.Algorithm, given param.Values, of func(algorithms.Trainer) *maxent.Trainer,
	slow Loss) {
	t.Helper()
	MaskedGradient(t, a, given, dataset.Mask{}, of, slow)
}

// MaskedGradient is Gradient where a mask hides degrees, which are NaN for the Loss.
func MaskedGradient(t *testing.T, a algorithms.Algorithm, given param.Values, mask dataset.Mask,
	of func(algorithms.Trainer) *maxent.Trainer, slow Loss) {
	t.Helper()
	for _, labels := range []int{5, 2} {
		m, shards := Problem(t, generate.Options{Rows: 80, Features: 4, Labels: labels, Density: 1, Seed: 3})
		j := contract.Job(t, a, given, m, dataset.Split{Mask: mask})
		d := masked(datatest.Data(t, m, shards, j.Split, nil), j.Split)
		tr := of(contract.Train(t, a, j, d, 1, nil))
		k, err := a.NewKernel(j, m)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float64, tr.Objective.Point())
		s := num.NewStream(num.NewKey(1, "test"), 0, 0)
		for i := range x {
			x[i] = 0.4 * s.Normal()
		}
		f, g := evaluate(t, k.(round.ReduceKernel), tr, d, x)
		features, degrees := Samples(d, false)
		loss := func() float64 { return slow(features, degrees, Matrix(x, labels)) }
		if want := loss(); math.Abs(f-want) > 1e-10*max(1, math.Abs(want)) {
			t.Errorf("%d labels: loss %v, want %v", labels, f, want)
		}
		for i, at := range x {
			const h = 1e-5
			x[i] = at + h
			up := loss()
			x[i] = at - h
			down := loss()
			x[i] = at
			if want := (up - down) / (2 * h); math.Abs(g[i]-want) > 1e-7*max(1, math.Abs(want)) {
				t.Fatalf("%d labels: derivative %d is %v, want %v", labels, i, g[i], want)
			}
		}
	}
}

// evaluate returns the objective and its gradient at a point, by one task.
func evaluate(t *testing.T, k round.ReduceKernel, tr *maxent.Trainer, d *dataset.Data, x []float64) (f float64,
	g []float64) {
	t.Helper()
	vars := tr.Objective.AppendVars(nil, x, 1)
	var sum round.Partial
	sum.Reset(round.Shape{F64: fullbatch.SumsAt + tr.Objective.Sums()})
	u := round.Task{Of: 1, Op: fullbatch.OpEvaluate, Roles: dataset.Train}
	if err := k.Run(&sum, u, d, vars, nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	g = make([]float64, len(x))
	return tr.Objective.Fold(g, x, sum.F64[0], sum.F64[1], sum.F64[fullbatch.SumsAt:]), g
}

// Folds is a real dataset with its given folds.
type Folds struct {
	Name     string
	Manifest *dataset.Manifest
	shards   []*dataset.Rows
	assigned []uint16
	folds    int
	// Mask hides degrees of the training samples.
	Mask dataset.Mask
}

// Open opens a dataset of the folder shared, such as "SJAFFE", or skips the test if there is no such folder.
func Open(t *testing.T, name string) *Folds {
	t.Helper()
	m, shards := datatest.Shared(t, name+".mat")
	assigned, folds, err := read.FoldsFile(testkit.Shared(t, "folds/"+name+".csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return &Folds{Name: name, Manifest: m, shards: shards, assigned: assigned, folds: folds}
}

// masked is the data as a training of the split sees it.
func masked(d *dataset.Data, s dataset.Split) *dataset.Data {
	if s.Mask.Any() {
		return d.Masked(s.Mask, s.Seed)
	}
	return d
}

// OpenTargets is Open with the degrees as targets in the bounds 0 and 1.
func OpenTargets(t *testing.T, name string) *Folds {
	t.Helper()
	f := Open(t, name)
	f.Manifest.LabelType.Bounds = &dataset.Bounds{Low: []float64{0}, High: []float64{1}}
	return f
}

// split is that of a fold, of all folds together for the fold 0 of a job with folds.
func (f *Folds) split(fold int) dataset.Split {
	return dataset.Split{Seed: 1, Folds: f.folds, Fold: fold, Assigned: "folds of the test", Mask: f.Mask}
}

// First trains on the training samples of the first fold. each sees the trainer after every round, and data.
func (f *Folds) First(t *testing.T, a algorithms.Algorithm, given param.Values,
	each func(tr algorithms.Trainer, d *dataset.Data)) {
	t.Helper()
	j := contract.Job(t, a, given, f.Manifest, f.split(0))
	d := masked(datatest.Data(t, f.Manifest, f.shards, j.Split, f.assigned), j.Split)
	contract.Train(t, a, j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
		each(tr, d)
		return tr
	})
}

// Objectives compares the objective of a maxent.Trainer on the first fold after 0, 1 and 10 iterations, and at
// the end, with figures of SciPy: start and end within 1e-6 of the figure, and 2e-6 for its digits; the first iteration
// within 1e-5, the tenth within 1e-3. The figure 0 is not compared. A jumping objective, whose searches
// differ, is near to 1 percent.
func (f *Folds) Objectives(t *testing.T, a algorithms.Algorithm, given param.Values, slow Loss, jumps bool,
	want [4]float64) {
	t.Helper()
	got := map[int]float64{}
	last := 0
	var x, labels [][]float64
	f.First(t, a, given, func(tr algorithms.Trainer, d *dataset.Data) {
		by := tr.(*maxent.Trainer)
		n := by.Optimiser.Iterations()
		if _, known := got[n]; known || by.Evaluations == 0 {
			return
		}
		if x == nil {
			x, labels = Samples(d, given["scaling"] == scaling.Standard)
		}
		last = n
		got[n] = slow(x, labels, Matrix(by.Optimiser.Best(), f.Manifest.Labels))
	})
	for i, n := range []int{0, 1, 10, last} {
		share := [4]float64{1e-6, 1e-5, 1e-3, 1e-6}[i]
		if jumps {
			share = 1e-2
		}
		if want[i] == 0 {
			continue
		}
		t.Logf("objective %.6f after %d iterations, of SciPy %.6f", got[n], n, want[i])
		if math.Abs(got[n]-want[i]) > share*want[i]+1e-6 {
			t.Errorf("%s: objective %.7f after %d iterations, want %.6f", f.Name, got[n], n, want[i])
		}
	}
}

// six are the measures of papers, in their order.
var six = []string{"chebyshev", "clark", "canberra", "kl", "cosine", "intersection"}

// Measures trains on each fold, and compares the means of six measures on the test samples with figures of an
// independent program: each within the share, and a digit of the figure.
func (f *Folds) Measures(t *testing.T, a algorithms.Algorithm, given param.Values, share float64, want [6]float64) {
	t.Helper()
	f.Named(t, a, given, share, six, want[:])
}

// Classes is Measures for the zero-one loss and the error probability.
func (f *Folds) Classes(t *testing.T, a algorithms.Algorithm, given param.Values, share float64, want [2]float64) {
	t.Helper()
	f.Named(t, a, given, share, []string{"zero_one", "error_probability"}, want[:])
}

// Named is Measures for measures with names.
func (f *Folds) Named(t *testing.T, a algorithms.Algorithm, given param.Values, share float64, names []string,
	want []float64) {
	t.Helper()
	o := f.Outcome(t, a, given)
	for i, name := range names {
		f.compare(t, o, name, share, want[i])
	}
}

// Recovery is Measures of a model that is trained on all samples with the mask, on the same samples without it.
func (f *Folds) Recovery(t *testing.T, a algorithms.Algorithm, given param.Values, share float64, want [6]float64) {
	t.Helper()
	j := contract.Job(t, a, given, f.Manifest, dataset.Split{Seed: 1, Mask: f.Mask})
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: f.Manifest, Shards: f.shards}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range six {
		if want[i] > 0 {
			f.compare(t, o, name, share, want[i])
		}
	}
}

// KL is Measures of the K-L divergence alone.
func (f *Folds) KL(t *testing.T, a algorithms.Algorithm, given param.Values, share, want float64) {
	t.Helper()
	f.Named(t, a, given, share, []string{"kl"}, []float64{want})
}

// compare compares a measure with a figure.
func (f *Folds) compare(t *testing.T, o *pipeline.Outcome, name string, share, want float64) {
	t.Helper()
	var model *measures.Added
	if o.Added != nil {
		model = o.Added.Model
	}
	s, ok := measures.Value(name, o.Measures, model)
	if !ok {
		t.Fatalf("there is no measure %q", name)
	}
	t.Logf("%s: %-12s %.4f, of the independent program %.4f", f.Name, name, s.Mean, want)
	if !(math.Abs(s.Mean-want) <= share*want+1e-4) {
		t.Errorf("%s: %s is %.5f, want %.4f", f.Name, name, s.Mean, want)
	}
}

// Outcome trains on each fold, and returns all measures on the test samples.
func (f *Folds) Outcome(t *testing.T, a algorithms.Algorithm, given param.Values) *pipeline.Outcome {
	t.Helper()
	j := contract.Job(t, a, given, f.Manifest, f.split(0))
	j.Folds, j.Measures = f.folds, pipeline.AllMeasures
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: f.Manifest, Shards: f.shards, Assigned: f.assigned},
		local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}
