package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// listed returns a cluster of a, b and c on free ports. None of them runs.
func listed(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), nodes: make(map[string]*Store)}
	for _, id := range []string{"a", "b", "c"} {
		c.peers = append(c.peers, Peer{ID: id, RaftAddr: testkit.FreeAddress(t)})
	}
	t.Cleanup(c.closeAll)
	return c
}

// launched is a node that starts in the background.
type launched struct {
	id     string
	node   *Store
	err    error
	cancel context.CancelFunc
	done   chan struct{}
}

// launch starts a node that may have to wait for others. A fault may end it.
func (c *cluster) launch(id string, fault func(step string) error) *launched {
	c.t.Helper()
	config := c.config(id, nil)
	config.fault = fault
	l := &launched{id: id, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(testkit.Context(c.t))
	l.cancel = cancel
	f, err := Claim(config)
	if err != nil {
		l.err = err
		close(l.done)
		return l
	}
	c.answers(id, f.Answer)
	go func() {
		defer close(l.done)
		if l.err = f.Decide(ctx); l.err != nil {
			c.answers(id, nil)
			l.err = errors.Join(l.err, f.Close())
			return
		}
		if l.node, l.err = Open(config, f); l.err != nil {
			c.answers(id, nil)
			return
		}
		c.answers(id, l.node.Answer)
	}()
	return l
}

// await waits for a node that was launched.
func (c *cluster) await(l *launched) {
	c.t.Helper()
	<-l.done
	if l.err != nil {
		c.t.Fatalf("%s: %v", l.id, l.err)
	}
	c.nodes[l.id] = l.node
}

// stop ends a node that was launched, however far it is.
func (c *cluster) stop(l *launched) {
	l.cancel()
	<-l.done
	if l.node != nil {
		c.nodes[l.id] = l.node
		c.kill(l.id)
	}
}

// all starts nodes that wait for each other.
func (c *cluster) all(ids ...string) {
	c.t.Helper()
	var list []*launched
	for _, id := range ids {
		list = append(list, c.launch(id, nil))
	}
	for _, l := range list {
		c.await(l)
	}
}

// forgets has ways in which the folder of a node loses its content.
var forgets = map[string]func(t *testing.T, dir string){
	"everything": func(t *testing.T, dir string) { remove(t, dir) },
	"all but the lock": func(t *testing.T, dir string) {
		remove(t, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	},
	"the votes":             func(t *testing.T, dir string) { remove(t, filepath.Join(dir, stableName)) },
	"both copies of a vote": func(t *testing.T, dir string) { loseVotes(t, dir) },
	"the log, and that it was": func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, logName), filepath.Join(dir, ackedName), filepath.Join(dir, snapshotsName))
	},
	"all but the votes": func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, logName), filepath.Join(dir, ackedName), filepath.Join(dir, snapshotsName),
			filepath.Join(dir, formatName), filepath.Join(dir, formatCopy))
	},
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForgottenFolderDoesNotVote: while another node lags behind, a node that has lost its
// log elects no candidate that lacks acknowledged entries: it is another server.
func TestForgottenFolderDoesNotVote(t *testing.T) {
	t.Parallel()
	for name, forget := range forgets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, nil)
			c.wait(c.propose(memberEntry(0)))
			late := c.followers(c.leader())[0].config.ID
			c.kill(late)
			last := c.propose(memberEntry(1))
			c.wait(last)
			leader := c.leader()
			a, b := leader.config.ID, c.followers(leader)[0].config.ID
			was := c.nodes[b].self
			c.kill(a)
			c.kill(b)
			s := c.start(late, nil)
			forget(t, filepath.Join(c.dir, b))
			if again := c.start(b, nil); again.self == was {
				t.Fatal("it has the identity of the folder that it lost")
			}
			deadline := time.Now().Add(4 * s.config.election())
			testkit.Until(t, "time for an election", func() bool {
				if s.IsLeader() || c.nodes[b].IsLeader() {
					t.Fatal("a leader was elected that lacks what was acknowledged")
				}
				return time.Now().After(deadline)
			})
			c.start(a, nil)
			c.whole()
			c.wait(c.propose(memberEntry(2)))
			checkMembers(t, c.leader().State(), 3)
		})
	}
}

