package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// withScreen is a copy of a job that is screened.
func withScreen(w *work) *work {
	j := *w.job
	j.Screen = true
	return &work{job: &j, data: w.data}
}

// TestScreening: a screening does not change the model file. Jobs by hand, which train on the training rows of the job
// and test on its validation rows, give the same results.
func TestScreening(t *testing.T) {
	w := artificial(t)
	without := w.run(t, w.job)
	with := w.runWith(t, withScreen(w).job, local.Options{Lanes: 2})
	if !bytes.Equal(without.Model, with.Model) || without.Screening != nil || with.Screening == nil {
		t.Fatalf("the screening changes the model, or is %+v and %+v", without.Screening, with.Screening)
	}
	s := with.Screening
	if s.Samples != with.Rows.Validation || s.Samples == 0 || s.KL <= 0 || s.KL > 2*with.Measures[0].Mean+s.MeanBaseline ||
		len(s.Others) != 2 {
		t.Fatalf("screening %+v of %+v", s, with.Rows)
	}
	m := w.data.Manifest
	for i, values := range []param.Values{{"iterations": int64(100), "refit": false}, {"trees": int64(20)}} {
		a, err := registry.Find([]string{"sa-bfgs", "structrf"}[i])
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Resolve(values, m)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Others[i]; got.Algorithm != a.Name() || got.Samples != with.Rows.Train {
			t.Errorf("screening %+v, want %s on %d samples", got, a.Name(), with.Rows.Train)
		}
		j := *w.job
		j.Algorithm, j.Params = a.Name(), r.Params
		j.Split.Held = dataset.Held{Fraction: w.job.Split.ValidationFraction, Min: w.job.Split.ValidationMin}
		j.Split.ValidationFraction, j.Split.ValidationMin = r.ValidationFraction, r.ValidationMin
		o := w.run(t, &j)
		if o.Measures[0].Mean != s.Others[i].KL || math.Abs(o.MeanPredictor[0].Mean-s.MeanBaseline) > 1e-12 {
			t.Errorf("%s has K-L %v, want %v", a.Name(), s.Others[i].KL, o.Measures[0].Mean)
		}
	}
	if again := w.runWith(t, withScreen(w).job, local.Options{Lanes: 1}); !cmp.Equal(again.Screening, s) {
		t.Errorf("on one lane the screening is %+v, want %+v", again.Screening, s)
	}
}

// TestScreeningOfFolds: the first fold is screened.
func TestScreeningOfFolds(t *testing.T) {
	w := withScreen(folds(t))
	o := w.run(t, w.job)
	if o.ModelDigest != w.run(t, folds(t).job).ModelDigest {
		t.Error("the screening changes the models")
	}
	for f, of := range o.Folds {
		if (of.Screening != nil) != (f == 0) {
			t.Errorf("fold %d has the screening %+v", f, of.Screening)
		}
	}
	if !cmp.Equal(o.Screening, o.Folds[0].Screening) {
		t.Errorf("screening %+v", o.Screening)
	}
}

