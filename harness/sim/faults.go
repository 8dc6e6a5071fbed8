package sim

import (
	"fmt"
	"time"
)

// Phase is a moment in the life of a job or of the log at which a fault strikes.
type Phase int

// The phases.
const (
	Takeover   Phase = iota // a new leader proposes its Lead entry
	Dispatch                // before a round is given out
	Partials                // some partials of a round are in
	Committing              // before a commit is proposed
	Committed               // a commit is in the log and its proposer was not told
	Snapshot                // a snapshot is being written
	Install                 // a snapshot is being installed
	Replicate               // a blob is being replicated
	Recording               // a collected part is about to be recorded
	Finishing               // the result is about to be committed
	phases
)

var phaseNames = [phases]string{
	"takeover", "dispatch", "partials", "committing", "committed", "snapshot", "install", "replicate", "recording", "finishing",
}

func (p Phase) String() string { return phaseNames[p] }

// Fault is what strikes.
type Fault int

// The faults. Leader and follower are as Raft has them just then.
const (
	LeaderKilled Fault = iota
	LeaderFrozen
	LeaderCutFromNATS
	LeaderCutFromRaft
	TwoLeaders // another leads, and the former does not know
	Reelected  // the office is lost and won again
	FollowerKilled
	FollowerBehind // and is sent a snapshot
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
	ProposalAmbiguous // it returns an error and commits
	ProposalLost      // it returns an error and does not
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

// Cells lists the whole matrix.
func Cells() []Cell {
	var all []Cell
	for p := range phases {
		for f := range faults {
			all = append(all, Cell{p, f})
		}
	}
	return all
}

// armed is a fault that waits for its phase.
type armed struct {
	Cell
	skip  int // phases to let pass before
	fired bool
}

// plan draws the faults of a seed: over consecutive seeds, every cell in turn.
func (s *Sim) plan() {
	all := Cells()
	for i := range faultsPerSeed {
		c := all[(int(s.seed)*faultsPerSeed+i)*7919%len(all)]
		limit := 4
		switch c.Phase {
		case Takeover, Install, Finishing:
			limit = 1
		case Dispatch, Partials:
			limit = 30
		}
		s.armed = append(s.armed, &armed{Cell: c, skip: s.dice.n(limit)})
		if c.Phase == Install { // else there may be none
			s.armed = append(s.armed, &armed{Cell: Cell{Dispatch, FollowerBehind}, skip: s.dice.n(6)})
		}
	}
}

// faultsPerSeed is how many faults strike in a run, at most.
const faultsPerSeed = 4

// reach tells that a phase is reached: what is armed for it strikes now.
func (s *Sim) reach(p Phase) {
	s.mu.Lock()
	var strike []Fault
	for _, a := range s.armed {
		if a.Phase != p || a.fired || s.over || s.calm {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		a.fired = true
		s.hit[a.Cell]++
		strike = append(strike, a.Fault)
	}
	s.mu.Unlock()
	for _, f := range strike {
		s.trace("%v while %v", f, p)
		s.inflict(f)
	}
}

// inflict has a fault strike, and end after a while.
func (s *Sim) inflict(f Fault) {
	d := s.dice.between(50*time.Millisecond, 1500*time.Millisecond)
	switch f {
	case LeaderKilled:
		s.down(s.leader(), d)
	case FollowerKilled:
		s.down(s.follower(), d)
	case MajorityKilled:
		a, b := s.leader(), s.follower()
		s.down(a, d)
		s.down(b, d+apart)
	case AllKilled:
		for i, p := range append(append([]*process{}, s.coordinators...), s.workers...) {
			s.down(p, d+time.Duration(i)*apart)
		}
	case LeaderFrozen:
		s.halt(s.leader(), d)
	case WorkerKilled:
		s.down(s.someWorker(), d)
	case WorkerFrozen:
		s.halt(s.someWorker(), d)
	case WorkerLeaves:
		p := s.someWorker()
		s.tasks.Go(func() { s.leave(p) })
		s.after(d, func() { s.start(p) })
	case WorkerJoins:
		s.start(s.spare)
	default:
		s.disturb(f, d)
	}
}

// disturb is inflict for what processes are between.
func (s *Sim) disturb(f Fault, d time.Duration) {
	switch f {
	case LeaderCutFromNATS:
		s.cutOff(s.leader(), d)
	case WorkerCut:
		s.cutOff(s.someWorker(), d)
	case WorkerCutFromLeader:
		a, b := s.someWorker().name, s.leader().name
		s.net.part(a, b, true)
		s.after(d, func() { s.net.part(a, b, false) })
	case NATSRestarts:
		s.net.stop()
		s.after(d/2, s.net.start)
	case NetworkLoses:
		s.weather(storm{drop: 0.2}, d)
	case NetworkRepeats:
		s.weather(storm{twice: 0.3, late: 100 * time.Millisecond}, d)
	case NetworkReorders:
		s.weather(storm{slow: 0.3, late: 80 * time.Millisecond}, d)
	default:
		s.log.disturb(f, d, s)
	}
}

// disturb is inflict for the log.
func (l *raftLog) disturb(f Fault, d time.Duration, s *Sim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f {
	case LeaderCutFromRaft:
		name := l.leader
		l.cut[name] = true
		s.after(d, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.cut, name)
		})
	case TwoLeaders:
		if l.leader != "" && l.majority() {
			l.stale = d
			l.appoint(l.candidate())
		}
	case Reelected:
		if v := l.views[l.leader]; v != nil && l.majority() {
			l.depose(v)
			v.office(true)
		}
	case FollowerBehind:
		for _, name := range l.names {
			if v := l.views[name]; v != nil && name != l.leader {
				go v.lag(d) // the caller may hold what it needs
				break
			}
		}
	case ProposalAmbiguous:
		l.fate.ambiguous = 1 + l.dice.n(3)
	case ProposalLost:
		l.fate.lost = 1 + l.dice.n(3)
	case LogStalls:
		l.fate.stall = d
	}
}

// after does what ends a fault; calm waits for it.
func (s *Sim) after(d time.Duration, f func()) {
	s.ending.Add(1)
	time.AfterFunc(d, func() {
		f()
		s.ending.Add(-1)
	})
}

func (s *Sim) down(p *process, d time.Duration) {
	s.trace("%s is killed for %v", p.name, d)
	s.kill(p)
	s.after(d, func() { s.start(p) })
}

func (s *Sim) halt(p *process, d time.Duration) {
	s.mu.Lock()
	l := p.now
	s.mu.Unlock()
	if l != nil {
		s.trace("%s is frozen for %v", p.name, d)
		l.host.freeze()
		s.after(d, l.host.thaw)
	}
}

func (s *Sim) cutOff(p *process, d time.Duration) {
	s.trace("%s is cut off for %v", p.name, d)
	s.net.cutOff(p.name)
	s.after(d, func() { s.net.mend(p.name) })
}

func (s *Sim) weather(w storm, d time.Duration) {
	s.net.blow(w)
	s.after(d, func() { s.net.blow(storm{}) })
}

// leader returns the coordinator that leads Raft, or led it last.
func (s *Sim) leader() *process {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, p := range s.coordinators {
		if p.name == s.log.leader {
			return p
		}
	}
	return s.coordinators[0]
}

// follower returns another coordinator.
func (s *Sim) follower() *process {
	leader := s.leader()
	for {
		if p := s.coordinators[s.dice.n(len(s.coordinators))]; p != leader {
			return p
		}
	}
}

func (s *Sim) someWorker() *process { return s.workers[s.dice.n(len(s.workers))] }
