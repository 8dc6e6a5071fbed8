package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// catalog lists the faults, in the order of documentation.
var catalog = append([]*fault{
	{name: "worker-kill", doc: "a worker is killed (SIGKILL), and started again later", measured: true,
		hit: killing((*strike).worker)},
	{name: "worker-stop", doc: "a worker is frozen (SIGSTOP), and continues later", measured: true,
		hit: stopping((*strike).worker)},
	{name: "worker-slow", doc: "a worker is slowed down: it runs only a fifth of the time", hit: slowWorker},
	{name: "worker-join", doc: "another worker joins, and leaves later", hit: joinWorker},
	{name: "worker-restart", doc: "a worker is stopped (SIGTERM) and started again at once", hit: restartWorker},
	{name: "leader-kill", doc: "the leading coordinator is killed", measured: true, hit: killing((*strike).head)},
	{name: "leader-stop", doc: "the leading coordinator is frozen", measured: true, hit: stopping((*strike).head)},
	{name: "follower-kill", doc: "another coordinator is killed", hit: killing((*strike).follower)},
	{name: "follower-stop", doc: "another coordinator is frozen", hit: stopping((*strike).follower)},
	{name: "majority-kill", doc: "two coordinators are killed; recovery time counts from their restart",
		hit: killMajority},
	{name: "all-kill", doc: "every process is killed; recovery time counts from the restart", measured: true,
		hit: killAll},
	{name: "folder-wipe", doc: "a coordinator's folder is emptied while another lags behind and the leader is down; " +
		"recovery time counts from the leader's restart", hit: wipeFolder},
	{name: "random-wipes", doc: "coordinators are killed at random, and two folders are deleted while all coordinators " +
		"are ready; recovery time counts from the last start", recoveries: wipes + 2, hit: randomWipes},
	{name: "few-descriptors", doc: "a coordinator or a worker cannot open more files and connections for a while",
		not: system.NoLimits, hit: fewDescriptors},
	{name: "nats-restart", doc: "the external NATS is killed and started again", leg: external, measured: true,
		hit: restartNATS},
	{name: "worker-cut", doc: "a worker's connection to NATS drops everything without closing", leg: external,
		not: netlab.Missing, hit: cutting((*strike).worker)},
	{name: "worker-cut-oneway", doc: "a worker's connection to NATS works in one direction only", leg: external,
		not: netlab.Missing, hit: cutOneWay},
	{name: "leader-cut", doc: "the leader's connection to NATS drops everything without closing, while Raft works",
		leg: external, not: netlab.Missing, hit: cutting((*strike).head)},
	{name: "disk-full", doc: "the disk of a coordinator or of a worker is full, and has free space later", leg: disks,
		not: noDisks, hit: fillDisk},
	{name: "io-errors", doc: "the disk of a coordinator or of a worker has I/O errors and loses unsynced data; the " +
		"process is started again on the disk later", leg: disks, not: noDisks, hit: ioErrors},
	{name: "corrupt-blob", doc: "a byte in a coordinator's blob and a byte in a worker's cache are inverted while both " +
		"are down", leg: disks, hit: corruptBlob},
	{name: "corrupt-wal", doc: "the end of a coordinator's log is damaged while it is down", leg: disks, hit: corruptLog},
	{name: "corrupt-snapshot", doc: "a byte of a coordinator's last snapshot is inverted while it is down", leg: disks,
		hit: corruptSnapshot},
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

// cutting drops what a process and NATS send each other.
func cutting(which func(*strike) *proc.Node) hit {
	return func(_ context.Context, s *strike) (func(context.Context) error, error) {
		n := which(s)
		s.on(n)
		s.lab.cut(n.Name, natsHost)
		s.lab.cut(natsHost, n.Name)
		return s.mended, nil
	}
}

// cutOneWay drops what a worker sends to NATS, or what NATS sends to the worker.
func cutOneWay(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := s.worker()
	s.on(n)
	if s.rng.IntN(2) == 0 {
		s.lab.cut(n.Name, natsHost)
	} else {
		s.lab.cut(natsHost, n.Name)
	}
	return s.mended, nil
}

// fewDescriptors keeps a process from opening more files and connections than it has, and later
// allows as many as before.
func fewDescriptors(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	s.on(n)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid()))
	if err != nil {
		return nil, err
	}
	before, err := limitDescriptors(n, uint64(len(open)))
	return func(ctx context.Context) error {
		err := wait.For(ctx, s.between(leastAlone, mostAlone))
		if !n.Running() {
			return fmt.Errorf("%w: %s ended when it could not open more files: %w", ErrFailed, n.Name, n.Err())
		}
		_, again := limitDescriptors(n, before)
		return errors.Join(err, again)
	}, err
}

// limitDescriptors sets how many files and connections a process may have, and returns
// how many it was before.
func limitDescriptors(n *proc.Node, most uint64) (before uint64, err error) {
	if before, err = system.LimitDescriptors(n.Pid(), most); err != nil {
		return 0, fmt.Errorf("the limits of %s cannot be changed: %w", n.Name, err)
	}
	return before, nil
}

