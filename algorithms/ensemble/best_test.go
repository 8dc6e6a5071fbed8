package ensemble_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestBest: the member with the least K-L on inner folds has all the weight, whatever its place,
// and the measures are equal to the measures of the member trained alone.
func TestBest(t *testing.T) {
	m, shards := datatest.Build(t, generate.Artificial(200, 1))
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
	for best, members := range []string{"sa-bfgs:l2=0.01,sa-bfgs:l2=10,structrf:trees=2",
		"sa-bfgs:l2=10,sa-bfgs:l2=0.01,structrf:trees=2"} {
		chosen := train(protocol.Spec{Algorithm: "ensemble", Set: map[string]string{"members": members, "weights": "best",
			"inner_folds": "3"}})
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

// TestValidated: the member with the least K-L on the first inner folds has all the weight, it alone is
// trained on all rows, and the model is that member to the last bit, with the measures that it has
// alone.
func TestValidated(t *testing.T) {
	m, shards := datatest.Build(t, generate.Artificial(200, 1))
	data := &local.Data{Manifest: m, Shards: shards}
	train := func(algorithm string, set map[string]string, lanes int) *pipeline.Outcome {
		t.Helper()
		j, err := spec.Resolve(protocol.Spec{Algorithm: algorithm, Set: set, TestFraction: 0.2}, m)
		if err != nil {
			t.Fatal(err)
		}
		o, err := local.Run(t.Context(), j, data, local.Options{Lanes: lanes})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	alone := train("sa-bfgs", map[string]string{"l2": "0.01"}, 1)
	set := map[string]string{"members": "structrf:trees=2,sa-bfgs:l2=0.01,sa-bfgs:l2=10", "weights": "validated",
		"inner_folds": "9"}
	chosen := train("ensemble", set, 1)
	for i, share := range chosen.Mixture.Members {
		if want := float64(i % 2); share.Weight != want || *share.OutOfFoldKL < *chosen.Mixture.OutOfFoldKL {
			t.Errorf("%+v", chosen.Mixture.Members)
		}
	}
	if rows := chosen.Mixture.Rows; rows != 18 && rows != 17 {
		t.Errorf("%d of 160 training samples score the members, want a ninth", rows)
	}
	if chosen.Measures != alone.Measures {
		t.Error("other measures than of the best member alone")
	}
	f, err := modelfile.Decode(chosen.Model)
	if err != nil {
		t.Fatal(err)
	}
	own, err := modelfile.Decode(alone.Model)
	if err != nil {
		t.Fatal(err)
	}
	tensors := f.Tensors[2:] // after the settings and the weights
	for i := range tensors {
		tensors[i].Name = strings.TrimPrefix(tensors[i].Name, "0/sa-bfgs/")
	}
	if got := modelfile.Digest("sa-bfgs", tensors); got != modelfile.Digest("sa-bfgs", own.Tensors) {
		t.Error("the model is not the best member alone")
	}
	if again := train("ensemble", set, 3); again.ModelDigest != chosen.ModelDigest {
		t.Error("another model on three lanes")
	}
	set["validated_folds"] = "9"
	most := train("ensemble", set, 2)
	set["weights"], set["validated_folds"] = "best", "1"
	all := train("ensemble", set, 2)
	if got, want := *most.Mixture.OutOfFoldKL, *all.Mixture.OutOfFoldKL; most.Mixture.Rows != 160 || got != want {
		t.Errorf("nine of nine inner folds have %d samples and a K-L of %v, want 160 and %v", most.Mixture.Rows, got, want)
	}
}