// TestTwoOfThreeForget: if two of three nodes have lost their logs, a majority of the disks
// is lost. No leader is elected, and the third node keeps its log.
func TestTwoOfThreeForget(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.wait(c.propose(memberEntry(0)))
	up := c.leader()
	for _, f := range c.followers(up) {
		c.kill(f.config.ID)
		remove(t, filepath.Join(c.dir, f.config.ID))
	}
	for _, p := range c.peers {
		if p.ID != up.config.ID {
			c.start(p.ID, nil)
		}
	}
	deadline := time.Now().Add(6 * up.config.election())
	testkit.Until(t, "time for an election", func() bool {
		for id, s := range c.nodes {
			if id != up.config.ID && s.Answer().Phase != PhaseJoining {
				t.Fatalf("%s is %s", id, s.Answer().Phase)
			}
		}
		return time.Now().After(deadline)
	})
	for id, s := range c.nodes {
		if s.IsLeader() {
			t.Errorf("%s leads", id)
		}
	}
	checkMembers(t, up.State(), 1)
}

// TestEachFolderInTurn: the folders of all nodes are replaced in turn, and nothing is lost.
func TestEachFolderInTurn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i, p := range c.peers {
		c.wait(c.propose(memberEntry(i)))
		c.kill(p.ID)
		remove(t, filepath.Join(c.dir, p.ID))
		c.start(p.ID, nil)
		c.whole()
	}
	c.wait(c.propose(memberEntry(3)))
	for _, s := range c.nodes {
		checkMembers(t, s.State(), 4)
	}
}

// TestFirstStart: a cluster begins when all of its peers answer, and a node that waits says
// for what.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	c := listed(t)
	a, b := c.launch("a", nil), c.launch("b", nil)
	testkit.Until(t, "a to say what it waits for", func() bool {
		f, err := c.ask(context.Background(), "a")
		return err == nil && f.Phase == PhaseNew
	})
	other := c.config("c", nil)
	other.PeerList = "another"
	f := c.claim(other)
	ctx, cancel := context.WithTimeout(testkit.Context(t), 50*time.Millisecond)
	defer cancel()
	if err := f.Decide(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with another list: %v", err)
	}
	for _, want := range []string{"all 3 coordinators", "a has --peers the same, this coordinator has another"} {
		if !strings.Contains(f.Waits(), want) {
			t.Errorf("%q lacks %q", f.Waits(), want)
		}
	}
	c.answers("c", nil)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	third := c.launch("c", nil)
	for _, l := range []*launched{a, b, third} {
		c.await(l)
	}
	c.whole()
	ids := make(map[string]bool)
	for _, s := range c.nodes {
		ids[s.folder.Identity().Cluster] = true
	}
	if len(ids) != 1 {
		t.Errorf("clusters %v", ids)
	}
}

// errCrash stands for the end of a process.
var errCrash = errors.New("crash")

// startSteps has the steps of a first start that write to the disk, in order.
var startSteps = []string{"identity", "identity-copy", "votes", "settle", "settle-copy", "vote", "append"}

// TestFirstStartCutShort: a node is killed at any step of a first start, and then the
// folder of any node is lost as well. The cluster still begins, and has all acknowledged
// entries.
func TestFirstStartCutShort(t *testing.T) {
	t.Parallel()
	for _, step := range startSteps {
		for _, victim := range []string{"a", "b", "c"} {
			for _, wiped := range []string{"", "a", "b", "c"} {
				t.Run(fmt.Sprintf("%s of %s, wiped %s", step, victim, wiped), func(t *testing.T) {
					t.Parallel()
					firstStartCutShort(t, step, victim, wiped)
				})
			}
		}
	}
}

