package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
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

// port is what one of a coordinator's ports is for, and how far it is above the first.
type port int

// The ports of a coordinator that other coordinators use. NATS clients use the port before the last.
const (
	httpPort  port = 0
	raftPort  port = 1
	routePort port = 3
)

// between lists the ports by which coordinators reach each other.
var between = []port{httpPort, raftPort, routePort}

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
				name: kind.name + w.name, doc: kind.doc + w.doc, leg: linked, holds: true, not: noCuts,
				hit: func(_ context.Context, s *strike) (func(context.Context) error, error) {
					s.part(s.someFollowers(kind.peers), kind.over, w.out, w.in)
					return s.mended, nil
				},
			})
		}
	}
	return append(list, &fault{
		name: "leader-isolated", doc: "no messages pass between the leader and any other process", leg: linked, holds: true, not: noCuts,
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

// lab is a network on which each process has a host. This process has two addresses on it:
// clients are behind links as all hosts are; who looks on is not. A nil lab is loopback.
type lab struct {
	network *netlab.Network
	looks   *netlab.Host
}

// The names of hosts that have none of a cluster's processes.
const (
	clientsHost = "clients"
	looksHost   = "observer"
	natsHost    = "nats"
)

// noCuts says why this machine has no network that can be cut; empty: it has one.
func noCuts(*Config) string { return netlab.Missing() }

func newLab(s netlab.Settings, seed uint64) (*lab, error) {
	n, err := netlab.New(s, seed)
	if err != nil {
		return nil, err
	}
	_, looks, err := n.Attach(clientsHost, looksHost)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return &lab{n, looks}, nil
}

// host returns the host of a process.
func (l *lab) host(name string) (proc.Host, error) { return l.network.Host(name) }

// observer returns what connects the observer of the suite.
func (l *lab) observer() *net.Dialer {
	if l == nil {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(l.looks.Address())}}
}

// cut drops what one host sends another over some ports of coordinators, whichever of the two
// dialled; without ports it drops everything.
func (l *lab) cut(from, to string, over ...port) {
	c := netlab.Cut{From: from, To: to}
	for _, k := range over {
		c.Ports = append(c.Ports, proc.HostPort+uint16(k))
	}
	l.network.Cut(c)
}

// isolate drops everything to and from a host.
func (l *lab) isolate(name string) {
	l.network.Cut(netlab.Cut{From: name}, netlab.Cut{To: name})
}
