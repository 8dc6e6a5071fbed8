package maxent

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// twin is the model and its loss in float64, written from section 1's equations: rows that are scaled
// by themselves, with a 1 behind the features where there is a bias.
type twin struct {
	x, d [][]float64
	l2   float64
	bias bool
}

func newTwin(d *dataset.Data, roles dataset.Roles, kind string, bias bool, l2 float64) *twin {
	w := &twin{l2: l2, bias: bias}
	for _, ref := range d.Select(0, len(d.Manifest.Shards), roles) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		x := make([]float64, d.Manifest.Features)
		if s := gradient.SampleOf(rows, pos); s.Sparse {
			for i, c := range s.Columns {
				x[c] = float64(s.X[i])
			}
		} else {
			for c, v := range s.X {
				x[c] = float64(v)
			}
		}
		var label []float64
		sum := 0.0
		for _, v := range rows.Label(pos) {
			label = append(label, float64(v))
			sum += float64(v)
		}
		for c := range label {
			label[c] /= sum
		}
		w.x, w.d = append(w.x, x), append(w.d, label)
	}
	w.scale(kind)
	for i := range w.x {
		if bias {
			w.x[i] = append(w.x[i], 1)
		}
	}
	return w
}

func (w *twin) scale(kind string) {
	for j := range w.x[0] {
		least, most, mean, square := math.Inf(1), math.Inf(-1), 0.0, 0.0
		for _, x := range w.x {
			least, most = min(least, x[j]), max(most, x[j])
			mean += x[j] / float64(len(w.x))
		}
		for _, x := range w.x {
			square += (x[j] - mean) * (x[j] - mean) / float64(len(w.x))
		}
		shift, by := 0.0, 1.0
		if kind == scaling.Standard {
			shift, by = mean, math.Sqrt(square)
		} else if kind == scaling.MinMax {
			shift, by = least, most-least
		}
		if by == 0 {
			by = 1
		}
		for _, x := range w.x {
			x[j] = (x[j] - shift) / by
		}
	}
}

