package mlpregression

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// twin is the perceptron and its training in float64, written from the equations.
type twin struct {
	hidden                int
	w1                    [][]float64 // features×hidden
	b1, w2                []float64
	b2                    float64
	mean, deviation       float64 // of the target
	alpha, rate           float64
	steps                 float64 // of Adam
	first, second         []float64
	best, passLoss, passN float64
	stale                 int
}

// newTwin begins with a trainer's parameters.
func newTwin(c *Config, features int, theta []float32, numbers []float64) *twin {
	w := &twin{hidden: c.Hidden, alpha: c.Alpha, rate: c.LearningRate, best: math.Inf(1),
		first: make([]float64, len(theta)), second: make([]float64, len(theta))}
	at := 0
	next := func(n int) (v []float64) {
		for _, x := range theta[at : at+n] {
			v = append(v, float64(x))
		}
		at += n
		return v
	}
	for range features {
		w.w1 = append(w.w1, next(c.Hidden))
	}
	w.b1, w.w2, w.b2 = next(c.Hidden), next(c.Hidden), next(1)[0]
	for _, y := range numbers {
		w.mean += y / float64(len(numbers))
	}
	for _, y := range numbers {
		w.deviation += (y - w.mean) * (y - w.mean) / float64(len(numbers))
	}
	w.deviation = math.Sqrt(w.deviation)
	return w
}

// predict returns the hidden sums and the output.
func (w *twin) predict(x []float64) (z []float64, f float64) {
	f = w.b2
	for j := range w.hidden {
		sum := w.b1[j]
		for i, v := range x {
			sum += v * w.w1[i][j]
		}
		z = append(z, sum)
		f += math.Max(0, sum) * w.w2[j]
	}
	return z, f
}

// step takes a step of Adam on a mini-batch, whose objective it adds to the pass's.
func (w *twin) step(xs [][]float64, ys []float64) {
	n := float64(len(xs))
	square := 0.0
	for _, row := range w.w1 {
		for _, v := range row {
			square += v * v
		}
	}
	for _, v := range w.w2 {
		square += v * v
	}
	loss := w.alpha / 2 * square / n
	g1, gb1, g2, gb2 := make([][]float64, len(w.w1)), make([]float64, w.hidden), make([]float64, w.hidden), 0.0
	for i := range g1 {
		g1[i] = make([]float64, w.hidden)
	}
	for i, x := range xs {
		z, f := w.predict(x)
		e := f - (ys[i]-w.mean)/w.deviation
		loss += e * e / 2 / n
		gb2 += e / n
		for j, v := range z {
			if v > 0 {
				g2[j] += e * v / n
				gb1[j] += e * w.w2[j] / n
				for k := range x {
					g1[k][j] += e * w.w2[j] * x[k] / n
				}
			}
		}
	}
	w.passLoss += loss * n
	w.passN += n
	w.steps++
	at := 0
	move := func(v *float64, g float64) {
		w.first[at] = 0.9*w.first[at] + 0.1*g
		w.second[at] = 0.999*w.second[at] + 0.001*g*g
		*v -= w.rate * (w.first[at] / (1 - math.Pow(0.9, w.steps))) /
			(math.Sqrt(w.second[at]/(1-math.Pow(0.999, w.steps))) + 1e-8)
		at++
	}
	for i := range w.w1 {
		for j := range w.w1[i] {
			move(&w.w1[i][j], g1[i][j]+w.alpha*w.w1[i][j]/n)
		}
	}
	for j := range w.b1 {
		move(&w.b1[j], gb1[j])
	}
	for j := range w.w2 {
		move(&w.w2[j], g2[j]+w.alpha*w.w2[j]/n)
	}
	move(&w.b2, gb2)
}

// endPass counts the passes in a row whose loss did not fall by the tolerance.
func (w *twin) endPass(tolerance float64) {
	loss := w.passLoss / w.passN
	if loss > w.best-tolerance {
		w.stale++
	} else {
		w.stale = 0
	}
	w.best = math.Min(w.best, loss)
	w.passLoss, w.passN = 0, 0
}

// onScale gives generated rows numbers from 5 on.
type onScale struct{ dataset.Source }

func (s onScale) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType, info.HasValues = dataset.LabelType{Scale: &dataset.Scale{Low: 5, True: dataset.TrueValue}}, true
	return info
}

func (s onScale) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		r.Value = 5
		for i, d := range r.Labels {
			r.Value += float64(i) * d
		}
		return f(r)
	})
}

// generated builds rows with numbers, dense or sparse.
func generated(t testing.TB, rows int, density float64) *dataset.Data {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: rows, Features: 6 + int(20*(1-density)), Labels: 5,
		Density: density, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, onScale{src})
	return datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.1}, nil)
}

// small are settings of a job of a few passes.
func small() *Config {
	return &Config{
		Preset: param.Auto, Hidden: 5, Scaling: scaling.Standard, Alpha: 0.5, BatchSize: 20, LearningRate: 0.01, Passes: 30,
		Tolerance: 0.002, Patience: 4,
		Scale: target.Scale{Low: 5, True: string(dataset.TrueValue)},
	}
}

