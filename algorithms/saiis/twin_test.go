package saiis

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// twin is improved iterative scaling by plain loops: rows that are scaled by themselves, with a 1
// behind the features where there is a bias.
type twin struct{ x, d [][]float64 }

func newTwin(d *dataset.Data, c *Config) *twin {
	w := new(twin)
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		x := make([]float64, d.Manifest.Features)
		if s := gradient.SampleOf(rows, pos); s.Sparse {
			for i, column := range s.Columns {
				x[column] = float64(s.X[i])
			}
		} else {
			for column, v := range s.X {
				x[column] = float64(v)
			}
		}
		label := make([]float64, d.Manifest.Labels)
		maxent.Degrees(label, rows.Label(pos))
		w.x, w.d = append(w.x, x), append(w.d, label)
	}
	if c.Scaling == scaling.Standard {
		w.standardise()
	}
	for i := range w.x {
		if c.Bias {
			w.x[i] = append(w.x[i], 1)
		}
	}
	return w
}

func (w *twin) standardise() {
	n := float64(len(w.x))
	for k := range w.x[0] {
		mean, square := 0.0, 0.0
		for _, x := range w.x {
			mean += x[k] / n
		}
		for _, x := range w.x {
			square += (x[k] - mean) * (x[k] - mean) / n
		}
		if square == 0 {
			square = 1
		}
		for _, x := range w.x {
			x[k] = (x[k] - mean) / math.Sqrt(square)
		}
	}
}

