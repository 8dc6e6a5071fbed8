package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/protocol"
)

// untilReady waits until a coordinator is ready.
func (c *cluster) untilReady(id string) {
	c.t.Helper()
	testkit.Until(c.t, id+" to be ready", func() bool {
		status, _ := c.get(id, "/readyz")
		return status == http.StatusOK
	})
}

// lacks lists the shards of a dataset that a coordinator's folder has not.
func (c *cluster) lacks(id string, m *dataset.Manifest) (list []string) {
	for _, s := range m.Shards {
		if _, err := os.Stat(filepath.Join(c.dir, id, "blobs", s.Digest)); err != nil {
			list = append(list, s.Digest)
		}
	}
	return list
}

// says returns what a coordinator says of itself.
func (c *cluster) says(id string) (s protocol.Self) {
	c.t.Helper()
	_, text := c.get(id, "/v1/self")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		c.t.Fatalf("%s: %v: %s", id, err, text)
	}
	return s
}

// The folders of all coordinators are replaced in turn, each once the one before is ready: each is ready only when it
// has all blobs, and nothing is lost.
func TestReplacedFoldersLoseNothing(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	for name, part := range map[string]string{"everything": "", "only blobs": "blobs"} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			c := start(t, 3, 1)
			sets := make(map[string]*protocol.Dataset)
			for i := range 4 {
				d, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: fmt.Sprint("set", i)},
					generate.Artificial(20_000, uint64(i+1)), importer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sets[d.Name] = d
			}
			s := testSpec(map[string]string{"steps": "20", "trees": "2"})
			s.Dataset = "set0"
			model := c.train(ctx, s, nil).Models[0]
			for _, p := range c.peers {
				c.untilReady(p.ID)
			}
			for _, p := range c.peers {
				c.stop(p.ID)
				if err := os.RemoveAll(filepath.Join(c.dir, p.ID, part)); err != nil {
					t.Fatal(err)
				}
				c.startCoordinator(p.ID)
				c.untilReady(p.ID)
				for _, d := range sets {
					if l := c.lacks(p.ID, d.Manifest); len(l) > 0 {
						t.Fatalf("%s is ready without %d shards of %s", p.ID, len(l), d.Name)
					}
				}
				if _, err := os.Stat(filepath.Join(c.dir, p.ID, "blobs", model.Blob)); err != nil {
					t.Fatalf("%s is ready without the model: %v", p.ID, err)
				}
			}
			for name, want := range sets {
				got, err := c.client.Datasets().Get(ctx, name)
				if err != nil || got.Digest != want.Digest {
					t.Fatalf("%s: %+v, %v", name, got, err)
				}
				if _, err := c.client.Datasets().Shards(ctx, got.Manifest); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestALeaderWithoutItsBlobsHandsOver: if the folder of blobs is damaged while a leader
// runs, the leader hands over and says what is wrong. It has all blobs again once it
// can write.
func TestALeaderWithoutItsBlobsHandsOver(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	d, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "set"}, generate.Artificial(600, 1),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.peers {
		c.untilReady(p.ID)
	}
	old := c.leader(ctx)
	folder := filepath.Join(c.dir, old, "blobs")
	if err := testkit.RemoveInUse(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // nor can it be made again
		t.Skipf("the folder was made again at once: %v", err)
	}
	testkit.Until(t, "another leader", func() bool { l := c.leader(ctx); return l != "" && l != old })
	testkit.Until(t, "the old one to say why it is not ready", func() bool {
		status, text := c.get(old, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "the folder of blobs cannot be read")
	})
	testkit.Until(t, "the leader to tell how it is", func() bool {
		list, err := c.client.Members().List(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if m.ID == old {
				return m.Missing == len(d.Manifest.Shards) && m.MissingFor > 0 && strings.Contains(m.Problem, "blobs")
			}
		}
		return false
	})
	if c.gauge(old, "coppice_missing_blobs") == 0 {
		testkit.Until(t, "the gauges", func() bool {
			return c.gauge(old, "coppice_missing_blobs") > 0 && c.gauge(old, "coppice_missing_blobs_seconds") > 0
		})
	}
	testkit.Until(t, "a transfer to it to be refused", func() bool {
		err := c.client.Members().Transfer(ctx, old)
		return err != nil && strings.Contains(err.Error(), "lacks")
	})
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	c.untilReady(old)
	if l := c.lacks(old, d.Manifest); len(l) > 0 {
		t.Errorf("it is ready without %d blobs", len(l))
	}
	testkit.Until(t, "the gauges to fall", func() bool {
		return c.gauge(old, "coppice_missing_blobs") == 0 && c.gauge(old, "coppice_missing_blobs_seconds") == 0
	})
}

