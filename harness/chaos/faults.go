package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/coppice-ldl/coppice/harness/chaos/proxy"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// fault is something that the suite does to a cluster.
type fault struct {
	name     string
	doc      string
	leg      leg
	measured bool // its recovery is one of the published ones
	holds    bool // it lasts for Config.Hold, and training goes on meanwhile
	// hit does it, and says when the clock begins. What it returns ends the fault
	// after progress was seen; nil: it has ended by itself.
	hit func(ctx context.Context, s *strike) (heal func(context.Context) error, err error)
	// recoveries is how many it waits for, one after the other, each for Config.Bound; 0: one.
	// One with several is in fewer rounds.
	recoveries int
	// apart, in place of hit, does all of it on a cluster of its own, while that of the leg
	// goes on, and returns how long that took to be ready in the end.
	apart func(ctx context.Context, s *strike) (ready time.Duration, err error)
	// not, where set, says why this machine cannot have the fault; empty: it can.
	not func(*Config) string
}

// strike is one injection.
type strike struct {
	*rig
	rng    *rand.Rand
	leader *proc.Node // when it began
	target string     // what was hit, for the report
	from   time.Time  // when the clock began
}

// on names the targets and starts the clock.
func (s *strike) on(nodes ...*proc.Node) {
	s.target = ""
	for i, n := range nodes {
		if i > 0 {
			s.target += "+"
		}
		s.target += n.Name
	}
	s.from = time.Now()
}

func pick[T any](s *strike, list []T) T { return list[s.rng.IntN(len(list))] }

func (s *strike) worker() *proc.Node   { return pick(s, s.cluster.Workers) }
func (s *strike) follower() *proc.Node { return pick(s, s.followers(s.leader)) }

// between draws a time.
func (s *strike) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)))
}

