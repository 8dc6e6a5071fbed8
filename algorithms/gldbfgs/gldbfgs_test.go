package gldbfgs

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(8), "stage_iterations": int64(4)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3)}},
	{Name: "path", Set: param.Values{"iterations": int64(50), "validation_interval": int64(7)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), contract.Sets(cases)...) }

// loss is the objective by plain loops. The last value of a sample is its bias.
func loss(x, d, w, metric [][]float64, l2 float64) (sum float64) {
	for i := range x {
		e := errorsOf(x[i], d[i], w)
		for c := range e {
			for k := range e {
				switch {
				case metric != nil:
					sum += e[c] * metric[c][k] * e[k] / float64(len(x))
				case c == k:
					sum += e[c] * e[c] / float64(len(x))
				}
			}
		}
	}
	return sum + decay(w, l2)
}

// errorsOf returns the errors of a sample, whose targets are from 0 to 1.
func errorsOf(x, d []float64, w [][]float64) []float64 {
	e := make([]float64, len(d))
	for c := range e {
		s := 0.0
		for i, v := range x {
			s += v * w[i][c]
		}
		e[c] = math.Tanh(s) - (2*d[c] - 1)
	}
	return e
}

// evaluate returns the objective and its gradient at a point, by one task.
func evaluate(t *testing.T, k round.ReduceKernel, o fullbatch.Objective, d *dataset.Data, x []float64) (float64,
	[]float64) {
	t.Helper()
	var sum round.Partial
	sum.Reset(round.Shape{F64: fullbatch.SumsAt + o.Sums()})
	u := round.Task{Of: 1, Op: fullbatch.OpEvaluate, Roles: dataset.Train}
	if err := k.Run(&sum, u, d, o.AppendVars(nil, x, 1), nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	g := make([]float64, len(x))
	return o.Fold(g, x, sum.F64[0], sum.F64[1], sum.F64[fullbatch.SumsAt:]), g
}

// TestGradient compares the gradient with central differences: with Ω = I, and with Ω of a later stage.
func TestGradient(t *testing.T) {
	for _, labels := range []int{4, 1} {
		m, shards := targets(t, 80, 4, labels)
		j := contract.Job(t, New(), param.Values{"preset": "paper", "l2": 0.3, "iterations": int64(3),
			"stage_iterations": int64(3)}, m, dataset.Split{})
		d := datatest.Data(t, m, shards, j.Split, nil)
		by := contract.Train(t, New(), j, d, 1, nil).(*Trainer)
		k, err := New().NewKernel(j, m)
		if err != nil {
			t.Fatal(err)
		}
		kernel, later := k.(round.ReduceKernel), by.Training.Objective.(*objective)
		x := make([]float64, later.Point())
		s := num.NewStream(num.NewKey(1, "test"), 0, 0)
		for i := range x {
			x[i] = 0.4 * s.Normal()
		}
		features, degrees := samples(d)
		first := *later.Objective
		first.Values = nil
		for _, o := range []struct {
			fullbatch.Objective
			metric [][]float64
		}{{&first, nil}, {later, matrix(by.Optimiser.(*stages).metric, labels)}} {
			slow := func() float64 { return loss(features, degrees, matrix(x, labels), o.metric, 0.3) }
			f, g := evaluate(t, kernel, o.Objective, d, x)
			if want := slow(); math.Abs(f-want) > 1e-10*max(1, math.Abs(want)) {
				t.Errorf("%d labels: loss %v, want %v", labels, f, want)
			}
			for i, at := range x {
				const h = 1e-5
				x[i] = at + h
				up := slow()
				x[i] = at - h
				down := slow()
				x[i] = at
				if want := (up - down) / (2 * h); math.Abs(g[i]-want) > 3e-7*max(1, math.Abs(want)) {
					t.Fatalf("%d labels: derivative %d is %v, want %v", labels, i, g[i], want)
				}
			}
		}
	}
}

// targets makes a dataset of targets from 0 to 1.
func targets(t *testing.T, rows, features, labels int) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: rows, Features: features, Labels: labels, Density: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	m.LabelType.Bounds = &dataset.Bounds{Low: []float64{0}, High: []float64{1}}
	for _, r := range shards {
		for i, x := range r.D {
			if r.D[i] = float32(math.Sqrt(float64(x))); labels == 1 { // the degree is 1
				r.D[i] = float32(math.Abs(float64(r.X[i*features]) - math.Floor(float64(r.X[i*features]))))
			}
		}
	}
	return m, shards
}