// wipeFolder empties the folder of a follower while the other follower lags behind: what was
// acknowledged meanwhile is on the leader's disk only, which is down. The two must not go on
// without it.
func wipeFolder(ctx context.Context, s *strike) (func(context.Context) error, error) {
	followers := s.followers(s.leader)
	i := s.rng.IntN(len(followers))
	wiped, late := followers[i], followers[1-i]
	name := fmt.Sprintf("kept-%08x", s.rng.Uint32())
	if err := late.Kill(); err != nil {
		return nil, err
	}
	if err := s.keep(ctx, name); err != nil {
		return nil, fmt.Errorf("while a follower is down: %w", err)
	}
	err := errors.Join(
		s.leader.Kill(), wiped.Kill(), os.RemoveAll(wiped.Dir), wiped.Restart(), late.Restart(),
		wait.For(ctx, s.between(leastAlone, mostAlone)),
	)
	s.on(wiped)
	if err = errors.Join(err, s.leader.Restart()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.kept(ctx, name) }, nil
}

// keep imports a dataset that must be there later.
func (s *strike) keep(ctx context.Context, name string) error {
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: name}, generate.Artificial(64, 1),
		importer.Options{}); err != nil {
		return fmt.Errorf("importing %s: %w", name, err)
	}
	return nil
}

// kept waits until every coordinator has all blobs again, and checks that a dataset
// that was acknowledged is there.
func (s *strike) kept(ctx context.Context, name string) error {
	if _, err := s.client.Datasets().Get(ctx, name); err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged, but cannot be read: %w", ErrFailed, name, err)
	}
	for {
		whole := 0
		m, err := s.client.Members().List(ctx)
		if err == nil {
			for _, one := range m.Members {
				if one.Alive && one.Missing == 0 && one.Problem == "" {
					whole++
				}
			}
		}
		if whole == coordinators {
			return nil
		}
		if wait.For(ctx, lookPause) != nil {
			return fmt.Errorf("only %d of %d coordinators have all blobs: %w", whole, coordinators,
				errors.Join(context.Cause(ctx), err))
		}
	}
}

// readable reads each shard of a dataset that was acknowledged.
func (s *strike) readable(ctx context.Context, name string) error {
	d, err := s.client.Datasets().Get(ctx, name)
	if err == nil {
		_, err = s.client.Datasets().Shards(ctx, d.Manifest)
	}
	if err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged, but cannot be read: %w", ErrFailed, name, err)
	}
	return nil
}

// outage is a kill of coordinators, which are started again.
type outage struct {
	which []int // of the coordinators
	wiped bool  // the folder of the first is deleted meanwhile
	away  time.Duration
	early []time.Duration // the first is killed again, each so long after its start
	pause time.Duration   // until the next
}

// The outages of one random-wipes.
const (
	kills     = 4
	wipes     = 2
	mostAgain = 2 // early kills of an outage
	earlyKill = time.Second
)

// newOutages draws kills and wipes, in a random order that begins with a kill.
func newOutages(rng *rand.Rand, nodes int) (list []outage) {
	below := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	for i := range kills + wipes {
		o := outage{which: rng.Perm(nodes)[:1+rng.IntN(nodes)], wiped: i >= kills, away: below(mostAway),
			pause: below(earlyKill)}
		for range rng.IntN(mostAgain + 1) {
			o.early = append(o.early, below(earlyKill))
		}
		list = append(list, o)
	}
	rng.Shuffle(len(list)-1, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return list
}

// randomWipes kills coordinators at random, and deletes the folder of one at a time:
// another only once all are ready, so that a majority of the folders is whole.
func randomWipes(ctx context.Context, s *strike) (func(context.Context) error, error) {
	name := fmt.Sprintf("wiped-%08x", s.rng.Uint32())
	list := newOutages(s.rng, len(s.cluster.Coordinators))
	if err := s.keep(ctx, name); err != nil {
		return nil, err
	}
	for i, o := range list {
		if o.wiped {
			if err := s.allReady(ctx, s.servers); err != nil {
				return nil, fmt.Errorf("after %d outages: %w", i, err)
			}
		}
		if err := s.outage(ctx, &o); err != nil {
			return nil, err
		}
	}
	s.on(s.cluster.Coordinators...)
	return func(ctx context.Context) error { return errors.Join(s.kept(ctx, name), s.readable(ctx, name)) }, nil
}

// outage has one outage happen.
func (s *strike) outage(ctx context.Context, o *outage) error {
	var errs []error
	first := s.cluster.Coordinators[o.which[0]]
	for _, i := range o.which {
		errs = append(errs, s.cluster.Coordinators[i].Kill())
	}
	if o.wiped {
		errs = append(errs, os.RemoveAll(first.Dir))
	}
	errs = append(errs, wait.For(ctx, o.away))
	for _, i := range o.which {
		errs = append(errs, s.cluster.Coordinators[i].Restart())
	}
	for _, after := range o.early {
		errs = append(errs, wait.For(ctx, after), first.Kill(), first.Restart())
	}
	return errors.Join(append(errs, wait.For(ctx, o.pause))...)
}