func firstStartCutShort(t *testing.T, step, victim, wiped string) {
	c := listed(t)
	nodes := make(map[string]*launched)
	for _, p := range c.peers {
		var fault func(string) error
		if p.ID == victim {
			fault = func(op string) error {
				if op == step {
					return errCrash
				}
				return nil
			}
		}
		nodes[p.ID] = c.launch(p.ID, fault)
	}
	<-nodes[victim].done
	if err := nodes[victim].err; err == nil || !strings.Contains(err.Error(), errCrash.Error()) {
		t.Fatalf("%s at %s: %v", victim, step, err)
	}
	acknowledged := 0
	others := slices.DeleteFunc([]string{"a", "b", "c"}, func(id string) bool { return id == victim })
	deadline := time.Now().Add(2 * time.Second)
	testkit.Until(t, "the others to begin, or to wait", func() bool {
		for _, id := range others {
			select {
			case <-nodes[id].done:
			default:
				return time.Now().After(deadline) || c.waits(id)
			}
		}
		return true
	})
	running := true
	for _, id := range others {
		select {
		case <-nodes[id].done:
			c.await(nodes[id])
		default:
			running = false
		}
	}
	if running {
		c.wait(c.propose(memberEntry(0)))
		acknowledged = 1
	}
	if wiped != "" {
		if wiped != victim {
			c.stop(nodes[wiped])
		}
		remove(t, filepath.Join(c.dir, wiped))
	}
	var again []*launched
	for _, id := range []string{"a", "b", "c"} {
		if id == victim || id == wiped {
			again = append(again, c.launch(id, nil))
		}
	}
	for _, l := range again {
		c.await(l)
	}
	for _, id := range others {
		if c.nodes[id] == nil {
			c.await(nodes[id])
		}
	}
	c.whole()
	c.wait(c.propose(memberEntry(acknowledged)))
	for _, s := range c.nodes {
		checkMembers(t, s.State(), acknowledged+1)
	}
}

// waits reports whether a node that starts says that it waits.
func (c *cluster) waits(id string) bool {
	a, err := c.ask(context.Background(), id)
	return err == nil && a.Phase == PhaseNew && a.Cluster == ""
}

// TestBegunIsNotNew: a node has begun a cluster that went on without it. With an emptied
// node it does not begin another cluster.
func TestBegunIsNotNew(t *testing.T) {
	t.Parallel()
	c := listed(t)
	c.all("a", "b", "c")
	c.kill("a")
	c.wait(c.propose(memberEntry(0)))
	c.kill("b")
	c.kill("c")
	remove(t, filepath.Join(c.dir, "b"))
	a := c.start("a", nil)
	b := c.start("b", nil)
	deadline := time.Now().Add(4 * a.config.election())
	testkit.Until(t, "time for an election", func() bool {
		if a.IsLeader() || b.Answer().Phase != PhaseJoining {
			t.Fatalf("a begins anew with b, which is %s", b.Answer().Phase)
		}
		return time.Now().After(deadline)
	})
	c.start("c", nil)
	c.whole()
	c.wait(c.propose(memberEntry(1)))
	checkMembers(t, c.leader().State(), 2)
}

// TestEmptiedWhileOthersBegin: a is emptied after it has decided. b, which is about to
// begin as a said, asks a once more.
func TestEmptiedWhileOthersBegin(t *testing.T) {
	t.Parallel()
	c := listed(t)
	b := c.claim(c.config("b", nil))
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	old := Answer{Phase: PhaseOpening, ID: "a", Cluster: "x",
		Founders: []Server{{ID: "a", Directory: "1", RaftAddr: "a:1"}, {ID: "b", Directory: b.Identity().Directory,
			RaftAddr: "b:1"}, {ID: "c", Directory: "3", RaftAddr: "c:1"}}}
	asked := 0
	c.answers("a", func() Answer {
		if asked++; asked == 1 {
			return old
		}
		if own := b.Answer(); asked == 2 && own.Phase == PhaseNew {
			t.Error("b says that it is new while it is about to begin")
		}
		return Answer{Phase: PhaseNew, ID: "a", Directory: "2", Peers: "the same", Heartbeat: b.config.Heartbeat}
	})
	ctx, cancel := context.WithTimeout(testkit.Context(t), 100*time.Millisecond)
	defer cancel()
	if err := b.Decide(ctx); !errors.Is(err, context.DeadlineExceeded) || settled(b) || asked < 2 {
		t.Errorf("%v, settled %v after %d questions", err, settled(b), asked)
	}
}

