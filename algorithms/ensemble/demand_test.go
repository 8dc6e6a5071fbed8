package ensemble

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlboost"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// TestDemand: an ensemble takes what its most demanding member takes, and names the member.
func TestDemand(t *testing.T) {
	booster := ldlboost.New()
	all := kin{structrf.New(), booster}
	m := &dataset.Manifest{Format: 1, Rows: 5000, Features: 100, Labels: 9, NonZeros: 500_000,
		Shards: make([]dataset.ShardRef, 1)}
	demand := func(a algorithms.Algorithm, set param.Values) (int64, string) {
		r, err := a.Resolve(set, m)
		if err != nil {
			t.Fatal(err)
		}
		k, err := a.NewKernel(&round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Params: r.Params,
			Split: dataset.Split{Seed: 1, ValidationFraction: r.ValidationFraction, ValidationMin: r.ValidationMin}}, m)
		if err != nil {
			t.Fatal(err)
		}
		return k.(round.Demanding).Demand()
	}
	want, _ := demand(booster, param.Values{"bins": int64(32)})
	got, what := demand(New(all), param.Values{"members": "structrf,ldlboost:bins=8,ldlboost:bins=32"})
	if got != want || want < 10<<20 || !strings.HasPrefix(what, "ldlboost 2: ") {
		t.Errorf("%d bytes for %q, want %d", got, what, want)
	}
	if got, what := demand(New(all), param.Values{"members": "structrf,structrf"}); got != 0 || what != "" {
		t.Errorf("two forests take %d bytes for %q", got, what)
	}
}
