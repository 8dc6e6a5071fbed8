package store

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
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

// change makes a change on the leader, and repeats it if its outcome is unknown.
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

// TestReplaceANode: a node that joins has everything before it votes; then one of the first
// dies and is removed, and those that stay go on and come back on other ports.
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

// TestRemovedNodeIsQuiet: a node that is removed while it runs may not learn of it, and
// must not cost the others their leader.
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

// TestPeersAfterChanges: peers that are no members are ignored if they are few.
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

// TestSeed: a cluster that begins with a state has it, and its epochs are above the state's
// index.
func TestSeed(t *testing.T) {
	t.Parallel()
	s := restoredState(t)
	const index = 2_000_000
	reborn := s.Reborn(index)
	if len(reborn.Members()) != 0 || reborn.Index() != index || len(s.Members()) != 5 {
		t.Fatalf("reborn with %d members at %d", len(reborn.Members()), reborn.Index())
	}
	c := &cluster{t: t, dir: t.TempDir(), peers: []Peer{{ID: "a", RaftAddr: "1:1"}, {ID: "b", RaftAddr: "1:2"},
		{ID: "c", RaftAddr: "1:3"}}, nodes: make(map[string]*Store)}
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

// TestStrangersAreRefused: a node of another cluster at the address of a member gets no
// message of Raft, and is told.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.wait(c.propose(memberEntry(0)))
	leader := c.leader()
	out := c.followers(leader)[0]
	at := out.member()
	c.kill(at.ID)

	other := &cluster{t: t, dir: t.TempDir(), nodes: make(map[string]*Store),
		peers: []Peer{{ID: at.ID, RaftAddr: at.RaftAddr}}}
	t.Cleanup(other.closeAll)
	l, err := net.Listen("tcp", at.RaftAddr)
	if err != nil {
		t.Fatal(err)
	}
	stranger := other.start(at.ID, l)
	// The first entry is the configuration, the second is the leader's own.
	testkit.Until(t, "the stranger to lead its own cluster", func() bool {
		return stranger.IsLeader() && stranger.Stats().LastIndex >= 2
	})
	term, last := stranger.Stats().Term, stranger.Stats().LastIndex
	var told Member
	for _, m := range leader.Members() {
		if m.ID == at.ID {
			told = m
		}
	}
	testkit.Until(t, "the leader and the stranger to tell", func() bool {
		return leader.Stranger(told) != "" && len(stranger.Guests()) > 0
	})
	c.propose(memberEntry(1))
	if text := leader.Stranger(told); !strings.Contains(text, stranger.folder.Identity().Cluster) ||
		!strings.Contains(text, leader.folder.Identity().Cluster) {
		t.Errorf("%q does not name both clusters", text)
	}
	if text := strings.Join(stranger.Guests(), ""); !strings.Contains(text, leader.folder.Identity().Cluster) {
		t.Errorf("%q", text)
	}
	if _, replaced := leader.Replaced(told); replaced {
		t.Error("a stranger is taken for a new folder of the member")
	}
	if now := stranger.Stats(); now.Term != term || now.LastIndex != last {
		t.Errorf("the stranger is in term %d at entry %d, it was in term %d at entry %d", now.Term, now.LastIndex, term, last)
	}
	if err := leader.Reach(testkit.Context(t), told.Server); err == nil ||
		!strings.Contains(err.Error(), "the server at this Raft address is") {
		t.Errorf("reaching it: %v", err)
	}
}

// TestGreetingIsBounded: a client that sends nothing, or no greeting, is disconnected and
// delays no other.
func TestGreetingIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(c *Config) { c.Heartbeat = 20 * time.Millisecond })
	s := c.leader()
	for _, say := range []string{"", "GET / HTTP/1.1\r\n\r\n", greetingMagic + "\x01\x01\x01xab",
		string(encodeGreeting(party{"another", "b.1"}, string(raftID(s.self))))} {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, say); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
			t.Errorf("%q: the connection stays open", say)
		}
		if strings.HasPrefix(say, greetingMagic) && (len(answer) < 5 || answer[4] != 0) {
			t.Errorf("%q is answered by %q", say, answer)
		}
		conn.Close()
	}
	if err := s.Reach(testkit.Context(t), s.member()); err == nil {
		t.Error("a node reaches itself as another one")
	}
}

