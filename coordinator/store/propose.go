package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// proposals puts entries into the log.
type proposals struct {
	supervisor *supervisor
	transfer   *transfer
	pending    pending
}

// Future is a proposal without an outcome yet.
type Future struct {
	done  chan struct{} // closed after the other fields are set
	index uint64
	value any
	err   error
}

// Done is closed when the outcome is known.
func (f *Future) Done() <-chan struct{} { return f.done }

// Result waits for the outcome: see Store.Propose.
func (f *Future) Result() (index uint64, value any, err error) { return f.Wait(context.Background()) }

// Wait is Result, but not for longer than ctx. Then the outcome is ErrAmbiguous.
func (f *Future) Wait(ctx context.Context) (index uint64, value any, err error) {
	select {
	case <-f.done:
		return f.index, f.value, f.err
	case <-ctx.Done():
		return 0, nil, fmt.Errorf("store: %w: %w", ErrAmbiguous, ctx.Err())
	}
}

// Propose puts an entry into the log. It returns after a majority has the entry on disk and
// this node has applied it: the index of the entry, and the value that state.Result
// documents. On a node that does not lead, the error is a *NotLeaderError, and nothing is
// written. ErrAmbiguous, also if ctx ends first, says that the entry may be applied now or
// later. An error of package state says that the entry is in the log and was refused. The
// caller must not change entry until the outcome is known. An entry should have at most 512
// KiB.
func (p *proposals) Propose(ctx context.Context, entry []byte) (index uint64, value any, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	return p.ProposeAsync(entry).Wait(ctx)
}

// ProposeAsync is Propose without waiting. Entries of one goroutine enter the log in the
// order of its calls. While sixteen proposals wait to be written, it blocks, so that no
// caller gets far ahead of the disk.
func (p *proposals) ProposeAsync(entry []byte) *Future {
	f := &Future{done: make(chan struct{})}
	v := p.supervisor
	if err := v.life.begin(); err != nil {
		f.err = err
		close(f.done)
		return f
	}
	began := time.Now()
	p.pending.add(f, began)
	n := v.node.Load()
	applied := n.raft.Apply(entry, v.config.patience())
	go func() {
		defer v.life.calls.Done()
		p.resolve(f, n, applied)
		p.pending.remove(f)
		if f.index > 0 && v.config.Committed != nil {
			v.config.Committed(time.Since(began))
		}
	}()
	return f
}

// resolve waits for Raft's answer. A node that has ended may never give it.
func (p *proposals) resolve(f *Future, n *node, applied raft.ApplyFuture) {
	defer close(f.done)
	answer := make(chan error, 1)
	go func() { answer <- applied.Error() }()
	var err error
	select {
	case err = <-answer:
	case <-n.ended:
		err = raft.ErrRaftShutdown
	}
	p.transfer.note(err)
	if f.err = p.supervisor.translate(err); f.err != nil {
		return
	}
	result := applied.Response().(state.Result)
	f.index, f.value, f.err = applied.Index(), result.Value, result.Err
}

// Pending returns how long the oldest proposal without an outcome has waited, or 0. On a
// leader without problems this is some milliseconds.
func (p *proposals) Pending() time.Duration { return p.pending.oldest(time.Now()) }

// Barrier returns after this node, the leader, has applied every entry that was in the log
// before the call.
func (p *proposals) Barrier(ctx context.Context) error {
	v := p.supervisor
	return v.await(ctx, func(r *raft.Raft) error { return v.translate(r.Barrier(v.config.patience()).Error()) })
}

// VerifyLeader returns nil if a majority agrees, during the call, that this node leads: the
// state after it is not stale.
func (p *proposals) VerifyLeader(ctx context.Context) error {
	v := p.supervisor
	return v.await(ctx, func(r *raft.Raft) error { return v.translate(r.VerifyLeader().Error()) })
}

// pending has the proposals without an outcome.
type pending struct {
	mu    sync.Mutex
	began map[*Future]time.Time // guarded by mu
}

func (p *pending) add(f *Future, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began == nil {
		p.began = make(map[*Future]time.Time)
	}
	p.began[f] = now
}

func (p *pending) remove(f *Future) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.began, f)
}

// oldest returns the age of the oldest proposal, or 0.
func (p *pending) oldest(now time.Time) (age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, began := range p.began {
		age = max(age, now.Sub(began))
	}
	return age
}

// transfer remembers since when Raft refuses proposals because of a transfer of the
// leadership. Raft may do so for ever (hashicorp/raft#696).
type transfer struct {
	since atomic.Pointer[time.Time] // with a monotonic clock; nil if Raft does not refuse proposals
}

// note records the answer of Raft to a proposal.
func (t *transfer) note(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := time.Now()
		t.since.CompareAndSwap(nil, &now)
	} else if t.since.Load() != nil {
		t.since.Store(nil)
	}
}

// forget is called when the leadership changes: earlier refusals do not matter to a later
// leadership.
func (t *transfer) forget() { t.since.Store(nil) }

