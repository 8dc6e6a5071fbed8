package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// collect runs a collected round: each worker is given as many units as it has
// slots, and one ahead; every part is recorded soon after it arrives, so that only
// unfinished units are ever computed again. The round ends when all parts are here and
// recorded, but for the last of the short ones, which are recorded meanwhile: unless
// that has failed so far.
func (x *Executor) collect(ctx context.Context, res *round.Result) error {
	whole := ctx // of what reads parts after the round
	ctx, cancel := context.WithCancel(ctx)
	c := &collection{x: x, digests: make([]digests.Digest, len(x.units)), took: make([]uint64, len(x.units)), seated: make(seated), compared: make(map[int]bool)}
	if !x.r.Apart {
		c.parts = make([][]byte, len(x.units))
	}
	x.collecting, x.ended = c, time.Time{}
	defer func() { x.collecting = nil }()
	defer c.fetches.Wait()
	defer cancel() // before Wait
	x.watch.Begin(x.r)
	c.recall()
	c.lengths = newLengths(x.r.Groups)
	c.waits = newWaitList(len(x.units), func(u int) bool { return x.units[u].state == waiting })
	c.bounds = newBounds(c)
	c.readRecorded(ctx)
	clear(x.resume)
	defer c.release()
	look := time.NewTicker(x.every())
	defer look.Stop()
	for c.left > 0 || x.records.behind.Load() > 0 {
		now := time.Now()
		c.feed(ctx, now)
		x.watch.Look(now)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-look.C:
			if err := c.look(ctx, now); err != nil {
				return err
			}
		case <-x.mail.ready:
			if err := c.receive(ctx); err != nil {
				return err
			}
		}
	}
	if x.r.Apart {
		res.Sum, res.Collected, res.Digests, res.Took = nil, nil, nil, c.took
		res.Part = func(unit int) ([]byte, error) {
			text := c.digests[unit].Text()
			if text == "" { // it was not run
				return nil, nil
			}
			return x.d.cfg.Parts.Load(whole, text)
		}
		return nil
	}
	return c.load(ctx, res)
}

// collection is the state of one collected round.
type collection struct {
	x        *Executor
	digests  []digests.Digest // by unit
	parts    [][]byte         // by unit; nil of those that are recorded or at hand from before; none of a round whose parts are read apart
	took     []uint64         // by unit: nanoseconds of computing; 0: not known
	left     int              // units whose parts are not here
	lengths  *lengths         // nil: nothing tells
	waits    *waitList
	bounds   *bounds // nil: no budgets
	seated   seated
	compared map[int]bool // units in work whose answers are compared
	fetches  sync.WaitGroup

	computed time.Duration // by the workers, of the units in finished
	finished int
}