// catalog lists the faults, in the order of documentation.
var catalog = append([]*fault{
	{name: "worker-kill", doc: "a worker is killed (SIGKILL), and started again later", measured: true, hit: killing((*strike).worker)},
	{name: "worker-stop", doc: "a worker is frozen (SIGSTOP), and goes on later", measured: true, hit: stopping((*strike).worker)},
	{name: "worker-slow", doc: "a worker runs a fifth of the time", hit: slowWorker},
	{name: "worker-join", doc: "one more worker joins, and leaves later", hit: joinWorker},
	{name: "worker-restart", doc: "a worker is told to end (SIGTERM) and started again at once", hit: restartWorker},
	{name: "worker-version", doc: "a worker of another version tries to join, and is refused", hit: otherVersion},
	{name: "leader-kill", doc: "the leading coordinator is killed", measured: true, hit: killing((*strike).head)},
	{name: "leader-stop", doc: "the leading coordinator is frozen", measured: true, hit: stopping((*strike).head)},
	{name: "follower-kill", doc: "another coordinator is killed", hit: killing((*strike).follower)},
	{name: "follower-stop", doc: "another coordinator is frozen", hit: stopping((*strike).follower)},
	{name: "majority-kill", doc: "two coordinators are killed; the clock begins when they are started again", hit: killMajority},
	{name: "all-kill", doc: "every process is killed; the clock begins when they are started again", measured: true, hit: killAll},
	{name: "folder-wipe", doc: "a coordinator's folder is emptied while another lags behind and the leader is down; the clock begins when the leader is started again", hit: wiping("")},
	{name: "raft-wipe", doc: "the same, but only Raft's part of the folder is removed", hit: wiping("raft")},
	{name: "replace-all", doc: "each coordinator in turn is ended, its folder is deleted and it is started again, once /readyz of all is 200; the clock begins with the last start", recoveries: coordinators + 1, hit: replaceAll},
	{name: "random-wipes", doc: "coordinators are killed at random, also within a second of their start, and twice the folder of one is deleted, once /readyz of all is 200; the clock begins after the last start", recoveries: wipes + 2, hit: randomWipes},
	{name: "folder-delete", doc: "the folder of a running coordinator is deleted; it must end or be not ready, and is started again", hit: deleteFolder},
	{name: "folder-copy", doc: "a copy of a coordinator's folder is started at another address, and must end with an error that names the address of the first", hit: copyFolder},
	{name: "mixed-restore", doc: "apart from the cluster, three coordinators are restored, one of them from a later backup: they must not serve until that one is restored from the same; the clock begins when it is started again", recoveries: 3, not: noneApart, apart: mixedRestore},
	{name: "port-in-use", doc: "apart from the cluster, a port of a coordinator is in use at the first start of three, which are then started with another address for it; the clock begins then", recoveries: 3, not: noneApart, apart: portInUse},
	{name: "first-start-wipe", doc: "apart from the cluster, a coordinator is killed soon after the first start of three, and the folder of another is deleted; the clock begins when that is started again", not: noneApart, apart: wipeAtFirstStart},
	{name: "member-replace", doc: "a coordinator is replaced by one of another id at the same address; the clock begins when the others are started again", hit: replaceMember},
	{name: "worker-twin", doc: "a second worker under the id of one that runs joins, and leaves later", hit: twinWorker},
	{name: "few-descriptors", doc: "a coordinator or a worker can open no more files and connections than it has, and later as many as before", not: noLimits, hit: fewDescriptors},
	{name: "nats-restart", doc: "the external NATS is killed and started again", leg: external, measured: true, hit: restartNATS},
	{name: "worker-cut", doc: "a worker's connection to NATS becomes a black hole", leg: external, hit: cutting((*strike).worker, proxy.There, proxy.Back)},
	{name: "worker-cut-oneway", doc: "a worker's connection to NATS loses one direction", leg: external, hit: cutOneWay},
	{name: "leader-cut", doc: "the leader's connection to NATS becomes a black hole, while Raft works", leg: external, hit: cutting((*strike).head, proxy.There, proxy.Back)},
	{name: "latency", doc: "everything to and from NATS takes 20 ms longer", leg: external, hit: slowNetwork},
	{name: "disk-full", doc: "the disk of a coordinator or of a worker is full, and has room again later", leg: disks, not: noDisks, hit: fillDisk},
	{name: "disk-full-start", doc: "a coordinator starts on a full disk, which has room later", leg: disks, not: noDisks, hit: fullAtStart},
	{name: "io-errors", doc: "the disk of a coordinator or of a worker gives input/output errors and loses what was not synced; later the process is started again on it", leg: disks, not: noBlockDisks, hit: ioErrors},
	{name: "disk-unmount", doc: "the disk of a running coordinator is unmounted; it must end or be not ready, and is started again on a disk", leg: disks, not: noDisks, hit: unmountUnder},
	{name: "corrupt-blob", doc: "a byte of a coordinator's blob and one of a worker's cache is inverted while both are down", leg: disks, hit: corruptBlob},
	{name: "corrupt-wal", doc: "the end of a coordinator's log is damaged while it is down", leg: disks, hit: corruptLog},
	{name: "corrupt-snapshot", doc: "a byte of a coordinator's last snapshot is inverted while it is down", leg: disks, hit: corruptSnapshot},
}, partitions()...)

func (s *strike) head() *proc.Node { return s.leader }

// find returns a fault by name, or nil.
func find(name string) *fault {
	for _, f := range catalog {
		if f.name == name {
			return f
		}
	}
	return nil
}

// Names lists the faults.
func Names() []string {
	var names []string
	for _, f := range catalog {
		names = append(names, f.name)
	}
	return names
}

// Doc says what a fault is.
func Doc(name string) string { return find(name).doc }

type hit = func(context.Context, *strike) (func(context.Context) error, error)

// killing kills a process and starts it again later.
func killing(which func(*strike) *proc.Node) hit {
	return func(_ context.Context, s *strike) (func(context.Context) error, error) {
		n := which(s)
		s.on(n)
		return func(context.Context) error { return n.Restart() }, n.Kill()
	}
}

