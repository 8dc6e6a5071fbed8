package dispatch

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Allowance says which units of a collected round may begin, where budgets bound their computing
// time. Groups are those of round.Round.Groups. Its methods are called by the goroutine that calls Do.
type Allowance interface {
	// Open is told of a round that begins: which units have no result.
	Open(group []int32, open func(unit int) bool)
	// May reports whether a unit of a group may begin now.
	May(group int, now time.Time) bool
	// Begin counts a unit as running, if its group may begin.
	Begin(unit int, now time.Time) bool
	// Started notes that a worker computes the unit, and returns how long it may.
	Started(unit int, now time.Time) (limit time.Duration)
	// Return notes that a unit has to begin again.
	Return(unit int)
	// End notes that a unit ended, or was ended, that was computed for so long.
	End(unit int, took time.Duration)
	// Over reports whether no unit of a group will begin any more.
	Over(group int, now time.Time) bool
	// Withheld notes that units that have not begun will not be run.
	Withheld(units []uint32)
}

// bounds holds the units back for which no budget is left; nil: there are no budgets.
type bounds struct {
	c     *collection
	a     Allowance
	group []int32           // by unit
	held  map[int]*unitHeap // by group: units that may not begin, and do not wait in c.waits
	ran   map[uint64]ran    // by seat.order: units that are computed
}

// ran is when a worker was seen to have room for a unit, and how long it may take from then on.
type ran struct {
	began time.Time
	limit time.Duration
}

// newBounds returns the bounds of a round, or nil.
func newBounds(c *collection) *bounds {
	a, r := c.x.options.Allowance, c.x.r
	if a == nil || len(r.Groups) == 0 {
		return nil
	}
	a.Open(r.Groups, func(u int) bool { return c.x.units[u].state == waiting })
	return &bounds{c: c, a: a, group: r.Groups, held: make(map[int]*unitHeap)}
}

// begin reports whether a unit that waited may begin; else it is held back.
func (b *bounds) begin(u int, now time.Time) bool {
	if b == nil || b.a.Begin(u, now) {
		return true
	}
	g := int(b.group[u])
	if b.held[g] == nil {
		b.held[g] = new(unitHeap)
	}
	heap.Push(b.held[g], waits{unit: uint32(u)})
	return false
}

// count returns how many units are held back.
func (b *bounds) count() (n int) {
	if b == nil {
		return 0
	}
	for _, h := range b.held {
		n += len(*h)
	}
	return n
}

// release has units wait again that may begin by now, at most so many of each group.
func (b *bounds) release(most int, now time.Time) {
	if b == nil {
		return
	}
	for _, g := range slices.Sorted(maps.Keys(b.held)) {
		if !b.a.May(g, now) {
			continue
		}
		h := b.held[g]
		for n := 0; n < most && h.Len() > 0; n++ {
			if u := int(heap.Pop(h).(waits).unit); b.isHeld(u) {
				b.c.wait(u, now)
			}
		}
		if h.Len() == 0 {
			delete(b.held, g)
		}
	}
}

// isHeld reports whether a unit of held is held back still: its result may have come of a worker that
// was given up.
func (b *bounds) isHeld(u int) bool { return b.c.x.units[u].state == waiting }

// look withholds the units that will not begin any more, and ends those that have used their budget up.
func (b *bounds) look(ctx context.Context, now time.Time) {
	if b == nil {
		return
	}
	for _, g := range slices.Sorted(maps.Keys(b.held)) {
		if !b.a.Over(g, now) {
			continue
		}
		var units []uint32
		for _, s := range *b.held[g] {
			if b.isHeld(int(s.unit)) {
				units = append(units, s.unit)
			}
		}
		delete(b.held, g)
		if len(units) > 0 {
			slices.Sort(units)
			b.a.Withheld(units)
			b.withhold(ctx, units, 0)
		}
	}
	still := make(map[uint64]ran)
	for _, p := range b.c.seated.all() {
		b.watch(ctx, p, still, now)
	}
	b.ran = still
}

// watch ends a unit that takes all that was left of its budget when a worker began with it; still takes the others.
func (b *bounds) watch(ctx context.Context, p place, still map[uint64]ran, now time.Time) {
	x, u := b.c.x, p.unit
	if x.units[u].state != running {
		return
	}
	of, known := b.ran[p.at.order]
	switch took := now.Sub(of.began); {
	case !known:
		if !b.c.behind(p.at) {
			still[p.at.order] = ran{now, b.a.Started(u, now)}
		}
	case took <= of.limit:
		still[p.at.order] = of
	default:
		b.c.callOff(u)
		b.a.End(u, took)
		b.withhold(ctx, []uint32{uint32(u)}, took)
	}
}

// callOff tells the workers that compute a unit to stop.
func (c *collection) callOff(u int) {
	x := c.x
	forget := (&protocol.Forget{Epoch: x.d.cfg.Epoch, Job: x.id, Round: x.round, Units: []uint32{uint32(u)}}).Append(nil)
	for i := range x.units[u].seats {
		at := &x.units[u].seats[i]
		if k := x.known[at.worker]; k != nil {
			x.d.send(&k.at, forget)
		}
		x.vacate(at)
	}
	delete(x.resume, uint32(u))
}

// withhold has it recorded that units are not run, however often that takes.
func (b *bounds) withhold(ctx context.Context, units []uint32, took time.Duration) {
	c, x := b.c, b.c.x
	for _, u := range units {
		x.units[u].state = fetching
	}
	n := x.round
	c.fetches.Go(func() {
		for pause := recordPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
			err := x.d.cfg.Parts.Withhold(ctx, x.id, n, units, took)
			if err == nil || errors.Is(err, ErrOver) {
				x.mail.putStored(stored{round: n, unit: units[0], withheld: units, err: err})
				return
			}
			x.d.cfg.Log.Warn("the list of tasks that are not run could not be recorded; recording is tried again", "job", x.id, "units", len(units), "error", err)
			wait.For(ctx, pause)
		}
	})
}

// withheld takes in that units are not run.
func (c *collection) withheld(units []uint32) {
	for _, u := range units {
		c.done(int(u), digests.Digest{})
		c.x.watch.NotRun(int(u))
	}
}
