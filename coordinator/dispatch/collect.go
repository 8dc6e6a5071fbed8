package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// collect runs a collected round: each worker is given as many units as it has
// slots, and every part is recorded as it arrives, so that only unfinished units
// are ever computed again.
func (x *Executor) collect(ctx context.Context, res *algorithms.Result) error {
	ctx, cancel := context.WithCancel(ctx)
	c := &collection{x: x, parts: make([]string, len(x.units))}
	defer c.recorders.Wait()
	defer cancel() // before Wait
	c.recall()
	clear(x.resume)
	defer x.inFlight.Store(0)
	defer x.release()
	remind := time.NewTicker(reminders * x.d.cfg.Heartbeat)
	defer remind.Stop()
	for c.feed(); c.left > 0; c.feed() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-remind.C:
			c.remind(now)
		case <-x.mail.ready:
			if err := c.receive(ctx); err != nil {
				return err
			}
		}
	}
	return c.load(ctx, res)
}

// collection is the state of one collected round.
type collection struct {
	x         *Executor
	parts     []string // digest by unit
	left      int      // units not recorded
	recorders sync.WaitGroup
}

// reminders is how many heartbeats pass between two reminders of a unit.
const reminders = 20

// remind sends workers the units again that they have had for a while: one that
// computes them ignores it, one that was restarted, or lost the message, learns
// of them.
func (c *collection) remind(now time.Time) {
	x := c.x
	for u := range x.units {
		if s := &x.units[u]; s.state == running && now.Sub(s.sent) >= reminders*x.d.cfg.Heartbeat {
			x.list = append(x.list[:0], uint32(u))
			x.send(s.worker, x.list, now)
		}
	}
}

// recall marks the units that are recorded already.
func (c *collection) recall() {
	x := c.x
	c.left = len(x.units)
	for unit, digest := range x.d.cfg.Parts.Known(x.id, x.round) {
		if int(unit) < len(x.units) {
			c.done(int(unit), digest)
		}
	}
	for u := range x.units {
		if x.r.Has != nil && x.r.Has[u] && x.units[u].state != recorded {
			c.done(u, "")
		}
	}
}

func (c *collection) done(u int, digest string) {
	c.x.units[u].state = recorded
	c.parts[u] = digest
	c.left--
}

// feed gives waiting units, lowest first, to workers with a free slot.
func (c *collection) feed() {
	x := c.x
	defer c.count()
	x.requeueGone()
	for u := range x.units {
		if x.units[u].state != waiting {
			continue
		}
		id := x.reserve()
		if id == "" {
			return
		}
		x.units[u].worker, x.units[u].state = id, running
		x.list = append(x.list[:0], uint32(u))
		x.send(id, x.list, time.Now())
	}
}

// count tells how many units are in flight.
func (c *collection) count() {
	n := int64(0)
	for u := range c.x.units {
		if c.x.units[u].state == running {
			n++
		}
	}
	c.x.inFlight.Store(n)
}

// requeueGone puts the units of workers that are gone back.
func (x *Executor) requeueGone() {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	for u := range x.units {
		s := &x.units[u]
		if s.state == running && !x.there(s.worker) {
			s.state, s.worker = waiting, ""
			x.d.cfg.Metrics.UnitsRetried.Inc()
		}
	}
	x.forgetGone()
}

// reserve takes a slot of the worker with most slots free, or returns "".
func (x *Executor) reserve() string {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	var best *worker
	for _, w := range x.d.crew.usable() {
		if free := w.beat.Slots - w.busy; free > 0 && (best == nil || free > best.beat.Slots-best.busy) {
			best = w
		}
	}
	if best == nil {
		return ""
	}
	best.busy++
	return best.id
}

// free gives a slot back; waiting jobs are told.
func (x *Executor) free(id string) {
	x.d.mu.Lock()
	if w := x.d.crew.get(id); w != nil && w.busy > 0 {
		w.busy--
	}
	x.d.mu.Unlock()
	x.d.wakeAll()
}

// release gives back the slots of units that still run when the round stops.
func (x *Executor) release() {
	for u := range x.units {
		if x.units[u].state == running {
			x.free(x.units[u].worker)
		}
	}
}