// TestScreens: jobs that cannot be screened.
func TestScreens(t *testing.T) {
	w := artificial(t)
	if !pipeline.Screens(w.job, w.data.Manifest) {
		t.Fatal("no screening")
	}
	for what, change := range map[string]func(j *round.Job, m *dataset.Manifest){
		"no validation": func(j *round.Job, _ *dataset.Manifest) { j.Split.ValidationFraction = 0 },
		"ensemble":      func(j *round.Job, _ *dataset.Manifest) { j.Algorithm = "ensemble" },
		"numbers":       func(j *round.Job, _ *dataset.Manifest) { j.Algorithm = "quadratic" },
		"enhanced":      func(j *round.Job, _ *dataset.Manifest) { j.Enhance = new(round.Enhance) },
		"masked":        func(j *round.Job, _ *dataset.Manifest) { j.Split.Mask = dataset.Mask{Rate: 0.5} },
		"large":         func(_ *round.Job, m *dataset.Manifest) { m.Rows = 1 << 30 },
		"weighted":      func(_ *round.Job, m *dataset.Manifest) { m.HasWeights = true },
		"few":           func(_ *round.Job, m *dataset.Manifest) { m.Rows = 20 },
		"wide":          func(_ *round.Job, m *dataset.Manifest) { m.Features = 1 << 20 },
	} {
		j, m := *w.job, *w.data.Manifest
		change(&j, &m)
		if pipeline.Screens(&j, &m) {
			t.Error(what + ": a job that cannot be screened is screened")
		}
		if j.Screen = true; what == "no validation" {
			if _, err := pipeline.New(&j, &m, nil); err == nil {
				t.Error("a job that cannot be screened is run")
			}
		}
	}
	for _, unit := range []int{-1, 2} {
		if _, err := pipeline.SubJobOf(withScreen(w).job, w.data.Manifest, unit); err == nil {
			t.Error(fmt.Sprint("there is sub-job ", unit))
		}
	}
}

// TestScreeningThatFails: a small model may need more samples than the job itself, which ends well then. The others are
// compared.
func TestScreeningThatFails(t *testing.T) {
	w := newWork(t, generate.Artificial(100, 3), dataset.Split{Seed: 5, TestFraction: 0.9})
	without := w.run(t, w.job)
	with := w.run(t, withScreen(w).job)
	if !bytes.Equal(without.Model, with.Model) {
		t.Error("the screening changes the model")
	}
	if s := with.Screening; s == nil || len(s.Others) != 1 || s.Others[0].Algorithm != "sa-bfgs" ||
		s.Samples != with.Rows.Validation || s.MeanBaseline <= 0 {
		t.Errorf("screening %+v of %+v", s, with.Rows)
	}
}

// TestScreeningResults: what no screening gives is refused where it is read.
func TestScreeningResults(t *testing.T) {
	w := withScreen(artificial(t))
	m := w.data.Manifest
	for what, change := range map[string]func(o *pipeline.Outcome){
		"negative": func(o *pipeline.Outcome) { o.Rows.Train = -1 },
		"no K-L":   func(o *pipeline.Outcome) { o.Measures[0].Mean = math.NaN() },
	} {
		tr, err := pipeline.New(w.job, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := pipeline.NewKernel(w.job, m)
		if err != nil {
			t.Fatal(err)
		}
		child := func(context.Context, *round.Job) ([]byte, error) {
			o := &pipeline.Outcome{Rows: pipeline.Counts{Train: 1, Test: 1}}
			change(o)
			return o.Encode()
		}
		d := datatest.Data(t, m, w.data.Shards, w.job.Split, nil)
		err = engine.Drive(t.Context(), tr, 0, engine.NewLocal(k, d, 1, child),
			func(uint64, round.Trainer) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "screening by sa-bfgs") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for _, text := range []string{`{"others":[]}`, `{"others":[{"kl":-1}]}`, `{"samples":-1,"others":[{}]}`} {
		if json.Unmarshal([]byte(text), new(pipeline.Screening)) == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestScreeningResumed: a job that goes on from a state before, during or after its screening has the same outcome.
func TestScreeningResumed(t *testing.T) {
	w := withScreen(artificial(t))
	var states [][]byte
	var phases []string
	want := w.drive(t, nil, 0, func(state []byte, phase string) {
		states, phases = append(states, slices.Clone(state)), append(phases, phase)
	})
	if want.Screening == nil {
		t.Fatal("no screening")
	}
	for i := max(0, len(states)-5); i < len(states); i++ {
		o := w.drive(t, states[i], uint64(i+1), ignore)
		if !bytes.Equal(o.Model, want.Model) || !cmp.Equal(o.Screening, want.Screening) {
			t.Errorf("from state %d (%s): screening %+v, want %+v", i, phases[i], o.Screening, want.Screening)
		}
	}
}
