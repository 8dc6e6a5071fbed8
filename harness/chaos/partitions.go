package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrStall is wrapped, with ErrFailed, where training did not progress for too long during a
// partition.
var ErrStall = errors.New("training did not progress")

const (
	// DefaultHold is how long a partition lasts where Config does not say.
	DefaultHold = 3 * time.Second
	// DefaultStall is the longest time without committed progress while a majority of the
	// coordinators and their leader reach the workers, beyond the commit interval.
	DefaultStall = 2 * time.Second
	// healed is how long progress is watched after a partition.
	healed = 2 * time.Second
)

// A way is the direction of a cut, as the leader sees it.
var ways = []struct {
	name, doc string
	out, in   bool
}{
	{"", "", true, true},
	{"-out", ", only in the direction from the leader", true, false},
	{"-in", ", only in the direction to the leader", false, true},
}

// partitions lists the faults that part coordinators from each other while workers
// and clients reach all of them, each in both directions and in either one; and one
// that parts a leader from everybody.
func partitions() (list []*fault) {
	for _, kind := range []struct {
		name, doc string
		over      []port
		peers     int // of the leader
	}{
		{"peers-cut", "no messages pass between the leader and the other coordinators", between, 2},
		{"raft-cut", "no Raft messages pass between the leader and the other coordinators", []port{raftPort}, 2},
		{"routes-cut", "no NATS messages pass between the leader and the other coordinators", []port{routePort}, 2},
		{"http-cut", "no HTTP requests pass between the leader and the other coordinators", []port{httpPort}, 2},
		{"peer-cut", "no messages pass between the leader and one other coordinator", between, 1},
	} {
		for _, w := range ways {
			list = append(list, &fault{
				name: kind.name + w.name, doc: kind.doc + w.doc, leg: linked, holds: true, not: netlab.Missing,
				hit: func(_ context.Context, s *strike) (func(context.Context) error, error) {
					s.part(s.someFollowers(kind.peers), kind.over, w.out, w.in)
					return s.mended, nil
				},
			})
		}
	}
	return append(list, &fault{
		name: "leader-isolated", doc: "no messages pass between the leader and any other process", leg: linked, holds: true,
		not: netlab.Missing,
		hit: func(_ context.Context, s *strike) (func(context.Context) error, error) {
			s.on(s.leader)
			s.lab.isolate(s.leader.Name)
			return s.mended, nil
		},
	})
}

// someFollowers draws n of the coordinators that follow.
func (s *strike) someFollowers(n int) []*proc.Node {
	list := s.followers(s.leader)
	s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

// part cuts the leader off from peers, in the direction from it, to it, or both.
func (s *strike) part(peers []*proc.Node, over []port, out, in bool) {
	s.on(append([]*proc.Node{s.leader}, peers...)...)
	for _, n := range peers {
		if out {
			s.lab.cut(s.leader.Name, n.Name, over...)
		}
		if in {
			s.lab.cut(n.Name, s.leader.Name, over...)
		}
	}
}

func (s *strike) mended(context.Context) error {
	s.lab.network.Heal()
	return nil
}

// stallTimes is how many round trips, and heartbeats above the default, training may
// stand still for longer: on loopback, twenty heartbeats are DefaultStall.
const stallTimes = 20

// mostStall is how long training may stand still during a partition, with an interval
// between commits in seconds.
func (c *Config) mostStall(interval float64) time.Duration {
	limit := c.Stall + time.Duration(interval*float64(time.Second))
	if c.Network != nil {
		limit += stallTimes * c.Network.RTT
	}
	return limit + stallTimes*max(0, c.Heartbeat-protocol.DefaultHeartbeat)
}
