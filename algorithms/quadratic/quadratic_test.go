package quadratic_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/algorithms/quadratic"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/scaletest"
)

var paper = param.Values{"preset": "paper"}

// TestGolden holds the bits of a model: the same for sparse and dense rows.
func TestGolden(t *testing.T) {
	const want = "91b0687652fa55b7fb29391e3a6df4e366cca0cc89b568e67982aaa024f023d0"
	for _, lanes := range []int{1, 3} {
		p := scaletest.New(t, scaletest.Rows{N: 90, Features: 4, Density: 1, Seed: 1})
		m, err := p.Run(t, quadratic.New(), paper, lanes, nil).Model()
		if err != nil {
			t.Fatal(err)
		}
		if got := modelfile.Digest(quadratic.Name, m.Tensors()); got != want {
			t.Errorf("%d lanes: digest %s, want %s", lanes, got, want)
		}
	}
	// an explicit zero is not stored, and changes no bit
	sparse := scaletest.New(t, scaletest.Rows{N: 90, Features: 40, Density: 0.1, Seed: 1})
	dense := *sparse
	manifest := *sparse.Manifest
	manifest.Sparse, dense.Manifest, dense.Shards = false, &manifest, nil
	for _, r := range sparse.Shards {
		d := *r
		d.Sparse, d.X, d.Index, d.Start = false, make([]float32, r.N*r.Features), nil, nil
		for i := range r.N {
			columns, values := r.NonZeros(i)
			for k, c := range columns {
				d.X[i*r.Features+int(c)] = values[k]
			}
		}
		dense.Shards = append(dense.Shards, &d)
	}
	a, b := sparse.Model(t, quadratic.New(), paper), dense.Model(t, quadratic.New(), paper)
	if modelfile.Digest(quadratic.Name, a.Tensors()) != modelfile.Digest(quadratic.Name, b.Tensors()) {
		t.Error("sparse and dense rows have other models")
	}
	if fmt.Sprint(sparse.Predict(t, a, dataset.AllRows)) != fmt.Sprint(dense.Predict(t, b, dataset.AllRows)) {
		t.Error("sparse and dense rows are predicted otherwise")
	}
}

// twin is Eq. 19 by normal equations of 1, x and x.², in float64, with a ridge on the weights.
func twin(x [][]float64, y []float64, ridge float64) func([]float64) float64 {
	basis := func(x []float64) []float64 {
		b := append([]float64{1}, x...)
		for _, v := range x {
			b = append(b, v*v)
		}
		return b
	}
	n := len(basis(x[0]))
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
		if i > 0 {
			a[i][i] = ridge
		}
	}
	for r := range x {
		b := basis(x[r])
		for i := range n {
			for j := range n {
				a[i][j] += b[i] * b[j]
			}
			a[i][n] += b[i] * y[r]
		}
	}
	w := gauss(a)
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range basis(x) {
			sum += w[i] * v
		}
		return sum
	}
}

// gauss solves a system whose right side is its last column.
func gauss(a [][]float64) []float64 {
	n := len(a)
	for k := range n {
		best := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[best][k]) {
				best = i
			}
		}
		a[k], a[best] = a[best], a[k]
		for i := k + 1; i < n; i++ {
			f := a[i][k] / a[k][k]
			for j := k; j <= n; j++ {
				a[i][j] -= f * a[k][j]
			}
		}
	}
	w := make([]float64, n)
	for k := n - 1; k >= 0; k-- {
		w[k] = a[k][n]
		for j := k + 1; j < n; j++ {
			w[k] -= a[k][j] * w[j]
		}
		w[k] /= a[k][k]
	}
	return w
}

// TestTwin: predictions are those of the normal equations, for training and for test rows.
func TestTwin(t *testing.T) {
	p := scaletest.New(t, scaletest.Rows{N: 200, Features: 5, Density: 1, Seed: 3})
	x, y := p.Widened(t, dataset.Train)
	want := twin(x, y, 0)
	m := p.Model(t, quadratic.New(), paper)
	cut := p.Model(t, quadratic.New(), nil)
	all, _ := p.Widened(t, dataset.AllRows)
	got, inside := p.Predict(t, m, dataset.AllRows), p.Predict(t, cut, dataset.AllRows)
	below := 0
	for i, row := range all {
		v := want(row)
		if math.Abs(float64(got[i])-v) > 1e-6*max(1, math.Abs(v)) {
			t.Fatalf("row %d: %v, the twin has %v", i, got[i], v)
		}
		if float64(inside[i]) != min(max(float64(got[i]), 3), 14) {
			t.Fatalf("row %d: %v is cut to %v", i, got[i], inside[i])
		}
		if got[i] < 3 || got[i] > 14 {
			below++
		}
	}
	if below == 0 {
		t.Error("no prediction is cut")
	}
}