// predict returns the prediction of a row.
func (w *twin) predict(i int, weights []float64) []float64 {
	labels := len(w.d[i])
	p, sum := make([]float64, labels), 0.0
	for c := range p {
		for k, v := range w.x[i] {
			p[c] += v * weights[k*labels+c]
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

func negentropy(label []float64) (sum float64) {
	for _, d := range label {
		if d > 0 {
			sum += d * math.Log(d)
		}
	}
	return sum
}

// loss returns the mean K-L divergence.
func (w *twin) loss(weights []float64) (kl float64) {
	n := float64(len(w.x))
	for i, label := range w.d {
		kl += negentropy(label) / n
		for c, p := range w.predict(i, weights) {
			kl -= label[c] * math.Log(p) / n
		}
	}
	return kl
}

// far returns x# of a row.
func (w *twin) far(i int) (sum float64) {
	for _, v := range w.x[i] {
		sum += math.Abs(v)
	}
	return sum
}

// h returns h(δ) of feature k and label c, where p are the predictions of all rows.
func (w *twin) h(delta float64, k, c int, p [][]float64) (h float64) {
	for i, x := range w.x {
		sign := 0.0
		if x[k] > 0 {
			sign = 1
		} else if x[k] < 0 {
			sign = -1
		}
		h += p[i][c]*x[k]*math.Exp(delta*sign*w.far(i)) - w.d[i][c]*x[k]
	}
	return h
}

// predictions returns those of all rows, each times the sum of the row's degrees: float32 makes these
// sum to 1 up to 1e-8 only.
func (w *twin) predictions(weights []float64) (all [][]float64) {
	for i, label := range w.d {
		p, mass := w.predict(i, weights), 0.0
		for _, d := range label {
			mass += d
		}
		for c := range p {
			p[c] *= mass
		}
		all = append(all, p)
	}
	return all
}

// step returns the weights after an iteration, whose roots are found by bisection.
func (w *twin) step(weights []float64) []float64 {
	labels, most, p := len(w.d[0]), 0.0, w.predictions(weights)
	for i := range w.x {
		most = max(most, w.far(i))
	}
	next := make([]float64, len(weights))
	for i := range next {
		low, high := -30/most, 30/most
		for range 60 {
			middle := (low + high) / 2
			if w.h(middle, i/labels, i%labels, p) < 0 {
				low = middle
			} else {
				high = middle
			}
		}
		next[i] = weights[i] + (low+high)/2
	}
	return next
}

// twins lists jobs whose every iteration the twin can follow.
var twins = []param.Values{
	{"preset": "paper", "tolerance": 1e-13, "newton_steps": int64(100)},
	{"scaling": "standard", "validation_fraction": 0.0, "tolerance": 1e-13, "newton_steps": int64(100)},
}

// TestIterations: the weights after each iteration are those of the slow twin, dense and sparse.
func TestIterations(t *testing.T) {
	for _, o := range []generate.Options{
		{Rows: 40, Features: 6, Labels: 3, Density: 1, Seed: 1},
		{Rows: 60, Features: 20, Labels: 2, Density: 0.1, Seed: 2},
	} {
		src, err := generate.New(o)
		if err != nil {
			t.Fatal(err)
		}
		m, shards := datatest.Build(t, src)
		for _, given := range twins {
			given["iterations"] = int64(5)
			j := contract.Job(t, New(), given, m, dataset.Split{Seed: 5})
			d := datatest.Data(t, m, shards, j.Split, nil)
			c, err := settings.Parse(j.Params)
			if err != nil {
				t.Fatal(err)
			}
			w := newTwin(d, c)
			follow(t, w, func(each func(algorithms.Trainer) algorithms.Trainer) { contract.Train(t, New(), j, d, 1, each) })
		}
	}
}

// follow compares the weights and the loss of each iteration of a job.
func follow(t *testing.T, w *twin, train func(each func(algorithms.Trainer) algorithms.Trainer)) {
	t.Helper()
	want := make([]float64, len(w.x[0])*len(w.d[0]))
	step := uint64(0)
	train(func(tr algorithms.Trainer) algorithms.Trainer {
		p := tr.Progress()
		if p.Step == step {
			return tr
		}
		step, want = p.Step, w.step(want)
		for i, got := range tr.(*trainer).objective.by.Best() {
			if math.Abs(got-want[i]) > 1e-9*max(1, math.Abs(want[i])) {
				t.Fatalf("iteration %d: weight %d is %v, want %v", step, i, got, want[i])
			}
		}
		if loss := w.loss(want); math.Abs(p.Loss-loss) > 1e-10 {
			t.Fatalf("iteration %d: loss %v, want %v", step, p.Loss, loss)
		}
		return tr
	})
	if step != 5 {
		t.Errorf("%d iterations", step)
	}
}

// TestSums: at random weights and changes, the sums of an evaluation are h of the twin and its
// derivative, the latter by differences; where all changes are 0, h over the rows is the gradient of the
// loss, by differences too.
func TestSums(t *testing.T) {
	for _, density := range []float64{1, 0.1} {
		m, shards := problem(t, density)
		d := datatest.Data(t, m, shards, dataset.Split{Seed: 5}, nil)
		c := &Config{NewtonSteps: 1}
		c.Scaling, c.Bias = scaling.None, true
		w, tr, k := newTwin(d, c), newTrainer(c, m), newKernel(c, m)
		n := k.values()
		stream := num.NewStream(num.NewKey(1, "test"), 0, 0)
		x, changes := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], changes[i] = 0.1*stream.Normal(), 0.02*stream.Normal()
		}
		own := run(t, k, &round.Round{Op: opKnown, Tasks: len(m.Shards), Roles: dataset.Train,
			How: round.Sums(k.knownSums())}, d)
		r := &round.Round{Op: fullbatch.OpEvaluate, Tasks: len(m.Shards), Roles: dataset.Train,
			How: round.Sums(fullbatch.SumsAt + k.sums())}
		r.Vars = tr.objective.AppendVars(nil, x, 0)
		first := run(t, k, r, d)
		r.Vars = append(r.Vars, round.Var{ID: varChanges, Data: num.Bytes64(changes)})
		sum := run(t, k, r, d)
		compareSums(t, w, k, x, changes, own, sum)
		compareGradient(t, w, k, x, own, first)
	}
}

// run computes a round's units and adds them up.
func run(t *testing.T, k *kernel, r *round.Round, d *dataset.Data) []float64 {
	t.Helper()
	s := k.NewScratch()
	var sum, part round.Partial
	sum.Reset(r.Reduce().Shape)
	for id := range r.Tasks {
		part.Reset(r.Reduce().Shape)
		if err := k.Run(&part, r.Task(id), d, r.Vars, nil, s); err != nil {
			t.Fatal(err)
		}
		num.Add64(sum.F64, part.F64)
	}
	return sum.F64
}

func compareSums(t *testing.T, w *twin, k *kernel, x, changes, own, sum []float64) {
	t.Helper()
	e, known, p := k.evaluated(sum[fullbatch.SumsAt:]), k.known(own), w.predictions(x)
	most := 0.0
	for i := range w.x {
		most = max(most, w.far(i))
	}
	if got := known.limit(); math.Abs(got*most-30) > 1e-12 {
		t.Errorf("changes are at most %v where x# is at most %v", got, most)
	}
	for i := range x {
		column, c := i/k.labels, i%k.labels
		const step = 1e-6
		absolute := 0.0
		for _, row := range w.x {
			absolute += math.Abs(row[column])
		}
		if math.Abs(known.absolute[column]-absolute) > 1e-9*absolute {
			t.Errorf("feature %d: Σ |x| is %v, want %v", column, known.absolute[column], absolute)
		}
		h := w.h(changes[i], column, c, p)
		if got := e.above[i] - e.below[i] - known.expected[i]; math.Abs(got-h) > 1e-9*max(1, absolute) {
			t.Fatalf("weight %d: h is %v, want %v", i, got, h)
		}
		slope := (w.h(changes[i]+step, column, c, p) - w.h(changes[i]-step, column, c, p)) / (2 * step)
		if math.Abs(e.slope[i]-slope) > 1e-5*max(1, slope) {
			t.Fatalf("weight %d: the derivative is %v, want %v", i, e.slope[i], slope)
		}
		if e.above[i] < 0 || e.below[i] < 0 {
			t.Fatalf("weight %d: parts %v and %v", i, e.above[i], e.below[i])
		}
	}
}

func compareGradient(t *testing.T, w *twin, k *kernel, x, own, sum []float64) {
	t.Helper()
	e, known := k.evaluated(sum[fullbatch.SumsAt:]), k.known(own)
	if loss := w.loss(x); math.Abs(sum[1]/sum[0]-loss) > 1e-12 {
		t.Errorf("loss %v, want %v", sum[1]/sum[0], loss)
	}
	for i := range x {
		const step = 1e-5
		at := x[i]
		x[i] = at + step
		up := w.loss(x)
		x[i] = at - step
		down := w.loss(x)
		x[i] = at
		if got, want := (e.above[i]-e.below[i]-known.expected[i])/sum[0], (up-down)/(2*step); math.Abs(got-want) > 1e-8 {
			t.Fatalf("weight %d: derivative %v, want %v", i, got, want)
		}
	}
}

// TestNewton: with equal x# one step leads to the root, and ±Inf where there is none; and a step has the
// sign that leads to the root.
func TestNewton(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := func(name string) float64 {
			return rapid.SampledFrom([]float64{0, 1}).Draw(t, name+" is there") * rapid.Float64Range(1e-6, 1e6).Draw(t, name)
		}
		above, below, far := part("above"), part("below"), rapid.Float64Range(1e-3, 1e3).Draw(t, "x#")
		expected := part("expected above") - part("expected below")
		if above == 0 && expected > 0 || below == 0 && expected < 0 {
			return // expectations of rows that there are not
		}
		s := newton(above, below, (above+below)*far, expected, 0)
		h := func(s float64) float64 { return above*math.Exp(s*far) - below*math.Exp(-s*far) - expected }
		switch {
		case math.IsInf(s, 0):
			if expected != 0 || above > 0 && below > 0 || math.Signbit(s) == (h(0) < 0) {
				t.Fatalf("no root of %v eˢ - %v e⁻ˢ = %v: step %v", above, below, expected, s)
			}
		case math.Abs(h(s)) > 1e-9*(above*math.Exp(s*far)+below*math.Exp(-s*far)+math.Abs(expected)):
			t.Fatalf("h is %v after the step %v to the root of %v eˢ - %v e⁻ˢ = %v", h(s), s, above, below, expected)
		}
		if s*h(0) > 0 {
			t.Fatalf("the step %v where h is %v", s, h(0))
		}
	})
}

