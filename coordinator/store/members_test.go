package store

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// join starts a node that waits to be added.
func (c *cluster) join(id string) *Store {
	c.t.Helper()
	l := testkit.Listen(c.t)
	config := c.config(id, l)
	config.RaftAddr = l.Addr().String()
	config.Peers = append(config.Peers[:len(config.Peers):len(config.Peers)], Peer{ID: id, RaftAddr: config.RaftAddr})
	f := c.claim(config)
	if err := f.Join(c.leader().folder.Identity().Cluster); err != nil {
		c.t.Fatal(err)
	}
	return c.open(config, f)
}

// change makes a change on whoever leads, again where it is lost on the way.
func (c *cluster) change(f func(*Store) error) {
	c.t.Helper()
	for {
		err := f(c.leader())
		if err == nil {
			return
		}
		if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrAmbiguous) {
			c.t.Fatal(err)
		}
		c.t.Logf("changing again: %v", err)
	}
}

func memberNames(s *Store) (names string) {
	for _, m := range s.Members() {
		names += m.ID
		if !m.Voter {
			names += "?"
		}
	}
	return names
}

// A node that joins has everything before it votes; then one of the first dies and
// is removed, and those that stay go on and come back on other ports.
func TestReplaceANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	const n = 20
	for i := range n {
		c.propose(memberEntry(i))
	}
	d := c.join("d")
	if got := memberNames(d); got != "" || d.Stats().LastIndex != 0 {
		t.Fatalf("a node that waits has the members %q and a log up to %d", got, d.Stats().LastIndex)
	}
	c.change(func(s *Store) error { return s.AddNonvoter(testkit.Context(t), d.member()) })
	testkit.Until(t, "catching up", func() bool { return d.State().Index() >= c.leader().State().Index() })
	checkMembers(t, d.State(), n)
	if got := memberNames(c.leader()); got != "abcd?" {
		t.Fatalf("members %q", got)
	}
	c.change(func(s *Store) error { return s.Promote(testkit.Context(t), d.member()) })
	gone := c.followers(c.leader())[0].member()
	dead := gone.ID
	c.kill(dead)
	c.change(func(s *Store) error { return s.Remove(testkit.Context(t), gone) })
	c.wait(c.propose(memberEntry(n)))
	if got := d.Stats().Peers; got != 3 {
		t.Errorf("%d members: %q", got, memberNames(d))
	}
	// The rest comes back elsewhere; the dead one is still among the peers given.
	for id := range c.nodes {
		c.kill(id)
	}
	c.peers = append(c.peers, Peer{ID: "d"})
	var stay []Peer
	for _, p := range c.peers {
		if p.ID != dead {
			stay = append(stay, p)
		}
	}
	c.peers = stay
	c.startAll()
	c.wait(c.propose(memberEntry(n + 1)))
	checkMembers(t, c.leader().State(), n+2)
}

// A node that is removed while it runs learns nothing of it, perhaps, and must not
// cost the others their leader.
func TestRemovedNodeIsQuiet(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.leader()
	out := c.followers(leader)[0]
	c.change(func(s *Store) error { return s.Remove(testkit.Context(t), out.member()) })
	term := leader.Stats().Term
	deadline := time.Now().Add(6 * leader.config.election())
	testkit.Until(t, "time in which the removed node could stand for election", func() bool {
		c.propose(memberEntry(int(time.Until(deadline) / time.Millisecond)))
		return time.Now().After(deadline)
	})
	if now := leader.Stats(); now.Term != term || now.Role != "Leader" {
		t.Errorf("term %d as %s, term %d before", now.Term, now.Role, term)
	}
	if out.IsLeader() {
		t.Error("the removed node leads")
	}
}

// Peers that are no members are passed over while they are few.
func TestPeersAfterChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.wait(c.propose(memberEntry(0)))
	c.close("a")
	strange := Peer{ID: "x", RaftAddr: "127.0.0.1:1"}
	config := c.config("a", nil)
	config.Peers = append(config.Peers[:3:3], strange)
	s, err := Open(config, c.claim(config))
	if err != nil {
		t.Fatalf("one strange peer of four: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	config.Peers = []Peer{c.peers[0], strange, {ID: "y", RaftAddr: "127.0.0.1:2"}}
	if _, err := Open(config, c.claim(config)); !errors.Is(err, ErrFolder) {
		t.Errorf("two strange peers of three: %v", err)
	}
}

func TestTransferTo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.leader()
	to := c.followers(leader)[1]
	if err := leader.TransferTo(testkit.Context(t), leader.config.ID); err != nil || !leader.IsLeader() {
		t.Errorf("to itself: %v", err)
	}
	if err := leader.TransferTo(testkit.Context(t), to.config.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the other to lead", to.IsLeader)
	if err := leader.TransferTo(testkit.Context(t), "b"); !errors.Is(err, ErrNotLeader) && leader.config.ID != "b" {
		t.Errorf("a follower hands over: %v", err)
	}
}

// A cluster that begins with a state has it, and its epochs are above the state's
// index.
func TestSeed(t *testing.T) {
	t.Parallel()
	s := restoredState(t)
	const index = 2_000_000
	reborn := s.Reborn(index)
	if len(reborn.Members()) != 0 || reborn.Index() != index || len(s.Members()) != 5 {
		t.Fatalf("reborn with %d members at %d", len(reborn.Members()), reborn.Index())
	}
	c := &cluster{t: t, dir: t.TempDir(), peers: []Peer{{ID: "a", RaftAddr: "1:1"}, {ID: "b", RaftAddr: "1:2"}, {ID: "c", RaftAddr: "1:3"}}, nodes: make(map[string]*Store)}
	t.Cleanup(c.closeAll)
	for _, p := range c.peers {
		if err := Seed(c.config(p.ID, nil), "restored", reborn); err != nil {
			t.Fatal(err)
		}
		if err := Seed(c.config(p.ID, nil), "restored", reborn); !errors.Is(err, ErrFolder) {
			t.Errorf("a folder is seeded twice: %v", err)
		}
	}
	c.startAll()
	for _, n := range c.nodes {
		if !bytes.Equal(encoded(t, n.State()), encoded(t, reborn)) {
			t.Errorf("node %s begins with another state, index %d", n.config.ID, n.State().Index())
		}
	}
	_, epoch := c.lead()
	if epoch <= index {
		t.Errorf("epoch %d after index %d", epoch, index)
	}
	c.wait(c.propose(memberEntry(0)))
	for id := range c.nodes {
		c.kill(id)
	}
	c.startAll()
	c.wait(c.propose(memberEntry(1)))
	checkMembers(t, c.leader().State(), 2)
}

// restoredState is a state of five entries.
func restoredState(t *testing.T) *state.State {
	t.Helper()
	s := state.New()
	for i := range 5 {
		next, result := s.Apply(uint64(10+i), memberEntry(i))
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		s = next
	}
	return s
}
