package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/internal/harness/testkit"
)

// listed is a cluster of a, b and c, on ports that are free, of which none runs.
func listed(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), nodes: make(map[string]*Store)}
	for _, id := range []string{"a", "b", "c"} {
		c.peers = append(c.peers, Peer{ID: id, RaftAddr: testkit.FreeAddress(t)})
	}
	t.Cleanup(c.closeAll)
	return c
}

// launch starts a node that may have to wait for others; the channel has it once it
// runs, and is closed where it could not start.
func (c *cluster) launch(id string) <-chan *Store {
	c.t.Helper()
	config := c.config(id, nil)
	s := c.look(config)
	done, ended := make(chan *Store, 1), make(chan struct{})
	var node *Store
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		defer close(done)
		if err := c.decide(ctx, s); err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("%s: %v", id, err)
			}
			return
		}
		var err error
		if node, err = Open(config); err != nil {
			c.t.Errorf("%s: %v", id, err)
			return
		}
		c.answers(id, node.Answer)
		done <- node
	}()
	c.t.Cleanup(func() {
		cancel()
		<-ended
		if node != nil {
			_ = node.Close() // again, perhaps
		}
	})
	return done
}

// all starts nodes that wait for each other.
func (c *cluster) all(ids ...string) {
	c.t.Helper()
	var done []<-chan *Store
	for _, id := range ids {
		done = append(done, c.launch(id))
	}
	for i, id := range ids {
		c.await(id, done[i])
	}
}

// await waits for a node that was launched.
func (c *cluster) await(id string, done <-chan *Store) {
	c.t.Helper()
	node := <-done
	if node == nil {
		c.t.Fatalf("%s did not start", id)
	}
	c.nodes[id] = node
}

// phase is what a node says of itself; empty: nothing.
func (c *cluster) phase(id string) Phase {
	a, err := c.ask(context.Background(), id)
	if err != nil {
		return ""
	}
	return a.Phase
}

// forgets are ways in which a node's folder loses what it had.
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
		remove(t, filepath.Join(dir, logName), filepath.Join(dir, ackedName), filepath.Join(dir, snapshotsName), filepath.Join(dir, formatName), filepath.Join(dir, begunName))
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

// A node that forgets what it had, while another lags behind, elects nobody who
// lacks what was acknowledged.
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
			c.kill(a)
			c.kill(b)
			forget(t, filepath.Join(c.dir, b))
			began := c.launch(b)
			s := c.start(late, nil)
			deadline := time.Now().Add(4 * s.config.election())
			testkit.Until(t, "time for an election", func() bool {
				if s.IsLeader() {
					t.Fatal("a leader was elected that lacks what was acknowledged")
				}
				return time.Now().After(deadline)
			})
			c.start(a, nil)
			c.await(b, began)
			testkit.Until(t, "the node that forgot to vote again", func() bool { return c.phase(b) == PhaseMember })
			c.wait(c.propose(memberEntry(2)))
			checkMembers(t, c.leader().State(), 3)
		})
	}
}

// Where two of three have forgotten, a majority of the disks is lost: nobody is
// elected, and the third keeps what it has.
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
			c.launch(p.ID)
		}
	}
	testkit.Until(t, "both to know that they have lost their logs", func() bool {
		n := 0
		for _, p := range c.peers {
			if c.phase(p.ID) == PhaseLost {
				n++
			}
		}
		return n == 2
	})
	deadline := time.Now().Add(4 * up.config.election())
	testkit.Until(t, "time for an election", func() bool { return time.Now().After(deadline) })
	if up.IsLeader() || c.phase(up.config.ID) != PhaseMember {
		t.Errorf("the node that is left leads, or is %s", c.phase(up.config.ID))
	}
	checkMembers(t, up.State(), 1)
}

// A first start with one node missing begins; the node that comes later has
// everything, and votes. With two missing it waits, and says for what.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	c := listed(t)
	s := c.look(c.config("a", nil))
	ctx, cancel := context.WithTimeout(testkit.Context(t), 50*time.Millisecond)
	defer cancel()
	if err := c.decide(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone: %v", err)
	}
	for _, want := range []string{"2 of 3", "b does not answer", "c does not answer"} {
		if !strings.Contains(s.Waits(), want) {
			t.Errorf("%q lacks %q", s.Waits(), want)
		}
	}
	c.all("a", "b")
	testkit.Until(t, "two nodes with a log", func() bool { return c.phase("a") == PhaseMember && c.phase("b") == PhaseMember })
	c.all("c")
	testkit.Until(t, "the third to vote", func() bool { return c.phase("c") == PhaseMember })
}

