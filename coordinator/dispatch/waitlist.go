package dispatch

import (
	"container/heap"
	"slices"
	"time"
)

// waitList is the units of a collected round that wait to be given out, lowest first, or in the order
// that reorder says. What it does takes a
// time that grows with the logarithm of their number. It does not know workers: feed says who
// has room.
type waitList struct {
	// ready has the units that may be given out, by the worker that they avoid. resting has those that may not yet, by the time at which they may.
	ready   map[string]*unitHeap
	resting restHeap
	turns   []uint32     // of each unit: that of its entry in a heap; 0: it does not wait
	rest    map[int]bool // units in resting
	last    uint32       // turn that was given
	rank    func(u int) float64
	n       int // units in ready
}

// waits is an entry of a heap; it is void where the unit has another turn by now.
type waits struct {
	unit, turn uint32
	rank       float64
}

// before reports whether a unit is given out before another: that of the greater rank, then the
// lower one.
func (e waits) before(other waits) bool {
	if e.rank != other.rank {
		return e.rank > other.rank
	}
	return e.unit < other.unit
}

// rests is an entry of a unit that may not be given out before some time.
type rests struct {
	waits
	after time.Time
	avoid string
}

// newWaitList returns the list of those of so many units that wait.
func newWaitList(units int, wait func(u int) bool) *waitList {
	w := &waitList{ready: make(map[string]*unitHeap), turns: make([]uint32, units), rest: make(map[int]bool)}
	all := new(unitHeap)
	for u := range units {
		if wait(u) {
			w.turns[u] = 1
			*all = append(*all, waits{unit: uint32(u), turn: 1}) // ascending: it is a heap
		}
	}
	w.ready[""], w.n, w.last = all, len(*all), 1
	return w
}

// add has a unit wait: it avoids a worker, unless that is empty, and is not given out before a
// time.
func (w *waitList) add(u int, avoid string, after, now time.Time) {
	w.remove(u)
	w.last++
	e := waits{uint32(u), w.last, w.rankOf(u)}
	w.turns[u] = e.turn
	if now.Before(after) {
		heap.Push(&w.resting, rests{e, after, avoid})
		w.rest[u] = true
		return
	}
	w.put(e, avoid)
}

func (w *waitList) rankOf(u int) float64 {
	if w.rank == nil {
		return 0
	}
	return w.rank(u)
}

// reorder has the units given out by a rank, the greatest first, as it is now; nil: the lowest
// first. It takes a time in proportion to the number of units that wait.
func (w *waitList) reorder(rank func(u int) float64) {
	w.rank = rank
	for _, h := range w.ready {
		*h = slices.DeleteFunc(*h, w.void)
		for i := range *h {
			(*h)[i].rank = w.rankOf(int((*h)[i].unit))
		}
		heap.Init(h)
	}
}

// void reports whether an entry is of a unit that waits no more, or has another.
func (w *waitList) void(e waits) bool { return w.turns[e.unit] != e.turn }

func (w *waitList) put(e waits, avoid string) {
	h := w.ready[avoid]
	if h == nil {
		h = new(unitHeap)
		w.ready[avoid] = h
	}
	heap.Push(h, e)
	w.n++
}

// remove has a unit wait no more, if it does.
func (w *waitList) remove(u int) {
	if w.turns[u] == 0 {
		return
	}
	if w.rest[u] {
		delete(w.rest, u)
	} else {
		w.n--
	}
	w.turns[u] = 0
}

// count returns how many units may be given out now.
func (w *waitList) count(now time.Time) int {
	for len(w.resting) > 0 && !now.Before(w.resting[0].after) {
		e := heap.Pop(&w.resting).(rests)
		if w.turns[e.unit] == e.turn {
			delete(w.rest, int(e.unit))
			e.rank = w.rankOf(int(e.unit))
			w.put(e.waits, e.avoid)
		}
	}
	return w.n
}

// first returns the first unit that may be given out, as far as count was told the time, and
// whom it avoids. Units that avoid one of those in closed are passed over.
func (w *waitList) first(closed map[string]bool) (u int, avoid string, ok bool) {
	var best waits
	for who, h := range w.ready {
		for len(*h) > 0 && w.void((*h)[0]) {
			heap.Pop(h)
		}
		switch {
		case len(*h) == 0:
			delete(w.ready, who)
		case !closed[who] && (!ok || (*h)[0].before(best)):
			best, avoid, ok = (*h)[0], who, true
		}
	}
	return int(best.unit), avoid, ok
}

// each offers the units that may be given out to give, one after the other, as far as count was told the
// time; those that it takes wait no more. Where it does not take a unit that avoids a worker, it
// is offered none other that avoids the same one; where it does not take one that avoids nobody,
// it is offered no more.
func (w *waitList) each(give func(u int, avoid string) bool) {
	var closed map[string]bool
	for {
		u, avoid, ok := w.first(closed)
		switch {
		case !ok:
			return
		case give(u, avoid):
			w.remove(u)
		case avoid == "":
			return
		default:
			if closed == nil {
				closed = make(map[string]bool)
			}
			closed[avoid] = true
		}
	}
}

// unitHeap implements heap.Interface: what is given out first comes first.
type unitHeap []waits

func (h unitHeap) Len() int           { return len(h) }
func (h unitHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h unitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *unitHeap) Push(x any)        { *h = append(*h, x.(waits)) }
func (h *unitHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// restHeap implements heap.Interface: what may be given out first comes first.
type restHeap []rests

func (h restHeap) Len() int           { return len(h) }
func (h restHeap) Less(i, j int) bool { return h[i].after.Before(h[j].after) }
func (h restHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *restHeap) Push(x any)        { *h = append(*h, x.(rests)) }
func (h *restHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = rests{}
	*h = (*h)[:last]
	return e
}