// TestEachEndCompares: each end refuses the other by itself, whatever the other end
// answers.
func TestEachEndCompares(t *testing.T) {
	self := party{"cluster", "a.1"}
	exchange := func(to string, says []byte) (welcome bool) {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		refused := false
		g := &greeted{Conn: here, self: self, to: to, within: time.Minute, strange: func(party, party, string) {
			refused = true
		}}
		go func() {
			there.Write(says)
			io.Copy(io.Discard, there)
		}()
		err := g.greet()
		if (err == nil) == refused {
			t.Errorf("%q: %v, told: %v", says, err, refused)
		}
		return err == nil
	}
	for _, c := range []struct {
		what    string
		dials   party // the other end, which dials
		wants   string
		answers party // the other end, which answers this one, that wants b.1
		says    bool
		welcome bool
	}{
		{"the server", party{"cluster", "b.1"}, "a.1", party{"cluster", "b.1"}, true, true},
		{"another cluster", party{"other", "b.1"}, "a.1", party{"other", "b.1"}, true, false},
		{"another folder", party{"cluster", "b.1"}, "a.2", party{"cluster", "b.2"}, true, false},
		{"another coordinator", party{"cluster", "b.1"}, "c.1", party{"cluster", "c.1"}, true, false},
		{"a refusal, or itself", party{"cluster", "a.1"}, "a.1", party{"cluster", "b.1"}, false, false},
	} {
		if got := exchange("", encodeGreeting(c.dials, c.wants)); got != c.welcome {
			t.Errorf("%s dials: welcome is %v", c.what, got)
		}
		if got := exchange("b.1", encodeReply(c.answers, c.says)); got != c.welcome {
			t.Errorf("%s answers: welcome is %v", c.what, got)
		}
	}
}

// TestResetDrawsAnotherIdentity: reset draws another directory id, forgets the cluster and
// keeps the former files.
func TestResetDrawsAnotherIdentity(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.propose(memberEntry(0))
	was := c.nodes["a"].self
	c.kill("a")
	f, err := Reset(c.config("a", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if i := f.Identity(); i.Directory == was.Directory || i.Cluster != "" {
		t.Errorf("%+v after %+v", i, was)
	}
	for _, name := range []string{formatName, stableName, logName} {
		only(t, filepath.Join(c.dir, "a"), "corrupt/"+name+".[0-9]*")
	}
}

// grown returns a cluster that a began alone, with a snapshot from then. b and c have
// joined since.
func grown(t *testing.T) *cluster {
	c := newCluster(t, 1, nil)
	for i := range 20 {
		c.propose(memberEntry(i))
	}
	if err := c.nodes["a"].Snapshot(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		m := c.join(id).member()
		c.change(func(s *Store) error { return s.AddNonvoter(testkit.Context(t), m) })
		c.change(func(s *Store) error { return s.Promote(testkit.Context(t), m) })
		c.peers = append(c.peers, Peer{ID: id, RaftAddr: m.RaftAddr})
	}
	c.wait(c.propose(memberEntry(20)))
	return c
}

// TestRecoveryOfTheFirst: a node has lost its log, and its snapshot has it as the only
// member. It must not lead beside the leader of the others.
func TestRecoveryOfTheFirst(t *testing.T) {
	t.Parallel()
	c := grown(t)
	for id := range c.nodes {
		c.kill(id)
	}
	rewriteFile(t, only(t, filepath.Join(c.dir, "a"), "log/*.wal"), flipIn(memberID(20)))
	a := c.start("a", nil)
	patience := time.Now().Add(6 * a.config.election())
	testkit.Until(t, "elections", func() bool { return a.IsLeader() || time.Now().After(patience) })
	if a.IsLeader() || a.Stats().Term != 0 {
		t.Fatal("it stands without the others")
	}
	c.start("b", nil)
	c.start("c", nil)
	c.whole()
	c.wait(c.propose(memberEntry(21)))
	testkit.Until(t, "the log", func() bool { return len(a.State().Members()) == 22 })
	checkMembers(t, a.State(), 22)
	if names := memberNames(a); names != "abc" {
		t.Errorf("its members are %s", names)
	}
	testkit.Until(t, "office for it", func() bool {
		return c.leader().HandOver(testkit.Context(t), "a") == nil && a.IsLeader()
	})
}

// TestHalfAVote: a crash between the two steps in which Raft writes a vote leaves no vote
// for the candidate of the term before, which Raft would confirm without a look at its log.
func TestHalfAVote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openStable(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.SetUint64([]byte(keyTerm), 4), s.SetUint64([]byte(keyVotedTerm), 4),
		s.Set([]byte(keyVoted), []byte("b")),
		s.SetUint64([]byte(keyTerm), 5), s.SetUint64([]byte(keyVotedTerm), 5), s.close())
	if err != nil {
		t.Fatal(err)
	}
	if s, err = openStable(dir, "a", false); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if voted, err := s.Get([]byte(keyVoted)); voted != nil || err != nil {
		t.Errorf("it has voted for %q: %v", voted, err)
	}
	if term, err := s.GetUint64([]byte(keyVotedTerm)); term != 5 || err != nil {
		t.Errorf("in term %d: %v", term, err)
	}
}
