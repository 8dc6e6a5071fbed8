package structrf_test

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// jobOf resolves a job of structrf.
func jobOf(t testing.TB, m *dataset.Manifest, set param.Values) *round.Job {
	t.Helper()
	r, err := structrf.New().Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: structrf.Name, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params}
}

// grow grows a forest on one slot and returns its trainer.
func grow(t testing.TB, j *round.Job, m *dataset.Manifest, d *dataset.Data) algorithms.Trainer {
	t.Helper()
	tr, err := structrf.New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := structrf.New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, 1, nil), none); err != nil {
		t.Fatal(err)
	}
	return tr
}
