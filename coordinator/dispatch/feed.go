package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"
)

// feed gives waiting units, lowest first, to workers with room, and sees to the
// second seats of those whose answers are compared.
func (c *collection) feed(ctx context.Context, now time.Time) {
	x := c.x
	defer c.count()
	c.requeueGone(now)
	c.bounds.release(c.slots(), now)
	left := c.waits.count(now)
	c.waits.each(func(u int, avoid string) bool {
		w := x.reserve(left, avoid)
		if w == nil {
			return false // the others may go to the one that it avoids
		}
		left--
		if !c.bounds.begin(u, now) {
			x.giveBack(w)
			return true
		}
		x.units[u].state = running
		if x.units[u].check != unchecked {
			c.compared[u] = true
		}
		c.sit(u, 0, w, now)
		return true
	})
	x.content(left == 0)
	for _, u := range slices.Sorted(maps.Keys(c.compared)) {
		c.seatSecond(ctx, u, now)
	}
}

// wait has a unit wait to be given out.
func (c *collection) wait(u int, now time.Time) {
	s := &c.x.units[u]
	s.state = waiting
	delete(c.compared, u)
	c.waits.add(u, s.avoid, s.after, now)
}

// begunAgain has a unit that had begun wait again.
func (c *collection) begunAgain(u int, now time.Time) {
	if c.bounds != nil {
		c.bounds.a.Return(u)
	}
	c.wait(u, now)
}

// slots returns how many slots the workers have that may compute the job.
func (c *collection) slots() (n int) {
	c.x.d.mu.Lock()
	defer c.x.d.mu.Unlock()
	for _, w := range c.x.ableNow() {
		n += w.beat.Slots
	}
	return n
}

// sit gives a seat of a unit to a worker whose slot is reserved.
func (c *collection) sit(u, i int, w *worker, now time.Time) {
	x := c.x
	x.sat++
	at := &x.units[u].own().seats[i]
	*at = seat{worker: w.id, of: w, told: now, order: x.sat}
	c.seated.add(u, at)
	x.sendOne(w.id, u, now)
}

// seatSecond gives the second seat of a unit whose answers are compared to another
// worker, or, where there is none, to the leader.
func (c *collection) seatSecond(ctx context.Context, u int, now time.Time) {
	x := c.x
	s := &x.units[u]
	if s.state != running || s.judged || now.Before(s.after) {
		return
	}
	for i := range s.seats {
		at, other := &s.seats[i], &s.seats[1-i]
		if at.worker != "" || other.worker == "" {
			continue
		}
		if other.worker != theReferee && len(x.able()) < 2 && x.d.cfg.Referee != nil {
			*at = seat{worker: theReferee}
			x.ask(ctx, u)
		} else if w := x.reserve(0, other.worker); w != nil {
			c.sit(u, i, w, now)
		}
	}
}

// count tells how many units workers compute just now: those that are given ahead
// wait.
func (c *collection) count() {
	x := c.x
	n := 0
	x.d.mu.Lock()
	for w, list := range c.seated {
		units := 0
		for _, p := range list {
			if x.units[p.unit].state == running {
				units++
			}
		}
		n += min(units, w.beat.Slots)
	}
	x.at = underWay{collected: true, units: len(x.units), left: c.left, ready: c.waits.n, resting: len(c.waits.rest), held: c.bounds.count()}
	x.d.mu.Unlock()
	x.inFlight.Store(int64(n))
}

// requeueGone puts the units of workers that are gone back.
func (c *collection) requeueGone(now time.Time) {
	x := c.x
	x.d.mu.Lock()
	var gone []place
	for w, list := range c.seated {
		if !x.there(w.id) {
			gone = append(gone, list...)
		}
	}
	for _, p := range gone {
		x.vacateNow(p.at)
		if x.units[p.unit].state == running {
			x.d.cfg.Metrics.UnitsRetried.Inc()
		}
	}
	x.forgetGone()
	x.d.mu.Unlock()
	for _, p := range gone {
		c.requeue(p.unit, now)
	}
	for u := range c.compared { // the referee may have left its seat
		c.requeue(u, now)
	}
}

// requeue has a unit wait again that nobody computes any more.
func (c *collection) requeue(u int, now time.Time) {
	s := &c.x.units[u]
	if s.state == running && s.seats[0].worker == "" && s.seats[1].worker == "" {
		c.begunAgain(u, now)
	}
}

// ahead is how many units a worker is given beyond its slots, so that a lane finds
// the next one when it ends one. It is none while there are fewer units left than
// slots: then whoever is free first has the next.
func ahead(left int, able []*worker) int {
	slots := 0
	for _, w := range able {
		slots += w.beat.Slots
	}
	if len(able) == 1 || left > slots {
		return 1
	}
	return 0
}