// hangs reports whether a transfer takes longer than limit, and forgets it. leads says
// whether the node leads.
func (t *transfer) hangs(leads bool, now time.Time, limit time.Duration) bool {
	since := t.since.Load()
	if since == nil || leads && now.Sub(*since) <= limit {
		return false
	}
	t.forget()
	return leads
}

// leadership tells one reader whether the node leads Raft, and hands the leadership over.
type leadership struct {
	supervisor *supervisor
	transfer   *transfer
	changes    chan bool
}

// Leadership delivers whether this node leads Raft, at each change. A value waits for its
// reader. If others follow meanwhile, only the last is delivered. So a true may follow a
// true: the leadership was lost and won again, and needs a new Lead. The channel has one
// reader and is closed by Close.
func (l *leadership) Leadership() <-chan bool { return l.changes }

// relay reads Raft's notifications at once, since Raft waits for it, and delivers the
// latest. It runs until quit is closed.
func (l *leadership) relay(quit <-chan struct{}) {
	var out chan bool // nil if there is nothing to deliver
	var latest bool
	down := l.supervisor.life.down
	for {
		select {
		case latest = <-l.supervisor.notify:
			l.transfer.forget()
			out = l.changes
		case out <- latest:
			out = nil
		case <-down: // Raft's last notification may be lost in its shutdown
			down, latest, out = nil, false, l.changes
		case <-quit:
			return
		}
	}
}

// errHangs says that a transfer of the leadership has not ended: Raft accepts no entries
// meanwhile, perhaps for ever (hashicorp/raft#696).
var errHangs = errors.New("store: the transfer of the leadership did not end in time")

// HandOver makes another voter the leader within Timeouts.HandOver: a certain one if to is
// not empty. If Raft hangs in the transfer, it is restarted in this process, which also
// ends the leadership here: the others elect a leader.
func (l *leadership) HandOver(ctx context.Context, to string) error {
	v := l.supervisor
	if !v.IsLeader() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, v.config.timeouts.HandOver)
	defer cancel()
	err := l.TransferTo(limited, to)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case l.stuck(ctx):
		return v.restart(errHangs)
	case !v.IsLeader():
		return nil
	}
	return err
}

// stuck reports whether Raft says for another HandOver that a transfer is under way, after
// it should have ended.
func (l *leadership) stuck(ctx context.Context) bool {
	v := l.supervisor
	limited, cancel := context.WithTimeout(ctx, v.config.timeouts.HandOver)
	defer cancel()
	tick := time.NewTicker(v.config.timeouts.RaftCommit)
	defer tick.Stop()
	for {
		err := v.await(limited, func(r *raft.Raft) error { return r.Barrier(v.config.patience()).Error() })
		if limited.Err() == nil && !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return false
		}
		select {
		case <-limited.Done():
			return ctx.Err() == nil && v.IsLeader()
		case <-tick.C:
		}
	}
}

// TransferTo makes another node the leader, and returns when this one is not any longer: the
// voter of a coordinator, or any voter if id is empty. The error is ErrNotLeader, or says
// that the other node did not take over within the time of an election: then this node
// still leads.
func (l *leadership) TransferTo(ctx context.Context, id string) error {
	if id == l.supervisor.config.ID {
		return nil
	}
	err := l.supervisor.await(ctx, func(r *raft.Raft) error {
		if id == "" {
			return r.LeadershipTransfer().Error()
		}
		for _, m := range r.GetConfiguration().Configuration().Servers {
			if m.Suffrage == raft.Voter && parseServer(m.ID, m.Address).ID == id {
				return r.LeadershipTransferToServer(m.ID, m.Address).Error()
			}
		}
		return fmt.Errorf("coordinator %q has no vote", id)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader):
		return l.supervisor.translate(err)
	}
	return fmt.Errorf("store: transferring the leadership: %w", err)
}

// abdicate transfers the leadership before the store closes, if this node has it and
// another one can have it.
func (l *leadership) abdicate() {
	v := l.supervisor
	voters := 0
	for _, m := range v.Members() {
		if m.Voter {
			voters++
		}
	}
	if v.raft().State() != raft.Leader || voters < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- v.raft().LeadershipTransfer().Error() }()
	select {
	case <-done: // elected or not, the others continue
	case <-v.life.down:
	case <-time.After(2 * v.config.election()):
	}
}

// Proposer is a replicated log that a Lead entry can be put into.
type Proposer interface {
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
	State() *state.State
}

