package engine

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// forest is a real job: LDLF with early stopping on the artificial set.
type forest struct {
	job    *round.Job
	data   *dataset.Data
	kernel round.Kernel
}

func newForest(t *testing.T) *forest {
	t.Helper()
	m, shards := datatest.Build(t, generate.Artificial(600, 3))
	a := ldlf.New()
	resolved, err := a.Resolve(param.Values{
		"trees": int64(2), "depth": int64(4), "outputs": int64(9), "leaf_batches": int64(8), "leaf_iterations": int64(3),
		"steps": int64(40),
	}, m)
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{job: &round.Job{
		Algorithm: a.Name(), Numerics: round.Numerics, Seed: 5, Dataset: m.Digest(), Params: resolved.Params,
		Split: dataset.Split{Seed: 5, TestFraction: 0.1, ValidationFraction: resolved.ValidationFraction,
			ValidationMin: resolved.ValidationMin},
	}}
	f.data = datatest.Data(t, m, shards, f.job.Split, nil)
	if f.kernel, err = a.NewKernel(f.job, m); err != nil {
		t.Fatal(err)
	}
	return f
}

// grow drives the job from a state (nil: its beginning) to its end.
func (f *forest) grow(t *testing.T, lanes int, state []byte, from uint64, observe Observer) (digest string) {
	t.Helper()
	tr, err := ldlf.New().NewTrainer(f.job, f.data.Manifest, state)
	if err != nil {
		t.Fatal(err)
	}
	if err := Drive(t.Context(), tr, from, NewLocal(f.kernel, f.data, lanes, nil), observe); err != nil {
		t.Fatal(err)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return modelfile.Digest(ldlf.Name, m.Tensors())
}

// TestForestIsTheSame whatever the slots are, and from the state after any round.
func TestForestIsTheSame(t *testing.T) {
	f := newForest(t)
	var states [][]byte
	want := f.grow(t, 1, nil, 0, func(_ uint64, tr round.Trainer) error {
		state, err := tr.AppendState(nil)
		states = append(states, state)
		return err
	})
	for _, lanes := range []int{2, 5} {
		if got := f.grow(t, lanes, nil, 0, ignore); got != want {
			t.Errorf("%d lanes: digest %s, want %s", lanes, got, want)
		}
	}
	for i, state := range states {
		if got := f.grow(t, i%3+1, state, uint64(i+1), ignore); got != want {
			t.Errorf("from round %d: digest %s, want %s", i+1, got, want)
		}
	}
	f.job.Seed++
	if f.grow(t, 1, nil, 0, ignore) == want {
		t.Error("another seed gives the same digest")
	}
}
