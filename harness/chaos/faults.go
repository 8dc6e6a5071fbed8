package chaos

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/coppice-ldl/coppice/harness/chaos/proxy"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// catalog lists the faults, in the order of documentation.
var catalog = append([]*fault{
	{name: "worker-kill", doc: "a worker is killed (SIGKILL), and started again later", measured: true, hit: killing((*strike).worker)},
	{name: "worker-stop", doc: "a worker is frozen (SIGSTOP), and continues later", measured: true, hit: stopping((*strike).worker)},
	{name: "worker-slow", doc: "a worker is slowed down: it runs only a fifth of the time", hit: slowWorker},
	{name: "worker-join", doc: "another worker joins, and leaves later", hit: joinWorker},
	{name: "worker-restart", doc: "a worker is stopped (SIGTERM) and started again at once", hit: restartWorker},
	{name: "leader-kill", doc: "the leading coordinator is killed", measured: true, hit: killing((*strike).head)},
	{name: "leader-stop", doc: "the leading coordinator is frozen", measured: true, hit: stopping((*strike).head)},
	{name: "follower-kill", doc: "another coordinator is killed", hit: killing((*strike).follower)},
	{name: "follower-stop", doc: "another coordinator is frozen", hit: stopping((*strike).follower)},
	{name: "majority-kill", doc: "two coordinators are killed; recovery time counts from their restart", hit: killMajority},
	{name: "all-kill", doc: "every process is killed; recovery time counts from the restart", measured: true, hit: killAll},
	{name: "folder-wipe", doc: "a coordinator's folder is emptied while another lags behind and the leader is down; recovery time counts from the leader's restart", hit: wipeFolder},
	{name: "random-wipes", doc: "coordinators are killed at random, and two folders are deleted while all coordinators are ready; recovery time counts from the last start", recoveries: wipes + 2, hit: randomWipes},
	{name: "few-descriptors", doc: "a coordinator or a worker cannot open more files and connections for a while", not: noLimits, hit: fewDescriptors},
	{name: "nats-restart", doc: "the external NATS is killed and started again", leg: external, measured: true, hit: restartNATS},
	{name: "worker-cut", doc: "a worker's connection to NATS drops everything without closing", leg: external, hit: cutting((*strike).worker, proxy.There, proxy.Back)},
	{name: "worker-cut-oneway", doc: "a worker's connection to NATS works in one direction only", leg: external, hit: cutOneWay},
	{name: "leader-cut", doc: "the leader's connection to NATS drops everything without closing, while Raft works", leg: external, hit: cutting((*strike).head, proxy.There, proxy.Back)},
	{name: "latency", doc: "all messages to and from NATS take 20 ms longer", leg: external, hit: slowNetwork},
	{name: "disk-full", doc: "the disk of a coordinator or of a worker is full, and has free space later", leg: disks, not: noDisks, hit: fillDisk},
	{name: "io-errors", doc: "the disk of a coordinator or of a worker has I/O errors and loses unsynced data; the process is started again on the disk later", leg: disks, not: noBlockDisks, hit: ioErrors},
	{name: "corrupt-blob", doc: "a byte in a coordinator's blob and a byte in a worker's cache are inverted while both are down", leg: disks, hit: corruptBlob},
	{name: "corrupt-wal", doc: "the end of a coordinator's log is damaged while it is down", leg: disks, hit: corruptLog},
	{name: "corrupt-snapshot", doc: "a byte of a coordinator's last snapshot is inverted while it is down", leg: disks, hit: corruptSnapshot},
}, partitions()...)

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

func killMajority(ctx context.Context, s *strike) (func(context.Context) error, error) {
	up := pick(s, s.cluster.Coordinators)
	return nil, s.killFor(ctx, s.followers(up))
}

func killAll(ctx context.Context, s *strike) (func(context.Context) error, error) {
	err := s.killFor(ctx, append(append([]*proc.Node{}, s.cluster.Coordinators...), s.cluster.Workers...))
	s.target = "all"
	return nil, err
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
