package coordinator_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
)

// ends starts coordinators whose ends are told.
func (c *cluster) ends() map[string]chan error {
	ended := make(map[string]chan error)
	for _, p := range c.peers {
		end := make(chan error, 1)
		ended[p.ID] = end
		cfg := coordinator.Config{ID: p.ID, Dir: filepath.Join(c.dir, p.ID), Peers: c.peers, Heartbeat: 200 * time.Millisecond, Log: c.log.With("node", p.ID)}
		c.run(p.ID, func(ctx context.Context) error { end <- coordinator.Run(ctx, cfg); return nil })
	}
	return ended
}

// endOf waits for the end of a coordinator.
func endOf(t *testing.T, ended chan error) (err error) {
	t.Helper()
	testkit.Until(t, "the end of a coordinator", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	return err
}

// A coordinator alone whose folder, or that of Raft in it, is deleted ends, and acknowledges
// nothing that it could only write into deleted files.
func TestFolderDeletedAlone(t *testing.T) {
	for name, part := range map[string]string{"everything": "", "raft": "raft"} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			c := prepare(t, 1)
			ended := c.ends()
			c.put(ctx, "before")
			if err := os.RemoveAll(filepath.Join(c.dir, "a", part)); err != nil {
				t.Fatal(err)
			}
			// The first try alone: a client would wait for the coordinator to come back.
			once, err := client.New(strings.Join(c.client.Servers(), ","))
			if err != nil {
				t.Fatal(err)
			}
			defer once.Close()
			once.Patience = 0
			if _, err := once.Import(ctx, "after", dataset.Artificial(60, 2), dataset.ImportOptions{}); err == nil {
				t.Error("a dataset was acknowledged without a folder")
			}
			if err := endOf(t, ended["a"]); !errors.Is(err, files.ErrGone) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// The leader's folder is deleted while a job runs: another leads, the job is done, and the
// coordinator fetches everything once it is started again.
func TestFolderOfTheLeaderDeleted(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 3)
	ended := c.ends()
	c.startWorker("w")
	c.put(ctx, "art")
	var leader string
	end := c.train(ctx, eventful(), func() {
		leader = c.leader(ctx)
		if err := os.RemoveAll(filepath.Join(c.dir, leader)); err != nil {
			t.Error(err)
		}
		if err := endOf(t, ended[leader]); !errors.Is(err, files.ErrGone) {
			t.Errorf("it ended with %v", err)
		}
	})
	if got, want := end.Models[0].Digest, localDigest(t, eventful()); got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	c.startCoordinator(leader)
	testkit.Until(t, "the coordinator to have everything", func() bool {
		status, _ := c.get(leader, "/readyz")
		return status == http.StatusOK
	})
}

// A coordinator whose blobs cannot be written is not ready and transfers the leadership,
// until they can be written again.
func TestBlobsReadOnly(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "before")
	leader := c.leader(ctx)
	blobs := filepath.Join(c.dir, leader, "blobs")
	writable := testkit.ReadOnly(t, blobs)
	testkit.Until(t, "another leader", func() bool { return c.leader(ctx) != leader })
	testkit.Until(t, "it to say why", func() bool {
		status, text := c.get(leader, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, blobs)
	})
	c.put(ctx, "meanwhile")
	writable()
	testkit.Until(t, "it to be ready again", func() bool {
		status, _ := c.get(leader, "/readyz")
		return status == http.StatusOK
	})
}