func (c *collection) receive(ctx context.Context) error {
	x := c.x
	x.msgs = x.mail.take(x.msgs)
	for _, msg := range x.msgs {
		if err := c.handle(ctx, msg); err != nil {
			return err
		}
	}
	for _, s := range x.mail.takeStored() {
		c.onStored(s)
	}
	return nil
}

func (c *collection) handle(ctx context.Context, msg []byte) error {
	x := c.x
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindCollected:
		c.onCollected(ctx, msg)
	case protocol.KindCheckpoint:
		c.onCheckpoint(msg)
	case protocol.KindNeed:
		x.onNeed(msg)
	case protocol.KindFail:
		return c.onFail(msg)
	default:
		x.drop(metrics.DropStale)
	}
	return nil
}

// onFail puts a unit back for another try, or fails the job.
func (c *collection) onFail(msg []byte) error {
	x := c.x
	if x.fail.Decode(msg) != nil || int(x.fail.Unit) >= len(x.units) {
		x.drop(metrics.DropMisshapen)
		return nil
	}
	u := int(x.fail.Unit)
	holder := x.units[u].worker
	if x.fail.Round != x.round || x.units[u].state != running || holder != x.fail.Worker {
		x.drop(metrics.DropStale)
		return nil
	}
	if err := x.onFail(msg); err != nil {
		return err
	}
	if x.units[u].worker != holder { // onFail moved it on; slots follow
		x.free(holder)
		x.take(x.units[u].worker)
	}
	return nil
}

// take counts a unit that was given to a worker without asking for its slot.
func (x *Executor) take(id string) {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	if w := x.d.crew.get(id); w != nil {
		w.busy++
	}
}

func (c *collection) onCollected(ctx context.Context, msg []byte) {
	x := c.x
	m := new(protocol.Collected)
	if m.Decode(msg) != nil || int(m.Unit) >= len(x.units) {
		x.drop(metrics.DropMisshapen)
		return
	}
	s := &x.units[m.Unit]
	if m.Round != x.round || s.state == storing || s.state == recorded {
		x.d.cfg.Metrics.UnitsWasted.Inc()
		return
	}
	if s.state == running {
		x.free(s.worker)
	}
	x.d.cfg.Metrics.Compute.Observe(time.Duration(m.Compute).Seconds())
	s.worker, s.state = m.Worker, storing
	of := len(x.units)
	c.recorders.Go(func() {
		err := x.d.cfg.Parts.Record(ctx, m, of)
		if err != nil { // the worker would announce it again at once
			pause(ctx, recordPause)
		}
		x.mail.putStored(stored{m.Round, m.Unit, err, m.Digest})
	})
}

// recordPause passes before a part that could not be recorded is asked for again.
const recordPause = 250 * time.Millisecond

// pause waits, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// onCheckpoint keeps how far a child job is, for the worker that goes on should
// this one not end it. It lives in this leader's memory only: the next one hears
// of it again from the worker.
func (c *collection) onCheckpoint(msg []byte) {
	x := c.x
	var m protocol.Checkpoint
	if m.Decode(msg) != nil || int(m.Unit) >= len(x.units) || x.r.Children == nil {
		x.drop(metrics.DropMisshapen)
		return
	}
	if m.Round != x.round || x.units[m.Unit].state != running {
		x.drop(metrics.DropStale)
		return
	}
	x.resume[m.Unit] = m.Resume.Append(nil)
}

func (c *collection) onStored(s stored) {
	x := c.x
	if s.round != x.round || x.units[s.unit].state != storing {
		return
	}
	if s.err != nil {
		x.d.cfg.Log.Warn("a part could not be recorded and is computed again",
			"job", x.id, "unit", s.unit, "error", s.err)
		x.units[s.unit].state, x.units[s.unit].worker = waiting, ""
		x.d.cfg.Metrics.UnitsRetried.Inc()
		return
	}
	c.done(int(s.unit), s.part)
}

func (c *collection) load(ctx context.Context, res *algorithms.Result) error {
	res.Sum, res.Parts = nil, make([][]byte, len(c.parts))
	for u, digest := range c.parts {
		if digest == "" {
			continue
		}
		part, err := c.x.d.cfg.Parts.Load(ctx, digest)
		if err != nil {
			return err
		}
		res.Parts[u] = part
	}
	return nil
}
