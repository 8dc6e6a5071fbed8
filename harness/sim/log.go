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

// The log's times.
const (
	minCommit   = 300 * time.Microsecond
	maxCommit   = 2 * time.Millisecond
	maxLag      = 4 * time.Millisecond // of a follower
	electEvery  = 20 * time.Millisecond
	minElection = 150 * time.Millisecond
	maxElection = 400 * time.Millisecond
)

// raftLog is the replicated log: what a majority has on disk, and who leads. It
// outlives the hosts. Entries keep the order in which one leader proposed them;
// those that a former leader proposed may come late, or never.
type raftLog struct {
	dice  *dice
	hooks hooks

	mu       sync.Mutex
	entries  [][]byte // entry i has index i+1
	queue    []*proposal
	queued   chan struct{}
	views    map[string]*view // of the coordinators that run
	names    []string         // of all coordinators
	leader   string           // who leads Raft; empty: nobody
	without  time.Time        // since when nobody can lead
	patience time.Duration    // until another is elected
	cut      map[string]bool  // coordinators that Raft's messages do not reach
	stale    time.Duration    // how long a former leader believes that it leads
	fate     fate             // of the next proposals
	snaps    map[string]*snap // the latest snapshot of each coordinator, on its disk
}

// hooks are told what the log does, outside its lock, by the goroutine that does
// it.
type hooks interface {
	proposed(h *host, entry []byte)
	committed(h *host, index uint64, entry []byte)
	applied(h *host, s *state.State, entry []byte, r state.Result)
	snapshot(h *host)
	install(h *host)
	corrupt(format string, args ...any)
}

// fate says how the log treats the next proposals of whoever leads.
type fate struct {
	ambiguous int           // this many return an error and commit
	lost      int           // this many return an error and do not
	stall     time.Duration // how much longer the next one takes
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
	held  bool         // kept of a former leader's, to come late
}

type outcome struct {
	index uint64
	value any
	err   error
}

func newRaftLog(seed uint64, names []string, h hooks) *raftLog {
	return &raftLog{
		dice: newDice(seed, "log"), hooks: h, queued: make(chan struct{}, 1), names: names,
		views: make(map[string]*view), cut: make(map[string]bool), snaps: make(map[string]*snap),
	}
}

// run commits what is proposed and elects leaders until ctx is done.
func (l *raftLog) run(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { l.commitAll(ctx) })
	time.Sleep(apart / 3) // virtual, as all time here: no two timers end at one instant
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
	return v != nil && v.host.runs() && !l.cut[name]
}

// majority reports whether entries can be committed; the lock is held.
func (l *raftLog) majority() bool {
	n := 0
	for _, name := range l.names {
		if l.can(name) {
			n++
		}
	}
	return n > len(l.names)/2
}

// elect replaces a leader that cannot lead any more, once that was noticed.
func (l *raftLog) elect(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.majority() {
		l.without = now
		return
	}
	if l.leader != "" && l.can(l.leader) {
		l.without = time.Time{}
		return
	}
	if l.without.IsZero() {
		l.without, l.patience = now, l.dice.between(minElection, maxElection)
	}
	if now.Sub(l.without) >= l.patience {
		l.appoint(l.candidate())
	}
}

// candidate draws a coordinator that can lead, another than now if there is one.
func (l *raftLog) candidate() string {
	var list []string
	for _, name := range l.names {
		if l.can(name) && name != l.leader {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return l.leader
	}
	return list[l.dice.n(len(list))]
}

// appoint makes a coordinator the leader; the one before hears of it later, or
// not at all.
func (l *raftLog) appoint(name string) {
	if old := l.views[l.leader]; old != nil {
		l.depose(old)
	}
	l.leader, l.without, l.stale = name, time.Time{}, 0
	if v := l.views[name]; v != nil {
		v.office(true)
	}
}

// depose tells a former leader, once it runs and its Raft has found out. What it
// has proposed comes late, or never.
func (l *raftLog) depose(old *view) {
	kept := l.queue[:0:0]
	for _, p := range l.queue {
		if p.by != old || p.held {
			kept = append(kept, p)
			continue
		}
		p.done <- outcome{err: fmt.Errorf("sim: %w: leadership lost", store.ErrAmbiguous)}
		if l.dice.chance(0.5) {
			l.later(p)
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
			old.office(false)
		}
	})
}

