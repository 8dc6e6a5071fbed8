package pipeline_test

import (
	"bytes"
	"context"
	"testing"

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

// work is a small job and its data.
type work struct {
	job  *round.Job
	data *local.Data
}

// settings that train in milliseconds.
func quick() param.Values {
	return param.Values{
		"trees": int64(2), "depth": int64(3), "outputs": int64(4), "leaf_batches": int64(6), "leaf_iterations": int64(2),
		"steps": int64(18),
	}
}

// newWork builds a job on src; split says which rows it tests on.
func newWork(t testing.TB, src dataset.Source, split dataset.Split) *work {
	t.Helper()
	m, shards := datatest.Build(t, src)
	a, err := registry.Find("ldlf")
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := a.Resolve(quick(), m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = resolved.ValidationFraction, resolved.ValidationMin
	return &work{
		job: &round.Job{
			Algorithm: "ldlf", Numerics: round.Numerics, Seed: 5, Dataset: m.Digest(), Split: split, Folds: split.Folds,
			Params:      resolved.Params,
			Predictions: 1 << 20,
		},
		data: &local.Data{Manifest: m, Shards: shards},
	}
}

// artificial is a job on the artificial set that tests on a fifth of its rows.
func artificial(t testing.TB) *work {
	return newWork(t, generate.Artificial(300, 3), dataset.Split{Seed: 5, TestFraction: 0.2})
}

// sparse is a job on a sparse set, with the same split.
func sparse(t testing.TB) *work {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 260, Features: 40, Labels: 4, Density: 0.1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	return newWork(t, src, dataset.Split{Seed: 5, TestFraction: 0.2})
}

// folds is a job of three folds.
func folds(t testing.TB) *work {
	return newWork(t, generate.Artificial(300, 3), dataset.Split{Seed: 5, Folds: 3})
}

// run runs a job by itself.
func (w *work) run(t testing.TB, j *round.Job) *pipeline.Outcome {
	t.Helper()
	return w.runWith(t, j, local.Options{Lanes: 2})
}

func (w *work) runWith(t testing.TB, j *round.Job, options local.Options) *pipeline.Outcome {
	t.Helper()
	o, err := local.Run(context.Background(), j, w.data, options)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// drive runs the job from a state (nil: its beginning) to its end; each is given
// the state after each round and the phase it is in.
func (w *work) drive(t testing.TB, state []byte, from uint64, each func(state []byte, phase string)) *pipeline.Outcome {
	t.Helper()
	m := w.data.Manifest
	d := datatest.Data(t, m, w.data.Shards, w.job.Split, nil)
	tr, err := pipeline.New(w.job, m, state)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pipeline.NewKernel(w.job, m)
	if err != nil {
		t.Fatal(err)
	}
	child := func(_ context.Context, j *round.Job) ([]byte, error) { return w.run(t, j).Encode() }
	err = engine.Drive(context.Background(), tr, from, engine.NewLocal(k, d, 1, child),
		func(_ uint64, tr round.Trainer) error {
			state, err := tr.AppendState([]byte("before"))
			each(bytes.TrimPrefix(state, []byte("before")), tr.Progress().Phase)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	o, err := tr.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ignore([]byte, string) {}
