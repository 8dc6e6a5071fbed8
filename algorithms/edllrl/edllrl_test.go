package edllrl_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/edllrl"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
	"github.com/coppice-ldl/coppice/internal/num"
	"gonum.org/v1/gonum/mat"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "steps": int64(3), "iterations": int64(4)}},
	{Name: "auto", Set: param.Values{"steps": int64(4), "iterations": int64(3)}},
	{Name: "minmax", Set: param.Values{"steps": int64(2), "iterations": int64(7), "scaling": "minmax", "rho": 0.5,
		"clusters": int64(3), "lambda": 2.0}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, edllrl.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, edllrl.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, edllrl.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, edllrl.New(), cases, map[string]string{
		"paper":         "7a52b2f27411cb7570918ff848f60b80f08532bf31d8f7e5fda6da6cc385ae8d",
		"auto":          "552cae7f5672ce39f225f6e2d80c8431ecb3aa0625fed5203499c8065f2a7b00",
		"minmax":        "65089b27e9e118666ae2341efd90a38bade3985f3f9caa08ff5bc45aa7d81f0d",
		"paper sparse":  "eac473978a2d1d5da3cf95a203cc8dc640184a1ef4433439f63953763ac6fcc8",
		"auto sparse":   "8cef8cef50784f17cd4c5876c84ca5627ab3d99e6c0699a4c8c08860faa863f2",
		"minmax sparse": "8ee32e439fbc2030b2b30d154a5cb9677884b569190e7256e2a07b2d03bbc98a",
	})
}

// standard are the settings of the figures of an independent program (NumPy, and SciPy's L-BFGS-B, float64).
var standard = param.Values{"preset": "paper", "bias": true, "scaling": "standard", "l2": 0.01}

// TestObjectives: the objective on the first fold of SJAFFE after 1, 2 and 10 steps of ADMM equals the figures of an
// independent program.
func TestObjectives(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	for steps, want := range map[int64]float64{1: 2.392951, 2: 2.170574, 10: 2.070935} {
		set := maps.Clone(standard)
		set["steps"], set["lambda"] = steps, 0.1
		got := math.NaN()
		f.First(t, edllrl.New(), set, func(tr algorithms.Trainer, d *dataset.Data) {
			if r, err := tr.Next(); err != nil || r != nil {
				return
			}
			model, err := tr.Model()
			if err != nil {
				t.Fatal(err)
			}
			x, labels := fittest.Samples(d, false)
			got = objective(x, labels, fittest.Matrix(model.Tensors()[1].F64, f.Manifest.Labels), d, 0.1, 0.01)
		})
		t.Logf("objective %.6f after %d steps, of the independent program %.6f", got, steps, want)
		if !(math.Abs(got-want) <= 1e-6*want+1e-6) {
			t.Errorf("after %d steps the objective is %.6f, want %.6f", steps, got, want)
		}
	}
}

// TestGradient: in the third step, where Z and the multipliers are not 0, the sums of a task are the derivatives of its
// loss by the weights. They have the same bits with z and the multipliers of a cache, and computed again.
func TestGradient(t *testing.T) {
	for _, density := range []float64{1, 0.3} {
		m, shards := fittest.Problem(t, generate.Options{Rows: 90, Features: 5, Labels: 4, Density: density, Seed: 3})
		a := edllrl.New()
		j := contract.Job(t, a, param.Values{"preset": "paper", "steps": int64(3), "iterations": int64(3), "lambda": 0.8,
			"rho": 0.5, "clusters": int64(3)}, m, dataset.Split{})
		d := datatest.Data(t, m, shards, j.Split, nil)
		kernel, err := a.NewKernel(j, m)
		if err != nil {
			t.Fatal(err)
		}
		k, seen := kernel.(round.ReduceKernel), false
		contract.Train(t, a, j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
			r, err := tr.Next()
			if err != nil {
				t.Fatal(err)
			}
			if r == nil || tr.Progress().Step != 7 || r.Op != fullbatch.OpEvaluate || seen {
				return tr
			}
			seen = true
			checkTask(t, k, r, d)
			return tr
		})
		if !seen {
			t.Fatal("there is no evaluation of the third step")
		}
	}
}

