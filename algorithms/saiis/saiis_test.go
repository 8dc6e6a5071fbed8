package saiis

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// cases are small jobs.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(8)}},
	{Name: "auto", Set: param.Values{"iterations": int64(12), "validation_interval": int64(3), "patience": int64(2)}},
	{Name: "minmax", Set: param.Values{"iterations": int64(8), "scaling": "minmax", "validation_fraction": 0.0,
		"newton_steps": int64(2)}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, New(), contract.Sets(cases)...)
}

// problem builds generated rows, whose features have both signs and differ in size.
func problem(t testing.TB, density float64) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 200, Features: 16, Labels: 4, Density: density, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	for _, rows := range shards {
		for i := range rows.X {
			column := i % m.Features
			if m.Sparse {
				column = int(rows.Index[i])
			}
			rows.X[i] *= []float32{1, 3, -0.125, 5, -0.5}[column%5]
		}
	}
	return m, shards
}

// job returns a job of the algorithm and its data.
func job(t testing.TB, a algorithms.Algorithm, m *dataset.Manifest, shards []*dataset.Rows,
	given param.Values) func(lanes int, each func(algorithms.Trainer) algorithms.Trainer) algorithms.Trainer {
	t.Helper()
	j := contract.Job(t, a, given, m, dataset.Split{Seed: 5, TestFraction: 0.1})
	d := datatest.Data(t, m, shards, j.Split, nil)
	return func(lanes int, each func(algorithms.Trainer) algorithms.Trainer) algorithms.Trainer {
		return contract.Train(t, a, j, d, lanes, each)
	}
}

// TestGoldenDigests pins the bits of small jobs, on one lane and on many, and cut after every round.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{
		"paper":         "f02271fb063d53a7fd6a14e58abe178df6e0e810c05829e3689e642184d8a8a1",
		"auto":          "536a26f6f21f4d0942195d9045b8994773055321e533d340fd321ed62e5e552e",
		"minmax":        "d87e5a38c56b8bc11d6368ec1f95323a55e3e8cad01677ccb57715f25df11e0e",
		"paper sparse":  "9fc05eaa831a9d61904d0651a581a721feeec62ae03f040902aa56eec4b28f3a",
		"auto sparse":   "6b17eec809b549e831c90005836592e02686d75fadcd303225bcf9081e2a2db8",
		"minmax sparse": "8883f19d0cced43cb37a42e0bfecd308e356d81161185475e75511ff2cd1b4e8",
	}
	for _, density := range []float64{1, 0.1} {
		m, shards := problem(t, density)
		for _, c := range cases {
			name := c.Name
			if m.Sparse {
				name += " sparse"
			}
			train := job(t, New(), m, shards, c.Set)
			one := contract.Digest(t, New(), train(1, nil))
			if one != want[name] {
				t.Errorf("%q: %q,", name, one)
			}
			if many := contract.Digest(t, New(), train(3, nil)); many != one {
				t.Errorf("%s: on three lanes %s", name, many)
			}
			j := contract.Job(t, New(), c.Set, m, dataset.Split{Seed: 5, TestFraction: 0.1})
			if cut := contract.Digest(t, New(), train(1, contract.Cut(t, New(), j, m))); cut != one {
				t.Errorf("%s: cut after every round %s", name, cut)
			}
		}
	}
}

// falls trains and checks that no iteration raises the loss, which is the training rows' mean K-L. It
// returns the last loss.
func falls(t *testing.T, name string, train func(int,
	func(algorithms.Trainer) algorithms.Trainer) algorithms.Trainer) float64 {
	t.Helper()
	last, step, fell := 0.0, uint64(0), 0
	train(1, func(tr algorithms.Trainer) algorithms.Trainer {
		p := tr.Progress()
		if p.Loss < 0 || p.Step == step && last > 0 {
			return tr
		}
		if last > 0 && p.Loss > last*(1+1e-12) {
			t.Errorf("%s: the loss rises from %v to %v at iteration %d", name, last, p.Loss, p.Step)
		}
		if p.Loss < last {
			fell++
		}
		last, step = p.Loss, p.Step
		return tr
	})
	if fell < 5 {
		t.Errorf("%s: the loss falls %d times only", name, fell)
	}
	return last
}

// TestLossNeverRises: whatever the scaling, the signs and the number of Newton steps, with which roots
// are found or not.
func TestLossNeverRises(t *testing.T) {
	iterations := int64(40)
	if testkit.Race {
		iterations = 10
	}
	for _, density := range []float64{1, 0.1} {
		m, shards := problem(t, density)
		for _, given := range []param.Values{
			{"preset": "paper"}, {"scaling": "minmax"}, {"scaling": "standard"}, {"scaling": "none", "bias": true},
			{"preset": "paper", "tolerance": 0.0},
			{"preset": "paper", "newton_steps": int64(1)}, {"scaling": "standard", "newton_steps": int64(2), "tolerance": 1e-12},
		} {
			given["iterations"], given["validation_fraction"] = iterations, 0.0
			falls(t, fmt.Sprint(m.Sparse, given), job(t, New(), m, shards, given))
		}
	}
}

// TestYeast: on Yeast_spo5 too the loss never rises, and preset paper ends with a cross-entropy that is
// within 1 % of SA-BFGS's.
func TestYeast(t *testing.T) {
	if testkit.Race || testing.Short() {
		t.Skip("takes seconds: not with -short or -race")
	}
	m, shards := datatest.Shared(t, "Yeast_spo5.mat")
	paper := param.Values{"preset": "paper"}
	kl := falls(t, "Yeast_spo5", job(t, New(), m, shards, paper))
	best := job(t, sabfgs.New(), m, shards, paper)(1, nil).(*maxent.Trainer).Loss
	entropy := 0.0
	d := datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.1}, nil)
	w := newTwin(d, &Config{})
	for _, label := range w.d {
		entropy -= negentropy(label) / float64(len(w.d))
	}
	t.Logf("K-L %.6f, SA-BFGS %.6f; cross-entropy %.6f, SA-BFGS %.6f", kl, best, kl+entropy, best+entropy)
	if ratio := (kl + entropy) / (best + entropy); ratio > 1.01 || ratio < 1-1e-9 {
		t.Errorf("the cross-entropy is %v of SA-BFGS's", ratio)
	}
}

// TestPresets: what follows from the data.
func TestPresets(t *testing.T) {
	dense := &dataset.Manifest{Rows: 213, Features: 243, Labels: 6, NonZeros: 213 * 243}
	sparse := &dataset.Manifest{Rows: 7755, Features: 1869, Labels: 5, NonZeros: 7755 * 21, Sparse: true}
	shared := maxent.Settings{Preset: "auto", Bias: true, Scaling: "standard", Iterations: 400, ValidationFraction: 0.1,
		ValidationInterval: 10, Patience: 5}
	raw, paper := shared, shared
	raw.Scaling = "none"
	paper.Preset, paper.Bias, paper.Scaling, paper.ValidationFraction, paper.Iterations = "paper", false, "none", 0, 200
	for _, x := range []struct {
		name  string
		given param.Values
		m     *dataset.Manifest
		want  Config
	}{
		{"auto, dense", nil, dense, Config{shared, 6, 1e-6}},
		{"auto, sparse", nil, sparse, Config{raw, 6, 1e-6}},
		{"paper", param.Values{"preset": "paper"}, dense, Config{paper, 6, 1e-6}},
	} {
		r, err := New().Resolve(x.given, x.m)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := settings.Parse(r.Params); err != nil || *c != x.want {
			t.Errorf("%s: %+v, want %+v, error %v", x.name, *c, x.want, err)
		}
	}
}