// drive runs a job to its end.
func drive(t testing.TB, c *Config, d *dataset.Data, lanes int) *trainer {
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

// rowsOf returns the rows of refs, scaled, and their numbers.
func rowsOf(d *dataset.Data, refs []dataset.RowRef, v scaling.Values) (xs [][]float64, ys []float64) {
	for _, ref := range refs {
		s := gradient.SampleOf(d.Shard(int(ref.Shard)), int(ref.Pos))
		x := make([]float64, d.Manifest.Features)
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
		xs, ys = append(xs, x), append(ys, s.Shard.Value[s.Pos])
	}
	return xs, ys
}

// TestTwin: a job ends in the same pass as the twin on the same mini-batches, and predicts what
// the twin does. It stops by its loss, or after the last pass.
func TestTwin(t *testing.T) {
	for _, density := range []float64{1, 0.3} {
		for _, passes := range []int{7, 400} {
			d, c := generated(t, 103, density), small()
			c.Passes = passes
			tr, k := drive(t, c, d, 1), newKernel(c, 3, d.Manifest)
			u := round.Task{Of: 1, Roles: dataset.Train}
			train := u.Rows(d)
			_, numbers := rowsOf(d, train, scaling.Values{})
			start := make([]float32, len(tr.Theta()))
			tr.Function.Initialise(start, num.NewKey(3, "mlp-regression/theta"))
			w := newTwin(c, d.Manifest.Features, start, numbers)
			if math.Abs(tr.target[0]-w.mean) > 1e-12 || math.Abs(tr.target[1]-w.deviation) > 1e-12 {
				t.Fatalf("target %v, of the twin %v and %v", tr.target, w.mean, w.deviation)
			}
			step, pass := uint64(0), uint64(len(train)+c.BatchSize-1)/uint64(c.BatchSize)
			for e := 0; e < c.Passes && w.stale < c.Patience; e++ {
				for range pass {
					var refs []dataset.RowRef
					for _, at := range k.descent.Draws.Draw(nil, &u, len(train), step) {
						refs = append(refs, train[at])
					}
					w.step(rowsOf(d, refs, tr.Fit.Values()))
					step++
				}
				w.endPass(c.Tolerance)
			}
			if tr.Step != step || (passes == 400) != (step < uint64(passes)*pass) {
				t.Errorf("density %v, %d passes: the job ended at step %d, the twin at %d", density, passes, tr.Step, step)
			}
			compare(t, tr, w, d)
		}
	}
}

func compare(t *testing.T, tr *trainer, w *twin, d *dataset.Data) {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
	got := make([]float32, len(refs))
	m.Predict(got, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	xs, _ := rowsOf(d, refs, tr.Fit.Values())
	for i, x := range xs {
		if _, f := w.predict(x); math.Abs(float64(got[i])-(w.mean+w.deviation*f)) > 1e-4 {
			t.Fatalf("row %d: %v, of the twin %v", i, got[i], w.mean+w.deviation*f)
		}
	}
}

// TestConstantTarget: rows that all have one number are predicted near it.
func TestConstantTarget(t *testing.T) {
	d, c := generated(t, 60, 1), small()
	for i := range d.Manifest.Shards {
		r := d.Shard(i)
		for j := range r.Value {
			r.Value[j] = 7
		}
	}
	c.Passes, c.Tolerance = 300, 0
	tr := drive(t, c, d, 1)
	if tr.target != [2]float64{7, 1} {
		t.Fatalf("target %v", tr.target)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 1)
	m.Predict(got, []dataset.RowRef{{}}, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	if math.Abs(float64(got[0])-7) > 0.05 {
		t.Errorf("predicted %v", got[0])
	}
}

// TestErrors: rounds without rows, models before the end.
func TestErrors(t *testing.T) {
	d, c := generated(t, 60, 1), small()
	tr := newTrainer(c, 3, d.Manifest)
	tr.Start()
	if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: make([]float64, targetSums)}}); err == nil {
		t.Error("no rows are taken")
	}
	if _, err := tr.Model(); err == nil {
		t.Error("a model before the end")
	}
}

// TestFiniteNumbers: an output beyond float32 stands for the greatest number.
func TestFiniteNumbers(t *testing.T) {
	m, inf := &model{target: []float64{20, 1e10}}, math.Inf(1)
	for _, f := range []float64{0, 3e38, -3e38, inf, -inf, math.NaN()} {
		if x := float64(m.number(float32(f))); math.IsInf(x, 0) || math.IsNaN(x) || f == 0 && x != 20 {
			t.Errorf("%v stands for %v", f, x)
		}
	}
}

// TestGoldenDigest pins the bits of small perceptrons, trained on one lane and on three.
func TestGoldenDigest(t *testing.T) {
	for density, want := range map[float64]string{
		1:   "9c23974b58c199523aa3da0dc50703d5dc1414ef8bec9592b813c60559210b45",
		0.3: "b9d572c460633a4fd460f9548e1b14891f731dc3b1c9939d06a2ef394aa7ae1c",
	} {
		c := small()
		c.BatchSize = 128
		for _, lanes := range []int{1, 3} {
			m, err := drive(t, c, generated(t, 400, density), lanes).Model()
			if err != nil {
				t.Fatal(err)
			}
			if got := modelfile.Digest(Name, m.Tensors()); got != want {
				t.Errorf("density %v, %d lanes: digest %s, want %s", density, lanes, got, want)
			}
		}
	}
}