// errCrash stands for the end of a process.
var errCrash = errors.New("crash")

// A crash at any step of a first start leaves a folder that starts right, also where
// the third node never comes.
func TestFirstStartCutShort(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"new", "begun", "votes", "format", "append", "old"} {
		for _, others := range [][]string{{"b"}, {"b", "c"}} {
			t.Run(step+" with "+strings.Join(others, ""), func(t *testing.T) {
				t.Parallel()
				c := listed(t)
				var rest []<-chan *Store
				for _, id := range others {
					rest = append(rest, c.launch(id))
				}
				config := c.config("a", nil)
				config.fault = func(op string) error {
					if op == step {
						return errCrash
					}
					return nil
				}
				if err := c.crash(config); err == nil || !strings.Contains(err.Error(), errCrash.Error()) {
					t.Fatalf("%v", err)
				}
				c.all("a")
				for i, id := range others {
					c.await(id, rest[i])
				}
				testkit.Until(t, "all to vote", func() bool {
					for _, id := range append(others, "a") {
						if c.phase(id) != PhaseMember {
							return false
						}
					}
					return true
				})
			})
		}
	}
}

// crash starts a node until its fault ends it.
func (c *cluster) crash(config Config) error {
	s, err := NewStart(config)
	if err != nil {
		return err
	}
	c.answers(config.ID, s.Answer)
	defer c.answers(config.ID, nil)
	if err := c.decide(testkit.Context(c.t), s); err != nil {
		return err
	}
	n, err := Open(config)
	if err == nil {
		err = n.Close()
	}
	return err
}

// A node that has begun and that nobody has reached since is not new: with one that
// was emptied it does not begin again what the third has gone on with.
func TestBegunIsNotNew(t *testing.T) {
	t.Parallel()
	c := listed(t)
	c.decideAll()
	c.answers("a", nil) // it has decided, and is down
	for _, p := range c.peers[1:] {
		c.open(c.config(p.ID, nil))
	}
	c.wait(c.propose(memberEntry(0)))
	c.kill("b")
	c.kill("c")
	remove(t, filepath.Join(c.dir, "b"))
	a, began := c.start("a", nil), c.launch("b")
	deadline := time.Now().Add(4 * a.config.election())
	testkit.Until(t, "time for an election", func() bool {
		if a.IsLeader() || c.phase("b") != PhaseNew {
			t.Fatalf("a begins anew with b, which is %s", c.phase("b"))
		}
		return time.Now().After(deadline)
	})
	c.start("c", nil)
	c.await("b", began)
	testkit.Until(t, "b to vote again", func() bool { return c.phase("b") == PhaseMember })
	c.wait(c.propose(memberEntry(1)))
	checkMembers(t, c.leader().State(), 2)
}

// A crash while a node that forgot finds its term does not make it new.
func TestForgottenIsRemembered(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"lost", "term", "format"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, nil)
			c.wait(c.propose(memberEntry(0)))
			id := c.followers(c.leader())[0].config.ID
			c.kill(id)
			remove(t, filepath.Join(c.dir, id))
			config := c.config(id, nil)
			config.fault = func(op string) error {
				if op == step {
					return errCrash
				}
				return nil
			}
			if err := c.crash(config); !errors.Is(err, errCrash) {
				t.Fatalf("%v", err)
			}
			if step != "lost" {
				f, err := claim(config.Dir)
				if err != nil {
					t.Fatal(err)
				}
				s, err := f.look(id)
				if err = errors.Join(err, f.close()); err != nil || s.phase == PhaseNew || s.phase == PhaseBegun {
					t.Errorf("the folder is %s, %v", s.phase, err)
				}
			}
			s := c.start(id, nil)
			c.wait(c.propose(memberEntry(1)))
			testkit.Until(t, "end of trouble", func() bool { return s.Trouble() == nil })
			checkMembers(t, s.State(), 2)
		})
	}
}
