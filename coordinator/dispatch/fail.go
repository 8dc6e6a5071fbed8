package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// What stops a unit for a passing reason (a full disk, a shard that is not to be
// had) is tried by each worker at once, and from then on with pauses that double.
const (
	firstPause    = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	failuresLimit = 10 * time.Minute // of nothing but failures: the job fails
)

// pauseAfter is how long a unit rests after its n-th failure in a crew of a size.
func pauseAfter(n, crew int) time.Duration {
	if n < crew {
		return 0
	}
	return min(longestPause, firstPause<<min(n-crew, 20))
}

// onFail has a unit of a summed round tried again, compared, or fails the job.
func (x *Executor) onFail(ctx context.Context, msg []byte) error {
	u, ok := x.failed(msg)
	if !ok {
		return nil
	}
	s, at := &x.units[u], x.units[u].seatOf(x.fail.Worker)
	switch {
	case x.fail.Permanent:
		return x.failure(u)
	case at == nil || at.answer != nil: // another has it by now
		x.drop(metrics.DropStale)
		return nil
	case x.fail.NonFinite:
		return x.onNonFinite(ctx, u, at)
	}
	*at = seat{}
	if err := x.rest(u, time.Now()); err != nil {
		return err
	}
	if s.check != unchecked {
		return x.seatChecks(ctx, time.Now())
	}
	x.tryAgain(time.Now())
	return nil
}

// failed decodes a Fail into x.fail; ok is false where it is not for an open unit
// of the round, or of a worker that is not trusted.
func (x *Executor) failed(msg []byte) (u int, ok bool) {
	if x.fail.Decode(msg) != nil || int(x.fail.Unit) >= max(len(x.units), 1) {
		x.drop(metrics.DropMisshapen)
		x.fail.Round = ^uint64(0)
		return 0, false
	}
	u = int(x.fail.Unit)
	if x.fail.Round != x.round || u >= len(x.units) || !x.open(u) || !x.d.trusts(x.fail.Worker) {
		x.drop(metrics.DropStale)
		return u, false
	}
	return u, true
}

func (x *Executor) failure(u int) error {
	return fmt.Errorf("task %d on worker %s: %s", u, x.fail.Worker, x.fail.Reason)
}

// rest notes a passing failure, x.fail, of a unit: how long it rests and whom it
// avoids. It returns an error where there is no hope left.
func (x *Executor) rest(u int, now time.Time) error {
	s := x.units[u].own()
	s.tries++
	s.avoid = x.fail.Worker
	if s.failing.IsZero() {
		s.failing = now
	}
	if x.fail.Unable && x.hopeless() {
		return fmt.Errorf("no worker can compute the task: %w", x.failure(u))
	}
	if since := now.Sub(s.failing); x.exhausted(s, now) {
		return fmt.Errorf("no worker could compute the task for %v: %w", since.Round(time.Second), x.failure(u))
	}
	s.after = now.Add(pauseAfter(s.tries, len(x.able())))
	if s.after.After(now) { // each worker has tried it
		x.d.Stopped(x.id, x.failure(u), now)
	}
	x.d.cfg.Log.Warn("a task failed and is tried again", "job", x.id, "round", x.round, "unit", u,
		"worker", x.fail.Worker, "pause", s.after.Sub(now), "reason", x.fail.Reason)
	return nil
}

// exhausted reports whether a unit has failed for so long that its job fails. While no coordinator that answers has a
// blob that the units need it has not: the job goes on once one has it again.
func (x *Executor) exhausted(a *attempt, now time.Time) bool {
	if now.Sub(a.failing) <= x.d.giveUp {
		return false
	}
	lost := x.d.cfg.Lost
	if lost != nil && (lost(x.job.Split.Assigned) || lost(x.job.Weights) ||
		slices.ContainsFunc(x.manifest.Shards, func(s dataset.ShardRef) bool { return lost(s.Digest) })) {
		a.failing = now
		return false
	}
	return true
}

// hopeless notes that the worker of x.fail never can, and reports whether all
// workers said so.
func (x *Executor) hopeless() bool {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	x.unable[x.fail.Worker] = cmp.Or(protocol.Brief(strings.TrimPrefix(x.fail.Reason, "worker: ")), "the worker has too little memory for its tasks")
	for id, w := range x.d.crew.workers {
		if w.refused == "" && x.unable[id] == "" {
			return false
		}
	}
	return true
}

// able lists the workers that may be given units of this job.
func (x *Executor) able() []*worker {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	return x.ableNow()
}

// ableNow is able with d.mu held.
func (x *Executor) ableNow() []*worker {
	list := x.d.crew.usable()
	if x.r.How == round.Sum {
		list = x.d.crew.prompt()
	}
	if len(x.unable) == 0 {
		return list
	}
	kept := list[:0]
	for _, w := range list {
		if x.unable[w.id] == "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// tryAgain gives out the units of a summed round that failed and have rested.
func (x *Executor) tryAgain(now time.Time) {
	for u := range x.units {
		s := &x.units[u]
		if s.avoid != "" && s.check == unchecked && s.seats[0].worker == "" && x.open(u) && !now.Before(s.after) {
			x.giveTo(x.other(u), u, now)
		}
	}
}