// matrix views numbers as rows.
func matrix(v []float64, columns int) (m [][]float64) {
	for ; len(v) > 0; v = v[columns:] {
		m = append(m, v[:columns])
	}
	return m
}

// decay returns ½·l2·‖w‖² without the last row.
func decay(w [][]float64, l2 float64) (sum float64) {
	for _, row := range w[:len(w)-1] {
		for _, v := range row {
			sum += l2 / 2 * v * v
		}
	}
	return sum
}

// samples returns the training samples with a 1 behind their features, and their targets.
func samples(d *dataset.Data) (x, targets [][]float64) {
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		rows := d.Shard(int(ref.Shard))
		var row, target []float64
		for _, v := range rows.Dense(int(ref.Pos)) {
			row = append(row, float64(v))
		}
		for _, v := range rows.Label(int(ref.Pos)) {
			target = append(target, float64(v))
		}
		x, targets = append(x, append(row, 1)), append(targets, target)
	}
	return x, targets
}

// TestLedoitWolf compares the covariance with a plain computation of its formula.
func TestLedoitWolf(t *testing.T) {
	const rows, labels = 40, 3
	s := num.NewStream(num.NewKey(3, "test"), 0, 0)
	moments := make([]float64, momentSums(labels))
	var all [][]float64
	for range rows {
		e := []float64{s.Normal() + 0.3, 0.2 * s.Normal(), 0}
		e[2] = 0.5*e[0] + 0.1*s.Normal()
		all = append(all, e)
		addMoments(moments, e, 1)
	}
	mean := make([]float64, labels)
	for _, e := range all {
		for c := range e {
			mean[c] += e[c] / rows
		}
	}
	var cov [labels][labels]float64
	fourth, mu := 0.0, 0.0
	for _, e := range all {
		square := 0.0
		for c := range e {
			square += (e[c] - mean[c]) * (e[c] - mean[c])
			for k := range e {
				cov[c][k] += (e[c] - mean[c]) * (e[k] - mean[k]) / rows
			}
		}
		fourth += square * square / rows
	}
	for c := range labels {
		mu += cov[c][c] / labels
	}
	norm, off := 0.0, 0.0
	for c := range labels {
		for k := range labels {
			norm += cov[c][k] * cov[c][k]
			if c == k {
				off += (cov[c][k] - mu) * (cov[c][k] - mu)
			} else {
				off += cov[c][k] * cov[c][k]
			}
		}
	}
	b := math.Min(1, (fourth-norm)/(rows*off))
	got := ledoitWolf(moments, rows, labels)
	for c := range labels {
		for k := range labels {
			want := (1 - b) * cov[c][k]
			if c == k {
				want += b * mu
			}
			if math.Abs(got.At(c, k)-want) > 1e-12 {
				t.Errorf("C[%d][%d] is %v, want %v", c, k, got.At(c, k), want)
			}
		}
	}
	metric := mixed(moments, rows, labels, 0.4)
	for c := range labels { // (Ω - 0.6·I)·C = 0.4·I
		for k := range labels {
			sum, want := 0.0, 0.0
			for l := range labels {
				x := metric[c*labels+l]
				if c == l {
					x -= 0.6
				}
				sum += x * got.At(l, k)
			}
			if c == k {
				want = 0.4
			}
			if math.Abs(sum-want) > 1e-12 {
				t.Errorf("element %d, %d of the product is %v, want %v", c, k, sum, want)
			}
		}
	}
}
