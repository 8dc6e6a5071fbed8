package ensemble_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// run runs a job with seed 1 to its end.
func run(t *testing.T, d *local.Data, algorithm string, set param.Values, split dataset.Split,
	lanes int) *pipeline.Outcome {
	t.Helper()
	a, err := registry.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(set, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	split.Seed, split.ValidationFraction, split.ValidationMin = 1, r.ValidationFraction, r.ValidationMin
	j := &round.Job{Algorithm: algorithm, Numerics: round.Numerics, Seed: 1, Dataset: d.Manifest.Digest(),
		Params: r.Params, Split: split, Folds: split.Folds}
	o, err := local.Run(t.Context(), j, d, local.Options{Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestGoldenDigests pins the bits of small ensembles, on one lane and on three.
func TestGoldenDigests(t *testing.T) {
	m, shards := datatest.Artificial(t, 300)
	d := &local.Data{Manifest: m, Shards: shards}
	const members = "structrf:trees=4:min_samples=4,ldlf:steps=60:trees=2:depth=4:leaf_batches=20"
	for _, c := range []struct{ weights, want string }{
		{"fitted", "ea0782c3c4752be21023b44e3840f9a01915abe8b9fcb1aaca9afdc60432d2b9"},
		{"mean", "ba9a2e2f7a164e99e4379966ba26388f3e9b2df13e2c5cd541c9b00cc77033d1"},
	} {
		set := param.Values{"members": members, "weights": c.weights, "inner_folds": int64(3)}
		for _, lanes := range []int{1, 3} {
			o := run(t, d, ensemble.Name, set, dataset.Split{TestFraction: 0.1}, lanes)
			if o.ModelDigest != c.want {
				t.Errorf("weights %s, %d lanes: digest %s, want %s", c.weights, lanes, o.ModelDigest, c.want)
			}
			if w := o.Mixture.Members[0].Weight; w <= 0 || w >= 1 {
				t.Errorf("weights %s: structrf has %v: a member without a part is not pinned", c.weights, w)
			}
		}
	}
}

// TestDefaultsHoldAgainstMembers: on the test samples, the K-L of the default ensemble is at most 1 % greater than the
// smallest K-L of its members alone.
func TestDefaultsHoldAgainstMembers(t *testing.T) {
	if testkit.Race || testing.Short() {
		t.Skip("takes seconds: not with -short or -race")
	}
	m, shards := datatest.Shared(t, "SJAFFE.mat")
	d := &local.Data{Manifest: m, Shards: shards}
	kl := func(algorithm string, set param.Values) float64 {
		stat, _ := run(t, d, algorithm, set, dataset.Split{TestFraction: 0.3}, 2).Measures.Get("kl")
		t.Logf("%s: K-L %.5f", algorithm, stat.Mean)
		return stat.Mean
	}
	forest, shallow := kl("structrf", param.Values{"trees": int64(200), "min_samples": int64(5)}), kl("ldlf", nil)
	near := kl("aa-knn", nil)
	if got := kl(ensemble.Name, nil); !(got <= 1.01*min(forest, shallow, near)) {
		t.Errorf("K-L %.5f, of structrf %.5f, of ldlf %.5f, of aa-knn %.5f", got, forest, shallow, near)
	}
}