// altered is a source whose features are made of another's.
type altered struct {
	scaletest.Rows
	features int
	change   func(x []float64) []float64
}

func (s altered) Info() dataset.Info {
	info := s.Rows.Info()
	info.Features = s.features
	return info
}

func (s altered) Scan(f func(*dataset.Row) error) error {
	return s.Rows.Scan(func(r *dataset.Row) error {
		r.Values = s.change(r.Values)
		return f(r)
	})
}

// TestDependentColumns: a column twice, a constant one and one of two values whose square is
// constant. The ridge is said, and the predictions are those without the columns that say
// nothing new.
func TestDependentColumns(t *testing.T) {
	rows := scaletest.Rows{N: 150, Features: 3, Density: 1, Seed: 4}
	plain := scaletest.New(t, altered{Rows: rows, features: 4, change: func(x []float64) []float64 {
		return []float64{x[0], x[1], x[2], math.Copysign(1, x[0]-x[1])}
	}})
	more := scaletest.New(t, altered{Rows: rows, features: 7, change: func(x []float64) []float64 {
		return []float64{x[0], x[1], x[2], math.Copysign(1, x[0]-x[1]), x[1], 7, 2*x[2] - 5}
	}})
	x, y := plain.Widened(t, dataset.Train)
	for _, row := range x {
		row[3]++ // 0 or 2: no longer is the square the constant, but it depends on the column
	}
	tr := more.Run(t, quadratic.New(), paper, 1, nil)
	if c := tr.Counters(); c["constant_columns"] != 1 || c["ridge_fits"] != 1 {
		t.Errorf("counters %v", c)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(m.Describe()); !strings.Contains(text,
		"1e-10, because some columns depend linearly on others") || !strings.Contains(text, "{constant features 1}") &&
		!strings.Contains(text, "[constant features 1]") {
		t.Errorf("description %s", text)
	}
	want := twin(x, y, 1e-9)
	for i, v := range more.Predict(t, m, dataset.Train) {
		if w := want(x[i]); math.Abs(float64(v)-w) > 1e-5 {
			t.Fatalf("row %d: %v, without the dependent columns %v", i, v, w)
		}
	}
}

// TestFewRows: fewer rows than columns are a fit with the ridge that passes through them.
func TestFewRows(t *testing.T) {
	p := scaletest.New(t, scaletest.Rows{N: 20, Features: 30, Density: 1, Seed: 5})
	_, y := p.Widened(t, dataset.Train)
	for i, v := range p.Predict(t, p.Model(t, quadratic.New(), paper), dataset.Train) {
		if math.Abs(float64(v)-y[i]) > 1e-5 {
			t.Fatalf("row %d: %v, want %v", i, v, y[i])
		}
	}
}

// TestRefuses: labels that are no scale, and a split without training rows.
func TestRefuses(t *testing.T) {
	m, _ := datatest.Artificial(t, 50)
	if _, err := quadratic.New().Resolve(nil, m); !errors.Is(err, target.ErrNoScale) ||
		!strings.HasPrefix(err.Error(), "quadratic: the algorithm predicts numbers") {
		t.Errorf("error %v", err)
	}
	p := scaletest.New(t, scaletest.Rows{N: 20, Features: 2, Density: 1, Seed: 5})
	p.Split = dataset.Split{Seed: 1, TestFraction: 1}
	j := p.Job(t, quadratic.New(), nil)
	tr, err := quadratic.New().NewTrainer(j, p.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fold(resultOf(nil)); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("no rows: error %v", err)
	}
	for _, b := range [][]byte{{1, 2}, make([]byte, 8*9), bytesOf(math.NaN(), 10), bytesOf(math.Inf(1), 10)} {
		if err := tr.Fold(resultOf(b)); err == nil {
			t.Errorf("a fit of %d bytes is accepted", len(b))
		}
	}
	if err := tr.Fold(resultOf(bytesOf(1, 10))); err != nil {
		t.Error(err)
	}
}

// TestPersons: leave-one-person-out on FG-Net, beside 6.55 of the paper's Table 1 and 6.662 of an
// independent implementation.
func TestPersons(t *testing.T) {
	if testkit.Race || testing.Short() {
		t.Skip("takes seconds: not with -short or -race")
	}
	mae, floored, cut := scaletest.Persons(t, quadratic.New(), paper)
	t.Logf("MAE %.4f, floored %.4f, cut and floored %.4f", mae, floored, cut)
	if math.Abs(mae-6.662) > .001 || math.Abs(cut-6.271) > .001 {
		t.Error("want 6.662, and 6.271 cut and floored")
	}
}

// FuzzRestore: see contract.FuzzRestore.
func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, quadratic.New(), nil, paper) }

// FuzzSettings: see contract.FuzzSettings.
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, quadratic.New(), nil, paper) }

// FuzzDecodeModel: see contract.FuzzDecodeModel.
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, quadratic.New(), nil, paper) }
