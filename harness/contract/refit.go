package contract

import (
	"maps"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// CheckRefit trains by run with early stopping and a refit, and then by itself what the refit repeats: without validation, by
// as many iterations as were best. Both train on the same rows, so that their models have the same bits. The
// settings end no search before its last iteration.
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
