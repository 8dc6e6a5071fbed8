package worker

import (
	"slices"
	"sync"
	"time"
)

// The two kinds of lanes: summed rounds never queue behind long collected units.
const (
	sumLanes = iota
	collectLanes
	laneKinds
)

// lanes hands units of ready batches to a fixed number of goroutines. The job
// that has used the least time goes first, so that jobs share the lanes evenly,
// whatever the size of their units. The worker's mutex guards it.
type lanes struct {
	kind   int
	wake   *sync.Cond
	ready  []*batch // with units that nobody has started
	clock  time.Duration
	closed bool

	waiting int     // lanes that have nothing to do
	lenders []*lane // whose units idle lanes may help with
}

// task is what a lane does next: unit i of a batch or, where helps is set, parts of the
// unit of another lane.
type task struct {
	batch *batch
	i     int
	helps *lane
}

func newLanes(kind int, mu *sync.Mutex) *lanes {
	return &lanes{kind: kind, wake: sync.NewCond(mu)}
}

// maxWake is above any number of lanes.
const maxWake = 1024

// add makes a batch ready. A job that was idle starts level with the others: it
// has no claim to the time that it did not ask for.
func (l *lanes) add(b *batch) {
	if !l.has(b.job) {
		used := &b.job.used[l.kind]
		*used = max(*used, l.clock)
	}
	l.ready = append(l.ready, b)
	for range min(b.size(), maxWake) {
		l.wake.Signal()
	}
}

func (l *lanes) has(j *job) bool {
	for _, b := range l.ready {
		if b.job == j {
			return true
		}
	}
	return false
}

// take waits for something to do: units go before help. ok is false once the lanes are
// closed. The mutex is held.
func (l *lanes) take() (t task, ok bool) {
	for !l.closed {
		if len(l.ready) > 0 {
			return l.takeUnit(), true
		}
		if x := l.lender(); x != nil {
			x.share.Join()
			return task{helps: x}, true
		}
		l.waiting++
		l.wake.Wait()
		l.waiting--
	}
	return task{}, false
}

func (l *lanes) takeUnit() task {
	b := l.first()
	l.clock = max(l.clock, b.job.used[l.kind])
	i := b.next
	b.next++
	if b.next == b.size() {
		l.remove(b)
	}
	return task{batch: b, i: i}
}

// lender returns a lane whose unit has parts that nobody has begun, or nil.
func (l *lanes) lender() *lane {
	for _, x := range l.lenders {
		if x.share.Open() {
			return x
		}
	}
	return nil
}

// offer has up to n idle lanes help with the unit of lane x.
func (l *lanes) offer(x *lane, n int) {
	l.lenders = append(l.lenders, x)
	for range min(n, l.waiting) {
		l.wake.Signal()
	}
}

// withdraw ends offer: nobody joins any more.
func (l *lanes) withdraw(x *lane) {
	at := slices.Index(l.lenders, x)
	l.lenders = slices.Delete(l.lenders, at, at+1)
}

func (l *lanes) first() *batch {
	best := l.ready[0]
	for _, b := range l.ready[1:] {
		if b.job.used[l.kind] < best.job.used[l.kind] {
			best = b
		}
	}
	return best
}

// remove takes a batch off the ready ones; it may not be there.
func (l *lanes) remove(b *batch) {
	for i, x := range l.ready {
		if x == b {
			n := copy(l.ready[i:], l.ready[i+1:])
			l.ready[i+n] = nil
			l.ready = l.ready[:i+n]
			return
		}
	}
}

// close ends the lanes: no further unit is taken.
func (l *lanes) close() {
	l.closed = true
	l.wake.Broadcast()
}