// Lead makes a node the leader in the replicated state, and returns the epoch. From then on
// every node refuses entries of earlier epochs. When Lead returns, all entries of earlier
// leaders have been applied here.
func Lead(ctx context.Context, s Proposer, node string) (epoch uint64, err error) {
	nonce := rand.Text()
	clock := time.Now()
	entry := protocol.EncodeEntry(protocol.EntryLead, &protocol.LeadEntry{Node: node, Nonce: nonce, Time: clock.Unix(),
		Millis: protocol.Millis(clock)})
	index, _, err := s.Propose(ctx, entry)
	if err != nil {
		return 0, err
	}
	if now := s.State(); now.Epoch() != index || now.Nonce() != nonce {
		return 0, fmt.Errorf("store: leader epoch %d: %w: %s leads since epoch %d", index, state.ErrStaleEpoch, now.Leader(),
			now.Epoch())
	}
	return index, nil
}

// view has the latest state for readers, and wakes readers that wait for a later one.
type view struct {
	mu      sync.Mutex
	current *state.State  // guarded by mu
	changed chan struct{} // closed by the next publish; guarded by mu

	edits atomic.Uint64
}

// Edits returns a number that grows with each entry, except entries that only say how far jobs are. It has grown before
// a proposal is answered.
func (v *view) Edits() uint64 { return v.edits.Load() }

// tellsProgress reports whether an entry only says how far a job is.
func tellsProgress(entry []byte) bool {
	if len(entry) < 2 {
		return false
	}
	switch protocol.EntryKind(entry[1]) {
	case protocol.EntryCommit, protocol.EntryResult, protocol.EntryWithhold:
		return true
	}
	return false
}

// Watch returns the latest state, and a channel that is closed when there is a later one.
func (v *view) Watch() (*state.State, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.changed
}

// State returns the state after the latest entry that this node has applied. It is
// committed, and never changes.
func (v *view) State() *state.State {
	s, _ := v.Watch()
	return s
}

// fsm adapts the state machine to Raft. One goroutine at a time calls begin, Apply,
// Snapshot and Restore.
type fsm struct {
	view   *view
	now    *state.State // after the last entry applied since begin
	floor  uint64       // view shows now from this index on, so that it does not go back when Raft is restarted
	failed func(error)  // is called once, with stop
	stop   error        // why no further entry can be applied; nil: there is no such reason

	logged    atomic.Int64  // bytes of log since the last snapshot
	next      atomic.Int64  // full is signalled when logged reaches it
	limit     int64         // next after a snapshot
	full      chan struct{} // capacity 1
	snapshots atomic.Uint64 // that were written
}

// newFSM returns a machine that asks for a snapshot after limit bytes of log, and calls
// failed if it cannot go on.
func newFSM(limit int64, failed func(error)) *fsm {
	f := &fsm{
		view: &view{current: state.New(), changed: make(chan struct{})}, now: state.New(), failed: failed, limit: limit,
		full: make(chan struct{}, 1),
	}
	f.next.Store(limit)
	return f
}

// begin prepares the machine for a Raft node that restores it from the start. No other node
// may use it any longer.
func (f *fsm) begin() {
	f.now, f.floor = state.New(), f.view.State().Index()
	f.logged.Store(0)
	f.next.Store(f.limit)
}

// publish sets the state that is reached, and shows it to readers.
func (f *fsm) publish(s *state.State) {
	f.now = s
	if s.Index() < f.floor {
		return
	}
	v := f.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = s
	close(v.changed)
	v.changed = make(chan struct{})
}

// Apply implements raft.FSM. It returns a state.Result. After an entry that this version
// does not know it applies no other.
func (f *fsm) Apply(l *raft.Log) any {
	if f.stop != nil {
		return state.Result{Err: f.stop}
	}
	next, result := f.now.Apply(l.Index, l.Data)
	if errors.Is(result.Err, state.ErrUnknownEntry) {
		f.stop = result.Err
		f.failed(result.Err)
		return result
	}
	if f.publish(next); !tellsProgress(l.Data) {
		f.view.edits.Add(1) // after the state is seen: what is made of an earlier state is older than the edit
	}
	if logged := f.logged.Add(int64(len(l.Data)) + entryOverhead); logged >= f.next.Load() {
		f.next.Store(logged + f.limit/4) // if the snapshot fails
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
	return result
}

// Snapshot implements raft.FSM. It costs nothing, since states never change.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.stop != nil {
		return nil, f.stop
	}
	return &snapshot{fsm: f, state: f.now, logged: f.logged.Load()}, nil
}

// Restore implements raft.FSM.
func (f *fsm) Restore(src io.ReadCloser) error {
	if f.stop != nil {
		return f.stop
	}
	s, err := state.Decode(src)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	f.logged.Store(0)
	f.next.Store(f.limit)
	f.publish(s)
	f.view.edits.Add(1)
	return nil
}

// snapshot is a state that is written while others follow it.
type snapshot struct {
	fsm    *fsm
	state  *state.State
	logged int64
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.state.Encode(sink); err != nil {
		return err // Raft cancels the sink
	}
	if err := sink.Close(); err != nil {
		return err
	}
	s.fsm.logged.Add(-s.logged)
	s.fsm.next.Store(s.fsm.limit)
	s.fsm.snapshots.Add(1)
	return nil
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}