// look reminds workers, gives stragglers to others as well, and settles what the
// referee could not say at first.
func (c *collection) look(ctx context.Context, now time.Time) error {
	x := c.x
	c.remind(now)
	c.order(now)
	c.bounds.look(ctx, now)
	c.speculate(now)
	for _, u := range slices.Sorted(maps.Keys(c.compared)) {
		s := &x.units[u]
		if x.open(u) && !s.judged && !now.Before(s.after) && s.seats[0].answer != nil && s.seats[1].answer != nil {
			if err := x.settle(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// reminders is how many heartbeats pass between two reminders of a unit.
const reminders = protocol.RemindBeats

// remind sends workers the units again that they have had for a while: one that
// computes them ignores it, one that was restarted, or lost the message, learns
// of them. The slot of one that has not answered for a unit that is at hand meanwhile
// is free again: its answer may be lost.
func (c *collection) remind(now time.Time) {
	x := c.x
	for _, p := range c.seated.all() {
		at := p.at
		if at.answer != nil || now.Sub(at.told) < reminders*x.d.cfg.Heartbeat {
			continue
		}
		if !x.open(p.unit) {
			x.vacate(at)
			continue
		}
		at.told = now
		began := at.sent
		x.sendOne(at.worker, p.unit, now)
		at.sent = began
	}
}

// recall marks the units that are recorded already.
func (c *collection) recall() {
	x := c.x
	c.left = len(x.units)
	for unit, d := range x.d.cfg.Parts.Known(x.id, x.round) {
		if int(unit) < len(x.units) {
			c.done(int(unit), d)
			if d == (digests.Digest{}) {
				x.watch.NotRun(int(unit))
			} else {
				x.watch.Have(int(unit), nil, true)
			}
		}
	}
	for u := range x.units {
		if x.r.Has != nil && x.r.Has[u] && x.units[u].state != atHand {
			c.done(u, digests.Digest{})
			x.watch.Have(u, nil, true)
		}
	}
}

func (c *collection) done(u int, d digests.Digest) {
	s := &c.x.units[u]
	s.state = atHand
	s.forget()
	c.digests[u] = d
	c.left--
}

func (c *collection) receive(ctx context.Context) error {
	x := c.x
	x.msgs = x.mail.take(x.msgs)
	defer clear(x.msgs)
	for _, msg := range x.msgs {
		if err := c.handle(ctx, msg); err != nil {
			return err
		}
	}
	for _, s := range x.mail.takeStored() {
		if err := c.onStored(s); err != nil {
			return err
		}
	}
	x.verdicts = x.mail.takeVerdicts(x.verdicts)
	for i := range x.verdicts {
		if err := x.onVerdict(ctx, &x.verdicts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) handle(ctx context.Context, msg []byte) error {
	x := c.x
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindCollected:
		return c.onCollected(ctx, msg)
	case protocol.KindCheckpoint:
		c.onCheckpoint(msg)
	case protocol.KindProgress:
		c.onProgress(msg)
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
	u, ok := x.failed(msg)
	if !ok {
		if x.fail.Round == x.round && u < len(x.units) {
			if at := x.units[u].seatOf(x.fail.Worker); at != nil {
				x.vacate(at) // a slot is free, though nobody waits for the unit
			}
		}
		return nil
	}
	at := x.units[u].seatOf(x.fail.Worker)
	if at == nil || at.answer != nil {
		x.drop(metrics.DropStale)
		return nil
	}
	if x.fail.Permanent {
		return x.failure(u)
	}
	x.vacate(at)
	now := time.Now()
	if err := x.rest(u, now); err != nil {
		return err
	}
	c.requeue(u, now)
	return nil
}

// onCollected takes a part, or compares it where two are asked for.
func (c *collection) onCollected(ctx context.Context, msg []byte) error {
	x := c.x
	m := new(protocol.Collected)
	if m.Decode(msg) != nil || int(m.Unit) >= len(x.units) || !blobs.Valid(m.Digest) {
		x.drop(metrics.DropMisshapen)
		return nil
	}
	trusted := x.d.answered(m.Worker)
	u, s := int(m.Unit), &x.units[m.Unit]
	if m.Round == x.round && !x.r.Apart && s.seatOf(m.Worker) != nil { // else no value is made of it
		x.known[m.Worker].has(m.Digest)
	}
	if m.Round != x.round || !trusted || s.state == fetching || s.state == atHand {
		x.d.cfg.Metrics.UnitsWasted.Inc()
		if at := s.seatOf(m.Worker); at != nil && m.Round == x.round {
			x.vacate(at) // a slot is free that computed in vain
		}
		return nil
	}
	x.worked(m.Worker, 1, m.Compute)
	c.computed += computeTime(m.Compute)
	c.finished++
	a := &answer{digest: m.Digest, part: m}
	if s.check == unchecked {
		x.store(ctx, u, a)
		return nil
	}
	if at := s.seatOf(m.Worker); at != nil && at.answer == nil {
		x.leave(at)
	}
	return x.answer(ctx, u, m.Worker, a)
}

// store brings a part here and has it recorded; its slots are free, but for those of
// workers that still compute it.
func (x *Executor) store(ctx context.Context, u int, a *answer) {
	s, c := &x.units[u], x.collecting
	s.state = fetching
	delete(c.compared, u)
	c.waits.remove(u)  // it comes of a worker that was given up
	if a.part == nil { // the leader's: a worker may have the same
		for i := range s.seats {
			if b := s.seats[i].answer; b != nil && b.part != nil && b.same(a) {
				a = b
			}
		}
	}
	if a.part != nil {
		if at := s.seatOf(a.part.Worker); at != nil {
			x.vacate(at)
		}
	}
	of, round, unit := len(x.units), x.round, uint32(u)
	c.fetches.Go(func() {
		part, bytes, err := c.bring(ctx, a, round, unit)
		if err != nil { // the worker would announce it again at once
			wait.For(ctx, recordPause)
		} else if !short(part) {
			err = x.records.record(ctx, part, of)
		}
		if err != nil {
			x.mail.putStored(stored{round: round, unit: unit, err: err})
			return
		}
		s := stored{round: round, unit: unit, digest: part.Digest, part: bytes, took: computeTime(part.Compute)}
		if p, ok := x.watch.Read(bytes); ok {
			s.progress = &p
		}
		x.mail.putStored(s)
		if short(part) {
			x.records.beside(part, of)
		}
	})
}

// bring has a part here, that of a worker or the leader's own, and returns its bytes as
// well: what is read as it comes is not waited for at the end of the round.
func (c *collection) bring(ctx context.Context, a *answer, round uint64, unit uint32) (*protocol.Collected, []byte, error) {
	parts := c.x.d.cfg.Parts
	if a.part == nil {
		digest, err := parts.Keep(a.bytes)
		stamp := protocol.Stamp{Epoch: c.x.d.cfg.Epoch, Job: c.x.id, Round: round}
		return &protocol.Collected{Stamp: stamp, Unit: unit, Digest: digest, Bytes: uint64(len(a.bytes))}, a.bytes, err
	}
	bytes, err := parts.Fetch(ctx, a.part)
	return a.part, bytes, err
}

// recordPause passes before a part that could not be brought here is asked for again,
// and before it is tried again to record one.
const recordPause = 250 * time.Millisecond

// onCheckpoint keeps how far a child job is, for the worker that goes on should
// this one not end it. It lives in this leader's memory only: the next one hears
// of it again from the worker.
func (c *collection) onCheckpoint(msg []byte) {
	x := c.x
	var m protocol.Checkpoint
	if m.Decode(msg) != nil || int(m.Unit) >= len(x.units) || x.r.Child == nil {
		x.drop(metrics.DropMisshapen)
		return
	}
	if m.Round != x.round || x.units[m.Unit].state != running || x.units[m.Unit].check != unchecked || !x.d.trusts(m.Worker) {
		x.drop(metrics.DropStale)
		return
	}
	kept := len(m.State)
	for unit, b := range x.resume {
		if unit != m.Unit {
			kept += len(b.bytes)
		}
	}
	if kept > maxResume { // the unit begins anew elsewhere
		delete(x.resume, m.Unit)
		return
	}
	x.resume[m.Unit] = resume{m.Worker, m.Resume.Append(nil)}
}

// maxResume bounds what a leader keeps of a round's child jobs, in bytes.
const maxResume = 2 * protocol.MaxMessage

// onStored takes in that a part is here. One that is not, or no more, is computed
// again, unless no part of the round can be recorded any more: then the round ends.
func (c *collection) onStored(s stored) error {
	x := c.x
	if s.round != x.round {
		return nil
	}
	if s.before != nil {
		x.watch.Have(int(s.unit), s.before, true)
		return nil
	}
	if errors.Is(s.err, ErrOver) {
		return fmt.Errorf("task %d: %w", s.unit, s.err)
	}
	if s.withheld != nil {
		c.withheld(s.withheld)
		return nil
	}
	u := &x.units[s.unit]
	switch {
	case s.err == nil && u.state == fetching:
		d, _ := digests.Parse(s.digest)
		c.done(int(s.unit), d)
		if c.took[s.unit] = uint64(s.took); !x.r.Apart {
			c.parts[s.unit] = s.part
		}
		c.lengths.end(int(s.unit), s.took)
		if c.bounds != nil {
			c.bounds.a.End(int(s.unit), s.took)
		}
		delete(x.resume, s.unit)
		x.watch.Have(int(s.unit), s.progress, false)
		return nil
	case s.err == nil || u.state != fetching && u.state != atHand:
		return nil
	case u.state == atHand:
		c.left++
	}
	x.d.cfg.Log.Warn("the result of a task could not be stored; the task is computed again",
		"job", x.id, "unit", s.unit, "error", s.err)
	x.d.Stopped(x.id, fmt.Errorf("the result of task %d could not be stored: %w", s.unit, s.err), time.Now())
	a := u.own()
	for i := range a.seats {
		x.vacate(&a.seats[i])
	}
	a.judged = false
	c.begunAgain(int(s.unit), time.Now())
	x.d.cfg.Metrics.UnitsRetried.Inc()
	return nil
}

// load reads the parts that were recorded before.
func (c *collection) load(ctx context.Context, res *round.Result) error {
	texts := make([]string, len(c.digests))
	for u, d := range c.digests {
		if texts[u] = d.Text(); texts[u] == "" || c.parts[u] != nil {
			continue
		}
		part, err := c.x.d.cfg.Parts.Load(ctx, texts[u])
		if err != nil {
			return err
		}
		c.parts[u] = part
	}
	res.Sum, res.Collected, res.Digests, res.Part, res.Took = nil, c.parts, texts, nil, c.took
	return nil
}
