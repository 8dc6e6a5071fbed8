package ldlscl_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlscl"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"iterations": int64(12)}},
	{Name: "minmax", Set: param.Values{"iterations": int64(20), "scaling": "minmax", "clusters": int64(3),
		"lambda1": 0.1}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, ldlscl.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, ldlscl.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, ldlscl.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldlscl.New(), cases, map[string]string{
		"paper":         "5820c50ee5c5efb1d33f97a36ddf6c79720bfe64b454e2f52b4e30365d1dd708",
		"auto":          "2e60168dc49674a0e13e95d1010c53c45295ccf1a68165bf7b6bfebfcb2bb60b",
		"minmax":        "09773d1d1c917a8bedeca1d20fd8641576233a2900893a1ea193c465a0e4675e",
		"paper sparse":  "8589fd72494121fcfa095040f53a197f84644f313ef5cbb6843e5cf01ca2c93d",
		"auto sparse":   "b47bd4df977dcbbc3c26f73464a312e4079458b2f527144bdfedf7ff569a00e5",
		"minmax sparse": "61653c6a4cf52532c63bf0306bfe636a1ef002b7a57174b1d1a315e0223c3a4a",
	})
}

// point is a point of the objective, as rounds carry it.
type point struct{ weights, shared, logs [][]float64 }

// objective is the objective by plain loops, without the weight decay, as a sum over samples, with the weight of each.
func objective(x, d [][]float64, weights []float64, p point, centres [][]float64, lambda1,
	lambda2 float64) (sum float64) {
	for i, row := range x {
		own := 0.0
		all, matrix := slices.Clone(row), slices.Clone(p.weights)
		for l, u := range p.logs[i] {
			all, matrix = append(all, math.Exp(u)), append(matrix, p.shared[l])
		}
		predicted := fittest.Predict(all, matrix)
		own += fittest.KL(d[i], predicted)
		for l, u := range p.logs[i] {
			far := 0.0
			for c, v := range predicted {
				far += (v - centres[l][c]) * (v - centres[l][c])
			}
			own += lambda1*math.Exp(u)*far + lambda2/math.Exp(u)
		}
		sum += weights[i] * own
	}
	return sum
}

// training returns the training samples of dense data in the order of their tasks, and the number of each.
func training(d *dataset.Data) (x, labels [][]float64, number []int) {
	x, labels = fittest.Samples(d, false)
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		number = append(number, int(d.Shard(int(ref.Shard)).Row[ref.Pos]))
	}
	return x, labels, number
}

// TestGradient: the sums of a task on all shards are the derivatives of its loss by W, V and ln c, by central
// differences at a random point. Samples have weights.
func TestGradient(t *testing.T) {
	const centres, lambda1, lambda2 = 3, 0.4, 0.2
	m, shards := fittest.Problem(t, generate.Options{Rows: 25, Features: 3, Labels: 4, Density: 1, Seed: 3})
	m.HasWeights = true
	for _, shard := range shards {
		for _, row := range shard.Row {
			shard.Weight = append(shard.Weight, float64(row%4)/2)
		}
	}
	a := ldlscl.New()
	j := contract.Job(t, a, param.Values{"preset": "paper", "iterations": int64(1), "clusters": int64(centres),
		"lambda1": lambda1, "lambda2": lambda2}, m, dataset.Split{TestFraction: 0.2, Seed: 4})
	d := datatest.Data(t, m, shards, j.Split, nil)
	kernel, err := a.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.(round.ReduceKernel)
	var shape round.Shape
	var vars []round.Var
	contract.Train(t, a, j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
		if r, err := tr.Next(); err == nil && r != nil && r.Op == fullbatch.OpEvaluate && vars == nil {
			shape, vars = r.How.(*round.Reduce).Shape, slices.Clone(r.Vars)
		}
		return tr
	})
	rng, values := num.NewStream(num.NewKey(1, "test"), 0, 0), map[uint16][]float64{}
	for i, v := range vars {
		values[v.ID] = slices.Clone(num.Float64s(v.Data))
		if v.ID <= 2 {
			for c := range values[v.ID] {
				values[v.ID][c] = 0.4 * rng.Normal()
			}
		}
		vars[i].Data = num.Bytes64(values[v.ID])
	}
	weights, own := values[1], values[2]
	x, labels, number := training(d)
	loss := func() float64 {
		p := point{weights: fittest.Matrix(weights, m.Labels), shared: fittest.Matrix(own[:centres*m.Labels], m.Labels)}
		logs := fittest.Matrix(own[centres*m.Labels:], centres)
		var rows []float64
		for _, i := range number {
			p.logs, rows = append(p.logs, logs[i]), append(rows, float64(i%4)/2)
		}
		return objective(x, labels, rows, p, fittest.Matrix(clusters.Find(vars), m.Labels), lambda1, lambda2)
	}
	var sum round.Partial
	sum.Reset(shape)
	if err := k.Run(&sum, round.Task{Of: 1, Op: fullbatch.OpEvaluate, Roles: dataset.Train}, d, vars, nil,
		k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	terms := fullbatch.SumsAt + len(weights)
	if got, want := sum.F64[1]+sum.F64[terms], loss(); math.Abs(got-want) > 1e-10*want {
		t.Errorf("loss %v, want %v", got, want)
	}
	check := func(name string, v, slopes []float64) {
		for i, at := range v {
			const h = 1e-5
			v[i] = at + h
			up := loss()
			v[i] = at - h
			down := loss()
			v[i] = at
			if want := (up - down) / (2 * h); math.Abs(slopes[i]-want) > 3e-7*max(1, math.Abs(want)) {
				t.Fatalf("derivative %d by %s is %v, want %v", i, name, slopes[i], want)
			}
		}
	}
	check("W", weights, sum.F64[fullbatch.SumsAt:])
	check("V and ln c", own, sum.F64[terms+1:])
}

