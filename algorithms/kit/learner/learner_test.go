package learner_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// jobOf resolves settings into a job.
func jobOf(t *testing.T, a algorithms.Algorithm, given param.Values, m *dataset.Manifest) *round.Job {
	t.Helper()
	r, err := a.Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Params: r.Params}
}

func trainerOf(t *testing.T, a algorithms.Algorithm, j *round.Job, m *dataset.Manifest,
	state []byte) algorithms.Trainer {
	t.Helper()
	tr, err := a.NewTrainer(j, m, state)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestNearestMean trains, cuts and restores the algorithm of this folder's tests, and decodes
// its model.
func TestNearestMean(t *testing.T) {
	a := nearestMean()
	m, shards := datatest.Artificial(t, 400)
	d := datatest.Data(t, m, shards, dataset.Split{}, nil)
	j := jobOf(t, a, param.Values{"shrink": 0.25}, m)
	if string(j.Params) != `{"shrink":0.25}` {
		t.Errorf("settings %s", j.Params)
	}
	k, err := a.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainerOf(t, a, j, m, nil)
	if _, err := tr.Model(); err == nil {
		t.Error("there is a model before the round")
	}
	if err := engine.Drive(t.Context(), tr, 0, engine.NewLocal(k, d, 2, nil), func(uint64, round.Trainer) error {
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	state, err := tr.AppendState([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	state = state[len("before"):]
	again := trainerOf(t, a, j, m, state)
	if second, err := again.AppendState(nil); err != nil || !bytes.Equal(state, second) ||
		again.Progress() != tr.Progress() || again.Counters() != nil {
		t.Errorf("a restored trainer is another (%v)", err)
	}
	for n := range state {
		if _, err := a.NewTrainer(j, m, state[:n]); !errors.Is(err, fields.ErrState) ||
			!strings.HasPrefix(err.Error(), "nearest-mean: ") {
			t.Fatalf("%d bytes of a state: error %v", n, err)
		}
	}
	first, err := again.Model()
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, a, first, d)
}

// checkModel predicts the rows with a model and with the one decoded from its tensors.
func checkModel(t *testing.T, a algorithms.Algorithm, first algorithms.Model, d *dataset.Data) {
	t.Helper()
	file, _ := modelfile.Encode(a.Name(), first.Tensors(), nil)
	f, err := modelfile.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.DecodeModel(f.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
	labels := d.Manifest.Labels
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	p, q := make([]float32, len(refs)*labels), make([]float32, len(refs)*labels)
	first.Predict(p, refs, shard, first.NewScratch())
	second.Predict(q, refs, shard, second.NewScratch())
	if !slices.Equal(p, q) {
		t.Error("a decoded model predicts something else")
	}
	right := 0
	for i, ref := range refs {
		label := shard(ref.Shard).Label(int(ref.Pos))
		if p[i*labels+slices.Index(label, slices.Max(label))] == 1 {
			right++
		}
	}
	if right < len(refs)/2 {
		t.Errorf("%d of %d rows have their label", right, len(refs))
	}
}

// TestModelsAreRefused: tensors that are bent in one way each.
func TestModelsAreRefused(t *testing.T) {
	a := nearestMean()
	for want, bend := range map[string]func([]algorithms.Tensor) []algorithms.Tensor{
		`the tensor "settings" is missing`: func([]algorithms.Tensor) []algorithms.Tensor {
			return nil
		},
		`the tensor "means" is missing`: func(v []algorithms.Tensor) []algorithms.Tensor {
			return v[:1]
		},
		"the model has 3 tensors, 1 more than expected": func(v []algorithms.Tensor) []algorithms.Tensor {
			return append(v, v[0])
		},
		"the model has format 2, but this version reads format 1": func(v []algorithms.Tensor) []algorithms.Tensor {
			v[0].U32[0] = 2
			return v
		},
		"settings [1 0 2] are out of": func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[1] = 0; return v },
		`found tensor "mean" of shape [2 3], want "means" of shape [2 3]`: func(v []algorithms.Tensor) []algorithms.Tensor {
			v[1].Name = "mean"
			return v
		},
		`want "means" of shape [2 4]`: func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[1] = 4; return v },
		`tensor "means" must have 6 values`: func(v []algorithms.Tensor) []algorithms.Tensor {
			v[1].F32 = v[1].F32[:5]
			return v
		},
		`"means" must have 6 values`: func(v []algorithms.Tensor) []algorithms.Tensor {
			v[1].F64 = make([]float64, 1)
			return v
		},
	} {
		m := &model{features: 3, labels: 2, means: make([]float32, 6)}
		_, err := a.DecodeModel(bend(m.Tensors()))
		if !errors.Is(err, learner.ErrModel) || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "nearest-mean: ") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestHugeShapes: a shape of more values than there are numbers is refused, not computed.
func TestHugeShapes(t *testing.T) {
	var v []float32
	err := learner.ReadTensors([]algorithms.Tensor{{Name: "x", Dims: []int{1 << 62, 4}}}, func(l *learner.Tensors) {
		l.F32("x", &v, 1<<62, 4)
	})
	if err == nil || !strings.Contains(err.Error(), "must have") {
		t.Errorf("error %v", err)
	}
}

// checked is nearest-mean with every check that a definition may have.
func checked() algorithms.Algorithm {
	return learner.Define(learner.Definition[config]{
		Name: "checked", Settings: settings,
		Fill: func(c *config, given param.Values, m *dataset.Manifest) {
			if !given.Has("shrink") {
				c.Shrink = 1 / float64(m.Rows)
			}
		},
		Check: func(c *config) error {
			if c.Shrink == 0.5 {
				return param.Errorf("shrink", "is 0.5")
			}
			return nil
		},
		Fits: func(_ *config, m *dataset.Manifest) error {
			if m.Features == 1 {
				return param.Errorf("shrink", "one feature")
			}
			return nil
		},
		Validation: func(c *config) (float64, int) { return c.Shrink / 2, 20 },
		Kernel:     func(*learner.Job[config]) (round.Kernel, error) { return kernel{}, nil },
		Memory: func(c *config, _ *dataset.Manifest) algorithms.Footprint {
			return algorithms.Footprint{State: int64(8 * c.Shrink)}
		},
	})
}

// TestResolve: settings are filled in, then checked one by one, with one another and against
// the data.
func TestResolve(t *testing.T) {
	a, m := checked(), &dataset.Manifest{Rows: 8, Features: 2, Labels: 2}
	r, err := a.Resolve(nil, m)
	if err != nil || string(r.Params) != `{"shrink":0.125}` || r.ValidationFraction != 0.0625 || r.ValidationMin != 20 {
		t.Errorf("%+v, error %v", r, err)
	}
	r, err = a.Resolve(param.Values{"shrink": 0.0}, m)
	if err != nil || r.ValidationFraction != 0 || r.ValidationMin != 0 {
		t.Errorf("without validation: %+v, error %v", r, err)
	}
	for want, x := range map[string]struct {
		given param.Values
		m     *dataset.Manifest
	}{
		"shrink: 2 is not a number from 0 to 1":        {param.Values{"shrink": 2.0}, m},
		"shrink: is 0.5":                               {param.Values{"shrink": 0.5}, m},
		"shrink: one feature":                          {nil, &dataset.Manifest{Rows: 8, Features: 1, Labels: 2}},
		"depth: checked has no such setting":           {param.Values{"depth": int64(1)}, m},
		"checked: the dataset has no labels to learn":  {nil, &dataset.Manifest{Rows: 8, Features: 2}},
		"shrink: +Inf is not a number from 0 to 1":     {nil, &dataset.Manifest{Features: 2, Labels: 2}},
		"shrink: a string is not a number from 0 to 1": {param.Values{"shrink": "0.5"}, m},
	} {
		if _, err := a.Resolve(x.given, x.m); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestJobsAreChecked: a job comes from a log or from a leader, so its settings are checked
// again.
func TestJobsAreChecked(t *testing.T) {
	a, m := checked(), &dataset.Manifest{Rows: 8, Features: 2, Labels: 2}
	j := func(params string, share float64) *round.Job {
		return &round.Job{Params: []byte(params), Split: dataset.Split{ValidationFraction: share}}
	}
	if _, err := a.NewKernel(j(`{"shrink":0.25}`, 0.125), m); err != nil {
		t.Error(err)
	}
	if f, err := a.Footprint(j(`{"shrink":0.25}`, 0), m); err != nil || f.State != 2 {
		t.Errorf("%+v, error %v", f, err)
	}
	for want, job := range map[string]*round.Job{
		"checked: settings: shrink is missing":               j(`{}`, 0),
		"checked: settings: shrink: 7 is not a number from":  j(`{"shrink":7}`, 3.5),
		"checked: settings: shrink: is 0.5":                  j(`{"shrink":0.5}`, 0.25),
		"checked: the split has the validation fraction 0.2": j(`{"shrink":0.25}`, 0.2),
	} {
		_, errKernel := a.NewKernel(job, m)
		_, errTrainer := a.NewTrainer(job, m, nil)
		for _, err := range []error{errKernel, errTrainer} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
	if _, err := a.NewKernel(j(`{"shrink":0.25}`, 0.125), &dataset.Manifest{}); !errors.Is(err, learner.ErrNoLabels) {
		t.Errorf("no labels: error %v", err)
	}
	if _, err := a.Footprint(j(`[]`, 0), m); err == nil {
		t.Error("an estimate of no settings")
	}
}
