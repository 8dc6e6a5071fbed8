package sim

import (
	"sync"
	"sync/atomic"
	"time"
)

// faultsPerSeed bounds the faults that strike in a run.
const faultsPerSeed = 4

// injector has the faults of a seed strike, each in the goroutine that reaches its phase.
type injector struct {
	dice    *dice
	out     *output
	cluster *cluster
	net     *network
	log     *raftLog
	lasting atomic.Int64 // faults that have struck and not ended

	mu    sync.Mutex // guards the fields below
	armed []*armed
	calm  bool // true if no fault strikes any more
	hit   map[Cell]int
}

// armed is a fault that waits for its phase.
type armed struct {
	Cell
	skip  int // how often the phase is still passed before the fault strikes
	fired bool
}

// arm draws the faults of a seed. Over consecutive seeds, every run has its turn.
func (i *injector) arm(seed uint64) {
	i.hit = make(map[Cell]int)
	all := Cells()
	for k := range faultsPerSeed {
		c := all[(int(seed)*faultsPerSeed+k)*7919%len(all)]
		limit := 4
		switch c.Phase {
		case Takeover, Install, Finishing:
			limit = 1
		case Dispatch, Partials:
			limit = 30
		}
		i.armed = append(i.armed, &armed{Cell: c, skip: i.dice.n(limit)})
		if c.Phase == Install { // so that there is a snapshot to install
			i.armed = append(i.armed, &armed{Cell: Cell{Dispatch, FollowerBehind}, skip: i.dice.n(6)})
		}
	}
}

// reach says that a phase is reached. The faults that are armed for it strike now, in the
// goroutine of the caller. At Committed, for instance, the proposer of the commit does
// not know of it yet.
func (i *injector) reach(p Phase) {
	i.mu.Lock()
	var strike []Fault
	for _, a := range i.armed {
		if a.Phase != p || a.fired || i.calm {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		a.fired = true
		i.hit[a.Cell]++
		strike = append(strike, a.Fault)
	}
	i.mu.Unlock()
	for _, f := range strike {
		i.out.trace("%v while %v", f, p)
		i.inflict(f)
	}
}

// end lets no fault strike any more, and reports whether all have ended.
func (i *injector) end() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calm = true
	return i.lasting.Load() == 0
}

// later ends a fault after d.
func (i *injector) later(d time.Duration, end func()) {
	i.lasting.Add(1)
	time.AfterFunc(d, func() {
		end()
		i.lasting.Add(-1)
	})
}

// inflict has a fault strike. It ends after a while.
func (i *injector) inflict(f Fault) {
	d := i.dice.between(50*time.Millisecond, 1500*time.Millisecond)
	switch f {
	case LeaderKilled:
		i.kill(i.cluster.raftLeader(), d)
	case FollowerKilled:
		i.kill(i.follower(), d)
	case MajorityKilled:
		a, b := i.cluster.raftLeader(), i.follower()
		i.kill(a, d)
		i.kill(b, d+apart)
	case AllKilled:
		for n, p := range i.cluster.all() {
			i.kill(p, d+time.Duration(n)*apart)
		}
	case LeaderFrozen:
		i.freeze(i.cluster.raftLeader(), d)
	case WorkerKilled:
		i.kill(i.worker(), d)
	case WorkerFrozen:
		i.freeze(i.worker(), d)
	case WorkerLeaves:
		p := i.worker()
		i.cluster.tasks.Go(func() { i.cluster.leave(p) })
		i.later(d, func() { i.cluster.start(p) })
	case WorkerJoins:
		i.cluster.start(i.cluster.spare)
	case LeaderCutFromNATS:
		i.cutOff(i.cluster.raftLeader(), d)
	case WorkerCut:
		i.cutOff(i.worker(), d)
	case WorkerCutFromLeader:
		a, b := i.worker().name, i.cluster.raftLeader().name
		i.net.part(a, b, true)
		i.later(d, func() { i.net.part(a, b, false) })
	case NATSRestarts:
		i.net.stop()
		i.later(d/2, i.net.start)
	case NetworkLoses:
		i.blow(storm{drop: 0.2}, d)
	case NetworkRepeats:
		i.blow(storm{twice: 0.3, late: 100 * time.Millisecond}, d)
	case NetworkReorders:
		i.blow(storm{slow: 0.3, late: 80 * time.Millisecond}, d)
	default:
		i.log.inflict(f, d, i.later)
	}
}

// kill kills a process, and starts it again after d.
func (i *injector) kill(p *process, d time.Duration) {
	i.out.trace("%s is killed for %v", p.name, d)
	i.cluster.kill(p)
	i.later(d, func() { i.cluster.start(p) })
}

// freeze freezes a process for d. A process that is down is left alone.
func (i *injector) freeze(p *process, d time.Duration) {
	if thaw := i.cluster.freeze(p); thaw != nil {
		i.out.trace("%s is frozen for %v", p.name, d)
		i.later(d, thaw)
	}
}

func (i *injector) cutOff(p *process, d time.Duration) {
	i.out.trace("%s is cut off for %v", p.name, d)
	i.net.cutOff(p.name)
	i.later(d, func() { i.net.mend(p.name) })
}

// blow has a storm blow for d. A later storm replaces an earlier one, and the end of
// either ends both.
func (i *injector) blow(s storm, d time.Duration) {
	i.net.blow(s)
	i.later(d, func() { i.net.blow(storm{}) })
}

// follower draws a coordinator that does not lead.
func (i *injector) follower() *process {
	leader := i.cluster.raftLeader()
	for {
		if p := i.cluster.coordinators[i.dice.n(len(i.cluster.coordinators))]; p != leader {
			return p
		}
	}
}

// worker draws a worker.
func (i *injector) worker() *process { return i.cluster.workers[i.dice.n(len(i.cluster.workers))] }
