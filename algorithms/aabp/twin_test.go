package aabp

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// twin is the network in float64, written from its equations.
type twin struct {
	features, hidden, labels int
	relu, squared, targets   bool
	theta                    []float64 // W₁, b₁, W₂, b₂
}

func newTwin(c *Config, m *dataset.Manifest, theta []float32) *twin {
	w := &twin{features: m.Features, hidden: c.Hidden, labels: m.Labels, relu: c.Units == unitReLU,
		squared: c.Loss == lossSquared, targets: m.LabelType.Bounds != nil, theta: nil}
	for _, x := range theta {
		w.theta = append(w.theta, float64(x))
	}
	return w
}

// parts returns W₁, b₁, W₂ and b₂ of a vector like Θ.
func (w *twin) parts(v []float64) (w1, b1, w2, b2 []float64) {
	n := w.features * w.hidden
	k := n + w.hidden + w.hidden*w.labels
	return v[:n], v[n : n+w.hidden], v[n+w.hidden : k], v[k:]
}

// forward returns the hidden sums and what the units make of them, and the prediction.
func (w *twin) forward(x []float64) (z, h, p []float64) {
	w1, b1, w2, b2 := w.parts(w.theta)
	z, h, p = make([]float64, w.hidden), make([]float64, w.hidden), make([]float64, w.labels)
	for j := range z {
		z[j] = b1[j]
		for i, v := range x {
			z[j] += v * w1[i*w.hidden+j]
		}
		if h[j] = 1 / (1 + math.Exp(-z[j])); w.relu {
			h[j] = math.Max(0, z[j])
		}
	}
	sum := 0.0
	for c := range p {
		p[c] = b2[c]
		for j, v := range h {
			p[c] += v * w2[j*w.labels+c]
		}
		if w.targets {
			p[c] = 1 / (1 + math.Exp(-p[c]))
			continue
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		if !w.targets {
			p[c] /= sum
		}
	}
	return z, h, p
}

// loss is the sum over rows.
func (w *twin) loss(xs, ds [][]float64) (sum float64) {
	for i, x := range xs {
		_, _, p := w.forward(x)
		for c, d := range ds[i] {
			if w.squared {
				sum += (p[c] - d) * (p[c] - d) / 2
				continue
			}
			if d > 0 {
				sum += d * math.Log(d/p[c])
			}
			if w.targets && d < 1 {
				sum += (1 - d) * math.Log((1-d)/(1-p[c]))
			}
		}
	}
	return sum
}

// numeric is the gradient of the sum by central differences.
func (w *twin) numeric(xs, ds [][]float64) []float64 {
	const step = 1e-6
	g := make([]float64, len(w.theta))
	for i, x := range w.theta {
		w.theta[i] = x + step
		up := w.loss(xs, ds)
		w.theta[i] = x - step
		g[i] = (up - w.loss(xs, ds)) / (2 * step)
		w.theta[i] = x
	}
	return g
}

// exact is the gradient of the sum by back-propagation.
func (w *twin) exact(xs, ds [][]float64) []float64 {
	g := make([]float64, len(w.theta))
	g1, gb1, g2, gb2 := w.parts(g)
	_, _, w2, _ := w.parts(w.theta)
	for i, x := range xs {
		z, h, p := w.forward(x)
		df := make([]float64, w.labels)
		for c := range df {
			for k := range p { // ∂loss/∂p_k · ∂p_k/∂f_c
				dp := -ds[i][k] / p[k]
				switch {
				case w.squared:
					dp = p[k] - ds[i][k]
				case w.targets:
					dp += (1 - ds[i][k]) / (1 - p[k])
				}
				if w.targets {
					if k == c {
						df[c] = dp * p[k] * (1 - p[k])
					}
					continue
				}
				if df[c] -= dp * p[k] * p[c]; k == c {
					df[c] += dp * p[k]
				}
			}
			gb2[c] += df[c]
		}
		for j := range h {
			dh := 0.0
			for c, d := range df {
				g2[j*w.labels+c] += h[j] * d
				dh += d * w2[j*w.labels+c]
			}
			if slope := h[j] * (1 - h[j]); !w.relu {
				dh *= slope
			} else if z[j] <= 0 {
				dh = 0
			}
			gb1[j] += dh
			for k, v := range x {
				g1[k*w.hidden+j] += v * dh
			}
		}
	}
	return g
}

// adam takes step number t, counted from 1, along the mean gradient; biases do not decay.
func (w *twin) adam(g, first, second []float64, t, rate, decay float64) {
	for i := range g {
		d := g[i]
		if bias := i - w.features*w.hidden; (bias < 0 || bias >= w.hidden) && i < len(g)-w.labels {
			d += decay * w.theta[i]
		}
		first[i] = 0.9*first[i] + 0.1*d
		second[i] = 0.999*second[i] + 0.001*d*d
		w.theta[i] -= rate * (first[i] / (1 - math.Pow(0.9, t))) / (math.Sqrt(second[i]/(1-math.Pow(0.999, t))) + 1e-8)
	}
}

// rowsOf returns the rows of refs, scaled.
func rowsOf(d *dataset.Data, refs []dataset.RowRef, v scaling.Values) (xs, ds [][]float64) {
	for _, ref := range refs {
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
	src, err := generate.New(generate.Options{Rows: rows, Features: 7 + int(20*(1-density)), Labels: labels,
		Density: density, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	return datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.1}, nil)
}

// small are settings of a job of a few steps, with each loss and each kind of units.
func small() (list []*Config) {
	for _, loss := range []string{lossKL, lossSquared} {
		for _, units := range []string{unitLogistic, unitReLU} {
			list = append(list, &Config{
				Preset: param.Paper, Loss: loss, Hidden: 5, Units: units, Scaling: scaling.Standard, BatchSize: 24,
				LearningRate: 0.02,
				WeightDecay:  0.01, ValidationSteps: 10, Patience: 1, Steps: 60,
			})
		}
	}
	return list
}

// cases calls do with each of small, on dense and on sparse rows, whose labels are distributions or targets.
func cases(t *testing.T, do func(t *testing.T, c *Config, d *dataset.Data)) {
	for _, density := range []float64{1, 0.3} {
		for _, of := range []string{"distributions", "targets"} {
			d := generated(t, 90, 4, density)
			if of == "targets" {
				d.Manifest.LabelType.Bounds = &dataset.Bounds{Low: make([]float64, 4), High: []float64{1, 1, 1, 1}}
			}
			for _, c := range small() {
				if of == "targets" {
					c.LearningRate = 0.01 // at 0.02, rounding to float32 decides at one step whether a ReLU is 0
				}
				t.Run(c.Loss+" "+c.Units+" "+of, func(t *testing.T) { do(t, c, d) })
			}
		}
	}
}

// drive runs a job to its end.
func drive(t testing.TB, c *Config, d *dataset.Data, lanes int) *softmax.Trainer {
	t.Helper()
	tr := newTrainer(c, 3, d.Manifest)
	tr.Start()
	x := engine.NewLocal(newKernel(c, 3, d.Manifest), d, lanes, nil)
	for n := uint64(0); ; n++ {
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
}

// TestGradient holds the gradient of the kernel against central differences of the loss in
// float64, at random parameters.
func TestGradient(t *testing.T) {
	cases(t, func(t *testing.T, c *Config, d *dataset.Data) {
		c.BatchSize = 31 // one unit
		tr, k := newTrainer(c, 3, d.Manifest), newKernel(c, 3, d.Manifest)
		tr.Start()
		s := num.NewStream(num.NewKey(4, "test"), 0, 0)
		for i := range tr.Theta() {
			tr.Theta()[i] = float32(0.5 * s.Normal())
		}
		fit := scaling.Of(make([]float64, 2*d.Manifest.Features))
		for i := range fit.Shift {
			fit.Shift[i], fit.Scale[i] = s.Normal(), 0.5+s.Float64()
		}
		shape := tr.Function.GradientShape()
		shape.F64 += gradient.GradientAt
		var sum round.Partial
		sum.Reset(shape)
		u := round.Task{Of: 1, Op: gradient.OpStep, Roles: dataset.Train, Steps: [2]uint64{0, 1}}
		vars := round.Vars{{ID: 0xfe10, Version: 1, Data: num.Bytes32(tr.Theta())},
			{ID: 0xfe00, Version: 1, Data: num.Bytes64(append(fit.Shift, fit.Scale...))}}
		if err := k.Run(&sum, u, d, vars, nil, k.NewScratch()); err != nil {
			t.Fatal(err)
		}
		g := make([]float32, len(tr.Theta()))
		tr.Function.Gradient(g, 0, &sum, 1, &fit)

		w := newTwin(c, d.Manifest, tr.Theta())
		xs, ds := rowsOf(d, batch(k, d, 0), fit)
		want, exact, size := w.numeric(xs, ds), w.exact(xs, ds), 0.0
		for _, x := range want {
			size = max(size, math.Abs(x))
		}
		for i, x := range want {
			if math.Abs(exact[i]-x) > 1e-6*size || math.Abs(float64(g[i])-x) > 1e-5*size {
				t.Fatalf("parameter %d: gradient %v, by differences %v, of the twin %v", i, g[i], x, exact[i])
			}
		}
		if e := math.Abs(sum.F64[1] - w.loss(xs, ds)); e > 1e-5 {
			t.Errorf("loss %v, of the twin %v", sum.F64[1], w.loss(xs, ds))
		}
	})
}

// batch returns the rows of a mini-batch of one unit.
func batch(k *softmax.Kernel, d *dataset.Data, step uint64) (refs []dataset.RowRef) {
	u := round.Task{Of: 1, Roles: dataset.Train}
	all := u.Rows(d)
	for _, at := range k.Draws.Draw(nil, &u, len(all), step) {
		refs = append(refs, all[at])
	}
	return refs
}

// TestTwin: a job ends where Adam in float64 on the same mini-batches does.
func TestTwin(t *testing.T) {
	cases(t, func(t *testing.T, c *Config, d *dataset.Data) {
		first := newTrainer(c, 3, d.Manifest)
		first.Start()
		w, k := newTwin(c, d.Manifest, first.Theta()), newKernel(c, 3, d.Manifest)
		tr := drive(t, c, d, 1)
		m, v := make([]float64, len(w.theta)), make([]float64, len(w.theta))
		for step := range uint64(c.Steps) {
			xs, ds := rowsOf(d, batch(k, d, step), tr.Fit.Values())
			g := w.exact(xs, ds)
			for i := range g {
				g[i] /= float64(len(xs))
			}
			w.adam(g, m, v, float64(step+1), c.LearningRate, c.WeightDecay)
		}
		model, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
		got := make([]float32, len(refs)*d.Manifest.Labels)
		model.Predict(got, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, model.NewScratch())
		xs, _ := rowsOf(d, refs, tr.Fit.Values())
		worst := 0.0
		for i, x := range xs {
			_, _, p := w.forward(x)
			for c, want := range p {
				worst = max(worst, math.Abs(float64(got[i*len(p)+c])-want))
			}
		}
		if worst > 2e-5 {
			t.Errorf("a prediction is off by %.2g", worst)
		}
	})
}

// TestGoldenDigest pins the bits of a small network on the artificial set of Geng 2016, trained
// on one lane and on three.
func TestGoldenDigest(t *testing.T) {
	m, shards := datatest.Artificial(t, 400)
	d := datatest.Data(t, m, shards, dataset.Split{Seed: 1, TestFraction: 0.1, ValidationFraction: 0.1,
		ValidationMin: validationMin}, nil)
	for i, want := range []string{
		"ce93f043ec841742555108abbdd7ab7ae06aa2c0d06a56421adffb954e28d2cc",
		"a321d84a5488ac18d0ef05c054d761bee655cb40e1f87e7979c2bcee3eb5da0c",
		"2d3e97fc740a6a8fe073075581b9dc21bbb677e38c1f50551dbae987d2304f19",
		"6dd7f3ea6dcae7a7f20a7937f2a7d1acf851fff98325e32be4043f5bdb3eb995",
	} {
		c := small()[i]
		c.ValidationFraction, c.Refit, c.BatchSize = 0.1, true, 128
		for _, lanes := range []int{1, 3} {
			tr := drive(t, c, d, lanes)
			model, err := tr.Model()
			if err != nil {
				t.Fatal(err)
			}
			if got := modelfile.Digest(Name, model.Tensors()); got != want {
				t.Errorf("%s, %s, %d lanes: digest %s, want %s", c.Loss, c.Units, lanes, got, want)
			}
		}
	}
}
