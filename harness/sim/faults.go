package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
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

// Phase is a moment in the life of a job or of the log at which a fault strikes.
type Phase int

// The phases.
const (
	Takeover   Phase = iota // a new leader proposes its Lead entry
	Dispatch                // a trainer is about to give out a round
	Partials                // a partial of a round arrives
	Committing              // a commit is about to be proposed
	Committed               // a commit is in the log, and its proposer does not know
	Snapshot                // a snapshot is being written
	Install                 // a snapshot is being installed
	Replicate               // a blob is being replicated
	Recording               // the result of a task of a gather round is about to be recorded
	Finishing               // the result of a job is about to be committed
	phases
)

var phaseNames = [phases]string{
	"takeover", "dispatch", "partials", "committing", "committed", "snapshot", "install", "replicate", "recording", "finishing",
}

func (p Phase) String() string { return phaseNames[p] }

// Fault is what strikes.
type Fault int

// The faults. Leader and follower mean the coordinators that Raft has in these roles at
// that moment.
const (
	LeaderKilled Fault = iota
	LeaderFrozen
	LeaderCutFromNATS
	LeaderCutFromRaft
	TwoLeaders // another coordinator leads, and the former leader does not know
	Reelected  // the leader loses the leadership and wins it again
	FollowerKilled
	FollowerBehind // a follower stays behind and is then sent a snapshot
	MajorityKilled
	AllKilled
	WorkerKilled
	WorkerFrozen
	WorkerCut
	WorkerCutFromLeader
	WorkerLeaves
	WorkerJoins
	NATSRestarts
	NetworkLoses
	NetworkRepeats
	NetworkReorders
	ProposalAmbiguous // a proposal returns an error and is committed
	ProposalLost      // a proposal returns an error and is not committed
	LogStalls
	faults
)

var faultNames = [faults]string{
	"leader killed", "leader frozen", "leader cut from NATS", "leader cut from Raft", "two leaders", "reelected",
	"follower killed", "follower behind", "majority killed", "all killed",
	"worker killed", "worker frozen", "worker cut", "worker cut from leader", "worker leaves", "worker joins",
	"NATS restarts", "network loses", "network repeats", "network reorders",
	"proposal ambiguous", "proposal lost", "log stalls",
}

func (f Fault) String() string { return faultNames[f] }

// Cell is a fault in a phase.
type Cell struct {
	Phase Phase
	Fault Fault
}

func (c Cell) String() string { return fmt.Sprintf("%v while %v", c.Fault, c.Phase) }

// Cells lists the matrix of faults and phases.
func Cells() []Cell {
	var all []Cell
	for p := range phases {
		for f := range faults {
			all = append(all, Cell{p, f})
		}
	}
	return all
}

// Violation is a promise that was broken.
type Violation struct {
	Check string // the check that found it
	Text  string
}

func (v *Violation) Error() string { return fmt.Sprintf("check %q: %s", v.Check, v.Text) }

// verdict keeps the first violation.
type verdict struct {
	failed chan struct{} // closed with the first violation

	mu     sync.Mutex // guards the fields below; no other lock is taken under it
	broken *Violation
	over   bool // true if the run has ended: what happens afterwards breaks no promise
}

// fail notes a violation. The first one ends the simulation.
func (v *verdict) fail(check, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken == nil && !v.over {
		v.broken = &Violation{check, fmt.Sprintf(format, args...)}
		close(v.failed)
	}
}

// end returns the violation, if there was one, and ends the run.
func (v *verdict) end() *Violation {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	return v.broken
}

// output says what happens in a run.
type output struct {
	began time.Time
	print func(format string, args ...any) // nil: nothing is said
}

func (o *output) trace(format string, args ...any) {
	if o.print != nil {
		o.print("%9.3fms "+format, append([]any{float64(time.Since(o.began).Microseconds()) / 1e3}, args...)...)
	}
}

// logger returns the log of a process.
func (o *output) logger(name string) *slog.Logger {
	if o.print == nil {
		return slog.New(slog.DiscardHandler)
	}
	w := writer(func(b []byte) { o.trace("%s: %s", name, bytes.TrimSpace(b)) })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// writer is an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// dice is a stream of random numbers for one purpose, so that what one part draws does
// not depend on when the others draw.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64, purpose string) *dice {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return &dice{r: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// chance reports true with probability p.
func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64() < p
}

// between draws a time from [lo, hi).
func (d *dice) between(lo, hi time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return lo + time.Duration(d.r.Int64N(int64(hi-lo)))
}

// n draws an integer from [0, n).
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}
