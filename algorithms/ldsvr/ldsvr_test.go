package ldsvr

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{
		{"iterations": int64(3)}, {"landmarks": int64(12), "iterations": int64(4)},
		{"preset": "paper", "landmarks": int64(5), "cost": 100.0, "epsilon": 0.01},
	}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }

// generated returns a data set with a fifth of test rows.
func generated(t testing.TB, n, features, labels int, density float64) *dataset.Data {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: n, Features: features, Labels: labels, Density: density, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	return datatest.Data(t, m, shards, dataset.Split{Seed: 3, TestFraction: 0.2}, nil)
}

// train runs a job in so many lanes; observe sees the trainer after each round.
func train(t testing.TB, d *dataset.Data, set param.Values, lanes int, observe func(*trainer)) (*trainer, error) {
	t.Helper()
	a := New()
	r, err := a.Resolve(set, d.Manifest)
	if err != nil {
		return nil, err
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
	tr, err := a.NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	x := engine.NewLocal(k, d, lanes, nil)
	return tr.(*trainer), engine.Drive(context.Background(), tr, 0, x, func(uint64, round.Trainer) error {
		observe(tr.(*trainer))
		return nil
	})
}

func trained(t testing.TB, d *dataset.Data, set param.Values, lanes int) *model {
	t.Helper()
	tr, err := train(t, d, set, lanes, func(*trainer) {})
	if err != nil {
		t.Fatal(err)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m.(*model)
}

// predict predicts all rows.
func predict(m *model, d *dataset.Data) []float32 {
	refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
	dst := make([]float32, len(refs)*m.labels)
	m.Predict(dst, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	return dst
}

// TestGoldenDigest: models of small jobs keep their bits, in one lane and many.
func TestGoldenDigest(t *testing.T) {
	for _, x := range []struct {
		name     string
		features int
		density  float64
		set      param.Values
		want     string
	}{
		{"exact", 5, 1, nil, "a5d6c869a6c6f61cd30ce592da516cd15da161e911cec359d6f8bcfe29cccdc5"},
		{"landmarks", 40, 0.1, param.Values{"landmarks": int64(20)},
			"962c55bb160988d608e7a062e1f8d8be4990b4f0320ff65669230aacb98585bf"},
	} {
		d := generated(t, 150, x.features, 3, x.density)
		for lanes := 1; lanes <= 4; lanes++ {
			if got := modelfile.Digest(Name, trained(t, d, x.set, lanes).Tensors()); got != x.want {
				t.Errorf("%s: in %d lanes the digest is %s, want %s", x.name, lanes, got, x.want)
			}
		}
	}
}

// TestOptimum: at the end of an exact fit, which is convex, the gradient of the objective is zero:
// β_i = a_i e_i and Σ β_i = 0. The logits, weights and outputs are computed here.
func TestOptimum(t *testing.T) {
	for _, x := range []struct {
		labels int
		set    param.Values
	}{
		{3, param.Values{"tolerance": 0.0, "iterations": int64(1000)}},
		{2, param.Values{"tolerance": 0.0, "iterations": int64(1000), "cost": 5.0, "epsilon": 0.3}},
	} {
		d := generated(t, 100, 4, x.labels, 1)
		m := trained(t, d, x.set, 1)
		c := settings.Default()
		if v, ok := x.set["cost"].(float64); ok {
			c.Cost, c.Epsilon = v, x.set["epsilon"].(float64)
		}
		u := round.Round{Tasks: 1, Scope: round.Whole, Roles: dataset.Train, How: &round.Reduce{}}
		r := rows.Gather(u.Task(0), d, &rows.Wanted{Labels: true})
		inside, sums := 0, make([]float64, x.labels)
		for i := range r.N {
			f := slowOutputs(m, r, i)
			e, norm := make([]float64, x.labels), 0.0
			for l, degree := range r.Label(i) {
				p := math.Min(math.Max(float64(degree), c.Clamp), 1-c.Clamp)
				e[l] = math.Log(p/(1-p)) - f[l]
				norm += e[l] * e[l]
			}
			norm = math.Sqrt(norm)
			a := 0.0
			if norm > c.Epsilon {
				a = 2 * c.Cost * (norm - c.Epsilon) / norm
			} else {
				inside++
			}
			for l := range e {
				beta := m.beta[i*x.labels+l]
				sums[l] += beta
				if math.Abs(beta-a*e[l]) > 1e-4 {
					t.Fatalf("row %d, label %d: β is %v, a·e %v", i, l, beta, a*e[l])
				}
			}
		}
		for l, sum := range sums {
			if math.Abs(sum) > 1e-6 {
				t.Errorf("label %d: Σ β is %v", l, sum)
			}
		}
		t.Logf("%d of %d rows are within ε", inside, r.N)
	}
}

// slowOutputs returns f of a row, by the plain sum.
func slowOutputs(m *model, r *dataset.Rows, i int) []float64 {
	f := append([]float64(nil), m.bias...)
	for j := range m.kept.N {
		square := 0.0
		for c, x := range r.Dense(i) {
			y := m.kept.Dense(j)[c]
			d := float64(x) - float64(y)
			if m.scale.Scale != nil {
				d *= m.scale.Scale[c]
			}
			square += d * d
		}
		k := math.Exp(-square / (2 * m.width[0] * m.width[0]))
		for l := range f {
			f[l] += k * m.beta[j*m.labels+l]
		}
	}
	return f
}

// TestPrediction: labels are σ(f), divided by the sum.
func TestPrediction(t *testing.T) {
	d := generated(t, 60, 4, 3, 1)
	m := trained(t, d, nil, 1)
	got, at := predict(m, d), 0
	for s := range d.Manifest.Shards {
		r := d.Shard(s)
		for i := range r.N {
			p, sum := slowOutputs(m, r, i), 0.0
			for l := range p {
				p[l] = 1 / (1 + math.Exp(-p[l]))
				sum += p[l]
			}
			for l := range p {
				if math.Abs(float64(got[at])-p[l]/sum) > 1e-6 {
					t.Fatalf("degree %v, want %v", got[at], p[l]/sum)
				}
				at++
			}
		}
	}
	extreme := []float64{-2000, -2001}
	if shares(extreme, extreme); math.Abs(extreme[0]/extreme[1]-math.E) > 1e-9 {
		t.Errorf("shares of logits that σ makes 0 are %v", extreme)
	}
}

// TestMeanDistance: the width is the mean distance of the training rows.
func TestMeanDistance(t *testing.T) {
	d := generated(t, 60, 4, 3, 1)
	m := trained(t, d, param.Values{"scaling": "none", "width": 2.0}, 1)
	sum, pairs := 0.0, 0.0
	for i := range m.kept.N {
		for j := range i {
			square := 0.0
			for c, x := range m.kept.Dense(i) {
				square += math.Pow(float64(x)-float64(m.kept.Dense(j)[c]), 2)
			}
			sum, pairs = sum+math.Sqrt(square), pairs+1
		}
	}
	if want := 2 * sum / pairs; math.Abs(m.width[0]-want) > 1e-12*want {
		t.Errorf("width %v, want %v", m.width[0], want)
	}
}

// TestAllLandmarks: with all training rows as landmarks the model predicts as the exact one.
func TestAllLandmarks(t *testing.T) {
	for _, density := range []float64{1, 0.1} {
		d := generated(t, 150, 20, 3, density)
		set := param.Values{"tolerance": 1e-12, "iterations": int64(500)}
		exact := predict(trained(t, d, set, 1), d)
		set["landmarks"] = int64(2000)
		m := trained(t, d, set, 2)
		if m.kept.N != 120 {
			t.Fatalf("%d landmarks", m.kept.N)
		}
		for i, p := range predict(m, d) {
			if math.Abs(float64(p)-float64(exact[i])) > 2e-5 {
				t.Fatalf("degree %d: %v, exact %v", i, p, exact[i])
			}
		}
	}
}

// TestDescends: the objective of landmarks falls in every iteration, and ends before the last.
func TestDescends(t *testing.T) {
	d := generated(t, 150, 5, 4, 1)
	last, falls := math.Inf(1), 0
	tr, err := train(t, d, param.Values{"landmarks": int64(30), "cost": 1000.0, "epsilon": 1.0}, 1, func(tr *trainer) {
		if tr.descent == nil || tr.descent.stage == stageBegin {
			return
		}
		if tr.descent.value > last {
			t.Errorf("the objective rises from %v to %v", last, tr.descent.value)
		}
		if tr.descent.value < last {
			falls++
		}
		last = tr.descent.value
	})
	if err != nil {
		t.Fatal(err)
	}
	if falls < 4 || tr.done >= 50 || tr.loss < 0 {
		t.Errorf("%d falls, %d iterations, K-L %v", falls, tr.done, tr.loss)
	}
}

// TestPhases: an exact fit, which is one unit, is a fit from its beginning; the other one is told step by step.
func TestPhases(t *testing.T) {
	d := generated(t, 60, 3, 3, 1)
	for landmarks, want := range map[int64][]string{0: {"fit", "done"}, 20: {"scaling", "collecting samples",
		"least squares", "done"}} {
		var phases []string
		if _, err := train(t, d, param.Values{"landmarks": landmarks}, 1, func(tr *trainer) {
			phases = append(phases, tr.Progress().Phase)
		}); err != nil {
			t.Fatal(err)
		}
		if got := slices.Compact(phases); !slices.Equal(got, want) {
			t.Errorf("%d landmarks: phases %q, want %q", landmarks, got, want)
		}
	}
}

// TestShorterSteps: a descent tries shorter steps where the objective does not fall, goes on from
// the first that is better, and ends where none is.
func TestShorterSteps(t *testing.T) {
	x := newDescent(&Config{Iterations: 100, Tolerance: 1e-9}, 1)
	p := make([]float64, 1)
	value := func() float64 { x.trial(p); return (p[0] - 1) * (p[0] - 1) } // least at 1
	for range 400 {
		if x.stage == stageEnd {
			break
		}
		if x.take(value()) {
			x.turn([]float64{x.point[0] + 25*(1-x.point[0])}) // much too far
		}
	}
	if x.stage != stageEnd || math.Abs(x.point[0]-1) > 1e-3 || x.done == 0 {
		t.Errorf("the descent ends in stage %d at %v after %d iterations", x.stage, x.point[0], x.done)
	}
}

// withLabels returns the data with other labels.
func withLabels(d *dataset.Data, label func(row uint32, d []float32)) *dataset.Data {
	for i := range d.Manifest.Shards {
		r := d.Shard(i)
		for pos, row := range r.Row {
			label(row, r.Label(pos))
		}
	}
	return d
}

// TestZeroLabels: degrees of exactly 0 and 1 have finite logits, exact and by landmarks.
func TestZeroLabels(t *testing.T) {
	for _, set := range []param.Values{nil, {"landmarks": int64(10)}} {
		d := withLabels(generated(t, 80, 4, 3, 1), func(row uint32, d []float32) {
			clear(d)
			d[row%2] = 1 // the third label is never there
		})
		for _, p := range predict(trained(t, d, set, 1), d) {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("a degree of %v", p)
			}
		}
	}
}

// TestEqualRows: rows that are all the same, whose kernel matrix has rank one, and labels that are.
func TestEqualRows(t *testing.T) {
	for _, set := range []param.Values{nil, {"landmarks": int64(10)}} {
		d := generated(t, 80, 4, 3, 1)
		for i := range d.Manifest.Shards {
			for k := range d.Shard(i).X {
				d.Shard(i).X[k] = 2
			}
		}
		withLabels(d, func(_ uint32, d []float32) { d[0], d[1], d[2] = 0.5, 0.25, 0.25 })
		p := predict(trained(t, d, set, 1), d)
		if math.Abs(float64(p[0])-0.5) > 0.05 || math.Abs(float64(p[1])-float64(p[2])) > 1e-6 {
			t.Errorf("%v: predicted %v", set, p[:3])
		}
	}
}

// TestDefaults: above 2,000 rows there are landmarks; fits that no unit can hold are refused with
// the numbers.
func TestDefaults(t *testing.T) {
	a := New()
	m := &dataset.Manifest{Rows: 2000, Features: 3, Labels: 4, Shards: make([]dataset.ShardRef, 16)}
	landmarks := func() int {
		r, err := a.Resolve(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		c, err := settings.Parse(r.Params)
		if err != nil {
			t.Fatal(err)
		}
		return c.Landmarks
	}
	if n := landmarks(); n != 0 {
		t.Errorf("%d landmarks of 2,000 rows", n)
	}
	if m.Rows++; landmarks() != 512 {
		t.Errorf("%d landmarks of 2,001 rows", landmarks())
	}
	m.Rows = 20_000
	_, err := a.Resolve(param.Values{"landmarks": int64(0)}, m)
	var wrong *param.Error
	if !errors.As(err, &wrong) || wrong.Name != "landmarks" ||
		!strings.Contains(err.Error(), "20000 samples takes 6.0 GiB in one task, but at most 4 GiB") {
		t.Errorf("error %v", err)
	}
	m.Labels = dataset.MaxLabels
	if _, err = a.Resolve(param.Values{"landmarks": int64(2048)}, m); err != nil {
		t.Errorf("error %v", err)
	}
}

// TestBadFit: what a worker returned is refused, or a fit.
func TestBadFit(t *testing.T) {
	d := generated(t, 40, 3, 2, 1)
	tr, err := train(t, d, nil, 1, func(*trainer) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][][]byte{"none": nil, "two": {{1}, {1}}, "no fit": {{fitFormat}},
		"another format": {{9, 9}}} {
		fresh := newTrainer(tr.job)
		fresh.fit = tr.fit
		if err := fresh.Fold(&round.Result{Gathered: parts}); err == nil || fresh.ended() {
			t.Errorf("%s: error %v", name, err)
		}
	}
	fresh := newTrainer(tr.job)
	fresh.fit = tr.fit
	if err := fresh.Fold(&round.Result{Gathered: [][]byte{nil}}); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("no rows: error %v", err)
	}
	if _, err := fresh.Model(); err == nil {
		t.Error("a model without a fit")
	}
}
