package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestMain checks that no goroutine is left. Raft never answers a proposal that is in its
// queue when it shuts down, so the goroutine that waits for it stays: at most sixteen for
// each Raft node.
func TestMain(m *testing.M) {
	testkit.AtOnce(6) // they wait for elections
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/hashicorp/raft.(*deferError).Error"))
}

// cluster is a set of nodes in this process, on loopback and temporary folders.
type cluster struct {
	t     testing.TB
	tune  func(*Config)
	dir   string
	peers []Peer
	nodes map[string]*Store // those that run

	mu     sync.Mutex
	answer map[string]func() Answer // of those that run or start
}

// ask is Config.Ask of all nodes.
func (c *cluster) ask(_ context.Context, id string) (Answer, error) {
	c.mu.Lock()
	answer := c.answer[id]
	c.mu.Unlock()
	if answer == nil {
		return Answer{}, fmt.Errorf("%s does not answer", id)
	}
	return answer(), nil
}

// answers sets how a node answers from now on.
func (c *cluster) answers(id string, answer func() Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer == nil {
		c.answer = make(map[string]func() Answer)
	}
	c.answer[id] = answer
}

// claim claims the folder of a node, which answers from then on.
func (c *cluster) claim(config Config) *Folder {
	c.t.Helper()
	f, err := Claim(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.answers(config.ID, f.Answer)
	return f
}

// calm is for tests that a change of the leader would break, however busy the machine is.
func calm(c *Config) { c.Heartbeat = 500 * time.Millisecond }

// newCluster starts n nodes named a, b, c...
func newCluster(t testing.TB, n int, tune func(*Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, tune: tune, dir: t.TempDir(), nodes: make(map[string]*Store)}
	for i := range n {
		c.peers = append(c.peers, Peer{ID: string(rune('a' + i))})
	}
	t.Cleanup(c.closeAll)
	c.startAll()
	return c
}

// startAll starts every node, on ports that are free now.
func (c *cluster) startAll() {
	c.t.Helper()
	listeners := make(map[string]net.Listener)
	for i := range c.peers {
		l := testkit.Listen(c.t)
		listeners[c.peers[i].ID] = l
		c.peers[i].RaftAddr = l.Addr().String()
	}
	folders := make(map[string]*Folder) // that answer before anybody asks
	for _, p := range c.peers {
		folders[p.ID] = c.claim(c.config(p.ID, nil))
	}
	var starts sync.WaitGroup
	for _, f := range folders {
		starts.Go(func() {
			if err := f.Decide(testkit.Context(c.t)); err != nil {
				c.t.Error(err)
			}
		})
	}
	starts.Wait()
	for id, f := range folders {
		c.open(c.config(id, listeners[id]), f)
	}
}

// start starts one node; with a nil listener on its former address. With a corrupt folder
// it begins with another one, as a coordinator does.
func (c *cluster) start(id string, l net.Listener) *Store {
	c.t.Helper()
	config := c.config(id, l)
	f, err := Claim(config)
	if errors.Is(err, ErrCorrupt) {
		f, err = Reset(config)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.answers(id, f.Answer)
	if err := f.Decide(testkit.Context(c.t)); err != nil {
		c.t.Fatal(err)
	}
	cluster := f.Identity().Cluster
	s, err := Open(config, f)
	if errors.Is(err, ErrCorrupt) {
		if f, err = Reset(config); err != nil {
			c.t.Fatal(err)
		}
		if err := f.Join(cluster); err != nil {
			c.t.Fatal(err)
		}
		config.Listener = nil // closed by Open
		s, err = Open(config, f)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = s
	c.answers(id, s.Answer)
	return s
}

// tend does once what package members does for servers with new folders, if a node leads.
func (c *cluster) tend() {
	for _, s := range c.nodes {
		if !s.IsLeader() {
			continue
		}
		ctx := testkit.Context(c.t)
		for _, m := range s.Members() {
			next, replaced := s.Replaced(m)
			for _, other := range s.Members() {
				replaced = replaced && (other.ID != next.ID || other.Directory != next.Directory)
			}
			if node := c.nodes[m.ID]; replaced && node != nil {
				_ = s.AddNonvoter(ctx, node.member()) // again at the next call
			}
			if node := c.nodes[m.ID]; !m.Voter && node != nil && node.self.Directory == m.Directory &&
				node.State().Index() >= s.State().Index() && node.Stats().LastIndex > 0 {
				for _, old := range s.Members() {
					if old.ID == m.ID && old.Directory != m.Directory {
						_ = s.Remove(ctx, old.Server)
					}
				}
				_ = s.Promote(ctx, m.Server)
			}
		}
	}
}

// whole waits until every running node votes with its folder, and no other server does.
func (c *cluster) whole() {
	c.t.Helper()
	testkit.Until(c.t, "every node to vote", func() bool {
		c.tend()
		for _, s := range c.nodes {
			if !s.Votes() || len(s.Members()) != len(c.peers) {
				return false
			}
		}
		return true
	})
}

// open opens a node that has found out how it begins.
func (c *cluster) open(config Config, f *Folder) *Store {
	c.t.Helper()
	s, err := Open(config, f)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[config.ID] = s
	c.answers(config.ID, s.Answer)
	return s
}

// member returns a node that runs as a server of Raft.
func (s *Store) member() Server {
	m := s.self
	m.RaftAddr = s.Addr()
	return m
}

func (c *cluster) config(id string, l net.Listener) Config {
	config := Config{
		ID: id, Dir: filepath.Join(c.dir, id), Listener: l, Peers: c.peers, PeerList: "the same", Ask: c.ask,
		SegmentBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	}
	for _, p := range c.peers {
		if p.ID == id {
			config.RaftAddr = p.RaftAddr
		}
	}
	if c.tune != nil {
		c.tune(&config)
	}
	return config
}

func (c *cluster) closeAll() {
	for id := range c.nodes {
		c.close(id)
	}
}

func (c *cluster) close(id string) {
	c.t.Helper()
	if err := c.nodes[id].Close(); err != nil {
		c.t.Errorf("closing %s: %v", id, err)
	}
	delete(c.nodes, id)
	c.answers(id, nil)
}

// kill ends a node as a signal would, without a transfer of the leadership.
func (c *cluster) kill(id string) {
	c.t.Helper()
	s := c.nodes[id]
	s.refuse()
	s.stop(ErrClosed)
	if err := s.release(); err != nil {
		c.t.Errorf("killing %s: %v", id, err)
	}
	close(s.closed)
	delete(c.nodes, id)
	c.answers(id, nil)
}

// leader waits until some node leads and a majority agrees.
func (c *cluster) leader() *Store {
	c.t.Helper()
	ctx := testkit.Context(c.t)
	var found *Store
	testkit.Until(c.t, "a leader", func() bool {
		for _, s := range c.nodes {
			if s.IsLeader() && s.VerifyLeader(ctx) == nil {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// lead has the leader begin an epoch.
func (c *cluster) lead() (*Store, uint64) {
	c.t.Helper()
	for {
		s := c.leader()
		epoch, err := s.Lead(testkit.Context(c.t), s.config.ID)
		if err == nil {
			return s, epoch
		}
		c.t.Logf("leading again: %v", err)
	}
}

// followers lists the running nodes but one.
func (c *cluster) followers(leader *Store) []*Store {
	var list []*Store
	for _, p := range c.peers {
		if s := c.nodes[p.ID]; s != nil && s != leader {
			list = append(list, s)
		}
	}
	return list
}

// propose proposes to the leader until the entry is acknowledged, as clients do, and
// returns the index.
func (c *cluster) propose(entry []byte) uint64 {
	c.t.Helper()
	for {
		index, _, err := c.leader().Propose(testkit.Context(c.t), entry)
		if err == nil {
			return index
		}
		c.t.Logf("proposing again: %v", err)
	}
}

// wait waits until every running node has applied index.
func (c *cluster) wait(index uint64) {
	c.t.Helper()
	for id, s := range c.nodes {
		if _, err := s.Wait(testkit.Context(c.t), index); err != nil {
			c.t.Fatalf("node %s, entry %d: %v", id, index, err)
		}
	}
}

// memberEntry is an entry that leaves a trace: member i.
func memberEntry(i int) []byte {
	return protocol.EncodeEntry(protocol.EntryMember, &protocol.MemberEntry{ID: memberID(i), Version: "1"})
}

func memberID(i int) string { return fmt.Sprintf("m%04d", i) }

// checkMembers checks that s has exactly the traces of 0 to n-1.
func checkMembers(t testing.TB, s *state.State, n int) {
	t.Helper()
	if got := len(s.Members()); got != n {
		t.Errorf("%d entries were applied, want %d", got, n)
	}
	for i := range n {
		if _, ok := s.Member(memberID(i)); !ok {
			t.Errorf("acknowledged entry %d is lost", i)
		}
	}
}
