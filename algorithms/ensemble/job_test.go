package ensemble_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/local"
	"github.com/coppice-ldl/coppice/round"
)

// TestGoldenDigests pins the bits of small ensembles, on one lane and on three.
func TestGoldenDigests(t *testing.T) {
	m, shards := datatest.Artificial(t, 300)
	d := &local.Data{Manifest: m, Shards: shards}
	a, err := registry.Find(ensemble.Name)
	if err != nil {
		t.Fatal(err)
	}
	const members = "structrf:trees=4:min_samples=4,ldlf:steps=60:trees=2:depth=4:leaf_batches=20"
	for _, c := range []struct{ weights, want string }{
		{"fitted", "ea0782c3c4752be21023b44e3840f9a01915abe8b9fcb1aaca9afdc60432d2b9"},
		{"mean", "ba9a2e2f7a164e99e4379966ba26388f3e9b2df13e2c5cd541c9b00cc77033d1"},
	} {
		r, err := a.Resolve(param.Values{"members": members, "weights": c.weights, "inner_folds": int64(3)}, m)
		if err != nil {
			t.Fatal(err)
		}
		j := &round.Job{Algorithm: ensemble.Name, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params, Split: dataset.Split{Seed: 1, TestFraction: 0.1}}
		for _, lanes := range []int{1, 3} {
			o, err := local.Run(t.Context(), j, d, local.Options{Lanes: lanes})
			if err != nil {
				t.Fatal(err)
			}
			if o.ModelDigest != c.want {
				t.Errorf("weights %s, %d lanes: digest %s, want %s", c.weights, lanes, o.ModelDigest, c.want)
			}
			if w := o.Mixture.Members[0].Weight; w <= 0 || w >= 1 {
				t.Errorf("weights %s: structrf has %v: a member without a part is not pinned", c.weights, w)
			}
		}
	}
}
