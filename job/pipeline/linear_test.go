package pipeline_test

import (
	"context"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/google/go-cmp/cmp"
)

// withLinear is a copy of a job with a linear baseline.
func withLinear(w *work, samples int) *work {
	j := *w.job
	j.LinearSamples = samples
	return &work{job: &j, data: w.data}
}

// linearByHand fits the linear baseline of a job with the trainer and the kernel of sa-bfgs, and returns its measures
// on the test samples, and the K-L divergence of each of them.
func linearByHand(t *testing.T, w *work) (r measures.Report, kl []float64) {
	t.Helper()
	m := w.data.Manifest
	a := sabfgs.New()
	set, err := a.Resolve(param.Values{"iterations": int64(30), "decay": "fixed", "l2": 0.0, "validation_fraction": 0.0},
		m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: sabfgs.Name, Numerics: round.Numerics, Dataset: m.Digest(), Params: set.Params}
	all := datatest.Data(t, m, w.data.Shards, w.job.Split, nil)
	tr, err := a.NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	sample := all.Sample(w.job.LinearSamples, num.NewKey(w.job.Split.Seed, "linear baseline"))
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, sample, 1, nil),
		func(uint64, round.Trainer) error {
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	predicted, scratch := make([]float32, m.Labels), model.NewScratch()
	var rows []measures.Row
	for _, ref := range all.Select(0, len(m.Shards), dataset.Test) {
		model.Predict(predicted, []dataset.RowRef{ref}, func(s uint32) *dataset.Rows { return all.Shard(int(s)) }, scratch)
		row := measures.OfRow(all.Shard(int(ref.Shard)).Label(int(ref.Pos)), predicted)
		rows, kl = append(rows, row), append(kl, row[0])
	}
	return average(rows), kl
}

// TestLinearBaseline: the linear baseline is what sa-bfgs fits to the sample by hand. All else of the outcome is as
// without it.
func TestLinearBaseline(t *testing.T) {
	for name, w := range map[string]*work{
		"dense": withLinear(artificial(t), 100), "sparse": withLinear(sparse(t), 100),
		"all samples": withLinear(artificial(t), 1000),
		"forest":      withLinear(forestOf(t, "structrf"), 100),
	} {
		o := w.run(t, w.job)
		b := o.Linear
		if b == nil {
			t.Fatalf("%s: no linear baseline", name)
		}
		want, _ := linearByHand(t, w)
		near(t, name, want, b.Measures)
		if n := min(w.job.LinearSamples, o.Rows.Train); b.Samples != n {
			t.Errorf("%s: fitted to %d samples, want %d", name, b.Samples, n)
		}
		if d := o.Measures[0].Mean - want[0].Mean; math.Abs(b.Difference.Mean-d) > 1e-12 {
			t.Errorf("%s: the difference is %v, want %v", name, b.Difference.Mean, d)
		}
		if better := b.Difference.Mean > 2*b.Difference.Std/math.Sqrt(float64(o.Rows.Test)); b.Better != better {
			t.Errorf("%s: better is %v at %+v", name, b.Better, b.Difference)
		}
		plain := withLinear(w, 0)
		bare := plain.run(t, plain.job)
		o.Linear, o.Model = nil, bare.Model // the model file has the linear baseline
		if diff := cmp.Diff(bare, o); diff != "" {
			t.Errorf("%s (-without +with):\n%s", name, diff)
		}
		for lanes := range 3 {
			x, err := local.Run(t.Context(), w.job, w.data, local.Options{Lanes: lanes + 1})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b, x.Linear); diff != "" {
				t.Errorf("%s: on %d lanes (-want +got):\n%s", name, lanes+1, diff)
			}
		}
	}
}

