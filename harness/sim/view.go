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

// view is the log as one life of a coordinator sees it. It implements office.Log.
type view struct {
	log  *raftLog
	host *host
	dice *dice
	news chan struct{} // there are entries to apply

	leads      bool      // believes that it leads; the log's lock guards it
	leadership chan bool // the latest change, for one reader

	mu      sync.Mutex // guards what follows
	state   *state.State
	changed chan struct{}
	since   int // entries since the last snapshot
	hold    bool
	results map[uint64]state.Result // of entries applied, until asked for
}

// snapshotEvery is how many entries make a snapshot.
const snapshotEvery = 12

// open starts a coordinator's log from its disk: the latest snapshot and what
// came after.
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
	v.behind()
	return v
}

// close ends the log of a coordinator that stops or was killed.
func (v *view) close() {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	v.leads = false
	if v.log.views[v.host.name] != v {
		return
	}
	delete(v.log.views, v.host.name)
	if v.log.leader == v.host.name {
		v.log.leader = ""
		v.log.orphan(v)
	}
}

// behind tells that there are entries to apply.
func (v *view) behind() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// office tells that leadership is won or lost; the log's lock is held.
func (v *view) office(leads bool) {
	v.leads = leads
	select {
	case <-v.leadership:
	default:
	}
	v.leadership <- leads
}

// follow applies what is committed, a little later than the leader, until ctx is
// done.
func (v *view) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.host.dead:
			return
		case <-v.news:
		}
		if !v.work(maxLag) {
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

// result returns what became of the entry at index, applying up to it if need be.
func (v *view) result(index uint64) state.Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.applyTo(index)
	r := v.results[index]
	delete(v.results, index)
	return r
}

// applyTo applies entries up to index; mu is held.
func (v *view) applyTo(index uint64) {
	for _, entry := range v.log.after(v.state.Index()) {
		at := v.state.Index() + 1
		if at > index {
			break
		}
		next, result := v.state.Apply(at, entry)
		v.publish(next)
		v.since++
		v.log.hooks.applied(v.host, next, entry, result)
		v.results[at] = result
	}
}

func (v *view) publish(s *state.State) {
	v.state = s
	close(v.changed)
	v.changed = make(chan struct{})
}

// snapshot writes a state to the disk: that takes a while, and is whole or not
// there at all after a crash.
func (v *view) snapshot(s *state.State) {
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		panic(fmt.Sprintf("sim: a state does not encode: %v", err))
	}
	v.log.hooks.snapshot(v.host)
	if !v.work(20 * time.Millisecond) {
		return
	}
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	if old := v.log.snaps[v.host.name]; old == nil || old.index < s.Index() {
		v.log.snaps[v.host.name] = &snap{s.Index(), b.Bytes()}
	}
}

// restore decodes a snapshot; what it leaves out shows when it is encoded again.
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

// work passes time, at most so much, and reports whether the host lives on.
func (v *view) work(most time.Duration) bool {
	select {
	case <-time.After(v.dice.between(0, most)):
	case <-v.host.dead:
	}
	return v.host.pass()
}

// lag keeps a coordinator from applying entries for a while; then it is sent
// another's snapshot, as one is whose log was left too far behind.
func (v *view) lag(d time.Duration) {
	v.mu.Lock()
	v.hold = true
	v.mu.Unlock()
	time.AfterFunc(d, v.install)
}

// install replaces the state by another coordinator's, through its bytes.
func (v *view) install() {
	from := v.log.donor(v)
	if from == nil || !v.host.pass() {
		v.release()
		return
	}
	s, _ := from.Watch()
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		panic(fmt.Sprintf("sim: a state does not encode: %v", err))
	}
	v.log.hooks.install(v.host)
	if !v.work(20 * time.Millisecond) {
		return
	}
	restored := v.log.restore(b.Bytes())
	v.mu.Lock()
	if restored.Index() > v.state.Index() {
		v.publish(restored)
		v.log.hooks.applied(v.host, restored, nil, state.Result{})
	}
	v.mu.Unlock()
	v.release()
}

func (v *view) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hold = false
	v.behind()
}

// donor returns the view that a snapshot comes from: the leader's.
func (l *raftLog) donor(to *view) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.views[l.leader]; v != nil && v != to && v.host.runs() {
		return v
	}
	return nil
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

// Lead implements office.Log.
func (v *view) Lead(ctx context.Context, node string) (uint64, error) {
	return store.Lead(ctx, v, node)
}
