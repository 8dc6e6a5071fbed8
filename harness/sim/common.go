package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

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
	"takeover", "dispatch", "partials", "committing", "committed", "snapshot", "install", "replicate", "recording",
	"finishing",
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
