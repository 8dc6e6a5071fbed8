package structrf_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
)

// The model that is expected before a job begins is about the one that it makes.
func TestFootprint(t *testing.T) {
	m, shards := datatest.Artificial(t, 3000)
	a := structrf.New()
	r, err := a.Resolve(param.Values{"trees": int64(4)}, m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: "structrf", Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params}
	f, err := a.Footprint(j, m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(o.Model)); f.Model < n/2 || f.Model > 3*n || f.State < f.Model {
		t.Errorf("expected %+v, the model has %d bytes", f, n)
	}
}
