// Package sim runs a whole cluster in one process under virtual time. The driver of jobs,
// dispatcher, state machine, blob replication and worker loop are the production code.
// Network, replicated log and disks are simulated, and fail as a seed says. The tests of
// this package run it inside a bubble of testing/synctest. DESIGN.md says what is checked
// and what a replay repeats.
//
// Each part has its own state and lock: network, raftLog with a view for each
// coordinator, cluster, injector of faults, clients, and checker. Sim connects them.
package sim

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// faultTime is how long faults strike, in virtual time.
	faultTime = 8 * time.Second
	// Within is how long all jobs may take to end after the last fault has ended.
	Within = 60 * time.Second
)

// Sim is one run.
type Sim struct {
	seed    uint64
	out     *output
	verdict *verdict
	net     *network
	log     *raftLog
	cluster *cluster
	faults  *injector
	clients *clients
	checks  *checker
}

// Result is how a run ended.
type Result struct {
	Violation *Violation // nil: every promise was kept
	Cells     map[Cell]int
	Entries   int           // of the log
	Virtual   time.Duration // that the run took
	NotRun    int           // tasks that budgets left out
}

// Run runs the simulation of a seed in the bubble of the caller, with its disks below
// dir. What happens is told to out, unless that is nil.
func Run(seed uint64, dir string, out func(format string, args ...any)) (*Result, error) {
	given, err := theMaterial()
	if err != nil {
		return nil, err
	}
	s, err := newSim(seed, dir, given, &output{began: time.Now(), print: out})
	if err != nil {
		return nil, err
	}
	watching.Store(&watcher{
		next:    func() { s.faults.reach(Dispatch) },
		fold:    s.checks.checkFold,
		compute: s.computeTime,
	})
	defer watching.Store(nil)
	s.run()
	return &Result{
		Violation: s.verdict.end(), Cells: s.faults.hit, Entries: len(s.log.after(0)),
		Virtual: time.Since(s.out.began), NotRun: len(s.checks.notRun),
	}, nil
}

// newSim makes the parts of a run. The dataset is imported: its blobs are on the disks,
// and its entry is in the log.
func newSim(seed uint64, dir string, given *material, out *output) (*Sim, error) {
	dice, verdict := newDice(seed, "faults"), &verdict{failed: make(chan struct{})}
	s := &Sim{seed: seed, out: out, verdict: verdict, net: newNetwork(seed), checks: newChecker(verdict, given)}
	s.cluster = &cluster{dir: dir, net: s.net, dice: dice, out: out, verdict: verdict}
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		p := &process{name: name, disk: newDisk(dir, name)}
		folder, err := p.disk.open(newHost(name))
		if err != nil {
			return nil, err
		}
		for _, b := range given.shards {
			if _, err := folder.Put(b); err != nil {
				return nil, err
			}
		}
		names = append(names, name)
		s.cluster.coordinators = append(s.cluster.coordinators, p)
		s.checks.disks = append(s.checks.disks, p.disk)
	}
	for i := range 2 + dice.n(2) {
		s.cluster.workers = append(s.cluster.workers, s.cluster.newWorker(fmt.Sprintf("w%d", i)))
	}
	s.cluster.spare = s.cluster.newWorker("late")
	s.faults = &injector{dice: dice, out: out, cluster: s.cluster, net: s.net}
	s.net.tap = s.onMessage
	dataset := protocol.EncodeEntry(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: dataName,
		Manifest: given.manifest})
	s.log = newRaftLog(seed, names, dataset, hooks{
		reached: s.faults.reach, proposed: s.onProposal, applied: s.checks.checkState,
		corrupt: func(format string, args ...any) { verdict.fail("snapshot", format, args...) },
	})
	s.cluster.log, s.faults.log = s.log, s.log
	s.clients = &clients{given: given, dice: dice, cluster: s.cluster, log: s.log, checks: s.checks,
		stopped: make(chan struct{})}
	s.faults.arm(seed)
	s.clients.draw()
	return s, nil
}