// predict returns the prediction of a row under weights of one row for each of its values.
func (w *twin) predict(x, weights []float64) []float64 {
	labels := len(weights) / len(x)
	p, sum := make([]float64, labels), 0.0
	for c := range p {
		for j, v := range x {
			p[c] += v * weights[j*labels+c]
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// loss returns the mean K-L divergence, and with the decay.
func (w *twin) loss(weights []float64) (kl, whole float64) {
	for i, x := range w.x {
		for c, p := range w.predict(x, weights) {
			if d := w.d[i][c]; d > 0 {
				kl += d * math.Log(d/p) / float64(len(w.x))
			}
		}
	}
	decayed := len(weights)
	if w.bias {
		decayed -= len(weights) / len(w.x[0])
	}
	whole = kl
	for _, v := range weights[:decayed] {
		whole += w.l2 / 2 * v * v
	}
	return kl, whole
}

// run computes a round's units and adds them up.
func run(t *testing.T, k *Kernel, s *Scratch, r *round.Round, d *dataset.Data) *round.Result {
	t.Helper()
	var sum, part round.Partial
	sum.Reset(r.Reduce().Shape)
	for id := range r.Tasks {
		part.Reset(r.Reduce().Shape)
		u := r.Task(id)
		if !k.Run(&part, &u, d, r.Vars, nil, s) {
			t.Fatalf("operation %d is unknown", r.Op)
		}
		num.Add64(sum.F64, part.F64)
	}
	return &round.Result{Sum: &sum}
}

// TestEvaluation: the function and its gradient at a point are those of the slow twin, whose
// gradient is by central differences, for every scaling, with and without bias, on dense rows of many
// features and on sparse ones; so is the loss of validation rows.
func TestEvaluation(t *testing.T) {
	testkit.WithoutRace(t)
	for _, o := range []generate.Options{
		{Rows: 90, Features: 7, Labels: 4, Density: 1, Seed: 1},
		{Rows: 120, Features: 30, Labels: 3, Density: 0.1, Seed: 2},
		{Rows: 40, Features: 1<<10 + 9, Labels: 2, Density: 1, Seed: 3},
	} {
		src, err := generate.New(o)
		if err != nil {
			t.Fatal(err)
		}
		m, shards := datatest.Build(t, src)
		d := datatest.Data(t, m, shards, dataset.Split{Seed: 5, ValidationFraction: 0.2}, nil)
		for _, kind := range scaling.Kinds {
			for _, bias := range []bool{false, true} {
				compare(t, m, d, kind, bias)
			}
		}
	}
}

func compare(t *testing.T, m *dataset.Manifest, d *dataset.Data, kind string, bias bool) {
	t.Helper()
	const l2 = 0.03
	tr := NewTrainer(&Settings{Scaling: kind, Bias: bias, ValidationFraction: 0.2, ValidationInterval: 1, Patience: 1,
		Iterations: 9}, Search{}, l2, "", m)
	k := &Kernel{Features: m.Features, Labels: m.Labels}
	s := k.NewScratch(nil)
	tr.Start()
	for tr.Phase == fullbatch.PhaseScaling {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(run(t, k, s, r, d)); err != nil {
			t.Fatal(err)
		}
	}
	x, g := make([]float64, tr.Objective.Point()), make([]float64, tr.Objective.Point())
	stream := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for i := range x {
		x[i] = stream.Normal() / math.Sqrt(float64(m.Features))
	}
	r := &round.Round{Op: fullbatch.OpEvaluate, Tasks: len(m.Shards), Roles: dataset.Train,
		Vars: tr.Objective.AppendVars(nil, x, 1), How: round.Sums(fullbatch.SumsAt + tr.Objective.Sums())}
	sum := run(t, k, s, r, d).Sum.F64
	got := tr.Objective.Fold(g, x, sum[0], sum[1], sum[fullbatch.SumsAt:])
	w := newTwin(d, dataset.Train, kind, bias, l2)
	kl, whole := w.loss(x)
	if math.Abs(got-whole) > 1e-12 || math.Abs(sum[1]/sum[0]-kl) > 1e-12 {
		t.Errorf("%s, bias %v: loss %v with K-L %v, want %v with %v", kind, bias, got, sum[1]/sum[0], whole, kl)
	}
	for i := 0; i < len(x); i += 1 + len(x)/60 {
		const h = 1e-5
		at := x[i]
		x[i] = at + h
		_, up := w.loss(x)
		x[i] = at - h
		_, down := w.loss(x)
		x[i] = at
		if want := (up - down) / (2 * h); math.Abs(g[i]-want) > 1e-9 {
			t.Fatalf("%s, bias %v: derivative %d is %v, want %v", kind, bias, i, g[i], want)
		}
	}
	r.Op, r.Roles, r.Reduce().Shape.F64 = gradient.OpValidate, dataset.Validation, 2
	sum = run(t, k, s, r, d).Sum.F64
	if kind == scaling.None { // else the twin scales by other rows
		v := newTwin(d, dataset.Validation, kind, bias, 0)
		if want, _ := v.loss(x); math.Abs(sum[1]/sum[0]-want) > 1e-12 {
			t.Errorf("bias %v: K-L of validation samples %v, want %v", bias, sum[1]/sum[0], want)
		}
	}
	predictions(t, tr, d, x, w)
}

// predictions holds the model's predictions of the training rows against the twin's.
func predictions(t *testing.T, tr *Trainer, d *dataset.Data, x []float64, w *twin) {
	t.Helper()
	o := tr.Objective
	m := &Model{o.Features, o.Labels, o.Effective(nil, x)}
	refs := d.Select(0, len(d.Manifest.Shards), dataset.Train)
	p := make([]float32, len(refs)*o.Labels)
	m.Predict(p, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	for i, row := range w.x {
		for c, want := range w.predict(row, x) {
			if got := float64(p[i*o.Labels+c]); math.Abs(got-want) > 1e-7 {
				t.Fatalf("row %d, label %d is predicted as %v, want %v", i, c, got, want)
			}
		}
	}
}

// TestStorage: a model predicts the same rows alike where they are dense and where they are
// sparse, up to rounding.
func TestStorage(t *testing.T) {
	dense := &dataset.Rows{N: 2, Features: 3, Labels: 2, Row: []uint32{0, 1}, X: []float32{0, 2, -1, 0.5, 0, 0},
		D: make([]float32, 4)}
	sparse := &dataset.Rows{N: 2, Features: 3, Labels: 2, Row: []uint32{0, 1}, Sparse: true, X: []float32{2, -1, 0.5},
		Index: []uint32{1, 2, 0}, Start: []uint32{0, 2, 3}, D: make([]float32, 4)}
	m := &Model{3, 2, []float64{0.3, -0.7, 0.11, 0.05, -0.9, 0.4, 0.01, 0.02}}
	a, b := make([]float32, 4), make([]float32, 4)
	refs := []dataset.RowRef{{}, {Pos: 1}}
	s := m.NewScratch()
	m.Predict(a, refs, func(uint32) *dataset.Rows { return dense }, s)
	m.Predict(b, refs, func(uint32) *dataset.Rows { return sparse }, s)
	for i := range a {
		if math.Abs(float64(a[i]-b[i])) > 1e-7 {
			t.Errorf("value %d: %v of dense rows, %v of sparse rows", i, a[i], b[i])
		}
	}
}

// TestSize: a model beyond the bound is refused with its numbers.
func TestSize(t *testing.T) {
	if n, err := Size(&dataset.Manifest{Features: 9, Labels: 3}); n != 30 || err != nil {
		t.Errorf("%d weights, error %v", n, err)
	}
	if _, err := Size(&dataset.Manifest{Features: 1 << 20, Labels: 65}); err == nil {
		t.Error("68 million weights are accepted")
	}
}