// TestMinimiser: whatever the sizes of the steps, whose signs alone are right, an iteration ends with each δ
// at its root, or between 0 and there, or at its bound; the weights move by δ.
func TestMinimiser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const near, limit = 1e-3, 4.0
		roots := rapid.SliceOfN(rapid.Float64Range(-1.2*limit, 1.2*limit), 1, 5).Draw(t, "roots")
		c := &Config{NewtonSteps: rapid.IntRange(1, 30).Draw(t, "steps")}
		c.Iterations = 2
		m := newMinimiser(len(roots), c)
		m.limit = limit
		steps := make([]float64, len(roots))
		for told := 0; m.points < 2 && !m.Done(); told++ {
			if told > 2+c.NewtonSteps {
				t.Fatalf("%d evaluations in an iteration of %d steps", told, c.NewtonSteps)
			}
			for i, root := range roots {
				steps[i] = 0
				if away := root - m.changes[i]; math.Abs(away) > near {
					steps[i] = math.Copysign(rapid.Float64Range(near, 3*limit).Draw(t, "step"), away)
				}
			}
			if told == 0 && allZero(steps) {
				return // nothing to do
			}
			if m.Tell(1, steps); !m.moves {
				continue
			}
			for i, d := range m.changes {
				root := max(-limit, min(limit, roots[i]))
				if math.Abs(d-root) > near && (d*root < 0 || math.Abs(d) > math.Abs(root)) || math.Abs(d) > limit {
					t.Fatalf("δ %d is %v, the root %v", i, d, roots[i])
				}
				if at := m.Point()[i]; m.Best()[i] != 0 || at != d {
					t.Fatalf("weight %d moves from %v to %v with δ %v", i, m.Best()[i], at, d)
				}
			}
			clear(steps)
			if m.Tell(1, steps); m.Iterations() != 1 || !m.Done() {
				t.Fatalf("%d iterations after the first", m.Iterations())
			}
		}
	})
}

// TestEnds: a feature that is 0 in all rows moves no weight, and a label that no row with a feature
// has takes the weight to its bound.
func TestEnds(t *testing.T) {
	src, err := generate.New(generate.Options{Rows: 40, Features: 6, Labels: 3, Density: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	for _, rows := range shards {
		for i := range rows.N {
			x, label := rows.Dense(i), rows.Label(i)
			if x[0], x[1] = 0, 0; i%2 == 0 {
				x[1] = 2
				label[2], label[0] = label[2]+label[0], 0
			}
		}
	}
	j := contract.Job(t, New(), param.Values{"preset": "paper", "iterations": int64(1)}, m, dataset.Split{Seed: 5})
	tr := contract.Train(t, New(), j, datatest.Data(t, m, shards, j.Split, nil), 1, nil).(*trainer)
	by := tr.objective.by
	if w := by.Best(); by.Iterations() != 1 || w[0] != 0 || w[1] != 0 || w[2] != 0 || w[3] != -by.limit {
		t.Errorf("after %d iterations the weights are %v; they are from %v on", by.Iterations(), w, -by.limit)
	}
}
