package coordinator_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// allReady waits until every coordinator is ready.
func (c *cluster) allReady() {
	c.t.Helper()
	testkit.Until(c.t, "all to be ready", func() bool {
		for _, p := range c.peers {
			if status, _ := c.get(p.ID, "/readyz"); status != http.StatusOK {
				return false
			}
		}
		return true
	})
}

// A start that fails for a port has begun nothing: with other flags all three form one cluster,
// which survives the loss of any of them.
func TestPortInUseAtTheFirstStart(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	for offset := range 4 {
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", c.peers[0].Port+offset))
		if err != nil {
			t.Fatal(err)
		}
		cfg := coordinator.Config{ID: "a", Dir: filepath.Join(c.dir, "a"), Peers: c.peers, Log: c.log}
		if err := coordinator.Run(ctx, cfg); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("with a port that is taken: %v", err)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "a", "CLUSTER")); err == nil {
			t.Fatal("a start that failed has begun a cluster")
		}
		taken.Close()
	}
	c.startCoordinator("b")
	c.startCoordinator("c")
	testkit.Until(t, "b to wait for a", func() bool {
		_, text := c.get("b", "/readyz")
		return strings.Contains(text, "a (127.0.0.1:")
	})
	c.stop("b")
	c.stop("c")
	c.peers[0].Port = freeBlock(t)
	for _, p := range c.peers {
		c.startCoordinator(p.ID)
	}
	c.allReady()
	ids := make(map[string]bool)
	for _, p := range c.peers {
		b, err := os.ReadFile(filepath.Join(c.dir, p.ID, "CLUSTER"))
		if err != nil {
			t.Fatal(err)
		}
		ids[string(b)] = true
	}
	if len(ids) != 1 {
		t.Errorf("clusters %v", ids)
	}
	c.stop("b")
	c.put(ctx, "later")
}

// TestRaftElsewhere: Raft may be at any port at a first start, because each coordinator
// tells its port.
func TestRaftElsewhere(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	raft := make(map[string]string)
	for _, p := range c.peers {
		raft[p.ID] = testkit.FreeAddress(t)
	}
	c.tune = func(cfg *coordinator.Config) { cfg.Listen.Raft = raft[cfg.ID] }
	c.startAll(0)
	c.put(ctx, "art")
	c.stopAll()
	c.startAll(0)
	c.allReady()
}