// orphan decides which of a dead leader's proposals others have on disk.
func (l *raftLog) orphan(v *view) {
	kept := l.queue[:0:0]
	for _, p := range l.queue {
		if p.by != v || l.dice.chance(0.5) {
			kept = append(kept, p)
		}
	}
	l.queue = kept
}

// later puts an entry of a former leader into the queue again after a while. That
// is worse than Raft, in which it comes before its successor's entries or never;
// the state machine says that it withstands it. A Lead entry is none of these: it
// would make a leader whom nobody elected. Nor is a Pause, which after its Resume
// would be another wish.
func (l *raftLog) later(p *proposal) {
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

func (l *raftLog) enqueue(p *proposal) {
	l.queue = append(l.queue, p)
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// commitAll commits proposals one by one.
func (l *raftLog) commitAll(ctx context.Context) {
	retry := time.NewTicker(10 * time.Millisecond) // while there is no majority
	defer retry.Stop()
	for {
		p, wait := l.first()
		if p == nil {
			select {
			case <-ctx.Done():
				return
			case <-l.queued:
			case <-wait(retry):
			}
			continue
		}
		time.Sleep(l.dice.between(minCommit, maxCommit) + p.stall) // what a commit takes
		l.commit(p)
	}
}

// first takes the first proposal that can be committed now.
func (l *raftLog) first() (*proposal, func(*time.Ticker) <-chan time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	never := func(*time.Ticker) <-chan time.Time { return nil }
	if len(l.queue) == 0 {
		return nil, never
	}
	if !l.majority() {
		return nil, func(t *time.Ticker) <-chan time.Time { return t.C }
	}
	p := l.queue[0]
	l.queue = l.queue[1:]
	return p, never
}

// commit appends an entry and tells its proposer.
func (l *raftLog) commit(p *proposal) {
	l.mu.Lock()
	l.entries = append(l.entries, p.entry)
	index := uint64(len(l.entries))
	for _, v := range l.views {
		v.behind()
	}
	l.mu.Unlock()
	l.hooks.committed(p.by.host, index, p.entry)
	tell := func() {
		if p.by.host.pass() { // else nobody is told
			result := p.by.result(index)
			p.done <- outcome{index, result.Value, result.Err}
		}
	}
	if p.by.host.runs() {
		tell()
	} else {
		go tell() // once it runs again
	}
}

// propose is what a coordinator asks of the log; see store.Propose.
func (l *raftLog) propose(ctx context.Context, v *view, entry []byte) (uint64, any, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if !v.host.pass() {
		return 0, nil, store.ErrClosed
	}
	l.hooks.proposed(v.host, entry)
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

// admit queues a proposal as its fate is.
func (l *raftLog) admit(v *view, entry []byte) (*proposal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !v.leads || l.views[v.host.name] != v {
		return nil, &store.NotLeaderError{Leader: l.leader}
	}
	p := &proposal{by: v, entry: bytes.Clone(entry), done: make(chan outcome, 1)}
	if v.host.name != l.leader { // it has not heard yet: as Raft has it, or a little worse
		p.done <- outcome{err: fmt.Errorf("sim: %w: leadership lost", store.ErrAmbiguous)}
		if l.dice.chance(0.5) {
			l.later(p)
		}
		return p, nil
	}
	p.stall, l.fate.stall = l.fate.stall, 0
	switch {
	case l.fate.lost > 0:
		l.fate.lost--
		p.done <- outcome{err: fmt.Errorf("sim: %w: the disk stalls", store.ErrAmbiguous)}
		return p, nil
	case l.fate.ambiguous > 0:
		l.fate.ambiguous--
		late := p.stall + l.dice.between(0, 1500*time.Millisecond)
		told := &proposal{by: v, entry: p.entry, stall: late, done: make(chan outcome, 1)}
		p.done <- outcome{err: fmt.Errorf("sim: %w: the disk stalls", store.ErrAmbiguous)}
		l.enqueue(told)
		return p, nil
	}
	l.enqueue(p)
	return p, nil
}

// slip puts an entry into the queue ahead of what its caller is about to propose,
// as a client's that was a little quicker, and returns where its outcome comes.
func (l *raftLog) slip(entry []byte) <-chan outcome {
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

// kindOf names the kind of an entry.
func kindOf(entry []byte) protocol.EntryKind {
	if len(entry) < 2 {
		return 0
	}
	return protocol.EntryKind(entry[1])
}
