package dispatch

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

func (x *Executor) sum(ctx context.Context, res *round.Result) error {
	res.Sum, x.part.Partial = nil, nil // of the round before: they may be all that holds large messages
	x.tree.Reset(x.r.Units, x.r.Shape)
	x.releaseLong()
	x.began, x.slowest = time.Now(), 0
	if !x.ended.IsZero() {
		x.d.cfg.Metrics.Between.Observe(x.began.Sub(x.ended).Seconds())
	}
	defer func() { x.ended = time.Now() }()
	x.way.begin()
	x.spread(x.began)
	x.d.cfg.Metrics.Broadcast.Observe(time.Since(x.began).Seconds())
	if err := x.seatChecks(ctx, x.began); err != nil {
		return err
	}
	if x.timer == nil {
		x.timer = time.NewTimer(x.every())
	} else {
		x.timer.Reset(x.every())
	}
	defer x.timer.Stop()
	for x.tree.Root() == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-x.mail.ready:
			if err := x.onMail(ctx); err != nil {
				return err
			}
		case now := <-x.timer.C:
			if err := x.look(ctx, now); err != nil {
				return err
			}
			x.timer.Reset(x.every())
		}
		if x.redo {
			if err := x.restart(ctx, time.Now()); err != nil {
				return err
			}
		}
	}
	x.repeatHold(x.began)
	res.Sum, res.Collected, res.Digests, res.Part, res.Took = x.tree.Root(), nil, nil, nil, nil
	pace := &x.pace[x.r.Op]
	*pace += (x.slowest - *pace) / 8
	x.way.end(lostBeats * x.d.cfg.Heartbeat)
	return nil
}

// look gives out again what takes too long, what failed a while ago, and what lost
// its worker while its answers are compared.
func (x *Executor) look(ctx context.Context, now time.Time) error {
	x.overdue(now)
	x.tryAgain(now)
	x.repeatHold(now)
	return x.seatChecks(ctx, now)
}

// onMail handles the mail and gives out what a change of the crew freed.
func (x *Executor) onMail(ctx context.Context) error {
	if err := x.receive(ctx); err != nil {
		return err
	}
	now := time.Now()
	if x.spread(now) && len(x.checks) > 0 {
		return x.seatChecks(ctx, now)
	}
	return nil
}

// receive handles the mail of a summed round.
func (x *Executor) receive(ctx context.Context) error {
	x.msgs = x.mail.take(x.msgs)
	defer clear(x.msgs)
	for _, msg := range x.msgs {
		if err := x.handle(ctx, msg); err != nil {
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

func (x *Executor) handle(ctx context.Context, msg []byte) error {
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindPart:
		return x.onPart(ctx, msg)
	case protocol.KindNeed:
		x.onNeed(msg)
	case protocol.KindFail:
		return x.onFail(ctx, msg)
	case protocol.KindCollected, protocol.KindCheckpoint, protocol.KindProgress:
		x.drop(metrics.DropStale)
	default:
		x.drop(metrics.DropMisshapen)
	}
	return nil
}

func (x *Executor) onPart(ctx context.Context, msg []byte) error {
	x.part.Partial = x.blank(msg)
	err := x.part.Decode(msg)
	trusted := err == nil && x.d.answered(x.part.Worker)
	if !trusted || x.part.Round != x.round {
		x.tree.Release(x.part.Partial)
		if err != nil {
			x.drop(metrics.DropMisshapen)
		} else {
			x.drop(metrics.DropStale)
		}
		return nil
	}
	began := time.Now()
	computed := min(computeTime(x.part.Compute), began.Sub(x.began))
	x.slowest = max(x.slowest, computed)
	x.way.came(began.Sub(x.began), computed)
	x.worked(x.part.Worker, x.partUnits(), x.part.Compute)
	if len(x.checks) > 0 {
		if mine, err := x.checkPart(ctx); mine || err != nil {
			return err
		}
	}
	used, err := x.tree.Put(int(x.part.Level), int(x.part.Index), x.part.Partial)
	x.d.cfg.Metrics.Reduce.Observe(time.Since(began).Seconds())
	switch {
	case err != nil:
		x.drop(metrics.DropMisshapen)
		x.d.cfg.Log.Warn("a partial result was dropped", "job", x.id, "worker", x.part.Worker, "error", err)
	case !used:
		x.drop(metrics.DropDuplicate)
		x.wasted()
	}
	return nil
}

// lentFrom is the size of a message from which on its numbers stay where they are: of the gradient of a
// large network there is no second copy. The message's memory serves the next one.
const lentFrom = 1 << 20

// blank returns a partial for a message.
func (x *Executor) blank(msg []byte) *round.Partial {
	if len(msg) >= lentFrom {
		return &round.Partial{Lent: true, Message: msg}
	}
	return x.tree.Partial()
}

// returnedFrom is the size of messages from which on their memory goes back to the system at once.
const returnedFrom = 16 << 20

// releaseLong drops the memory of long messages when rounds with them are over: when training is. What
// comes then takes memory for the model.
func (x *Executor) releaseLong() {
	was := x.longest
	x.longest = longest(x.r)
	if was < lentFrom || x.longest >= lentFrom {
		return
	}
	x.d.cfg.Conn.Room().Release()
	if was >= returnedFrom {
		debug.FreeOSMemory()
	}
}

// longest returns the bytes of the longest message of a summed round, but for what is small.
func longest(r *round.Round) int {
	n := 4 * r.Shape.F32
	for i := range r.Vars {
		n = max(n, len(r.Vars[i].Data))
	}
	return n
}

// wasted counts the units of the part at hand, which nobody needs.
func (x *Executor) wasted() { x.d.cfg.Metrics.UnitsWasted.Add(float64(x.partUnits())) }

// partUnits is how many units the part at hand is of, whatever it says.
func (x *Executor) partUnits() int { return min(int(1)<<min(x.part.Level, 30), x.r.Units) }
