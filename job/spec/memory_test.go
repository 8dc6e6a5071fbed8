package spec

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// The estimate holds what a trainer's state really takes, and follows the settings.
func TestEstimate(t *testing.T) {
	m, _ := datatest.Artificial(t, 500)
	estimate := func(s protocol.Spec) (Memory, int64) {
		t.Helper()
		j, err := Resolve(s, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Estimate(j, m)
		if err != nil {
			t.Fatal(err)
		}
		trainer, err := pipeline.New(j, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := trainer.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got, int64(len(b))
	}
	set := func(pairs ...string) map[string]string {
		v := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			v[pairs[i]] = pairs[i+1]
		}
		return v
	}
	for _, s := range []protocol.Spec{
		{Algorithm: "ldlf"},
		{Algorithm: "ldlf", Set: set("depth", "12", "trees", "30")},
		{Algorithm: "ldlf", Set: set("preset", "paper", "outputs", "4000")},
	} {
		got, state := estimate(s)
		if got.State < 2*state || got.State > 4*state || got.Tree < 8*int64(m.Labels) {
			t.Errorf("%v: an estimate of %+v for a state of %d bytes", s.Set, got, state)
		}
	}
	small, _ := estimate(protocol.Spec{Algorithm: "ldlf", Set: set("trees", "2", "depth", "10")})
	large, _ := estimate(protocol.Spec{Algorithm: "ldlf", Set: set("trees", "20", "depth", "10")})
	if large.Tree < 5*small.Tree {
		t.Errorf("ten times the leaves: %+v, then %+v", small, large)
	}
	none := int64(0)
	folds, _ := estimate(protocol.Spec{Algorithm: "ldlf", Folds: 10, KeepPredictions: &none})
	five, _ := estimate(protocol.Spec{Algorithm: "ldlf", Folds: 5, KeepPredictions: &none})
	kept, _ := estimate(protocol.Spec{Algorithm: "ldlf", Folds: 5})
	if want := five.State + 4*int64(m.Rows)*(6+8*int64(m.Labels)); kept.State != want {
		t.Errorf("five folds whose predictions are kept: %+v, want %d", kept, want)
	}
	if folds.State != 2*five.State || folds.Tree != 0 || folds.State == 0 {
		t.Errorf("ten folds: %+v, five: %+v", folds, five)
	}
	trees, _ := estimate(protocol.Spec{Algorithm: "structrf", Set: set("trees", "50")})
	fewer, _ := estimate(protocol.Spec{Algorithm: "structrf", Set: set("trees", "25")})
	if trees.State != 2*fewer.State || trees.State == 0 {
		t.Errorf("50 trees: %+v, 25: %+v", trees, fewer)
	}
}

// TestEstimateOfWeights: a job on one network that begins from weights takes their file, and what is
// read of it, on the leader; one of folds does not.
func TestEstimateOfWeights(t *testing.T) {
	m, _ := datatest.Artificial(t, 500)
	state := func(folds int, from string) int64 {
		t.Helper()
		j, err := Resolve(protocol.Spec{Algorithm: "dldl", Folds: folds, Set: map[string]string{"hidden": "10",
			"init_from": from}}, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Estimate(j, m)
		if err != nil {
			t.Fatal(err)
		}
		return got.State
	}
	digest := strings.Repeat("0", 64)
	const parameters = 3*10 + 10 + 10*3 + 3
	if with, without := state(0, digest), state(0, "none"); with != without+2*4*parameters {
		t.Errorf("%d bytes with weights, %d without", with, without)
	}
	if with, without := state(2, digest), state(2, "none"); with != without {
		t.Errorf("folds: %d bytes with weights, %d without", with, without)
	}
}

// TestEstimateOfLinearBaseline: the estimate has room for the state of the fit and for its sums.
func TestEstimateOfLinearBaseline(t *testing.T) {
	m, shards := datatest.Artificial(t, 500)
	j, err := Resolve(protocol.Spec{Algorithm: "ldlf", TestFraction: 0.2, Set: map[string]string{"steps": "4",
		"trees": "1", "depth": "3"}}, m)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Estimate(j, m)
	if err != nil {
		t.Fatal(err)
	}
	j.LinearSamples = 200
	with, err := Estimate(j, m)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := pipeline.New(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pipeline.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	largest := map[string]int{}
	x := engine.NewLocal(k, datatest.Data(t, m, shards, j.Split, nil), 1, nil)
	err = engine.Drive(t.Context(), trainer, 0, x, func(_ uint64, tr round.Trainer) error {
		b, err := tr.AppendState(nil)
		largest[tr.Progress().Phase] = max(largest[tr.Progress().Phase], len(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	training, fitting := int64(largest["training"]), int64(largest["linear baseline"])
	if fitting <= training || with.State < 2*fitting || with.State-without.State > 4*(fitting-training) {
		t.Errorf("states of %d bytes, then %d; estimates %d without, %d with the linear baseline", training, fitting,
			without.State, with.State)
	}
	if with.Tree < 8*int64(m.Features+1)*int64(m.Labels) {
		t.Errorf("an estimate of %+v", with)
	}
}
