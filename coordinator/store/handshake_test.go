package store

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// A node of another cluster at the address of a member gets nothing of Raft's and is told.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.wait(c.propose(memberEntry(0)))
	leader := c.leader()
	out := c.followers(leader)[0]
	at := out.member()
	c.kill(at.ID)

	other := &cluster{t: t, dir: t.TempDir(), nodes: make(map[string]*Store), peers: []Peer{{ID: at.ID, RaftAddr: at.RaftAddr}}}
	t.Cleanup(other.closeAll)
	l, err := net.Listen("tcp", at.RaftAddr)
	if err != nil {
		t.Fatal(err)
	}
	stranger := other.start(at.ID, l)
	// The first entry is the configuration, the second is the leader's own.
	testkit.Until(t, "the stranger to lead its own cluster", func() bool { return stranger.IsLeader() && stranger.Stats().LastIndex >= 2 })
	term, last := stranger.Stats().Term, stranger.Stats().LastIndex
	var told Member
	for _, m := range leader.Members() {
		if m.ID == at.ID {
			told = m
		}
	}
	testkit.Until(t, "the leader and the stranger to tell", func() bool { return leader.Stranger(told) != "" && len(stranger.Guests()) > 0 })
	c.propose(memberEntry(1))
	if text := leader.Stranger(told); !strings.Contains(text, stranger.folder.Identity().Cluster) || !strings.Contains(text, leader.folder.Identity().Cluster) {
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
	if err := leader.Reach(testkit.Context(t), told.Server); err == nil || !strings.Contains(err.Error(), "the server at this Raft address is") {
		t.Errorf("reaching it: %v", err)
	}
}

// Who says nothing, or something else than a greeting, is disconnected and holds up nobody.
func TestGreetingIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(c *Config) { c.Heartbeat = 20 * time.Millisecond })
	s := c.leader()
	for _, say := range []string{"", "GET / HTTP/1.1\r\n\r\n", greetingMagic + "\x01\x01\x01xab", string(encodeGreeting(party{"another", "b.1"}, string(s.self.raftID())))} {
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

// Either end refuses the other by itself, whatever the other end says.
func TestEachEndCompares(t *testing.T) {
	self := party{"cluster", "a.1"}
	exchange := func(to string, says []byte) (welcome bool) {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		refused := false
		g := &greeted{Conn: here, self: self, to: to, within: time.Minute, strange: func(party, party, string) { refused = true }}
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

// Reset draws another directory id, forgets the cluster and keeps the former files.
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
