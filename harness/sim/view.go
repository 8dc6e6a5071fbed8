package sim

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
)

// view is the log as one life of a coordinator sees it. It implements leadership.Log.
type view struct {
	log  *raftLog
	host *host
	dice *dice
	news chan struct{} // has an element if there are entries to apply

	leads      bool      // true if it believes that it leads; the lock of the log guards it
	leadership chan bool // the latest change, for one reader

	mu      sync.Mutex // guards the fields below
	state   *state.State
	changed chan struct{}           // closed when state changes
	since   int                     // entries since the last snapshot
	hold    bool                    // true if no entry is applied
	results map[uint64]state.Result // of applied entries, until they are asked for
}

// open opens the log of a coordinator from its disk: the latest snapshot, and the entries
// after it.
func (l *raftLog) open(h *host) *view {
	v := &view{
		log: l, host: h, dice: newDice(uint64(len(l.after(0))), "view "+h.name), news: make(chan struct{}, 1),
		leadership: make(chan bool, 1), state: state.New(), changed: make(chan struct{}),
		results: make(map[uint64]state.Result),
	}
	l.mu.Lock()
	s := l.snaps[h.name]
	l.mu.Unlock()
	if s != nil {
		v.state = l.restore(s.bytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.views[h.name] = v
	v.notify()
	return v
}

// close closes the log of a coordinator that stops or was killed. Half of the proposals
// of a leader are lost, since no other coordinator has them on disk.
func (v *view) close() {
	l := v.log
	l.mu.Lock()
	defer l.mu.Unlock()
	v.leads = false
	if l.views[v.host.name] != v {
		return
	}
	delete(l.views, v.host.name)
	if l.leader != v.host.name {
		return
	}
	l.leader = ""
	kept := l.queue[:0:0]
	for _, p := range l.queue {
		if p.by != v || l.dice.chance(0.5) {
			kept = append(kept, p)
		}
	}
	l.queue = kept
}

// notify says that there are entries to apply.
func (v *view) notify() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// tell says that the leadership is won or lost; the lock of the log is held.
func (v *view) tell(leads bool) {
	v.leads = leads
	select {
	case <-v.leadership:
	default:
	}
	v.leadership <- leads
}

// follow applies what is committed, a little later than the leader, until ctx is done.
func (v *view) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.host.dead:
			return
		case <-v.news:
		}
		if !v.spend(maxLag) {
			return
		}
		v.mu.Lock()
		held := v.hold
		if !held {
			v.applyTo(uint64(len(v.log.after(0))))
		}
		due := v.since >= snapshotEvery && !held
		s := v.state
		if due {
			v.since = 0
		}
		v.mu.Unlock()
		if due {
			v.snapshot(s)
		}
	}
}

// result returns the result of the entry at index. It applies the entry if that has not
// happened yet.
func (v *view) result(index uint64) state.Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.applyTo(index)
	r := v.results[index]
	delete(v.results, index)
	return r
}

// applyTo applies entries up to index; the lock is held.
func (v *view) applyTo(index uint64) {
	for _, entry := range v.log.after(v.state.Index()) {
		at := v.state.Index() + 1
		if at > index {
			break
		}
		next, result := v.state.Apply(at, entry)
		v.replace(next)
		v.since++
		v.log.hooks.applied(v.host, next, entry, result)
		v.results[at] = result
	}
}

// replace replaces the state; the lock is held.
func (v *view) replace(s *state.State) {
	v.state = s
	close(v.changed)
	v.changed = make(chan struct{})
}

// snapshot writes a state to the disk. That takes a while; after a crash the snapshot is
// complete or not there.
func (v *view) snapshot(s *state.State) {
	b := encode(s)
	v.log.hooks.reached(Snapshot)
	if !v.spend(maxSnapshot) {
		return
	}
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	if old := v.log.snaps[v.host.name]; old == nil || old.index < s.Index() {
		v.log.snaps[v.host.name] = &snap{s.Index(), b}
	}
}

// encode returns the snapshot of a state.
func encode(s *state.State) []byte {
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		panic(fmt.Sprintf("sim: a state does not encode: %v", err))
	}
	return b.Bytes()
}

// restore decodes a snapshot. It encodes the state again, which shows what a snapshot
// leaves out.
func (l *raftLog) restore(snapshot []byte) *state.State {
	s, err := state.Decode(bytes.NewReader(snapshot))
	if err != nil {
		l.hooks.corrupt("a snapshot does not decode: %v", err)
		return state.New()
	}
	var again bytes.Buffer
	if err := s.Encode(&again); err != nil || !bytes.Equal(again.Bytes(), snapshot) {
		l.hooks.corrupt("a state of index %d is another one after a snapshot (%v)", s.Index(), err)
	}
	return s
}

// spend passes a time of at most so much, and reports whether the host lives on.
func (v *view) spend(most time.Duration) bool {
	select {
	case <-time.After(v.dice.between(0, most)):
	case <-v.host.dead:
	}
	return v.host.pass()
}

// lag keeps a coordinator from applying entries for a while. Then it is sent the snapshot
// of the leader, as if the leader had deleted the entries that it lacks.
func (v *view) lag(d time.Duration) {
	v.mu.Lock()
	v.hold = true
	v.mu.Unlock()
	time.AfterFunc(d, func() {
		if v.install() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.hold = false
			v.notify()
		}
	})
}

// install replaces the state by the state of the leader, through its bytes. It reports
// false if the host is killed meanwhile.
func (v *view) install() bool {
	v.log.mu.Lock()
	from := v.log.views[v.log.leader]
	v.log.mu.Unlock()
	if from == nil || from == v || !from.host.running() || !v.host.pass() {
		return true
	}
	b := encode(from.State())
	v.log.hooks.reached(Install)
	if !v.spend(maxSnapshot) {
		return false
	}
	restored := v.log.restore(b)
	v.mu.Lock()
	defer v.mu.Unlock()
	if restored.Index() > v.state.Index() {
		v.replace(restored)
		v.log.hooks.applied(v.host, restored, nil, state.Result{})
	}
	return true
}

// State implements jobs.Log.
func (v *view) State() *state.State {
	s, _ := v.Watch()
	return s
}

// Watch implements jobs.Log.
func (v *view) Watch() (*state.State, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.changed
}

// Propose implements jobs.Log.
func (v *view) Propose(ctx context.Context, entry []byte) (uint64, any, error) {
	return v.log.propose(ctx, v, entry)
}

// Lead implements leadership.Log.
func (v *view) Lead(ctx context.Context, node string) (uint64, error) {
	return store.Lead(ctx, v, node)
}