// Folders that were restored from two backups never form a cluster; each coordinator says why.
func TestMixedRestore(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	old := start(t, 1, 0)
	backup := func(name string) []byte {
		t.Helper()
		old.put(ctx, name)
		var b bytes.Buffer
		if _, err := old.client.Backup(ctx, &b, nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	monday, tuesday := backup("one"), backup("two")
	old.stopAll()

	c := prepare(t, 3)
	restore := func(id string, b []byte) *coordinator.Restored {
		t.Helper()
		r, err := coordinator.Restore(ctx, bytes.NewReader(b), coordinator.RestoreConfig{Dir: filepath.Join(c.dir, id),
			ID: id, Peers: c.peers})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	is := restore("a", monday).Cluster
	restore("b", monday)
	not := restore("c", tuesday).Cluster
	c.startAll(0)
	end := time.Now().Add(3 * time.Second)
	testkit.Until(t, "each to tell, and time for an election", func() bool {
		told := true
		for _, p := range c.peers {
			status, text := c.get(p.ID, "/readyz")
			told = told && status == http.StatusServiceUnavailable && strings.Contains(text, is) && strings.Contains(text, not)
			for _, path := range []string{"/readyz", "/v1/datasets"} {
				if status, text := c.get(p.ID, path); status == http.StatusOK {
					t.Fatalf("%s serves %s: %s", p.ID, path, text)
				}
			}
		}
		return told && time.Now().After(end)
	})
	c.stop("c")
	if err := os.RemoveAll(filepath.Join(c.dir, "c")); err != nil {
		t.Fatal(err)
	}
	restore("c", monday)
	c.startCoordinator("c")
	c.allReady()
	list, err := c.client.Datasets().List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "one" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A copy of a folder does not run next to the first.
func TestCopiedFolderEnds(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "art")
	c.allReady()
	copied := t.TempDir()
	if err := os.CopyFS(filepath.Join(copied, "c"), os.DirFS(filepath.Join(c.dir, "c"))); err != nil {
		t.Fatal(err)
	}
	cfg := coordinator.Config{ID: "c", Dir: filepath.Join(copied, "c"), Heartbeat: 200 * time.Millisecond,
		Log: c.log.With("node", "copy")}
	cfg.Peers = append(cfg.Peers, c.peers[:2]...)
	cfg.Peers = append(cfg.Peers, coordinator.Peer{ID: "c", Host: "127.0.0.1", Port: freeBlock(t)})
	err := coordinator.Run(ctx, cfg)
	if !errors.Is(err, coordinator.ErrDuplicate) ||
		!strings.Contains(err.Error(), fmt.Sprintf("127.0.0.1:%d", c.peers[2].Port)) {
		t.Errorf("the copy ends with %v", err)
	}
	c.allReady()
	c.put(ctx, "later")
}

// The folders of all coordinators are replaced in turn, paced by /readyz, and nothing is lost.
func TestEachFolderInTurn(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "art")
	for _, p := range c.peers {
		c.allReady()
		c.stop(p.ID)
		if err := os.RemoveAll(filepath.Join(c.dir, p.ID)); err != nil {
			t.Fatal(err)
		}
		c.startCoordinator(p.ID)
	}
	c.allReady()
	for _, p := range c.peers {
		var list protocol.Members
		testkit.Until(t, "the members", func() (ok bool) {
			m, err := c.client.Members().List(ctx)
			if err == nil {
				list = *m
			}
			return err == nil && len(m.Members) == 3
		})
		for _, m := range list.Members {
			if m.ID == p.ID && (m.Missing > 0 || m.Role == protocol.RoleNonvoter) {
				t.Errorf("%+v", m)
			}
		}
	}
	if _, err := c.client.Datasets().Get(ctx, "art"); err != nil {
		t.Error(err)
	}
	c.put(ctx, "later")
}

// Coordinators with different heartbeats begin no cluster, and say so.
func TestDifferentHeartbeats(t *testing.T) {
	t.Parallel()
	c := prepare(t, 3)
	c.tune = func(cfg *coordinator.Config) {
		if cfg.ID == "c" {
			cfg.Heartbeat = time.Second
		}
	}
	c.startAll(0)
	for id, want := range map[string]string{"a": "c has --heartbeat 1s, this coordinator has 200ms",
		"c": "a has --heartbeat 200ms, this coordinator has 1s"} {
		testkit.Until(t, id+" to tell", func() bool {
			_, text := c.get(id, "/readyz")
			return strings.Contains(text, want)
		})
	}
	c.stop("c")
	c.tune = nil
	c.startCoordinator("c")
	c.allReady()
}

// TestPeersOfAnotherCluster: if --peers names a coordinator of another cluster, that
// cluster is not disturbed, and the error names it.
func TestPeersOfAnotherCluster(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.put(ctx, "art")
	two := prepare(t, 2)
	two.peers = append(two.peers, coordinator.Peer{ID: "c", Host: "127.0.0.1", Port: freeBlock(t)})
	two.peers[0].ID, two.peers[1].ID = "x", "y"
	two.peers[2] = c.peers[0]
	two.startCoordinator("x")
	two.startCoordinator("y")
	testkit.Until(t, "x to tell", func() bool {
		_, text := two.get("x", "/readyz")
		return strings.Contains(text, "a is a member of cluster") && strings.Contains(text, "which consists of a") &&
			strings.Contains(text, "x is not one of them")
	})
	if _, err := c.client.Datasets().Get(ctx, "art"); err != nil {
		t.Error(err)
	}
}

// The id of the cluster is in the folder of Raft as well, so damage to both files of the
// coordinator's own stops no start.
func TestDamagedClusterFiles(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.put(ctx, "art")
	c.stopAll()
	is := make(map[string]string)
	for _, name := range []string{"CLUSTER", "CLUSTER.copy"} {
		path := filepath.Join(c.dir, "a", name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		is[path] = string(b)
		b[0] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.startCoordinator("a")
	if _, err := c.client.Datasets().Get(ctx, "art"); err != nil {
		t.Error(err)
	}
	for path, want := range is {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", path, b, err, want)
		}
	}
}