// checkTask compares the derivatives of the first task of a round with central differences.
func checkTask(t *testing.T, k round.ReduceKernel, r *round.Round, d *dataset.Data) {
	t.Helper()
	u, s, vars := r.Task(0), k.NewScratch(), slices.Clone(r.Vars)
	at := slices.IndexFunc(vars, func(v round.Var) bool { return v.ID == 1 })
	weights := slices.Clone(num.Float64s(vars[at].Data))
	run := func(of round.Derived) []float64 {
		t.Helper()
		vars[at].Data = num.Bytes64(weights)
		vars[at].Version++
		var sum round.Partial
		sum.Reset(r.How.(*round.Reduce).Shape)
		if err := k.Run(&sum, u, d, vars, of, s); err != nil {
			t.Fatal(err)
		}
		return sum.F64
	}
	of, err := k.Derive(u, d, vars, s)
	if err != nil || of == nil {
		t.Fatalf("derived value %v: %v", of, err)
	}
	again, sums := run(nil), run(of)
	if !slices.Equal(sums, again) {
		t.Error("without a derived value, the sums have other bits")
	}
	u.Reserve = func(int) bool { return false }
	if none, err := k.Derive(u, d, vars, s); none != nil || err != nil {
		t.Errorf("a derived value without memory: %v, %v", none, err)
	}
	for i, x := range weights {
		const h = 1e-5
		weights[i] = x + h
		up := run(of)
		weights[i] = x - h
		down := run(of)
		weights[i] = x
		last := len(up) - 1
		want := (up[last] - down[last]) / (2 * h)
		if got := sums[fullbatch.SumsAt+i]; math.Abs(got-want) > 1e-7*max(1, math.Abs(want)) {
			t.Fatalf("derivative %d is %v, want %v", i, got, want)
		}
	}
}

// objective is the objective by plain loops, and by the singular values of gonum. The weights w read features as they
// are, and the decay those that read standardised ones.
func objective(x, d, w [][]float64, of *dataset.Data, lambda, l2 float64) float64 {
	groups, sum := make(map[int][][]float64), 0.0
	for i, g := range clusters.KMeans(d, 5) {
		p := fittest.Predict(x[i], w)
		for c, v := range p {
			sum += (v - d[i][c]) * (v - d[i][c]) / 2
		}
		groups[g] = append(groups[g], p)
	}
	for _, rows := range groups {
		m := mat.NewDense(len(rows), len(d[0]), nil)
		for i, row := range rows {
			m.SetRow(i, row)
		}
		var svd mat.SVD
		svd.Factorize(m, mat.SVDNone)
		for _, v := range svd.Values(nil) {
			sum += lambda * v
		}
	}
	for k := range of.Manifest.Features {
		mean, square := 0.0, 0.0
		for _, row := range x {
			mean += row[k] / float64(len(x))
		}
		for _, row := range x {
			square += (row[k] - mean) * (row[k] - mean)
		}
		for _, v := range w[k] { // N·(v·deviation)²
			sum += l2 / 2 * v * v * square
		}
	}
	return sum
}

// TestFolds: the measures on ten folds equal the measures of an independent program. Without the trace norms, its K-L
// on SJAFFE is .0446.
func TestFolds(t *testing.T) {
	fittest.Open(t, "SJAFFE").Measures(t, edllrl.New(), standard, 0.02,
		[6]float64{.0883, .3409, .7022, .0458, .9570, .8816})
	fittest.Open(t, "Yeast_spo5").Named(t, edllrl.New(), standard, 0.02, []string{"kl"}, []float64{.0292})
	plain := maps.Clone(standard)
	plain["lambda"] = 0.0
	fittest.Open(t, "SJAFFE").Named(t, edllrl.New(), plain, 0.02, []string{"kl"}, []float64{.0446})
}
