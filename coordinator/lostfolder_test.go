package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// ends starts the coordinators, and returns for each a channel that receives the error
// with which it ends.
func (c *cluster) ends() map[string]chan error {
	ended := make(map[string]chan error)
	for _, p := range c.peers {
		end := make(chan error, 1)
		ended[p.ID] = end
		cfg := coordinator.Config{ID: p.ID, Dir: filepath.Join(c.dir, p.ID), Peers: c.peers,
			Heartbeat: 200 * time.Millisecond, Log: c.log.With("node", p.ID)}
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

// TestFolderDeletedAlone: if the folder of a single coordinator, or "raft" in it, is
// deleted, the coordinator ends. It acknowledges nothing that it could only write into
// deleted files.
func TestFolderDeletedAlone(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"everything": "", "raft": "raft"} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			c := prepare(t, 1)
			ended := c.ends()
			c.put(ctx, "before")
			if err := testkit.RemoveInUse(filepath.Join(c.dir, "a", part)); err != nil {
				t.Fatal(err)
			}
			// The first try alone: a client would wait for the coordinator to come back.
			once, err := client.New(strings.Join(c.client.Servers(), ","))
			if err != nil {
				t.Fatal(err)
			}
			defer once.Close()
			once.Patience = 0
			if _, err := once.Datasets().Import(ctx, protocol.DatasetPut{Name: "after"}, generate.Artificial(60, 2),
				importer.Options{}); err == nil {
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
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	ended := c.ends()
	c.startWorker("w")
	c.put(ctx, "art")
	var leader string
	end := c.train(ctx, eventful(), func() {
		leader = c.leader(ctx)
		if err := testkit.RemoveInUse(filepath.Join(c.dir, leader)); err != nil {
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

// TestBlobsReadOnly: a coordinator that cannot write blobs is not ready and transfers
// the leadership, until it can write them again.
func TestBlobsReadOnly(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
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

// A coordinator starts whatever is wrong with its list of members, in one copy or both: the
// log has it, and it is written anew. What was damaged stays for people.
func TestDamagedListOfMembers(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	for _, size := range []int{1, 3} {
		ctx := deadline(t)
		c := start(t, size, 0)
		c.put(ctx, "art")
		testkit.Until(t, "the lists of a to have all coordinators", func() bool {
			for _, name := range []string{"MEMBERS", "MEMBERS.copy"} {
				b, err := os.ReadFile(filepath.Join(c.dir, "a", name))
				if err != nil || bytes.Count(b, []byte(`"raft": "127.`)) != size {
					return false
				}
			}
			return true
		})
		for _, names := range [][]string{{"MEMBERS"}, {"MEMBERS.copy"}, {"MEMBERS", "MEMBERS.copy"}} {
			c.stop("a")
			good := make(map[string][]byte)
			for _, name := range names {
				path := filepath.Join(c.dir, "a", name)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				good[path] = bytes.Clone(b)
				b[len(b)/2] ^= 4
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c.startCoordinator("a")
			testkit.Until(t, "the coordinator to be ready", func() bool {
				status, _ := c.get("a", "/readyz")
				return status == 200
			})
			for path, want := range good {
				testkit.Until(t, "the file to be written anew", func() bool {
					b, err := os.ReadFile(path)
					return err == nil && bytes.Equal(b, want)
				})
				if _, err := os.Stat(path + ".corrupt"); err != nil {
					t.Error(err)
				}
			}
		}
		if _, err := c.client.Datasets().Get(ctx, "art"); err != nil {
			t.Error(err)
		}
		c.stopAll()
	}
}

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
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: name}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		c.t.Fatal(err)
	}
}

// TestEmptiedFolderLosesNothing: if the folder of a coordinator, or "raft" in it, was
// emptied, the coordinator does not elect one that lacks acknowledged entries. It has
// everything once the third coordinator is back.
func TestEmptiedFolderLosesNothing(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
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
				if _, err := c.client.Datasets().Get(ctx, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// At the first start a coordinator that is alone says for what it waits, and ends
// when it is told to.
func TestFirstStartWaits(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	c.startCoordinator("a")
	testkit.Until(t, "a to say for what it waits", func() bool {
		_, text := c.get("a", "/readyz")
		return strings.Contains(text, "all 3 coordinators") && strings.Contains(text, "b (127.0.0.1:") &&
			strings.Contains(text, "connection refused")
	})
	if status, text := c.get("a", "/v1/datasets"); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "all 3 coordinators") {
		t.Errorf("status %d: %s", status, text)
	}
	c.stop("a")
	c.startCoordinator("a")
	c.startCoordinator("b")
	c.startCoordinator("c")
	c.put(ctx, "three")
	testkit.Until(t, "c to be ready", func() bool { status, _ := c.get("c", "/readyz"); return status == http.StatusOK })
}

// TestEmptiedFolderOfOneThatJoined: a coordinator joined by --join-cluster, and its
// folder was emptied. It starts again with the same flags, and has no vote until it has
// fetched its log. No coordinator at another address can join under its name.
func TestEmptiedFolderOfOneThatJoined(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
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
	if err := coordinator.Run(ctx, other); !errors.Is(err, coordinator.ErrUsage) ||
		!strings.Contains(err.Error(), "already has a coordinator d") {
		t.Errorf("another joins under the name of a member: %v", err)
	}
	c.peers = append(c.peers, coordinator.Peer{ID: "d", Host: "127.0.0.1", Port: port})
	c.join("d", port)
	testkit.Until(t, "d to be ready", func() bool { status, _ := c.get("d", "/readyz"); return status == http.StatusOK })
	testkit.Until(t, "the office for d, which has everything", func() bool {
		return c.client.Members().Transfer(ctx, "d") == nil && c.leader(ctx) == "d"
	})
	for _, name := range []string{"early", "later"} {
		if _, err := c.client.Datasets().Get(ctx, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A coordinator is replaced by another at the same address, and the others start
// again with the --peers that they had.
func TestReplacedAtTheSameAddress(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "early")
	testkit.Until(t, "the office for a", func() bool {
		return c.client.Members().Transfer(ctx, "a") == nil && c.leader(ctx) == "a"
	})
	testkit.Until(t, "c to be removed", func() bool {
		_, err := c.client.Members().Remove(ctx, "c")
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

// A coordinator that is started in the folder of another, which runs or does not, ends
// before it connects to the routes of anybody.
func TestFolderOfAnotherCoordinator(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.leader(ctx)
	for _, test := range []struct {
		what string
		want error
	}{{"it runs", store.ErrLocked}, {"it does not", store.ErrFolder}} {
		if test.want == store.ErrFolder {
			c.stop("a")
		}
		own, third := freeBlock(t), freeBlock(t)
		routes, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", third+3))
		if err != nil {
			t.Fatal(err)
		}
		var connected atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				conn, err := routes.Accept()
				if err != nil {
					return
				}
				connected.Add(1)
				conn.Close()
			}
		}()
		err = coordinator.Run(ctx, coordinator.Config{
			ID: "b", Dir: filepath.Join(c.dir, "a"), Heartbeat: 200 * time.Millisecond, Log: c.log.With("node", "b"),
			Peers: []coordinator.Peer{c.peers[0], {ID: "b", Host: "127.0.0.1", Port: own},
				{ID: "c", Host: "127.0.0.1", Port: third}},
		})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.what, err, test.want)
		}
		routes.Close()
		<-ended
		if n := connected.Load(); n > 0 {
			t.Errorf("%s: %d connections to routes", test.what, n)
		}
	}
}