// TestMixedRestore: nodes that were restored from two backups do not begin a cluster
// together.
func TestMixedRestore(t *testing.T) {
	t.Parallel()
	c := listed(t)
	for id, cluster := range map[string]string{"a": "monday", "b": "monday", "c": "tuesday"} {
		if err := Seed(c.config(id, nil), cluster, restoredState(t)); err != nil {
			t.Fatal(err)
		}
	}
	var waits []string
	folders := make(map[string]*Folder)
	for _, p := range c.peers {
		folders[p.ID] = c.claim(c.config(p.ID, nil))
	}
	for _, p := range c.peers {
		ctx, cancel := context.WithTimeout(testkit.Context(t), 100*time.Millisecond)
		if err := folders[p.ID].Decide(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", p.ID, err)
		}
		cancel()
		waits = append(waits, folders[p.ID].Waits())
	}
	for i, want := range []string{"the folder is new; the cluster starts once all 3 coordinators answer, each with a " +
		"new folder and", "the folder is new; the cluster starts once all 3 coordinators answer, each with a new folder and",
		"the folder is new; the cluster starts once all 3 coordinators answer, each with a new folder and"} {
		if !strings.Contains(waits[i], want) || !strings.Contains(waits[i], "the same backup") {
			t.Errorf("%s: %q lacks %q", c.peers[i].ID, waits[i], want)
		}
	}
	for id, f := range folders {
		c.answers(id, nil)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	remove(t, filepath.Join(c.dir, "c"))
	if err := Seed(c.config("c", nil), "monday", restoredState(t)); err != nil {
		t.Fatal(err)
	}
	c.all("a", "b", "c")
	c.whole()
	c.wait(c.propose(memberEntry(5)))
	checkMembers(t, c.leader().State(), 6)
}

func settled(f *Folder) bool {
	i := f.Identity()
	return i.settled()
}

var errDown = errors.New("it is down")

func TestDecide(t *testing.T) {
	self := Answer{Phase: PhaseNew, ID: "a", Directory: "1", Peers: "p", Heartbeat: time.Second}
	fresh := func(id string) reply {
		return reply{Answer: Answer{Phase: PhaseNew, ID: id, Directory: id + "1", Peers: "p", Heartbeat: time.Second}}
	}
	with := func(r reply, change func(*Answer)) reply {
		change(&r.Answer)
		return r
	}
	founders := []Server{{ID: "a", Directory: "1"}, {ID: "b", Directory: "b1"}, {ID: "c", Directory: "c1"}}
	member := func(cluster string, servers ...Server) reply {
		return reply{Answer: Answer{Phase: PhaseMember, Cluster: cluster, Members: servers}}
	}
	down := reply{err: errDown}
	for name, test := range map[string]struct {
		self Answer
		b, c reply
		want string // begins, adopts, joins, or a part of what it waits for
	}{
		"all down": {self, down, down, "it is down"},
		"one down": {self, fresh("b"), down, "it is down"},
		"all new":  {self, fresh("b"), fresh("c"), "begins"},
		"another decides": {Answer{Phase: PhaseNew, ID: "x", Directory: "1", Peers: "p", Heartbeat: time.Second},
			fresh("b"), fresh("c"), "b starts the cluster"},
		"another list": {self, fresh("b"), with(fresh("c"), func(a *Answer) { a.Peers = "q" }), "c has --peers q"},
		"another heartbeat": {self, with(fresh("b"), func(a *Answer) {
			a.Heartbeat = 2
		}), fresh("c"), "b has --heartbeat 2ns"},
		"about to begin": {self, with(fresh("b"), func(a *Answer) {
			a.Phase = PhaseOpening
		}), fresh("c"), "b is starting"},
		"begun with this": {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x", Founders: founders}},
			down, "adopts"},
		"begun with another": {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x",
			Founders: []Server{{ID: "a", Directory: "0"}}}}, fresh("c"), "joins"},
		"a member":  {self, member("x", Server{ID: "a", Directory: "0"}), down, "joins"},
		"no member": {self, member("x", Server{ID: "b", Directory: "0"}), down, "a is not one of them"},
		"its log is not open": {self, reply{Answer: Answer{Phase: PhaseOpening, Cluster: "x"}}, down,
			"b is still reading its log; it is down"},
		"two clusters": {self, member("x", Server{ID: "a"}), member("y", Server{ID: "a"}),
			"c is a member of cluster y, not of cluster x: give every coordinator folders of one cluster"},
		"another cluster": {with(reply{self, nil}, func(a *Answer) {
			a.Cluster = "z"
		}).Answer, member("x", Server{ID: "a"}), down, "b is a member of cluster x, not of cluster z: give every " +
			"coordinator folders of one cluster"},
		"its own cluster": {with(reply{self, nil}, func(a *Answer) {
			a.Cluster = "x"
		}).Answer, member("x", Server{ID: "a"}), down, "joins"},
		"it has lost its log": {with(reply{self, nil}, func(a *Answer) {
			a.Cluster = "x"
		}).Answer, fresh("b"), fresh("c"), "this coordinator was a member of cluster x, but no coordinator that answers " +
			"has its log"},
		"b has lost its log": {self, with(fresh("b"), func(a *Answer) {
			a.Cluster = "x"
		}), fresh("c"), "b was a member of cluster x and has lost its log"},
		"b alone was restored": {self, with(fresh("b"), func(a *Answer) {
			a.Cluster, a.Seeded = "x", true
		}), fresh("c"), "b was restored from a backup, and a was not"},
		"this alone is restored": {with(reply{self, nil}, func(a *Answer) {
			a.Cluster, a.Seeded = "x", true
		}).Answer, fresh("b"), fresh("c"), "a was restored from a backup, and b was not"},
		"all restored": {with(reply{self, nil}, func(a *Answer) { a.Cluster, a.Seeded = "x", true }).Answer,
			with(fresh("b"), func(a *Answer) {
				a.Cluster, a.Seeded = "x", true
			}), with(fresh("c"), func(a *Answer) { a.Cluster, a.Seeded = "x", true }), "begins"},
	} {
		d := decide(&test.self, map[string]reply{"b": test.b, "c": test.c})
		got := strings.Join(d.waits, "; ")
		switch {
		case d.cluster == "":
		case len(d.founders) == 0:
			got = "joins"
		case d.from != "":
			got = "adopts"
		default:
			got = "begins"
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if test.self.Cluster != "" && d.cluster != "" && d.cluster != test.self.Cluster {
			t.Errorf("%s: cluster %s", name, d.cluster)
		}
		if got == "begins" && !slices.EqualFunc(d.founders, founders, func(a, b Server) bool {
			return a.ID == b.ID && a.Directory == b.Directory
		}) {
			t.Errorf("%s: founders %v", name, d.founders)
		}
	}
}