// run runs all processes and clients until all jobs have ended, or a promise is broken.
func (s *Sim) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var base sync.WaitGroup
	base.Go(func() { s.net.run(ctx) })
	base.Go(func() { s.log.run(ctx) })
	for _, p := range s.cluster.all() {
		s.cluster.start(p)
		time.Sleep(apart)
	}
	var clients sync.WaitGroup
	clients.Go(func() { s.clients.run(ctx) })
	s.await(&clients)
	states := make(map[string]*state.State)
	for _, p := range s.cluster.coordinators {
		if v := s.cluster.view(p); v != nil {
			states[p.name] = v.State()
		}
	}
	s.checks.checkReplicas(states)
	s.checks.checkStored()
	s.verdict.end()
	s.faults.end()
	close(s.clients.stopped)
	s.cluster.stop()
	cancel()
	clients.Wait()
	base.Wait()
	s.cluster.tasks.Wait()
}

// await returns once the clients have what they want and all jobs have ended, without
// faults from some time on. It fails if that takes too long.
func (s *Sim) await(clients *sync.WaitGroup) {
	satisfied := make(chan struct{})
	go func() { clients.Wait(); close(satisfied) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	calmSince := time.Time{}
	for {
		select {
		case <-s.verdict.failed:
			return
		case <-tick.C:
		}
		select {
		case <-satisfied:
			if _, ended := s.checks.progress(); ended && s.faults.lasting.Load() == 0 {
				return
			}
		default:
		}
		if calmSince.IsZero() && time.Since(s.out.began) > faultTime && s.faults.end() {
			calmSince = time.Now()
		}
		if !calmSince.IsZero() && time.Since(calmSince) > Within {
			text, _ := s.checks.progress()
			stacks := make([]byte, 1<<20)
			s.out.trace("%s", stacks[:runtime.Stack(stacks, true)])
			s.verdict.fail("liveness", "%v after the last fault ended: %s", Within, text)
			return
		}
	}
}

// onMessage is the tap of the network.
func (s *Sim) onMessage(to *host, message []byte) {
	kind, err := protocol.KindOf(message)
	if err != nil {
		return
	}
	switch kind {
	case protocol.KindBundle:
		var bundle protocol.Bundle
		if bundle.Decode(message) == nil {
			for _, one := range bundle.Messages {
				s.onMessage(to, one)
			}
		}
	case protocol.KindLead:
		var lead protocol.Lead
		if lead.Decode(message) == nil {
			s.checks.hears(to, lead.Epoch, nil)
		}
	case protocol.KindRun:
		var run protocol.Run
		if run.Decode(message) == nil {
			s.checks.hears(to, run.Epoch, &run)
		}
	case protocol.KindPartial:
		part := protocol.Partial{Partial: new(round.Partial)}
		if part.Decode(message) == nil {
			s.checks.checkPart(&part)
			s.faults.reach(Partials)
		}
	case protocol.KindReplicate:
		s.faults.reach(Replicate)
	}
}

// onProposal is a hook of the log.
func (s *Sim) onProposal(entry []byte) {
	switch kindOf(entry) {
	case protocol.EntryLead:
		s.faults.reach(Takeover)
	case protocol.EntryCommit:
		s.faults.reach(Committing)
	case protocol.EntryResult:
		s.faults.reach(Recording)
	case protocol.EntryFinish:
		s.faults.reach(Finishing)
		s.clients.cancelBefore(entry)
	}
}

// computeTime draws how long a task computes in the round that reads a version of the
// canary's value.
func (s *Sim) computeTime(seed, version uint64, u *round.Task) time.Duration {
	r := num.NewStream(num.NewKey(s.seed^seed<<32, "sim/pace"), version, uint32(u.ID))
	if u.Scope == round.None {
		return time.Duration(20e6 + r.Uint64n(130e6))
	}
	return time.Duration(4e6 + r.Uint64n(21e6))
}
