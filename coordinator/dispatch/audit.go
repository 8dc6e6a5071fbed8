package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// theReferee is the seat of the leader itself: no worker's name has a space.
const theReferee = "the leader"

// answer is what a seat says of a unit.
type answer struct {
	sum    *round.Partial      // of a summed round
	digest string              // of a collected one's bytes
	part   *protocol.Collected // where a worker has them
	bytes  []byte              // where the leader has them
	bad    string              // instead: the partial is not finite, and where
}

// same reports whether two answers are the same, bit for bit.
func (a *answer) same(b *answer) bool {
	switch {
	case a.bad != "" || b.bad != "":
		return false
	case a.sum == nil || b.sum == nil:
		return a.sum == b.sum && a.digest == b.digest
	}
	p, q := a.sum, b.sum
	return p.Width == q.Width && slices.Equal(p.Index, q.Index) &&
		slices.Equal(num.Bytes64(p.F64), num.Bytes64(q.F64)) &&
		slices.Equal(num.Bytes32(p.F32), num.Bytes32(q.F32)) &&
		slices.Equal(num.Bytes32(p.Values), num.Bytes32(q.Values))
}

const million = 1_000_000

// sample draws the units of the round that are audited. Which ones they are
// touches no bits, so the source is any.
func (x *Executor) sample() {
	x.checks = x.checks[:0]
	if x.options.AuditPPM == 0 {
		return
	}
	for u := range x.units {
		if rand.Uint32N(million) < x.options.AuditPPM {
			x.units[u].check = audited
			x.checks = append(x.checks, u)
		}
	}
}

