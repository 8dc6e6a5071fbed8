package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/rtt"
)

// TestRoundTripsWithoutDials: only an answered exchange over an existing connection tells
// the round trip.
func TestRoundTripsWithoutDials(t *testing.T) {
	var dials uint64
	g := &transport{trips: new(rtt.Table), dials: func() uint64 { return dials }}
	exchange := func(took time.Duration, dialled bool, err error) {
		from := g.begin()
		from.at = from.at.Add(-took)
		if dialled {
			dials++
		}
		g.timed("b", from, &err)
	}
	exchange(time.Hour, true, nil)
	exchange(time.Hour, false, errors.New("no answer"))
	if got := g.trips.Since(time.Minute); len(got) != 0 {
		t.Fatalf("round trips %v", got)
	}
	exchange(time.Second, false, nil)
	if got := g.trips.Since(time.Minute)["b"].Mean; got < time.Second || got > time.Minute {
		t.Errorf("a round trip of %v", got)
	}
}

// TestRoundTripsOfAnElection: in a new cluster, neither new connections nor votes that go
// to the disk count as long round trips.
func TestRoundTripsOfAnElection(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	s := c.leader()
	testkit.Until(t, "round trips", func() bool { return len(s.RoundTrips()) == 2 })
	if s.node.Load().session.dials.Load() == 0 {
		t.Error("no connection is counted")
	}
}

// TestTransferIsTimedByTheMonotonicClock: the monotonic clock tells how long a transfer
// hangs.
func TestTransferIsTimedByTheMonotonicClock(t *testing.T) {
	var refused transfer
	refused.note(raft.ErrLeadershipTransferInProgress)
	if since := refused.since.Load(); since == nil || !strings.Contains(since.String(), " m=") {
		t.Errorf("noted %v", since)
	}
	if refused.note(nil); refused.since.Load() != nil {
		t.Error("a transfer that has ended is remembered")
	}
}

// TestOneAppendAtATime: replication to a follower never has two appends on their way; see
// DESIGN.md.
func TestOneAppendAtATime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	s := c.leader()
	_, err := s.node.Load().transport.AppendEntriesPipeline("b", "127.0.0.1:1")
	if !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("a pipeline: error %v", err)
	}
}
