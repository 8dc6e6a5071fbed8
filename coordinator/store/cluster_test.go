package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestFailover: a leader that is closed or killed has a successor with all that was
// acknowledged, and the last node back catches up.
func TestFailover(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	const each = 20
	n := 0
	for _, end := range []func(string){c.close, c.kill} {
		var last uint64
		for range each {
			last = c.propose(memberEntry(n))
			n++
		}
		old := c.leader()
		id := old.config.ID
		began := time.Now()
		end(id)
		leader := c.leader()
		t.Logf("a new leader after %v", time.Since(began))
		if leader.config.ID == id {
			t.Fatalf("%s still leads", id)
		}
		if s, err := leader.Wait(testkit.Context(t), last); err != nil {
			t.Fatal(err)
		} else {
			checkMembers(t, s, n)
		}
		if _, _, err := old.Propose(testkit.Context(t), memberEntry(n)); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed store answers %v", err)
		}
		c.start(id, nil)
	}
	c.wait(c.propose(memberEntry(n)))
	for _, s := range c.nodes {
		checkMembers(t, s.State(), n+1)
	}
}

func TestFollowerRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.leader()
	follower := c.followers(leader)[0]
	_, _, err := follower.Propose(testkit.Context(t), memberEntry(0))
	var not *NotLeaderError
	if !errors.Is(err, ErrNotLeader) || !errors.As(err, &not) {
		t.Fatalf("a follower answers %v", err)
	}
	if not.Leader != "" && not.Leader != leader.config.ID {
		t.Errorf("it names %q, the leader is %q", not.Leader, leader.config.ID)
	}
	if err := follower.TransferTo(testkit.Context(t), ""); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower hands over: %v", err)
	}
	if follower.VerifyLeader(testkit.Context(t)) == nil || follower.Barrier(testkit.Context(t)) == nil {
		t.Error("a follower passes as the leader")
	}
}

// TestRestartAll: all nodes may stop and start again elsewhere.
func TestRestartAll(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	const n = 30
	for i := range n {
		c.propose(memberEntry(i))
	}
	before := c.leader()
	want := before.State()
	for id := range c.nodes {
		c.kill(id)
	}
	c.startAll()
	c.wait(want.Index())
	for id, s := range c.nodes {
		checkMembers(t, s.State(), n)
		if !bytes.Equal(encoded(t, s.State()), encoded(t, want)) {
			t.Errorf("node %s has another state", id)
		}
	}
	c.wait(c.propose(memberEntry(n)))
}

func encoded(t *testing.T, s *state.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestStaleLeader: what an old leader still sends after another Lead is refused everywhere.
func TestStaleLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	old, epoch := c.lead()
	job := submitJob(t, c)
	if err := old.TransferTo(testkit.Context(t), ""); err != nil {
		t.Fatal(err)
	}
	leader, next := c.lead()
	run := protocol.JobStateEntry{Epoch: epoch, Job: job, State: protocol.Running}
	index, value, err := leader.Propose(testkit.Context(t), protocol.EncodeEntry(protocol.EntryJobState, &run))
	if !errors.Is(err, state.ErrStaleEpoch) || index == 0 || value != nil {
		t.Errorf("an entry of epoch %d in epoch %d: index %d, %v, %v", epoch, next, index, value, err)
	}
	run.Epoch = next
	_, value, err = leader.Propose(testkit.Context(t), protocol.EncodeEntry(protocol.EntryJobState, &run))
	if err != nil || value.(*state.Job).State != protocol.Running {
		t.Errorf("an entry of this epoch: %v, %v", value, err)
	}
}

// submitJob imports a dataset and queues a job on it.
func submitJob(t *testing.T, c *cluster) uint64 {
	t.Helper()
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 4, Features: 2, Labels: 2}
	m.Shards = []dataset.ShardRef{{Digest: string(bytes.Repeat([]byte("ab"), 32)), Rows: 4, Bytes: 100}}
	c.propose(protocol.EncodeEntry(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "d", Manifest: m}))
	job := &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: 1, Dataset: m.Digest(), Params: []byte("{}")}
	c.propose(protocol.EncodeEntry(protocol.EntrySubmit, &protocol.SubmitEntry{Token: "t", Name: "j", Dataset: "d",
		Spec: []byte("{}"), Job: job}))
	return c.leader().State().JobByName("j").ID
}

// TestMajorityGone: without a majority nothing is acknowledged, and the leader steps down.
func TestMajorityGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.propose(memberEntry(0))
	leader := c.leader()
	for _, f := range c.followers(leader) {
		c.kill(f.config.ID)
	}
	_, _, err := leader.Propose(testkit.Context(t), memberEntry(1))
	if !errors.Is(err, ErrAmbiguous) && !errors.Is(err, ErrNotLeader) {
		t.Errorf("a leader alone answers %v", err)
	}
	testkit.Until(t, "stepping down", func() bool { return !leader.IsLeader() })
	checkMembers(t, leader.State(), 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := leader.Wait(ctx, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting in vain: %v", err)
	}
}

// TestTimeouts: the timeouts form a ladder, and the defaults elect in under a second: the
// wait for a leader is at most two elections, and a round of votes takes one more.
func TestTimeouts(t *testing.T) {
	c, err := (Config{ID: "a", Dir: "x"}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := c.raft(Server{}, nil, nil)
	if r.CommitTimeout >= c.Heartbeat || c.Heartbeat >= r.LeaderLeaseTimeout ||
		r.LeaderLeaseTimeout > r.HeartbeatTimeout || r.HeartbeatTimeout > r.ElectionTimeout {
		t.Errorf("commit %v, lease %v, heartbeat %v, election %v", r.CommitTimeout, r.LeaderLeaseTimeout, r.HeartbeatTimeout,
			r.ElectionTimeout)
	}
	if worst := 3 * c.election(); worst >= time.Second {
		t.Errorf("an election takes up to %v", worst)
	}
}
