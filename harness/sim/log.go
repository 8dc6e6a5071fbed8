package sim

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	minCommit   = 300 * time.Microsecond
	maxCommit   = 2 * time.Millisecond
	maxLag      = 4 * time.Millisecond // of a follower that applies an entry
	maxSnapshot = 20 * time.Millisecond
	electEvery  = 20 * time.Millisecond
	minElection = 150 * time.Millisecond
	maxElection = 400 * time.Millisecond
	// snapshotEvery is the number of entries after which a coordinator writes a snapshot.
	snapshotEvery = 12
)

// raftLog is the replicated log: what a quorum has on disk, and who leads. It outlives
// the hosts. The entries of one leader keep their order. Entries of a former leader may
// come late, or never.
type raftLog struct {
	dice  *dice
	hooks hooks

	mu      sync.Mutex // guards the fields below, and leads of all views
	entries [][]byte   // entry i has index i+1
	queue   []*proposal
	queued  chan struct{}    // has an element if queue has
	views   map[string]*view // of the coordinators that run
	names   []string         // of all coordinators
	leader  string           // who leads Raft; empty: nobody
	without time.Time        // since when nobody can lead; zero: somebody can
	timeout time.Duration    // how long the leader must be missing until another is elected
	cut     map[string]bool  // coordinators that messages of Raft do not reach
	stale   time.Duration    // how long a former leader believes that it leads
	snaps   map[string]*snap // the latest snapshot on the disk of each coordinator
	// Of the next proposals, ambiguous return an error and are committed, and lost return
	// an error and are not. The next one takes stall longer.
	ambiguous, lost int
	stall           time.Duration
}

// hooks are told what the log does, by the goroutine that does it and without the lock.
type hooks struct {
	reached  func(Phase)
	proposed func(entry []byte)
	applied  func(h *host, s *state.State, entry []byte, r state.Result) // entry is nil after a snapshot
	corrupt  func(format string, args ...any)                            // a snapshot is not the state that was written
}

// snap is a snapshot on disk.
type snap struct {
	index uint64
	bytes []byte
}

// proposal is an entry on its way into the log.
type proposal struct {
	by    *view
	entry []byte
	stall time.Duration
	done  chan outcome // has room for the outcome
	held  bool         // true if it is of a former leader and comes late
}

type outcome struct {
	index uint64
	value any
	err   error
}

func newRaftLog(seed uint64, names []string, first []byte, h hooks) *raftLog {
	return &raftLog{
		dice: newDice(seed, "log"), hooks: h, queued: make(chan struct{}, 1), names: names, entries: [][]byte{first},
		views: make(map[string]*view), cut: make(map[string]bool), snaps: make(map[string]*snap),
	}
}

// run commits what is proposed and elects leaders until ctx is done.
func (l *raftLog) run(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { l.commitAll(ctx) })
	time.Sleep(apart / 3) // so that no two timers end at the same instant
	tick := time.NewTicker(electEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			wait.Wait()
			return
		case now := <-tick.C:
			l.elect(now)
		}
	}
}

// can reports whether a coordinator can lead or vote; the lock is held.
func (l *raftLog) can(name string) bool {
	v := l.views[name]
	return v != nil && v.host.running() && !l.cut[name]
}

// quorum reports whether entries can be committed; the lock is held.
func (l *raftLog) quorum() bool {
	n := 0
	for _, name := range l.names {
		if l.can(name) {
			n++
		}
	}
	return n > len(l.names)/2
}

// elect replaces a leader that cannot lead any more, after a timeout.
func (l *raftLog) elect(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.quorum() {
		l.without = now
		return
	}
	if l.leader != "" && l.can(l.leader) {
		l.without = time.Time{}
		return
	}
	if l.without.IsZero() {
		l.without, l.timeout = now, l.dice.between(minElection, maxElection)
	}
	if now.Sub(l.without) >= l.timeout {
		l.appoint()
	}
}

// appoint draws a leader among the coordinators that can lead: another than the present
// one, if there is one. The present leader hears of it later, or never. The lock is held.
func (l *raftLog) appoint() {
	var list []string
	for _, name := range l.names {
		if l.can(name) && name != l.leader {
			list = append(list, name)
		}
	}
	next := l.leader
	if len(list) > 0 {
		next = list[l.dice.n(len(list))]
	}
	if old := l.views[l.leader]; old != nil {
		l.depose(old)
	}
	l.leader, l.without, l.stale = next, time.Time{}, 0
	if v := l.views[next]; v != nil {
		v.tell(true)
	}
}

// depose ends a leadership. The former leader is told once it runs and its Raft has found
// out. What it has proposed comes late, or never. The lock is held.
func (l *raftLog) depose(old *view) {
	kept := l.queue[:0:0]
	for _, p := range l.queue {
		if p.by != old || p.held {
			kept = append(kept, p)
			continue
		}
		p.done <- outcome{err: fmt.Errorf("sim: %w: leadership lost", store.ErrAmbiguous)}
		if l.dice.chance(0.5) {
			l.delay(p)
		}
	}
	l.queue = kept
	time.AfterFunc(l.stale, func() {
		if !old.host.pass() {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.leader != old.host.name || l.views[l.leader] != old {
			old.tell(false)
		}
	})
}

// delay puts an entry of a former leader into the queue again after a while. That is
// worse than Raft, in which the entry comes before the entries of the next leader or
// never. The state machine promises to withstand it. Two kinds are never held: a Lead
// entry, since nobody elected that leader, and a Pause, which would be another wish after
// its Resume.
func (l *raftLog) delay(p *proposal) {
	if k := kindOf(p.entry); k == protocol.EntryLead || k == protocol.EntryPause {
		return
	}
	again := &proposal{by: p.by, entry: p.entry, done: make(chan outcome, 1), held: true}
	time.AfterFunc(l.dice.between(0, 300*time.Millisecond), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.enqueue(again)
	})
}