// reserve takes a slot of the worker with most slots free, or returns nil; left is
// the number of units that wait. A worker to avoid is passed over where there is
// another. A job with more units in work lets one with fewer go first.
func (x *Executor) reserve(left int, avoid string) *worker {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	able := x.ableNow()
	more := ahead(left, able)
	if left == 0 {
		more = 0
	}
	var best *worker
	for _, w := range able {
		if w.id == avoid && len(able) > 1 {
			continue
		}
		if free := w.beat.Slots - w.busy; free+more > 0 && (best == nil || free > best.beat.Slots-best.busy) {
			best = w
		}
	}
	if best == nil {
		x.wants = left > 0 && avoid == ""
		return nil
	}
	if y := x.d.before(x, best); y != nil {
		x.wants = left > 0 && avoid == ""
		y.mail.wake()
		return nil
	}
	best.busy++
	x.given++
	return best
}

// before returns a job that wants a slot, has fewer than x and can use one of w, or
// nil; d.mu is held.
func (d *Dispatcher) before(x *Executor, w *worker) *Executor {
	for _, y := range d.jobs {
		if y != x && y.wants && y.given < x.given && y.unable[w.id] == "" {
			return y
		}
	}
	return nil
}

// content notes that a job wants no slot more; those that let it go first are
// woken.
func (x *Executor) content(now bool) {
	x.d.mu.Lock()
	was := x.wants
	x.wants = x.wants && !now
	x.d.mu.Unlock()
	if was && now {
		x.d.wakeAll()
	}
}

// leave gives the slot of a seat back; waiting jobs are told.
func (x *Executor) leave(at *seat) {
	x.d.mu.Lock()
	freed := x.leaveNow(at)
	x.d.mu.Unlock()
	if freed {
		x.d.wakeAll()
	}
}

// leaveNow is leave with d.mu held.
func (x *Executor) leaveNow(at *seat) bool {
	if at.of == nil {
		return false
	}
	at.of.busy--
	x.given--
	x.collecting.seated.remove(at.of, at)
	at.of = nil
	return true
}

// vacate empties a seat and gives its slot back.
func (x *Executor) vacate(at *seat) {
	x.leave(at)
	*at = seat{}
}

// vacateNow is vacate with d.mu held.
func (x *Executor) vacateNow(at *seat) {
	x.leaveNow(at)
	*at = seat{}
}

// release gives back all slots when the round stops.
func (c *collection) release() {
	x := c.x
	for _, p := range c.seated.all() {
		x.leave(p.at)
	}
	x.content(true)
	x.d.mu.Lock()
	x.at = underWay{}
	x.d.mu.Unlock()
	x.inFlight.Store(0)
	x.left.Store(0)
}

// slowCollect is how many times the usual time a collected unit may take before an
// idle worker is given it as well.
const slowCollect = 3

// speculate gives a unit that straggles, or that waits behind another on its
// worker, to an idle worker as well, when no unit waits: the first answer wins.
func (c *collection) speculate(now time.Time) {
	x := c.x
	if c.waits.count(now) > 0 {
		return
	}
	for _, p := range c.seated.all() {
		u, s := p.unit, &x.units[p.unit]
		if s.state != running || s.check != unchecked || s.seats[1].worker != "" || !c.straggles(&s.seats[0], now) {
			continue
		}
		w := x.reserve(0, s.seats[0].worker)
		if w == nil {
			return
		}
		if w.id == s.seats[0].worker { // there is no other
			x.giveBack(w)
			return
		}
		x.d.cfg.Metrics.UnitsRetried.Inc()
		c.sit(u, 1, w, now)
	}
}

// straggles reports whether a seat takes much longer than units of the round
// usually do, or has not begun for all that is known.
func (c *collection) straggles(at *seat, now time.Time) bool {
	if at.of == nil {
		return at.worker == ""
	}
	if c.behind(at) {
		return true
	}
	if c.finished == 0 {
		return false
	}
	usual := c.computed / time.Duration(c.finished)
	return now.Sub(at.sent) > max(slowBeats*c.x.d.cfg.Heartbeat, slowCollect*usual)
}

// behind reports whether a seat's worker was given as many units as it has slots
// before this one, and has them still.
func (c *collection) behind(at *seat) bool {
	n := c.seated.before(at)
	c.x.d.mu.Lock()
	defer c.x.d.mu.Unlock()
	return n >= at.of.beat.Slots
}

// giveBack returns a slot that was reserved and is not used.
func (x *Executor) giveBack(w *worker) {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	w.busy--
	x.given--
}
