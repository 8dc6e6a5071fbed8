package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/protocol"
)

// tiny is a job that ends at once.
func tiny(name string) protocol.Spec {
	return protocol.Spec{Algorithm: "structrf", Dataset: "art", Name: name, TestFraction: 0.1, Set: map[string]string{"trees": "2", "max_depth": "3"}}
}

// gone reports whether no coordinator has any of some blobs.
func (c *cluster) gone(digests ...string) bool {
	for _, p := range c.peers {
		for _, have := range c.blobsOf(p.ID) {
			for _, d := range digests {
				if d == have {
					return false
				}
			}
		}
	}
	return true
}

// The models and predictions of deleted jobs go from every disk, also those of a
// model that was deleted alone; then the dataset can be deleted and imports that the
// quota of blobs refused are taken.
func TestDeletionFreesTheDisk(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 3)
	first, _ := datatest.Artificial(t, 600)
	var bytes int64
	for _, s := range first.Shards {
		bytes += s.Bytes
	}
	c.tune = func(cfg *coordinator.Config) { cfg.Quotas.BlobBytes, cfg.BlobGrace = bytes+600, 3*time.Second }
	c.startAll(1)
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	a, b := c.train(ctx, tiny("a"), nil), c.train(ctx, tiny("b"), nil)
	if a.Models[0].Blob != b.Models[0].Blob { // two jobs with the same spec share their model
		t.Fatalf("models %s and %s", a.Models[0].Blob, b.Models[0].Blob)
	}
	other := tiny("c")
	seed := uint64(2)
	other.Seed = &seed
	third := c.train(ctx, other, nil)
	more := func() error {
		_, err := c.client.Import(ctx, "more", dataset.Artificial(500, 2), dataset.ImportOptions{})
		return err
	}
	if err := more(); err == nil || !strings.Contains(err.Error(), "--max-blob-bytes") {
		t.Fatalf("an import over the quota: %v", err)
	}
	if _, err := c.client.DeleteModel(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.DeleteJobs(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the end of a model that was deleted", func() bool { return c.gone(third.Models[0].Blob) })
	if _, err := c.client.Model(ctx, "b"); err != nil || c.gone(b.Models[0].Blob) || c.gone(third.Predictions.Blob) {
		t.Errorf("what job b refers to as well went with job a: %v", err)
	}
	if got, err := c.client.Prune(ctx, protocol.PruneRequest{}); err != nil || len(got.Jobs) != 2 || got.Frees < got.Jobs[0].Bytes {
		t.Fatalf("pruned: %+v, %v", got, err)
	}
	if err := c.client.DeleteDataset(ctx, "art"); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the end of all blobs", func() bool {
		for _, p := range c.peers {
			if len(c.blobsOf(p.ID)) > 0 {
				return false
			}
		}
		return true
	})
	testkit.Until(t, "room for an import", func() bool { return more() == nil })
}

// The leader keeps so many ended jobs, whoever leads, and those of the others are
// answered as deleted; without the flag all stay.
func TestKeepJobs(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 1)
	c.tune = func(cfg *coordinator.Config) { cfg.KeepJobs = 2 }
	c.startAll(1)
	if _, err := c.client.Import(ctx, "art", dataset.Artificial(100, 1), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for i := range 4 {
		ids = append(ids, c.train(ctx, tiny(fmt.Sprint("j", i)), nil).ID)
	}
	testkit.Until(t, "the end of the first two", func() bool { return len(c.jobs(ctx)) == 2 })
	for i, id := range ids {
		_, err := c.client.Job(ctx, fmt.Sprint(id))
		if was := i < 2; client.IsNotFound(err) != was || was && !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("job %d: %v", i, err)
		}
	}
}

func (c *cluster) jobs(ctx context.Context) []protocol.JobInfo {
	c.t.Helper()
	list, err := c.client.Jobs(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}
