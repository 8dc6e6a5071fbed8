package coordinator_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// smallEnsemble is a job of 2 × (1 + 3) child jobs, which take several commit intervals together.
func smallEnsemble() protocol.Spec {
	return protocol.Spec{
		Algorithm: "ensemble", Dataset: "art", TestFraction: 0.1,
		Set: map[string]string{
			"members": smallMembers(4000), "inner_folds": "3",
		},
	}
}

// smallMembers are a forest and a network of lasting(steps).
func smallMembers(steps int) string {
	return "structrf:trees=8:min_samples=4,ldlf:steps=" + lasting(steps) + ":trees=2:depth=4:leaf_batches=20"
}

// TestEnsemble trains an ensemble on one worker, then on three of which one goes away while
// members are trained, and the leader too; then once for each of two folds: the digests are
// those of --local, and the outcome has the weights.
func TestEnsemble(t *testing.T) {
	ctx := deadline(t)
	s := smallEnsemble()
	want := localDigest(t, s)
	c := start(t, 3, 1)
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	end := c.train(ctx, s, nil)
	if got := end.Models[0].Digest; got != want {
		t.Errorf("one worker: digest %s, --local has %s", got, want)
	}
	var o pipeline.Outcome
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.Mixture == nil || len(o.Mixture.Members) != 2 || o.Mixture.Rows != 540 {
		t.Fatalf("the outcome has the weights %+v, error %v", o.Mixture, err)
	}
	if o.Steps <= 8 || end.Progress.Step != o.Steps {
		t.Errorf("%d steps, the job tells of %d", o.Steps, end.Progress.Step)
	}
	c.startWorker("w1")
	c.startWorker("w2")
	s.Name = "again"
	if _, err := c.client.Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	stopped := false
	end, err := c.client.Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Collected >= 2 && !stopped {
			stopped = true
			c.stop("w1")
			c.stop(c.leader(ctx))
		}
	})
	if err != nil || end.State != protocol.Done || end.Models[0].Digest != want {
		t.Errorf("%+v, error %v: --local has %s", end, err, want)
	}
	if !stopped {
		t.Error("the job ended before two members were trained")
	}
	s.Name, s.TestFraction, s.Folds = "folds", 0, 2
	s.Set["members"] = smallMembers(200) // nothing happens to it
	want = localDigest(t, s)
	end = c.train(ctx, s, nil)
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.ModelDigest != want || len(end.Models) != 2 {
		t.Errorf("folds: digest %s of %d models, error %v; --local has %s", o.ModelDigest, len(end.Models), err, want)
	}
}

// TestValidatedEnsemble trains the best of three by one part of the training rows, while the leader goes
// away after the first results: the second round trains the best member alone, to the digest of --local.
func TestValidatedEnsemble(t *testing.T) {
	ctx := deadline(t)
	s := protocol.Spec{
		Algorithm: "ensemble", Dataset: "art", Name: "validated", TestFraction: 0.1,
		Set: map[string]string{
			"members": "structrf:trees=8:min_samples=4,structrf:trees=2:max_depth=1,ldlf:steps=400:trees=2:depth=4:leaf_batches=20", "weights": "validated", "inner_folds": "9",
		},
	}
	want := localDigest(t, s)
	c := start(t, 3, 2)
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	stopped := false
	end, err := c.client.Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Collected >= 1 && !stopped {
			stopped = true
			c.stop(c.leader(ctx))
		}
	})
	if err != nil || end.State != protocol.Done || end.Models[0].Digest != want {
		t.Fatalf("%+v, error %v: --local has %s", end, err, want)
	}
	var o pipeline.Outcome
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.Mixture == nil || len(o.Mixture.Members) != 3 || o.Mixture.Rows != 60 {
		t.Errorf("the outcome has the weights %+v, error %v", o.Mixture, err)
	}
}
