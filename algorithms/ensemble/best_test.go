package ensemble_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/local"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/spec"
)

// TestBest: the member with the least K-L on inner folds has all the weight, whatever its place,
// and the measures are those of that member trained alone.
func TestBest(t *testing.T) {
	m, shards := datatest.Build(t, dataset.Artificial(200, 1))
	data := &local.Data{Manifest: m, Shards: shards}
	train := func(s protocol.Spec) *pipeline.Outcome {
		t.Helper()
		s.Folds = 2
		j, err := spec.Resolve(s, m)
		if err != nil {
			t.Fatal(err)
		}
		o, err := local.Run(t.Context(), j, data, local.Options{Lanes: 2})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	alone := train(protocol.Spec{Algorithm: "sa-bfgs", Set: map[string]string{"l2": "0.01"}})
	for best, members := range []string{"sa-bfgs:l2=0.01,sa-bfgs:l2=10,structrf:trees=2", "sa-bfgs:l2=10,sa-bfgs:l2=0.01,structrf:trees=2"} {
		chosen := train(protocol.Spec{Algorithm: "ensemble", Set: map[string]string{"members": members, "weights": "best", "inner_folds": "3"}})
		for f, o := range chosen.Folds {
			for i, share := range o.Mixture.Members {
				if (share.Weight == 1) != (i == best) || share.Weight != 0 && share.Weight != 1 {
					t.Errorf("%s, fold %d: %+v", members, f, o.Mixture.Members)
				}
			}
			if *o.Mixture.OutOfFoldKL != *o.Mixture.Members[best].OutOfFoldKL || o.Measures != alone.Folds[f].Measures {
				t.Errorf("%s, fold %d: other measures than of the best member alone", members, f)
			}
		}
	}
}