// TestAJobWhoseBlobsAreLost: if no coordinator has a blob of a job, the job says so and
// names the blob. Nobody is ready, and the leader stays. After the same file is
// imported again, the job goes on by itself.
func TestAJobWhoseBlobsAreLost(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := testSpec(map[string]string{"steps": "50", "trees": "2"})
	want := localDigest(t, s)
	c := start(t, 3, 0)
	d, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.stopAll()
	for _, p := range c.peers {
		if err := os.RemoveAll(filepath.Join(c.dir, p.ID, "blobs")); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll(1)
	job, err := c.client.Jobs().Submit(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the job to say which blobs it waits for", func() bool {
		j, err := c.client.Jobs().Get(ctx, job.Name)
		return err == nil && j.State == protocol.Running && j.WaitingFor == protocol.WaitBlobs &&
			strings.Contains(j.Waiting, d.Manifest.Shards[0].Digest[:12])
	})
	leader := c.leader(ctx)
	testkit.Until(t, "the metric", func() bool { return c.gauge(leader, `coppice_jobs_waiting{reason="blobs"}`) == 1 })
	for _, p := range c.peers {
		testkit.Until(t, p.ID+" to say what is lost", func() bool {
			status, text := c.get(p.ID, "/readyz")
			return status == http.StatusServiceUnavailable &&
				strings.Contains(text, "no coordinator has the missing blobs: dataset art (")
		})
		if said := c.says(p.ID); said.Missing != len(d.Manifest.Shards) || said.Lost != said.Missing || said.MissingFor <= 0 {
			t.Errorf("%s: %d missing, %d lost, for %v s", p.ID, said.Missing, said.Lost, said.MissingFor)
		}
		if status, text := c.get(p.ID, "/readyz?blobs=any"); status != http.StatusOK {
			t.Errorf("%s, whichever blobs it lacks: %d %s", p.ID, status, text)
		}
	}
	epoch, elections := c.epoch(ctx), c.elections.Load()
	end := time.Now().Add(2 * time.Second) // more than two transfers would take
	testkit.Until(t, "time for transfers", func() bool { return time.Now().After(end) })
	c.staysLed(ctx, epoch, elections)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	done, err := c.client.Jobs().Watch(ctx, job.Name, func(*protocol.JobInfo) {})
	if err != nil || done.State != protocol.Done || done.Models[0].Digest != want {
		t.Fatalf("%v, %+v, want %s", err, done, want)
	}
	for _, p := range c.peers {
		c.untilReady(p.ID)
		if l := c.lacks(p.ID, d.Manifest); len(l) > 0 {
			t.Errorf("%s is ready without %d blobs", p.ID, len(l))
		}
	}
}

// TestLostBlobsStopNoOtherHandOver: a leader with a full disk hands over even if no
// coordinator has all blobs, because all lack the same.
func TestLostBlobsStopNoOtherHandOver(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	small := c.smallDisk()
	c.startAll(0)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	c.stopAll()
	for _, p := range c.peers {
		if err := os.RemoveAll(filepath.Join(c.dir, p.ID, "blobs")); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll(0)
	testkit.Until(t, "a to lead", func() bool { return c.transfersTo(ctx, "a") })
	testkit.Until(t, "all to know what is lost", func() bool {
		for _, p := range c.peers {
			if s := c.says(p.ID); s.Lost == 0 || s.Lost != s.Missing {
				return false
			}
		}
		return true
	})
	fill(t, filepath.Join(small, "hog"))
	testkit.Until(t, "another leader", func() bool { l := c.leader(ctx); return l != "" && l != "a" })
}

// transfersTo reports whether a coordinator leads, and else has it lead.
func (c *cluster) transfersTo(ctx context.Context, id string) bool {
	return c.leader(ctx) == id || c.client.Members().Transfer(ctx, id) == nil
}

// tiny is a job that ends at once.
func tiny(name string) protocol.Spec {
	return protocol.Spec{Algorithm: "structrf", Dataset: "art", Name: name, TestFraction: 0.1,
		Set: map[string]string{"trees": "2", "max_depth": "3"}}
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

// TestDeletionFreesTheDisk: the models and predictions of deleted jobs are deleted from
// every disk, also if a model was deleted alone. Then the dataset can be deleted, and
// imports that the quota of blobs refused are accepted.
func TestDeletionFreesTheDisk(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	first, _ := datatest.Artificial(t, 600)
	var bytes int64
	for _, s := range first.Shards {
		bytes += s.Bytes
	}
	// While a shard is stored, it may count twice: as a file and as an upload.
	c.tune = func(cfg *coordinator.Config) { cfg.Quotas.BlobBytes, cfg.BlobGrace = bytes+6<<10, 3*time.Second }
	c.startAll(1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
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
		_, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "more"}, generate.Artificial(500, 2),
			importer.Options{})
		return err
	}
	if err := more(); err == nil || !strings.Contains(err.Error(), "--max-blob-bytes") {
		t.Fatalf("an import over the quota: %v", err)
	}
	if _, err := c.client.Models().Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Jobs().Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the end of a model that was deleted", func() bool { return c.gone(third.Models[0].Blob) })
	if _, err := c.client.Models().Get(ctx, "b"); err != nil || c.gone(b.Models[0].Blob) ||
		c.gone(third.Predictions.Blob) {
		t.Errorf("what job b refers to as well went with job a: %v", err)
	}
	if got, err := c.client.Jobs().Prune(ctx, protocol.PruneRequest{}); err != nil || len(got.Jobs) != 2 ||
		got.Frees < got.Jobs[0].Bytes {
		t.Fatalf("pruned: %+v, %v", got, err)
	}
	if err := c.client.Datasets().Delete(ctx, "art"); err != nil {
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

// TestKeepJobs: any leader keeps the given number of ended jobs, and answers that the
// others are deleted. Without the flag all jobs stay.
func TestKeepJobs(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 1)
	c.tune = func(cfg *coordinator.Config) { cfg.KeepJobs = 2 }
	c.startAll(1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(100, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for i := range 4 {
		ids = append(ids, c.train(ctx, tiny(fmt.Sprint("j", i)), nil).ID)
	}
	testkit.Until(t, "the end of the first two", func() bool { return len(c.jobs(ctx)) == 2 })
	for i, id := range ids {
		_, err := c.client.Jobs().Get(ctx, fmt.Sprint(id))
		if was := i < 2; client.IsNotFound(err) != was || was && !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("job %d: %v", i, err)
		}
	}
}

func (c *cluster) jobs(ctx context.Context) []protocol.JobInfo {
	c.t.Helper()
	list, err := c.client.Jobs().All(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}
