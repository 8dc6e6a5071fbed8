package ensemble_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
)

// TestPairsOfLabels: df-ldl can be a member. It has a weight, the K-L of the ensemble is not above the K-L of either
// member, and the model is the same with any number of executors.
func TestPairsOfLabels(t *testing.T) {
	m, shards := datatest.Artificial(t, 200)
	d := &local.Data{Manifest: m, Shards: shards}
	set := param.Values{"members": "structrf:trees=3,df-ldl:preset=paper:iterations=20", "inner_folds": int64(2)}
	var digests []string
	for _, lanes := range []int{1, 3} {
		o := run(t, d, ensemble.Name, set, dataset.Split{TestFraction: 0.1}, lanes)
		digests = append(digests, o.ModelDigest)
		for _, own := range o.Mixture.Members {
			if *own.OutOfFoldKL < *o.Mixture.OutOfFoldKL || own.Member == "df-ldl" && own.Weight == 0 {
				t.Errorf("%d executors: %s has weight %v and K-L %v, the ensemble %v", lanes, own.Member, own.Weight,
					*own.OutOfFoldKL, *o.Mixture.OutOfFoldKL)
			}
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %v", digests)
	}
}