// TestLinearDifference: the standard deviation is of the differences of the test samples, and a model that is far worse
// than linear is reported.
func TestLinearDifference(t *testing.T) {
	w := withLinear(artificial(t), 150)
	a, err := registry.Find("rf")
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(param.Values{"trees": int64(1), "max_depth": int64(1)}, w.data.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	w.job.Algorithm, w.job.Params, w.job.Split.ValidationFraction, w.job.Split.ValidationMin = "rf", r.Params, 0, 0
	o := w.run(t, w.job)
	_, linear := linearByHand(t, w)
	_, model, err := registry.Model(o.Model)
	if err != nil {
		t.Fatal(err)
	}
	d := datatest.Data(t, w.data.Manifest, w.data.Shards, w.job.Split, nil)
	predicted, scratch := make([]float32, w.data.Manifest.Labels), model.NewScratch()
	var differences []float64
	for i, ref := range d.Select(0, len(w.data.Manifest.Shards), dataset.Test) {
		model.Predict(predicted, []dataset.RowRef{ref}, func(s uint32) *dataset.Rows { return d.Shard(int(s)) }, scratch)
		row := measures.OfRow(d.Shard(int(ref.Shard)).Label(int(ref.Pos)), predicted)
		differences = append(differences, row[0]-linear[i])
	}
	want, got := measures.StatOver(differences), o.Linear.Difference
	if math.Abs(want.Mean-got.Mean) > 1e-12 || math.Abs(want.Std-got.Std) > 1e-9 || !o.Linear.Better {
		t.Errorf("%+v, want the difference %+v", o.Linear, want)
	}
}

// TestLinearSamples: which jobs have a linear baseline, and of how many samples.
func TestLinearSamples(t *testing.T) {
	m := func(rows, features, labels int) *dataset.Manifest {
		return &dataset.Manifest{Rows: rows, Features: features, Labels: labels, NonZeros: int64(rows) * int64(features)}
	}
	tested := dataset.Split{TestFraction: 0.1}
	for _, x := range []struct {
		name      string
		algorithm string
		split     dataset.Split
		m         *dataset.Manifest
		want      int
	}{
		{"large", "ldlf", tested, m(50_000, 50, 10), 20_000},
		{"at the bound", "ldlf", dataset.Split{TestFraction: 0.5}, m(40_000, 50, 10), 20_000},
		{"below the bound", "ldlf", dataset.Split{TestFraction: 0.5}, m(39_998, 50, 10), 0},
		{"with validation samples", "ldlf", dataset.Split{TestFraction: 0.5, ValidationFraction: 0.1},
			m(40_000, 50, 10), 20_000},
		{"no test samples", "ldlf", dataset.Split{}, m(50_000, 50, 10), 0},
		{"folds", "ldlf", dataset.Split{Folds: 5}, m(50_000, 50, 10), 0},
		{"many labels", "structrf", tested, m(50_000, 199, 70), 7142},
		{"too many weights", "structrf", tested, m(50_000, 400, 70), 0},
		{"sparse", "structrf", tested, &dataset.Manifest{Rows: 50_000, Features: 4000, Labels: 5, NonZeros: 50_000 * 40,
			Sparse: true}, 20_000},
		{"sparse, too many weights", "structrf", tested, &dataset.Manifest{Rows: 50_000, Features: 40_000, Labels: 5,
			NonZeros: 50_000 * 40, Sparse: true}, 0},
		{"sa-bfgs", "sa-bfgs", tested, m(50_000, 50, 10), 0},
		{"sa-iis", "sa-iis", tested, m(50_000, 50, 10), 0},
		{"ldl-ldm", "ldl-ldm", tested, m(50_000, 50, 10), 0},
		{"a number", "mlp-regression", tested, m(50_000, 50, 10), 0},
	} {
		if got := pipeline.LinearSamples(&round.Job{Algorithm: x.algorithm, Split: x.split}, x.m); got != x.want {
			t.Errorf("%s: %d samples, want %d", x.name, got, x.want)
		}
	}
}

// TestLinearWithoutTest: without test samples there is nothing to compare.
func TestLinearWithoutTest(t *testing.T) {
	w := withLinear(newWork(t, generate.Artificial(200, 3), dataset.Split{Seed: 5}), 50)
	if o := w.run(t, w.job); o.Linear != nil {
		t.Errorf("a linear baseline without test samples: %+v", o.Linear)
	}
}

// TestLinearVersions: no value of the fit has the number and the version of another value, and versions of derived
// values grow.
func TestLinearVersions(t *testing.T) {
	w := withLinear(artificial(t), 100)
	m := w.data.Manifest
	tr, err := pipeline.New(w.job, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pipeline.NewKernel(w.job, m)
	if err != nil {
		t.Fatal(err)
	}
	type version struct {
		id uint16
		of uint64
	}
	values, derived := make(map[version]string), uint64(0)
	x := engine.NewLocal(k, datatest.Data(t, m, w.data.Shards, w.job.Split, nil), 1, nil)
	for n := uint64(0); ; n++ {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return
		}
		for _, v := range r.Vars {
			of := version{id: v.ID, of: v.Version}
			if before, ok := values[of]; ok && before != string(v.Data) {
				t.Fatalf("round %d (%s): value %d has two contents with version %d", n, r.Kind, v.ID, v.Version)
			}
			values[of] = string(v.Data)
		}
		version := r.Task(0).DerivedVersion
		if version > 0 && version < derived {
			t.Fatalf("round %d (%s): version %d of derived values after %d", n, r.Kind, version, derived)
		}
		derived = max(derived, version)
		var res round.Result
		if err := x.Do(t.Context(), n, r, &res); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&res); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubJobsHaveNoLinearBaseline: the members of an ensemble have none, and the ensemble has one.
func TestSubJobsHaveNoLinearBaseline(t *testing.T) {
	w := withLinear(artificial(t), 100)
	a, err := registry.Find("ensemble")
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(nil, w.data.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	w.job.Algorithm, w.job.Params = "ensemble", r.Params
	child, err := pipeline.SubJobOf(w.job, w.data.Manifest, 0)
	if err != nil {
		t.Fatal(err)
	}
	if child.LinearSamples != 0 {
		t.Errorf("a member has a linear baseline of %d samples", child.LinearSamples)
	}
}