// FuzzIdentity: a FORMAT file is read as it was written, or refused.
func FuzzIdentity(f *testing.F) {
	whole := Identity{ID: "a", Directory: "12", Cluster: "c",
		Founders: []Server{{ID: "a", Directory: "12", RaftAddr: "h:1"}}, Seeded: true}
	f.Add([]byte(whole.encode()))
	f.Add([]byte("coppice raft folder, format 5, node b\n00000000 {}\n"))
	f.Add([]byte("coppice raft folder, format 4, node a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := parseIdentity(b, "a")
		if err != nil {
			return
		}
		again, err := parseIdentity([]byte(i.encode()), i.ID)
		if err != nil || again.Directory != i.Directory || again.Cluster != i.Cluster ||
			!slices.Equal(again.Founders, i.Founders) {
			t.Fatalf("%+v is read again as %+v: %v", i, again, err)
		}
	})
}

// TestIdentitySurvivesABit: after any single bit of a copy of FORMAT is flipped, the
// identity is the same.
func TestIdentitySurvivesABit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Identity{ID: "a", Directory: NewID(), Cluster: NewID(),
			Founders: []Server{{ID: "a", Directory: "1", RaftAddr: "h:1"}, {ID: "b", Directory: "2", RaftAddr: "h:2"}}}
		b := []byte(i.encode())
		at := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		b[at/8] ^= 1 << (at % 8)
		if got, err := parseIdentity(b, "a"); err == nil && (got.Directory != i.Directory || got.Cluster != i.Cluster) {
			t.Fatalf("bit %d: read as %+v", at, got)
		}
	})
}

func TestParseServer(t *testing.T) {
	s := Server{ID: "node-1", Directory: "ab12", RaftAddr: "[::1]:7101"}
	if got := parseServer(raftID(s), addressOf(s)); got != s {
		t.Errorf("%+v is read as %+v", s, got)
	}
}