// seatChecks sees to it that each unit of a summed round whose answers are
// compared has two seats: on two workers, or on one and the leader.
func (x *Executor) seatChecks(ctx context.Context, now time.Time) error {
	for _, u := range x.checks {
		s := &x.units[u]
		if !x.open(u) || s.judged || now.Before(s.after) {
			continue
		}
		if s.seats[0].answer != nil && s.seats[1].answer != nil { // the referee did not come to an end
			if err := x.settle(ctx, u); err != nil {
				return err
			}
			continue
		}
		for i := range s.seats {
			if err := x.fillSeat(ctx, u, i, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillSeat gives a seat that is empty, or that takes too long, to somebody who has
// not the other one.
func (x *Executor) fillSeat(ctx context.Context, u, i int, now time.Time) error {
	s := &x.units[u]
	s.own()
	at, other := &s.seats[i], &s.seats[1-i]
	if at.answer != nil || at.worker == theReferee {
		return nil
	}
	if at.worker != "" {
		if now.Sub(at.sent) < x.patience(false)<<s.copies {
			return nil
		}
		x.stall(at.worker, now)
		s.copies = min(s.copies+1, maxCopies)
		x.d.cfg.Metrics.UnitsRetried.Inc()
	}
	switch id := x.candidate(u, i); {
	case id != "":
		*at = seat{worker: id}
		x.sendOne(id, u, now)
	case other.worker == "" || other.worker == theReferee: // nobody is there
		if at.worker != "" {
			x.sendOne(at.worker, u, now) // the message may be lost
		}
		return nil
	case x.d.cfg.Referee != nil:
		*at = seat{worker: theReferee}
		x.ask(ctx, u)
	case s.check == doubted:
		return fmt.Errorf("%s; there is no other worker to check whether that worker or the job is at fault", x.nonFinite(u, other))
	}
	return nil
}

// candidate picks a worker for a seat: its owner or standby where it can be.
func (x *Executor) candidate(u, i int) string {
	s := &x.units[u]
	able := x.able()
	fits := func(id string) bool {
		return named(able, id) && id != s.seats[1-i].worker && id != s.seats[i].worker
	}
	if c := x.plans[x.r.Units]; c != nil {
		for _, id := range []string{c.plan.owner[u], c.plan.standby[u]} {
			if id != s.avoid && fits(id) {
				return id
			}
		}
	}
	for k := range able {
		if id := able[(u+k)%len(able)].id; fits(id) {
			return id
		}
	}
	return ""
}

// checkPart takes a part that bears on units whose answers are compared; mine is
// false where it does not. A sum over one of them is never used, before or after:
// what was compared is not in it.
func (x *Executor) checkPart(ctx context.Context) (mine bool, err error) {
	p := &x.part
	if u := int(p.Index); p.Level == 0 && u < len(x.units) && x.units[u].check != unchecked && x.open(u) {
		if p.Partial.Check(x.r.Shape) != nil {
			x.tree.Release(p.Partial)
			x.drop(metrics.DropMisshapen)
			return true, nil
		}
		return true, x.answer(ctx, u, p.Worker, &answer{sum: p.Partial})
	}
	for _, u := range x.checks {
		if p.Level > 0 && p.Level < 32 && uint64(u)>>p.Level == uint64(p.Index) {
			x.tree.Release(p.Partial)
			x.drop(metrics.DropStale)
			return true, nil
		}
	}
	return false, nil
}

// answer notes what a seat says and compares once both have.
func (x *Executor) answer(ctx context.Context, u int, worker string, a *answer) error {
	s := &x.units[u]
	at := s.seatOf(worker)
	if at == nil || at.answer != nil {
		x.discard(a)
		x.drop(metrics.DropDuplicate)
		x.d.cfg.Metrics.UnitsWasted.Inc()
		return nil
	}
	at.answer = a
	if s.seats[0].answer == nil || s.seats[1].answer == nil {
		return nil
	}
	return x.settle(ctx, u)
}

func (x *Executor) discard(a *answer) {
	if a.sum != nil {
		x.tree.Release(a.sum)
	}
}

// onNonFinite begins to compare a unit whose partial was not finite, or ends it.
func (x *Executor) onNonFinite(ctx context.Context, u int, at *seat) error {
	s := &x.units[u]
	if s.check == unchecked {
		s.check = doubted
		s.seats[0], s.seats[1] = *at, seat{}
		at = &s.seats[0]
		x.checks = append(x.checks, u)
		x.d.cfg.Log.Warn("a partial result is not finite; the task is computed again", "job", x.id, "round", x.round,
			"unit", u, "worker", at.worker, "reason", x.fail.Reason)
	}
	if err := x.answer(ctx, u, at.worker, &answer{bad: x.fail.Reason}); err != nil {
		return err
	}
	return x.seatChecks(ctx, time.Now())
}

// nonFinite says where a job's numbers stopped being finite.
func (x *Executor) nonFinite(u int, at *seat) error {
	step := ""
	if x.r.Steps[1] > x.r.Steps[0] {
		step = fmt.Sprintf(" at step %d", x.r.Steps[1]-1)
	}
	return fmt.Errorf("task %d of round %d%s on %s: %s", u, x.round, step, at.worker, at.answer.bad)
}

// settle compares the two answers of a unit. Where they differ and none is known
// to be right, the referee computes it.
func (x *Executor) settle(ctx context.Context, u int) error {
	s := &x.units[u]
	a, b := &s.seats[0], &s.seats[1]
	switch {
	case a.answer.bad != "" && b.answer.bad != "":
		return fmt.Errorf("%w; the same task on %s: %s", x.nonFinite(u, a), b.worker, b.answer.bad)
	case a.answer.same(b.answer):
		return x.accept(ctx, u, a.answer)
	case a.answer.bad != "", b.worker == theReferee:
		return x.judge(ctx, u, b.answer)
	case b.answer.bad != "", a.worker == theReferee:
		return x.judge(ctx, u, a.answer)
	case x.d.cfg.Referee == nil:
		return fmt.Errorf("task %d of round %d: workers %s and %s computed different results, and no third result shows which is right", u, x.round, a.worker, b.worker)
	}
	s.judged = true
	x.ask(ctx, u)
	return nil
}

// judge accuses the workers whose answers are not the right one, and uses that.
func (x *Executor) judge(ctx context.Context, u int, right *answer) error {
	s := &x.units[u]
	x.d.cfg.Metrics.AuditDifferences.Inc()
	for i := range s.seats {
		at := &s.seats[i]
		if at.worker == theReferee || at.answer == right || at.answer.same(right) {
			continue
		}
		what := "differs from the leader's result"
		if at.answer.bad != "" {
			what = "had a result that is not finite, although another worker's result is: " + at.answer.bad
		}
		reason := fmt.Sprintf("task %d of round %d of job %d %s", u, x.round, x.id, what)
		if err := x.d.accuse(ctx, at.worker, reason); err != nil {
			return err
		}
		x.redo = x.r.How == round.Sum
	}
	return x.accept(ctx, u, right)
}

// accept uses an answer.
func (x *Executor) accept(ctx context.Context, u int, right *answer) error {
	s := &x.units[u]
	if s.check == audited {
		x.d.cfg.Metrics.Audits.Inc()
	}
	if x.r.How == round.Collect {
		x.store(ctx, u, right)
		return nil
	}
	for i := range s.seats {
		if a := s.seats[i].answer; a != nil && a != right {
			x.discard(a)
			s.seats[i].answer = nil
		}
	}
	_, err := x.tree.Put(0, u, right.sum)
	return err
}

// restart begins a summed round anew after a worker of it was accused: what else
// it answered is not used either.
func (x *Executor) restart(ctx context.Context, now time.Time) error {
	x.redo = false
	x.bench.end()
	x.tree.Reset(x.r.Units, x.r.Shape)
	clearUnits(x.units)
	x.sample()
	x.crewAt = 0
	x.spread(now)
	return x.seatChecks(ctx, now)
}
