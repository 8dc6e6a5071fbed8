package cpnn

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// twin is the network as its equation says: for each row and label one input vector (x, y, 1).
type twin struct {
	hidden, labels int
	number         bool
	w1             [][]float64 // inputs×hidden, the last row being b₁
	w2             []float64
}

// newTwin reads the point of a training.
func newTwin(z sizes, x []float64) *twin {
	w := &twin{hidden: z.hidden, labels: z.labels, number: z.number}
	for at := 0; at < len(x)-z.hidden; at += z.hidden {
		w.w1 = append(w.w1, x[at:at+z.hidden])
	}
	w.w2 = x[len(x)-z.hidden:]
	return w
}

// input returns (x, y, 1) of label c.
func (w *twin) input(x []float64, c int) []float64 {
	in := slices.Clone(x)
	if w.number {
		return append(in, float64(c)/float64(w.labels-1), 1)
	}
	for k := range w.labels {
		y := 0.0
		if k == c {
			y = 1
		}
		in = append(in, y)
	}
	return append(in, 1)
}

func (w *twin) predict(x []float64) []float64 {
	p, sum := make([]float64, w.labels), 0.0
	for c := range p {
		in := w.input(x, c)
		for j := range w.hidden {
			z := 0.0
			for i, v := range in {
				z += v * w.w1[i][j]
			}
			p[c] += w.w2[j] / (1 + math.Exp(-z))
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// loss is the mean K-L divergence of rows.
func (w *twin) loss(xs, ds [][]float64) (sum float64) {
	for i, x := range xs {
		for c, p := range w.predict(x) {
			if d := ds[i][c]; d > 0 {
				sum += d * math.Log(d/p) / float64(len(xs))
			}
		}
	}
	return sum
}

// difference is the derivative of the loss by one of the parameters, at v, by differences at four
// points.
func (w *twin) difference(v *float64, xs, ds [][]float64) float64 {
	const h = 1e-3
	x := *v
	at := func(steps float64) float64 {
		*v = x + steps*h
		defer func() { *v = x }()
		return w.loss(xs, ds)
	}
	return (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
}

// rowsOf returns the rows of some roles, scaled.
func rowsOf(d *dataset.Data, roles dataset.Roles, v scaling.Values) (xs, ds [][]float64) {
	for _, ref := range d.Select(0, len(d.Manifest.Shards), roles) {
		s := gradient.SampleOf(d.Shard(int(ref.Shard)), int(ref.Pos))
		x, label := make([]float64, d.Manifest.Features), make([]float64, d.Manifest.Labels)
		for i, value := range s.X {
			if s.Sparse {
				x[s.Columns[i]] = float64(value)
			} else {
				x[i] = float64(value)
			}
		}
		for i := range v.Shift {
			x[i] = (x[i] - v.Shift[i]) * v.Scale[i]
		}
		for c, degree := range s.D {
			label[c] = float64(degree)
		}
		xs, ds = append(xs, x), append(ds, label)
	}
	return xs, ds
}

// generated builds rows, dense or sparse.
func generated(t testing.TB, rows, labels int, density float64) *dataset.Data {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: rows, Features: 6 + int(20*(1-density)), Labels: labels,
		Density: density, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	return datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.1}, nil)
}

// small are settings of a job of a few steps.
func small(input string) *Config {
	return &Config{
		Preset: param.Paper, LabelInput: input, Hidden: 4, Init: initScaled, Scaling: scaling.Standard, FirstStep: 0.05,
		Steps: 40, ValidationSteps: 7, Patience: 3,
	}
}

// cases calls do for each kind of input, dense and sparse rows, and two labels and more.
func cases(t *testing.T, do func(t *testing.T, c *Config, d *dataset.Data)) {
	for _, density := range []float64{1, 0.3} {
		for _, labels := range []int{2, 5} {
			d := generated(t, 90, labels, density)
			for _, input := range []string{inputOneHot, inputNumber} {
				t.Run(input, func(t *testing.T) { do(t, small(input), d) })
			}
		}
	}
}

// drive runs a job until it ends, or until each says so.
func drive(t testing.TB, c *Config, d *dataset.Data, lanes int, each func(*trainer) bool) *trainer {
	t.Helper()
	tr := newTrainer(c, 3, d.Manifest)
	tr.Start()
	x := engine.NewLocal(&kernel{sizesOf(c, d.Manifest)}, d, lanes, nil)
	for n := uint64(0); each(tr); n++ {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return tr
		}
		var res round.Result
		if err := x.Do(t.Context(), n, r, &res); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&res); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

func toEnd(*trainer) bool { return true }

// TestGradient holds the loss and the gradient of an evaluation, through scaling and the objective,
// against the twin and its differences, at the start and in the midst of training.
func TestGradient(t *testing.T) {
	testkit.WithoutRace(t)
	cases(t, func(t *testing.T, c *Config, d *dataset.Data) {
		k := &kernel{sizesOf(c, d.Manifest)}
		for _, steps := range []int{0, 20} {
			tr := drive(t, c, d, 1, func(tr *trainer) bool {
				return tr.Phase == fullbatch.PhaseScaling || tr.Optimiser.Iterations() < steps
			})
			r, err := tr.Next()
			if err != nil {
				t.Fatal(err)
			}
			var res round.Result
			if err := engine.NewLocal(k, d, 1, nil).Do(t.Context(), 0, r, &res); err != nil {
				t.Fatal(err)
			}
			point := tr.Optimiser.Point()
			g, sum := make([]float64, len(point)), res.Sum.F64
			f := tr.objective.Fold(g, point, sum[0], sum[1], sum[fullbatch.SumsAt:])

			w := newTwin(k.sizes, slices.Clone(point))
			xs, ds := rowsOf(d, dataset.Train, tr.Fit.Values())
			if e := math.Abs(f - w.loss(xs, ds)); e > 1e-12 {
				t.Errorf("loss %v, of the twin %v", f, w.loss(xs, ds))
			}
			at := 0
			for _, row := range append(slices.Clone(w.w1), w.w2) {
				for j := range row {
					if want := w.difference(&row[j], xs, ds); math.Abs(g[at]-want) > 1e-9 {
						t.Fatalf("step %d, parameter %d: gradient %v, by differences %v", steps, at, g[at], want)
					}
					at++
				}
			}
		}
	})
}

// TestModel: the model predicts what the twin does with the last point, and the loss has fallen.
func TestModel(t *testing.T) {
	cases(t, func(t *testing.T, c *Config, d *dataset.Data) {
		tr := drive(t, c, d, 1, toEnd)
		m, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		w := newTwin(tr.objective.sizes, tr.Optimiser.Best())
		xs, ds := rowsOf(d, dataset.AllRows, tr.Fit.Values())
		refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
		got := make([]float32, len(refs)*w.labels)
		m.Predict(got, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
		for i, x := range xs {
			for c, p := range w.predict(x) {
				if math.Abs(float64(got[i*w.labels+c])-p) > 1e-7 {
					t.Fatalf("row %d, label %d: %v, of the twin %v", i, c, got[i*w.labels+c], p)
				}
			}
		}
		before := newTwin(tr.objective.sizes, start(&tr.objective.sizes, true, 3))
		if a, b := before.loss(xs, ds), w.loss(xs, ds); !(b < 0.9*a) {
			t.Errorf("K-L %v, at the start %v", b, a)
		}
	})
}

// TestStart: the scaled start narrows the rows of the features alone.
func TestStart(t *testing.T) {
	z := sizes{features: 400, labels: 30, hidden: 40}
	for _, scaled := range []bool{false, true} {
		v := start(&z, scaled, 5)
		w := z.split(v)
		bound := 0.5
		if scaled {
			bound = 1. / 20
		}
		for name, x := range map[string]struct {
			v     []float64
			bound float64
		}{"features": {w.features, bound}, "labels": {w.labels, 0.5}, "bias": {w.bias, 0.5}, "output": {w.output, 0.5}} {
			most := 0.0
			for _, y := range x.v {
				most = max(most, math.Abs(y))
			}
			if most > x.bound || most < 0.9*x.bound {
				t.Errorf("scaled %v, %s: the greatest is %v, the bound %v", scaled, name, most, x.bound)
			}
		}
	}
}

// TestLabelInput: labels on a scale are read by their numbers unless a setting says otherwise.
func TestLabelInput(t *testing.T) {
	d := generated(t, 30, 3, 1)
	scale := *d.Manifest
	scale.LabelType = dataset.LabelType{Scale: &dataset.Scale{Low: 1, True: dataset.TrueMode}}
	for _, x := range []struct {
		m     *dataset.Manifest
		given param.Values
		want  string
	}{
		{d.Manifest, nil, inputOneHot}, {&scale, nil, inputNumber},
		{d.Manifest, param.Values{"label_input": inputNumber}, inputNumber},
		{&scale, param.Values{"label_input": inputOneHot}, inputOneHot},
	} {
		r, err := New().Resolve(x.given, x.m)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := settings.Parse(r.Params); err != nil || c.LabelInput != x.want {
			t.Errorf("given %v: %s, error %v, want %s", x.given, r.Params, err, x.want)
		}
	}
}

// TestWeightsBeyondNumbers: a model whose sums overflow predicts a distribution.
func TestWeightsBeyondNumbers(t *testing.T) {
	d := generated(t, 30, 3, 1)
	m := &model{sizes: sizes{features: d.Manifest.Features, labels: 3, hidden: 2}}
	m.values = make([]float64, m.sizes.values())
	for i := range m.values {
		m.values[i] = math.MaxFloat64 * float64(1-2*(i%2))
	}
	p := make([]float32, 3)
	m.Predict(p, []dataset.RowRef{{}}, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	if sum := p[0] + p[1] + p[2]; !(math.Abs(float64(sum)-1) < 1e-6) {
		t.Errorf("predicted %v", p)
	}
}

// TestErrors: an unknown round, no rows, a model before the end.
func TestErrors(t *testing.T) {
	d, c := generated(t, 30, 3, 1), small(inputOneHot)
	k, tr := &kernel{sizesOf(c, d.Manifest)}, newTrainer(c, 3, d.Manifest)
	if err := k.Run(new(round.Partial), round.Task{Of: 1, Op: 9}, d, nil, nil, k.NewScratch()); err == nil {
		t.Error("an unknown operation is run")
	}
	tr.Start()
	if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: make([]float64, 1+d.Manifest.Features)}}); err == nil {
		t.Error("no rows are taken")
	}
	if _, err := tr.Model(); err == nil {
		t.Error("a model before the end")
	}
}

// TestGoldenDigest pins the bits of small networks, trained on one lane and on three.
func TestGoldenDigest(t *testing.T) {
	var got []string
	for _, density := range []float64{1, 0.3} {
		for _, input := range []string{inputOneHot, inputNumber} {
			d, c := generated(t, 300, 4, density), small(input)
			for _, lanes := range []int{1, 3} {
				m, err := drive(t, c, d, lanes, toEnd).Model()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, modelfile.Digest(Name, m.Tensors()))
			}
		}
	}
	for i, want := range []string{
		"550ff9cfe8f0039bfacb26c8ee750c8b74c2628f64650b29e9212efd0ba819aa",
		"87fe2aacdc30f644fa56d72e3db92bd1b8452f616633aead4298d6dae38eae47",
		"cddebe47c615c2233a5514fb8ea5d6c64246847b4c855bab5dbabde539395167",
		"8a6f8c15178bbd7149ac184a3996049cccc771801a4deb0ae4c6fc51376ff18f",
	} {
		if got[2*i] != want || got[2*i+1] != want {
			t.Errorf("job %d: digest %s, on three lanes %s, want %s", i, got[2*i], got[2*i+1], want)
		}
	}
}

// TestGoldenStart pins the draws of the first weights.
func TestGoldenStart(t *testing.T) {
	z := sizes{features: 2, labels: 2, hidden: 2}
	v := start(&z, false, 1)
	s := num.NewStream(num.NewKey(1, "cpnn/start"), 0, 3)
	if want := s.Float64() - 0.5; v[6] != want {
		t.Errorf("the first weight of row 3 is %v, want %v", v[6], want)
	}
}