// TestObjectives: the objective on the first fold of SJAFFE has the figures of SciPy 1.17 (L-BFGS-B with 10 pairs, ftol
// 0 and gtol 1e-7, float64) with standardised features, a bias, and the same centres: after 0, 1 and 10 iterations, and
// at the minimum of a problem that converges. The minimum of others takes many thousands of iterations.
func TestObjectives(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	for _, c := range []struct {
		lambda1, lambda2, lambda3 float64
		centres, iterations       int64
		want, share               float64
	}{
		{1e-2, 1e-2, 0.1, 5, 0, 0.1229556, 1e-6}, {1e-2, 1e-2, 0.1, 5, 1, 0.0914089, 1e-5},
		{1e-2, 1e-2, 0.1, 5, 10, 0.0717544, 1e-3}, {1, 0.1, 10, 3, 3000, 0.3398474, 1e-6},
	} {
		var own, centres, weights []float64
		var of *dataset.Data
		set := param.Values{"preset": "paper", "bias": true, "scaling": "standard", "clusters": c.centres,
			"lambda1": c.lambda1, "lambda2": c.lambda2, "lambda3": c.lambda3, "iterations": max(1, c.iterations)}
		f.First(t, ldlscl.New(), set, func(tr algorithms.Trainer, d *dataset.Data) {
			r, err := tr.Next()
			switch {
			case err != nil:
				t.Fatal(err)
			case r == nil:
				model, err := tr.Model()
				if err != nil {
					t.Fatal(err)
				}
				weights, of = model.Tensors()[1].F64, d
			case r.Op == fullbatch.OpEvaluate && centres == nil:
				centres = slices.Clone(clusters.Find(r.Vars))
			case r.Kind == "regression":
				own = slices.Clone(num.Float64s(r.Vars[0].Data))
			}
		})
		if c.iterations == 0 {
			clear(own)
			clear(weights)
		}
		got := whole(of, weights, own, centres, c.lambda1, c.lambda2, c.lambda3)
		t.Logf("%v: objective %.7f", c, got)
		if !(math.Abs(got-c.want) <= c.share*c.want+1e-7) {
			t.Errorf("%v: the objective is %.7f", c, got)
		}
	}
}

// whole is the objective with the weight decay of weights that read standardised features.
func whole(d *dataset.Data, weights, own, centres []float64, lambda1, lambda2, lambda3 float64) float64 {
	x, labels, number := training(d)
	n := d.Manifest.Labels
	k := len(centres) / n
	p := point{weights: fittest.Matrix(weights, n), shared: fittest.Matrix(own[:k*n], n)}
	logs := fittest.Matrix(own[k*n:], k)
	for _, i := range number {
		p.logs = append(p.logs, logs[i])
	}
	decay := 0.0
	for i, row := range p.weights[:d.Manifest.Features] {
		mean, variance := 0.0, 0.0
		for _, v := range x {
			mean += v[i] / float64(len(x))
		}
		for _, v := range x {
			variance += (v[i] - mean) * (v[i] - mean) / float64(len(x))
		}
		for _, w := range row {
			decay += w * w * variance
		}
	}
	for _, v := range own[:k*n] {
		decay += v * v
	}
	ones := slices.Repeat([]float64{1}, len(x))
	return objective(x, labels, ones, p, fittest.Matrix(centres, n), lambda1, lambda2)/float64(len(x)) + lambda3/2*decay
}

// TestBounds: too many codes are refused by name.
func TestBounds(t *testing.T) {
	m, _ := fittest.Problem(t, generate.Options{Rows: 40, Features: 3, Labels: 4, Density: 1, Seed: 3})
	m.Rows = 1 << 20
	var wrong *param.Error
	if _, err := ldlscl.New().Resolve(nil, m); !errors.As(err, &wrong) || wrong.Name != "clusters" {
		t.Errorf("too many codes: %v", err)
	}
}

// TestFolds: the measures on ten folds equal the measures of an independent program (NumPy and SciPy's L-BFGS-B), which
// also predicts the codes by ridge regression.
func TestFolds(t *testing.T) {
	auto := param.Values{"scaling": "standard"}
	fittest.Open(t, "SJAFFE").Measures(t, ldlscl.New(), auto, 0.02,
		[6]float64{.0892, .3252, .6736, .0431, .9590, .8853})
	auto["iterations"] = int64(100)
	fittest.Open(t, "Yeast_spo5").Measures(t, ldlscl.New(), auto, 0.02,
		[6]float64{.0916, .1845, .2835, .0295, .9739, .9084})
}
