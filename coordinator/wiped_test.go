package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// followers lists the coordinators but the leader.
func (c *cluster) followers(leader string) (ids []string) {
	for _, p := range c.peers {
		if p.ID != leader {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// get asks one coordinator; an error is an empty text.
func (c *cluster) get(id, path string) (status int, text string) {
	for _, p := range c.peers {
		if p.ID != id {
			continue
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", p.Port, path))
		if err != nil {
			return 0, ""
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	return 0, ""
}

func (c *cluster) put(ctx context.Context, name string) {
	c.t.Helper()
	if _, err := c.client.Import(ctx, name, dataset.Artificial(600, 1), dataset.ImportOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// A coordinator whose folder was emptied, or the part of it that is Raft's, does not
// elect one that lacks what both had acknowledged, and has everything once the third
// is back.
func TestEmptiedFolderLosesNothing(t *testing.T) {
	for name, part := range map[string]string{"everything": "", "only raft": "raft"} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			c := start(t, 3, 0)
			c.put(ctx, "early")
			leader := c.leader(ctx)
			emptied, late := c.followers(leader)[0], c.followers(leader)[1]
			c.stop(late)
			c.put(ctx, "acknowledged")
			c.stopAll()
			if err := os.RemoveAll(filepath.Join(c.dir, emptied, part)); err != nil {
				t.Fatal(err)
			}
			c.startCoordinator(emptied)
			c.startCoordinator(late)
			said, end := false, time.Now().Add(3*time.Second)
			testkit.Until(t, "the emptied one to say for what it waits, and time for an election", func() bool {
				status, text := c.get(emptied, "/readyz")
				said = said || status == http.StatusServiceUnavailable && strings.Contains(text, "waits until the leader adds it")
				if status, _ := c.get(late, "/readyz"); status == http.StatusOK {
					t.Fatal("a leader was elected by a coordinator that has forgotten what it acknowledged")
				}
				return said && time.Now().After(end)
			})
			c.startCoordinator(leader)
			testkit.Until(t, "all to be ready", func() bool {
				for _, p := range c.peers {
					if status, _ := c.get(p.ID, "/readyz"); status != http.StatusOK {
						return false
					}
				}
				return true
			})
			for _, name := range []string{"early", "acknowledged"} {
				if _, err := c.client.Dataset(ctx, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// At the first start a coordinator that is alone says for what it waits, and ends
// when it is told to.
func TestFirstStartWaits(t *testing.T) {
	ctx := deadline(t)
	c := prepare(t, 3)
	c.startCoordinator("a")
	testkit.Until(t, "a to say for what it waits", func() bool {
		_, text := c.get("a", "/readyz")
		return strings.Contains(text, "all 3 coordinators") && strings.Contains(text, "b (127.0.0.1:") && strings.Contains(text, "connection refused")
	})
	if status, text := c.get("a", "/v1/datasets"); status != http.StatusServiceUnavailable || !strings.Contains(text, "all 3 coordinators") {
		t.Errorf("status %d: %s", status, text)
	}
	c.stop("a")
	c.startCoordinator("a")
	c.startCoordinator("b")
	c.startCoordinator("c")
	c.put(ctx, "three")
	testkit.Until(t, "c to be ready", func() bool { status, _ := c.get("c", "/readyz"); return status == http.StatusOK })
}

// A coordinator that joined by --join-cluster and whose folder is emptied starts again with
// the same flags: it has no vote until it has what it remembered. Under its name, but from
// elsewhere, nobody joins.
func TestEmptiedFolderOfOneThatJoined(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "early")
	port := freeBlock(t)
	address, _ := c.join("d", port)
	c.add(ctx, "d", address)
	c.put(ctx, "later")
	c.stop("d")
	if err := os.RemoveAll(filepath.Join(c.dir, "d")); err != nil {
		t.Fatal(err)
	}
	other := coordinator.Config{
		ID: "d", Dir: t.TempDir(), Peers: []coordinator.Peer{{ID: "d", Host: "127.0.0.1", Port: freeBlock(t)}},
		Join: []string{fmt.Sprintf("127.0.0.1:%d", c.peers[0].Port)}, Heartbeat: 200 * time.Millisecond,
	}
	if err := coordinator.Run(ctx, other); !errors.Is(err, coordinator.ErrUsage) || !strings.Contains(err.Error(), "already has a coordinator d") {
		t.Errorf("another joins under the name of a member: %v", err)
	}
	c.peers = append(c.peers, coordinator.Peer{ID: "d", Host: "127.0.0.1", Port: port})
	c.join("d", port)
	testkit.Until(t, "d to be ready", func() bool { status, _ := c.get("d", "/readyz"); return status == http.StatusOK })
	testkit.Until(t, "the office for d, which has everything", func() bool {
		return c.client.TransferLeadership(ctx, "d") == nil && c.leader(ctx) == "d"
	})
	for _, name := range []string{"early", "later"} {
		if _, err := c.client.Dataset(ctx, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A coordinator is replaced by another at the same address, and the others start
// again with the --peers that they had.
func TestReplacedAtTheSameAddress(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "early")
	testkit.Until(t, "the office for a", func() bool { return c.client.TransferLeadership(ctx, "a") == nil && c.leader(ctx) == "a" })
	testkit.Until(t, "c to be removed", func() bool {
		_, err := c.client.RemoveMember(ctx, "c")
		return err == nil || client.IsNotFound(err)
	})
	c.stop("c")
	address, _ := c.join("d", c.peers[2].Port)
	c.add(ctx, "d", address)
	testkit.Until(t, "all to know that c is out", func() bool {
		var self protocol.Self
		_, text := c.get("b", "/v1/self")
		return json.Unmarshal([]byte(text), &self) == nil && len(self.Servers) > 0 &&
			!slices.ContainsFunc(self.Servers, func(m protocol.RaftServer) bool { return m.ID == "c" })
	})
	c.stopAll()
	c.startCoordinator("a")
	c.startCoordinator("b")
	c.join("d", c.peers[2].Port)
	c.put(ctx, "later")
	testkit.Until(t, "d to vote", func() bool {
		return c.role(ctx, "d") == protocol.RoleVoter || c.role(ctx, "d") == protocol.RoleLeader
	})
}
