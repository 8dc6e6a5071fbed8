package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
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
				name: kind.name + w.name, doc: kind.doc + w.doc, leg: linked, holds: true, not: noPartitions,
				hit: func(_ context.Context, s *strike) (func(context.Context) error, error) {
					s.part(s.someFollowers(kind.peers), kind.over, w.out, w.in)
					return s.mended, nil
				},
			})
		}
	}
	return append(list, &fault{
		name: "leader-isolated", doc: "no messages pass between the leader and any other process", leg: linked, holds: true, not: noPartitions,
		hit: func(_ context.Context, s *strike) (func(context.Context) error, error) {
			s.on(s.leader)
			s.links.isolate(s.leader.Name)
			return s.mended, nil
		},
	})
}

// noPartitions says why there can be none; empty: there can. A network has cuts of its own.
func noPartitions(c *Config) string {
	if c.Network != nil {
		return ""
	}
	return system.NoDiallers()
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
			s.links.cut(s.leader.Name, n.Name, over)
		}
		if in {
			s.links.cut(n.Name, s.leader.Name, over)
		}
	}
}

func (s *strike) mended(context.Context) error {
	s.links.heal()
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

// stall measures the longest time without committed progress of jobs that follow each
// other: the time from the last commit of one to the first of the next does not count.
type stall struct {
	job          uint64
	rounds, step uint64
	last         time.Time // of progress; zero: none was seen of this job
	longest      time.Duration
}

// see takes a sighting of a job.
func (t *stall) see(s sighting) {
	if s.job.ID != t.job {
		t.job, t.rounds, t.step, t.last = s.job.ID, s.job.Rounds, stepOf(s.job), time.Time{}
		return
	}
	if s.job.Rounds <= t.rounds && stepOf(s.job) <= t.step {
		return
	}
	t.until(s.at)
	t.rounds, t.step, t.last = max(t.rounds, s.job.Rounds), max(t.step, stepOf(s.job)), s.at
}

// until counts the time since the last progress.
func (t *stall) until(now time.Time) {
	if !t.last.IsZero() {
		t.longest = max(t.longest, now.Sub(t.last))
	}
}

// endure watches the long jobs until a time.
func (s *suite) endure(ctx context.Context, t *stall, end time.Time) error {
	for time.Now().Before(end) {
		job, _ := s.clients.watched.state()
		if job == nil || job.State.Final() {
			if err := wait.For(ctx, lookPause); err != nil {
				return err
			}
			continue
		}
		s.watchOne(ctx, t, job.ID, end)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// watchOne watches one job until a time or until it ends.
func (s *suite) watchOne(ctx context.Context, t *stall, id uint64, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	seen, ended := s.rig.poll(ctx, id), false
	for now := range seen {
		if ended {
			continue
		}
		if t.see(now); now.job.State.Final() {
			ended = true
			cancel()
		}
	}
	if !ended && t.job == id {
		t.until(time.Now())
	}
}

// partition is the rest of a strike that holds, once progress was seen again: the
// partition lasts, is mended, and all the time training goes on.
func (s *suite) partition(ctx context.Context, k *strike, got recovery, done *Strike, heal func(context.Context) error) error {
	t := stall{longest: got.after}
	err := s.endure(ctx, &t, k.from.Add(s.cfg.Hold))
	err = errors.Join(err, heal(ctx))
	if err == nil {
		err = s.endure(ctx, &t, time.Now().Add(healed))
	}
	done.Longest = t.longest.Seconds()
	if limit := s.cfg.mostStall(done.Interval); err == nil && t.longest > limit {
		err = fmt.Errorf("%w: %w for %v, want at most %v", ErrFailed, ErrStall, t.longest.Round(time.Millisecond), limit.Round(time.Millisecond))
	}
	return err
}
