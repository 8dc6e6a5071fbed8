package boost_test

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aosoldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/ldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/round"
)

// both are the algorithms of the package.
var both = []algorithms.Algorithm{ldlogitboost.New(), aosoldlogitboost.New()}

// jobOf resolves a job without validation rows, unless set or split say otherwise.
func jobOf(t testing.TB, a algorithms.Algorithm, m *dataset.Manifest, set param.Values, split dataset.Split) *round.Job {
	t.Helper()
	r, err := a.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params, Split: split}
}

// train trains on some lanes and returns the trainer.
func train(t testing.TB, a algorithms.Algorithm, j *round.Job, d *dataset.Data, lanes int) algorithms.Trainer {
	t.Helper()
	tr, err := a.NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, lanes, nil), none); err != nil {
		t.Fatal(err)
	}
	return tr
}