// stopping freezes a process and lets it go on later.
func stopping(which func(*strike) *proc.Node) hit {
	return func(_ context.Context, s *strike) (func(context.Context) error, error) {
		n := which(s)
		s.on(n)
		return func(context.Context) error { return n.Continue() }, n.Stop()
	}
}

// The duty cycle of a slow worker.
const (
	slowStopped = 80 * time.Millisecond
	slowRuns    = 20 * time.Millisecond
)

func slowWorker(ctx context.Context, s *strike) (func(context.Context) error, error) {
	n := s.worker()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	s.on(n)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = n.Stop()
			wait.For(ctx, slowStopped)
			err = errors.Join(err, n.Continue())
			wait.For(ctx, slowRuns)
		}
		ended <- err
	}()
	return func(context.Context) error {
		cancel()
		return <-ended
	}, nil
}

func joinWorker(_ context.Context, s *strike) (func(context.Context) error, error) {
	s.from = time.Now()
	n, err := s.cluster.AddWorker()
	if err != nil {
		return nil, err
	}
	s.target = n.Name
	return func(ctx context.Context) error {
		return errors.Join(s.cluster.Ready(ctx), s.cluster.RemoveWorker(ctx, n))
	}, nil
}

func restartWorker(ctx context.Context, s *strike) (func(context.Context) error, error) {
	n := s.worker()
	s.on(n)
	return nil, errors.Join(n.Quit(ctx), n.Restart())
}

// How long a majority or everything is away.
const (
	leastAway = 300 * time.Millisecond
	mostAway  = 1500 * time.Millisecond
)

func killMajority(ctx context.Context, s *strike) (func(context.Context) error, error) {
	up := pick(s, s.cluster.Coordinators)
	return nil, s.killFor(ctx, s.followers(up))
}

func killAll(ctx context.Context, s *strike) (func(context.Context) error, error) {
	err := s.killFor(ctx, append(append([]*proc.Node{}, s.cluster.Coordinators...), s.cluster.Workers...))
	s.target = "all"
	return nil, err
}

// killFor kills processes at once, waits, and starts them again.
func (s *strike) killFor(ctx context.Context, nodes []*proc.Node) error {
	ended := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { ended <- n.Kill() }()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-ended)
	}
	errs = append(errs, wait.For(ctx, s.between(leastAway, mostAway)))
	s.on(nodes...)
	for _, n := range nodes {
		errs = append(errs, n.Restart())
	}
	return errors.Join(errs...)
}

func restartNATS(_ context.Context, s *strike) (func(context.Context) error, error) {
	s.on(s.nats)
	return nil, errors.Join(s.nats.Kill(), s.nats.Restart())
}

// cutting holds back what a process and NATS send each other.
func cutting(which func(*strike) *proc.Node, held ...proxy.Way) hit {
	return func(_ context.Context, s *strike) (func(context.Context) error, error) {
		n := which(s)
		p := s.proxies[n.Name]
		s.on(n)
		for _, w := range held {
			p.Hold(w)
		}
		return func(context.Context) error {
			p.Heal()
			return nil
		}, nil
	}
}

func cutOneWay(ctx context.Context, s *strike) (func(context.Context) error, error) {
	return cutting((*strike).worker, pick(s, []proxy.Way{proxy.There, proxy.Back}))(ctx, s)
}

// addedLatency is what the latency fault adds in each direction.
const addedLatency = 20 * time.Millisecond

func slowNetwork(_ context.Context, s *strike) (func(context.Context) error, error) {
	var names []string
	for name := range s.proxies {
		names = append(names, name)
	}
	sort.Strings(names)
	s.on()
	s.target = "all"
	for _, name := range names {
		s.proxies[name].Delay(addedLatency)
	}
	return func(context.Context) error {
		for _, p := range s.proxies {
			p.Heal()
		}
		return nil
	}, nil
}
