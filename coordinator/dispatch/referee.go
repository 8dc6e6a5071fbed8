package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"maps"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// verdict is what the referee computed of a unit, or why it did not.
type verdict struct {
	round  uint64
	unit   int
	answer *answer
	err    error
}

// ask has the referee compute a unit; its verdict comes by mail.
func (x *Executor) ask(ctx context.Context, u int) {
	if x.bench.cancel == nil {
		x.bench.ctx, x.bench.cancel = context.WithCancel(ctx)
	}
	ctx = x.bench.ctx
	c := &Case{ID: x.id, Job: x.job, Manifest: x.manifest, Round: x.r, Unit: u}
	round := x.round
	x.bench.work.Go(func() {
		a, err := x.d.consult(ctx, c)
		if ctx.Err() == nil { // else the round is over, or begins anew
			x.mail.putVerdict(verdict{round, u, a, err})
		}
	})
}

// consult has the referee compute a unit, one at a time over all jobs.
func (d *Dispatcher) consult(ctx context.Context, c *Case) (*answer, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case d.referee <- struct{}{}:
	}
	defer func() { <-d.referee }()
	if c.Round.How == round.Collect {
		b, err := d.cfg.Referee.Collect(ctx, c)
		if err != nil {
			return nil, err
		}
		return &answer{bytes: b, digest: blobs.Sum(b)}, nil
	}
	p := new(round.Partial)
	p.Reset(c.Round.Shape)
	if err := d.cfg.Referee.Sum(ctx, c, p); err != nil {
		return nil, err
	}
	if err := engine.CheckFinite(p); err != nil {
		return &answer{bad: err.Error()}, nil
	}
	return &answer{sum: p}, nil
}

// onVerdict takes the referee's answer in: as a second opinion, or as the last
// word. Where it could not say, it is asked again after a while.
func (x *Executor) onVerdict(ctx context.Context, v *verdict) error {
	if v.round != x.round || !x.open(v.unit) || ctx.Err() != nil {
		return nil
	}
	s := &x.units[v.unit]
	at := s.seatOf(theReferee)
	if v.err != nil {
		return x.noVerdict(v, at)
	}
	switch {
	case at != nil:
		return x.answer(ctx, v.unit, theReferee, v.answer)
	case !s.judged:
		return nil
	case v.answer.bad != "":
		return fmt.Errorf("task %d of round %d on %s: %s", v.unit, x.round, theReferee, v.answer.bad)
	}
	return x.judge(ctx, v.unit, v.answer)
}

func (x *Executor) noVerdict(v *verdict, at *seat) error {
	s, now := x.units[v.unit].own(), time.Now()
	x.d.cfg.Log.Warn("the leader could not compute a task to verify workers", "job", x.id, "round", x.round, "unit", v.unit, "error", v.err)
	if s.failing.IsZero() {
		s.failing = now
	}
	if x.exhausted(s, now) {
		return fmt.Errorf("task %d on %s: %w", v.unit, theReferee, v.err)
	}
	x.d.Stopped(x.id, fmt.Errorf("task %d on %s: %w", v.unit, theReferee, v.err), now)
	s.judged, s.after = false, now.Add(longestPause)
	if at != nil {
		*at = seat{}
	}
	return nil
}

// accuse puts a worker out of use because it answered wrongly, and returns once
// that is recorded: nothing that came of its unit is folded before.
func (d *Dispatcher) accuse(ctx context.Context, id, reason string) error {
	d.mu.Lock()
	_, known := d.crew.distrusted[id]
	d.crew.distrust(id, reason)
	jobs := slices.Sorted(maps.Keys(d.served[id]))
	d.observeCrew()
	d.mu.Unlock()
	if known {
		return nil
	}
	d.cfg.Log.Error("a worker returned a wrong result and is quarantined", "worker", id, "jobs", jobs, "reason", reason)
	d.wakeAll()
	for d.cfg.Suspect != nil {
		err := d.cfg.Suspect(ctx, id, jobs, reason)
		if err == nil {
			break
		}
		d.cfg.Log.Warn("the quarantine of a worker could not be recorded yet", "worker", id, "error", err)
		if wait.For(ctx, lookAgain); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// serve notes that a worker is given units of a job; d.mu is held.
func (d *Dispatcher) serve(worker string, job uint64) {
	if d.served[worker] == nil {
		d.served[worker] = make(map[uint64]bool)
	}
	d.served[worker][job] = true
}

// SetDistrusted says anew which workers the log knows not to be trusted, and why:
// somebody may have ended it.
func (d *Dispatcher) SetDistrusted(workers map[string]string) {
	d.mu.Lock()
	changed := d.crew.setRecorded(workers)
	d.observeCrew()
	d.mu.Unlock()
	if changed {
		d.wakeAll()
	}
}
