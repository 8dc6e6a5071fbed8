package coordinator_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// The blobs of a deleted dataset and the parts of a finished job go once they are
// old, on every coordinator; what is young, or referred to, stays.
func TestBlobsAreCollected(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 3)
	c.tune = func(cfg *coordinator.Config) { cfg.BlobGrace = 3 * time.Second }
	c.startAll(1)
	d, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.client.Import(ctx, "other", dataset.Artificial(500, 2), dataset.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Spec{Algorithm: "structrf", Dataset: "art", TestFraction: 0.1, Set: map[string]string{"trees": "8"}}
	end := c.train(ctx, s, nil)
	if err := c.client.DeleteDataset(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	young, err := c.client.PutBlob(ctx, []byte("an import that has just begun"))
	if err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{end.Models[0].Blob: true, end.Predictions.Blob: true}
	for _, shard := range d.Manifest.Shards {
		keep[shard.Digest] = true
	}
	testkit.Until(t, "the end of what nothing refers to", func() bool {
		if _, err := c.client.PutBlob(ctx, []byte("an import that has just begun")); err != nil { // it stays young
			t.Fatal(err)
		}
		for _, p := range c.peers {
			for _, digest := range c.blobsOf(p.ID) {
				if !keep[digest] && digest != young {
					return false
				}
			}
		}
		return true
	})
	for _, p := range c.peers {
		have := make(map[string]bool)
		for _, digest := range c.blobsOf(p.ID) {
			have[digest] = true
		}
		for digest := range keep {
			if !have[digest] {
				t.Errorf("%s lacks blob %s, which is referred to", p.ID, digest)
			}
		}
		for _, shard := range other.Manifest.Shards {
			if have[shard.Digest] && !keep[shard.Digest] {
				t.Errorf("%s has a shard of the deleted dataset", p.ID)
			}
		}
	}
	if b, err := c.client.Blob(ctx, young); err != nil || len(b) == 0 {
		t.Errorf("the young blob: %v", err)
	}
}

func (c *cluster) folder(id string) string { return filepath.Join(c.dir, id, "blobs") }

// blobsOf lists the blobs in a coordinator's folder.
func (c *cluster) blobsOf(id string) (digests []string) {
	c.t.Helper()
	entries, err := os.ReadDir(c.folder(id))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		if blobs.Valid(e.Name()) {
			digests = append(digests, e.Name())
		}
	}
	return digests
}
