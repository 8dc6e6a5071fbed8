package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// inUnits is a source of targets: degrees in other units, the first label from -50 to 50.
type inUnits struct {
	dataset.Source
	bounds *dataset.Bounds
}

// Info implements dataset.Source.
func (s inUnits) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType = dataset.LabelType{Bounds: s.bounds}
	return info
}

// Scan implements dataset.Source.
func (s inUnits) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		r.Labels[0] = 100*r.Labels[0] - 50
		r.Labels[1] += 7
		return f(r)
	})
}

// targets is a job of an algorithm on targets.
func targets(t testing.TB, algorithm string, given *dataset.Bounds, split dataset.Split) *work {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 260, Features: 5, Labels: 3, Density: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, inUnits{src, given})
	a, err := registry.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &work{
		job: &round.Job{Algorithm: algorithm, Numerics: round.Numerics, Seed: 5, Dataset: m.Digest(), Split: split,
			Folds: split.Folds, Params: r.Params, Predictions: 1 << 20, Bounds: m.LabelType.Bounds},
		data: &local.Data{Manifest: m, Shards: shards},
	}
}

// none are bounds of the training samples.
func none() *dataset.Bounds { return &dataset.Bounds{} }

// provenanceOf returns the provenance of a model file.
func provenanceOf(t *testing.T, model []byte) *pipeline.Provenance {
	t.Helper()
	f, err := modelfile.Decode(model)
	if err != nil {
		t.Fatal(err)
	}
	p := new(pipeline.Provenance)
	if err := json.Unmarshal(f.Provenance, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBoundsOfTraining: without bounds, they are the extremes of all samples that are not tested, of each fold alone.
// Predictions stay within them, and the true targets of test samples may lie outside.
func TestBoundsOfTraining(t *testing.T) {
	for _, fold := range []int{0, 1} {
		w := targets(t, "gld-knn", none(), dataset.Split{Seed: 5, Folds: 3, Fold: fold})
		w.job.Folds = 0
		o := w.run(t, w.job)
		d := datatest.Data(t, w.data.Manifest, w.data.Shards, w.job.Split, nil)
		want := [2][]float64{{math.Inf(1), math.Inf(1), math.Inf(1)}, {math.Inf(-1), math.Inf(-1), math.Inf(-1)}}
		for _, ref := range d.Select(0, len(w.data.Shards), dataset.Train|dataset.Validation) {
			for c, q := range d.Shard(int(ref.Shard)).Label(int(ref.Pos)) {
				want[0][c], want[1][c] = min(want[0][c], float64(q)), max(want[1][c], float64(q))
			}
		}
		got := provenanceOf(t, o.Model).LabelType.Bounds
		if !slices.Equal(got.Low, want[0]) || !slices.Equal(got.High, want[1]) {
			t.Errorf("fold %d: bounds %v, want %v", fold, got, want)
		}
		set, err := predictions.Decode(o.Predictions)
		if err != nil || set.Type.Bounds == nil {
			t.Fatalf("predictions of %+v, error %v", set, err)
		}
		mae := 0.0
		for i := range set.Row {
			for c, p := range set.PredictedOf(i) {
				if float64(p) < got.Low[c] || float64(p) > got.High[c] {
					t.Errorf("sample %d: target %d is %v, outside the bounds", i, c, p)
				}
				mae += math.Abs(float64(p)-float64(set.TruthOf(i)[c])) / float64(3*len(set.Row))
			}
		}
		if x := o.Added.Model.Targets.MAE.Mean; math.Abs(x-mae) > 1e-9*mae {
			t.Errorf("MAE %v, want %v", x, mae)
		}
	}
}

// TestGivenBounds: given bounds are the model's, and a job must have the bounds of its dataset.
func TestGivenBounds(t *testing.T) {
	given := &dataset.Bounds{Low: []float64{-60}, High: []float64{60}}
	w := targets(t, "gld-bfgs", given, dataset.Split{Seed: 5, TestFraction: 0.2})
	o := w.run(t, w.job)
	if got := provenanceOf(t, o.Model).LabelType.Bounds; !slices.Equal(got.Low, []float64{-60, -60, -60}) {
		t.Errorf("bounds %v", got)
	}
	wrong := *w.job
	wrong.Bounds = none()
	if _, err := pipeline.New(&wrong, w.data.Manifest, nil); err == nil {
		t.Error("a job with other bounds is accepted")
	}
}

// TestBoundsAreCut: a job that is cut after any round ends with the same model, on any number of lanes.
func TestBoundsAreCut(t *testing.T) {
	for _, algorithm := range []string{"gld-bfgs", "structrf"} {
		w := targets(t, algorithm, none(), dataset.Split{Seed: 5, TestFraction: 0.2})
		if algorithm == "structrf" {
			w.job.Params = bytes.Replace(w.job.Params, []byte(`"trees":200`), []byte(`"trees":3`), 1)
		}
		var states [][]byte
		o := w.drive(t, nil, 0, func(state []byte, _ string) { states = append(states, bytes.Clone(state)) })
		for _, lanes := range []int{1, 2, 5} {
			if again := w.runWith(t, w.job, local.Options{Lanes: lanes}); again.ModelDigest != o.ModelDigest {
				t.Errorf("%s: on %d lanes the digest is %s, want %s", algorithm, lanes, again.ModelDigest, o.ModelDigest)
			}
		}
		for n, state := range states {
			if n > 4 && n%9 != 0 && n < len(states)-4 {
				continue
			}
			if again := w.drive(t, state, uint64(n+1), ignore); again.ModelDigest != o.ModelDigest ||
				!bytes.Equal(again.Predictions, o.Predictions) || again.Measures != o.Measures {
				t.Errorf("%s: cut after round %d, the outcome differs", algorithm, n)
			}
		}
		damaged := bytes.Clone(states[2])
		for i := range damaged[:120] {
			damaged[i] ^= 0x7f
		}
		if _, err := pipeline.New(w.job, w.data.Manifest, damaged); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: a damaged state: error %v", algorithm, err)
		}
	}
}

// TestConstantTarget: a target that is the same in all training samples is refused by its name.
func TestConstantTarget(t *testing.T) {
	w := targets(t, "gld-knn", none(), dataset.Split{Seed: 5, TestFraction: 0.2})
	w.data.Manifest.LabelNames = []string{"a", "b", "c"}
	for _, r := range w.data.Shards {
		for i := range r.N {
			r.Label(i)[1] = 4
		}
	}
	_, err := local.Run(t.Context(), w.job, w.data, local.Options{})
	if err == nil || !strings.Contains(err.Error(), `label 1 "b"`) || !strings.Contains(err.Error(), "the target is 4 in all training samples") {
		t.Errorf("error %v", err)
	}
}

// TestWhoReadsTargets: algorithms that cannot learn targets are refused with the names of the others, and the other way
// round.
func TestWhoReadsTargets(t *testing.T) {
	bounded := dataset.LabelType{Bounds: none()}
	for _, a := range registry.All() {
		_, err := pipeline.PlanOf(a.Name(), 3, bounded)
		if reads := registry.ReadsTargets(a); reads != (err == nil) {
			t.Errorf("%s: reads targets %v, error %v", a.Name(), reads, err)
		} else if err != nil && !strings.Contains(err.Error(), "gld-bfgs") {
			t.Errorf("%s: the error names no other algorithm: %v", a.Name(), err)
		}
		if _, err := pipeline.PlanOf(a.Name(), 3, dataset.LabelType{}); a.Predicts() == algorithms.Targets && (err == nil ||
			!strings.Contains(err.Error(), "--labels bounded")) {
			t.Errorf("%s on distributions: error %v", a.Name(), err)
		}
	}
}

// TestTargetsOverFolds: a job of folds has the means of the folds' errors.
func TestTargetsOverFolds(t *testing.T) {
	w := targets(t, "aa-knn", none(), dataset.Split{Seed: 5, Folds: 3})
	o := w.run(t, w.job)
	mean := 0.0
	for _, f := range o.Folds {
		mean += f.Added.Model.Targets.R2.Mean / 3
	}
	if got := o.Added.Model.Targets; math.Abs(got.R2.Mean-mean) > 1e-12 || len(got.Labels) != 3 {
		t.Errorf("R² %v over folds, want %v; %d labels", got.R2.Mean, mean, len(got.Labels))
	}
}
