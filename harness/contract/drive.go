package contract

import (
	"bytes"
	"maps"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Sets returns the settings of cases.
func Sets(cases []Case) (sets []param.Values) {
	for _, c := range cases {
		sets = append(sets, c.Set)
	}
	return sets
}

// Job resolves settings into a job; its split also keeps the validation rows that the settings
// ask for.
func Job(t testing.TB, a algorithms.Algorithm, given param.Values, m *dataset.Manifest,
	split dataset.Split) *round.Job {
	t.Helper()
	r, err := a.Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Split: split,
		Params: r.Params, Bounds: m.LabelType.Bounds}
}

// Train runs a job to its end on so many lanes. each, which may be nil, sees the trainer after every
// round and returns the one that goes on.
func Train(t testing.TB, a algorithms.Algorithm, j *round.Job, d *dataset.Data, lanes int,
	each func(algorithms.Trainer) algorithms.Trainer) algorithms.Trainer {
	t.Helper()
	tr, err := a.NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	x := engine.NewLocal(k, d, lanes, subJobs(d))
	var res round.Result
	for n := uint64(0); ; n++ {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return tr
		}
		if err := x.Do(t.Context(), n, r, &res); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&res); err != nil {
			t.Fatal(err)
		}
		if each != nil {
			tr = each(tr)
		}
	}
}

// Cut returns a function for Train that goes on with a new trainer, restored from the state of the
// last, after every round.
func Cut(t testing.TB, a algorithms.Algorithm, j *round.Job,
	m *dataset.Manifest) func(algorithms.Trainer) algorithms.Trainer {
	return func(tr algorithms.Trainer) algorithms.Trainer {
		t.Helper()
		state, err := tr.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		next, err := a.NewTrainer(j, m, bytes.Clone(state))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
}

// Digest returns the digest of a trained model.
func Digest(t testing.TB, a algorithms.Algorithm, tr algorithms.Trainer) string {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return modelfile.Digest(a.Name(), m.Tensors())
}

// CheckRefit trains by run with early stopping and a refit, and then by itself what the refit repeats: without
// validation, by as many iterations as were best. Both train on the same rows, so that their models have the same bits.
// The settings end no search before its last iteration.
func CheckRefit(t testing.TB, a algorithms.Algorithm, set param.Values, run func(param.Values) algorithms.Trainer) {
	t.Helper()
	whole := run(set)
	p := whole.Progress()
	if p.Refit == 0 || p.Refit != p.BestStep || p.Step <= 2*p.BestStep || p.Step != p.Steps {
		t.Fatalf("progress %+v: want a refit by as many iterations as were best, after validations that were worse", p)
	}
	alone := maps.Clone(set)
	alone["validation_fraction"], alone["iterations"] = 0.0, int64(p.BestStep)
	if one, want := Digest(t, a, whole), Digest(t, a, run(alone)); one != want {
		t.Errorf("the model of the refit is %s, want %s, of a job without validation", one, want)
	}
}
