package coordinator_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// deepSpec is a job on a network.
func deepSpec(set map[string]string) protocol.Spec {
	all := map[string]string{"features": "mlp", "hidden": "8,6", "trees": "2", "depth": "4", "leaf_batches": "20", "patience": "1000"}
	maps.Copy(all, set)
	return protocol.Spec{Algorithm: "ldlf", Dataset: "art", TestFraction: 0.1, Set: all}
}

// outcomeHere trains a spec in this process, on the data of the tests.
func outcomeHere(t *testing.T, s protocol.Spec, weights []byte) *pipeline.Outcome {
	t.Helper()
	m, shards := datatest.Artificial(t, 600)
	j, err := spec.Resolve(s, m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards, Weights: weights}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWeights: a job that begins from weights which the cluster was sent has the digest that the
// same job has in one process, though the leader and a worker go away, alone and in folds. Weights
// that were not sent, or are of another network, are refused.
func TestWeights(t *testing.T) {
	ctx := deadline(t)
	w, err := network.ReadWeights(outcomeHere(t, deepSpec(map[string]string{"steps": "60"}), nil).Model)
	if err != nil {
		t.Fatal(err)
	}
	s := deepSpec(map[string]string{"steps": lasting(1500), "init_from": w.Digest, "freeze": "hidden1", "warmup": "20"})
	c := start(t, 3, 2)
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Submit(ctx, s); err == nil || !strings.Contains(err.Error(), "the file of weights") || !strings.Contains(err.Error(), "is not on the cluster") {
		t.Errorf("weights that were not sent: error %v", err)
	}
	if digest, err := c.client.PutBlob(ctx, w.File); err != nil || digest != w.Digest {
		t.Fatalf("digest %s, error %v", digest, err)
	}
	wider := deepSpec(map[string]string{"init_from": w.Digest, "hidden": "8,7"})
	if _, err := c.client.Submit(ctx, wider); err == nil || !strings.Contains(err.Error(), "hidden2 has the shape 8x6 in the weights but 8x7 in this network") {
		t.Errorf("another network: error %v", err)
	}
	file := deepSpec(map[string]string{"init_from": "m.model"})
	if _, err := c.client.Submit(ctx, file); err == nil || !strings.Contains(err.Error(), "is not the digest of uploaded weights") {
		t.Errorf("the name of a file: error %v", err)
	}
	want := outcomeHere(t, s, w.File).ModelDigest
	end := c.train(ctx, s, func() {
		c.stop("w1")
		c.stop(c.leader(ctx))
	})
	if got := end.Models[0].Digest; got != want || end.Job.Weights != w.Digest {
		t.Errorf("digest %s from %q, --local has %s", got, end.Job.Weights, want)
	}
	s.TestFraction, s.Folds, s.Set["steps"] = 0, 2, "100"
	var o pipeline.Outcome
	end = c.train(ctx, s, nil)
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.ModelDigest != outcomeHere(t, s, w.File).ModelDigest {
		t.Errorf("folds: digest %s, error %v", o.ModelDigest, err)
	}
}