// enqueue appends a proposal to the queue; the lock is held.
func (l *raftLog) enqueue(p *proposal) {
	l.queue = append(l.queue, p)
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// commitAll commits proposals one by one until ctx is done.
func (l *raftLog) commitAll(ctx context.Context) {
	retry := time.NewTicker(10 * time.Millisecond) // while there is no quorum
	defer retry.Stop()
	for {
		var p *proposal
		var again <-chan time.Time
		l.mu.Lock()
		if len(l.queue) > 0 && l.quorum() {
			p, l.queue = l.queue[0], l.queue[1:]
		} else if len(l.queue) > 0 {
			again = retry.C
		}
		l.mu.Unlock()
		if p != nil {
			time.Sleep(l.dice.between(minCommit, maxCommit) + p.stall)
			l.commit(p)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.queued:
		case <-again:
		}
	}
}

// commit appends an entry and tells its proposer.
func (l *raftLog) commit(p *proposal) {
	l.mu.Lock()
	l.entries = append(l.entries, p.entry)
	index := uint64(len(l.entries))
	for _, v := range l.views {
		v.notify()
	}
	l.mu.Unlock()
	if kindOf(p.entry) == protocol.EntryCommit {
		l.hooks.reached(Committed)
	}
	tell := func() {
		if p.by.host.pass() { // a dead proposer is not told
			result := p.by.result(index)
			p.done <- outcome{index, result.Value, result.Err}
		}
	}
	if p.by.host.running() {
		tell()
	} else {
		go tell() // once the proposer runs again
	}
}

// propose is Propose of a view. See store.Propose.
func (l *raftLog) propose(ctx context.Context, v *view, entry []byte) (uint64, any, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if !v.host.pass() {
		return 0, nil, store.ErrClosed
	}
	l.hooks.proposed(entry)
	if !v.host.pass() {
		return 0, nil, store.ErrClosed
	}
	p, err := l.admit(v, entry)
	if err != nil {
		return 0, nil, err
	}
	select {
	case o := <-p.done:
		if !v.host.pass() {
			return 0, nil, store.ErrClosed
		}
		return o.index, o.value, o.err
	case <-ctx.Done():
		return 0, nil, fmt.Errorf("sim: %w: %w", store.ErrAmbiguous, ctx.Err())
	case <-v.host.dead:
		return 0, nil, store.ErrClosed
	}
}

// admit queues a proposal, or does with it what a fault says.
func (l *raftLog) admit(v *view, entry []byte) (*proposal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !v.leads || l.views[v.host.name] != v {
		return nil, &store.NotLeaderError{Leader: l.leader}
	}
	p := &proposal{by: v, entry: bytes.Clone(entry), done: make(chan outcome, 1)}
	if v.host.name != l.leader { // another leads, and it does not know yet
		p.done <- outcome{err: fmt.Errorf("sim: %w: leadership lost", store.ErrAmbiguous)}
		if l.dice.chance(0.5) {
			l.delay(p)
		}
		return p, nil
	}
	p.stall, l.stall = l.stall, 0
	switch {
	case l.lost > 0:
		l.lost--
		p.done <- outcome{err: fmt.Errorf("sim: %w: the disk stalls", store.ErrAmbiguous)}
	case l.ambiguous > 0:
		l.ambiguous--
		late := p.stall + l.dice.between(0, 1500*time.Millisecond)
		p.done <- outcome{err: fmt.Errorf("sim: %w: the disk stalls", store.ErrAmbiguous)}
		l.enqueue(&proposal{by: v, entry: p.entry, stall: late, done: make(chan outcome, 1)})
	default:
		l.enqueue(p)
	}
	return p, nil
}

// insert queues an entry ahead of what its caller is about to propose, like the entry of
// a client that was a little quicker. It returns the channel of the outcome.
func (l *raftLog) insert(entry []byte) <-chan outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &proposal{by: l.views[l.leader], entry: entry, done: make(chan outcome, 1)}
	if p.by != nil {
		l.enqueue(p)
	}
	return p.done
}

// after returns the committed entries after index.
func (l *raftLog) after(index uint64) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[index:len(l.entries):len(l.entries)]
}

// leaderName returns the name of the leader; empty: nobody leads.
func (l *raftLog) leaderName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leader
}

// inflict has a fault of the log strike. If it lasts, later ends it after d.
func (l *raftLog) inflict(f Fault, d time.Duration, later func(time.Duration, func())) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f {
	case LeaderCutFromRaft:
		name := l.leader
		l.cut[name] = true
		later(d, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.cut, name)
		})
	case TwoLeaders:
		if l.leader != "" && l.quorum() {
			l.stale = d
			l.appoint()
		}
	case Reelected:
		if v := l.views[l.leader]; v != nil && l.quorum() {
			l.depose(v)
			v.tell(true)
		}
	case FollowerBehind:
		for _, name := range l.names {
			if v := l.views[name]; v != nil && name != l.leader {
				go v.lag(d) // in a goroutine, since the caller may hold the lock of the view
				break
			}
		}
	case ProposalAmbiguous:
		l.ambiguous = 1 + l.dice.n(3)
	case ProposalLost:
		l.lost = 1 + l.dice.n(3)
	case LogStalls:
		l.stall = d
	}
}

// kindOf returns the kind of an entry.
func kindOf(entry []byte) protocol.EntryKind {
	if len(entry) < 2 {
		return 0
	}
	return protocol.EntryKind(entry[1])
}
