package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// grown is a cluster that a began alone, with a snapshot of that time, and that b and
// c have joined since.
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

// A node that lost its log and whose snapshot is of a time when it was the only
// member must not take itself for all of the cluster: it would lead beside the leader
// of the others.
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
	testkit.Until(t, "office for it", func() bool { return c.leader().HandOver(testkit.Context(t), "a") == nil && a.IsLeader() })
}

// A crash between the two steps in which Raft writes a vote leaves no vote of that
// term: one for the candidate of the term before would be confirmed without a look at
// its log.
func TestHalfAVote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openStable(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.SetUint64([]byte(keyTerm), 4), s.SetUint64([]byte(keyVotedTerm), 4), s.Set([]byte(keyVoted), []byte("b")),
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
