package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// Executor has one job's rounds computed by the crew. It implements
// engine.Executor and is used by one goroutine.
type Executor struct {
	d        *Dispatcher
	id       uint64
	job      *algorithms.Job
	manifest *dataset.Manifest

	mail  *mailbox
	known map[string]*acquainted // workers that have the job
	plans map[int]*cachedPlan    // by number of units
	// resume holds where the child jobs of the round would go on, by unit.
	resume map[uint32][]byte
	tree   engine.Tree

	round  uint64
	r      *algorithms.Round
	units  []unitState
	crewAt uint64 // version of the crew that the round's work is spread over
	began  time.Time
	// pace is how long the slowest part of a round computes, as workers say,
	// smoothed. Waiting for those that do not answer is no part of it: else each
	// wait would make the next one longer.
	pace, slowest time.Duration

	inFlight atomic.Int64 // units of a collected round, for display

	msgs [][]byte // scratch of receive
	list []uint32 // scratch of spread
	buf  []byte   // scratch of encoding
	run  protocol.Run
	part protocol.Part
	need protocol.Need
	fail protocol.Fail
}

// acquainted is what a worker was sent of a job. A worker that left and came back
// is another one, by the same name.
type acquainted struct {
	of   *worker
	refs []protocol.Ref
}

// there reports whether the worker that was given work under an id is still in
// the crew; d.mu is held.
func (x *Executor) there(id string) bool {
	w, k := x.d.crew.get(id), x.known[id]
	return w != nil && k != nil && k.of == w
}

// forgetGone forgets what was sent to workers that are gone; d.mu is held.
func (x *Executor) forgetGone() {
	for id := range x.known {
		if !x.there(id) {
			delete(x.known, id)
		}
	}
}

type cachedPlan struct {
	crewAt uint64
	plan   *spreadPlan
}

// unitState is where a unit of the current round stands.
type unitState struct {
	worker string // that computes it; empty: nobody yet
	sent   time.Time
	tries  int // failures
	state  uint8
}

// The states of a collected unit.
const (
	waiting = iota
	running
	storing
	recorded
)

// maxTries is how often a unit may fail, on whichever worker, before the job does;
// with more workers, each may try.
const maxTries = 4

func (x *Executor) crewSize() int {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	return len(x.d.crew.usable())
}

// Do implements engine.Executor.
func (x *Executor) Do(ctx context.Context, n uint64, r *algorithms.Round, res *algorithms.Result) error {
	x.round, x.r, x.crewAt = n, r, 0
	if cap(x.units) < r.Units {
		x.units = make([]unitState, r.Units)
	}
	x.units = x.units[:r.Units]
	clear(x.units)
	if r.How == algorithms.Collect {
		return x.collect(ctx, res)
	}
	return x.sum(ctx, res)
}

func (x *Executor) sum(ctx context.Context, res *algorithms.Result) error {
	x.tree.Reset(x.r.Units, x.r.Shape)
	x.began, x.slowest = time.Now(), 0
	x.spread(x.began)
	x.d.cfg.Metrics.Broadcast.Observe(time.Since(x.began).Seconds())
	timer := time.NewTimer(x.patience())
	defer timer.Stop()
	for x.tree.Root() == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-x.mail.ready:
			if err := x.receive(); err != nil {
				return err
			}
			x.spread(time.Now())
		case now := <-timer.C:
			x.overdue(now)
			timer.Reset(x.patience())
		}
	}
	res.Sum, res.Parts = x.tree.Root(), nil
	x.pace += (x.slowest - x.pace) / 8
	return nil
}

// patience is how long a unit may take before it is given out again.
func (x *Executor) patience() time.Duration {
	return max(10*x.d.cfg.Heartbeat, 8*x.pace)
}

// receive handles the mail of a summed round.
func (x *Executor) receive() error {
	x.msgs = x.mail.take(x.msgs)
	defer clear(x.msgs)
	for _, msg := range x.msgs {
		if err := x.handle(msg); err != nil {
			return err
		}
	}
	return nil
}

func (x *Executor) handle(msg []byte) error {
	kind, _ := protocol.KindOf(msg)
	switch kind {
	case protocol.KindPart:
		return x.onPart(msg)
	case protocol.KindNeed:
		x.onNeed(msg)
	case protocol.KindFail:
		return x.onFail(msg)
	case protocol.KindCollected, protocol.KindCheckpoint:
		x.drop(metrics.DropStale)
	default:
		x.drop(metrics.DropMisshapen)
	}
	return nil
}

func (x *Executor) drop(reason string) {
	x.d.cfg.Metrics.PartsDropped.WithLabelValues(reason).Inc()
}

func (x *Executor) onPart(msg []byte) error {
	x.part.Partial = x.tree.Partial()
	err := x.part.Decode(msg)
	if err == nil {
		x.d.answered(x.part.Worker)
	}
	if err != nil || x.part.Round != x.round {
		x.tree.Release(x.part.Partial)
		if err != nil {
			x.drop(metrics.DropMisshapen)
		} else {
			x.drop(metrics.DropStale)
		}
		return nil
	}
	began := time.Now()
	x.slowest = max(x.slowest, min(time.Duration(x.part.Compute), began.Sub(x.began)))
	used, err := x.tree.Put(int(x.part.Level), int(x.part.Index), x.part.Partial)
	x.d.cfg.Metrics.Reduce.Observe(time.Since(began).Seconds())
	x.d.cfg.Metrics.Compute.Observe(time.Duration(x.part.Compute).Seconds())
	switch {
	case err != nil:
		x.drop(metrics.DropMisshapen)
		x.d.cfg.Log.Warn("a partial was dropped", "job", x.id, "worker", x.part.Worker, "error", err)
	case !used:
		x.drop(metrics.DropDuplicate)
		x.d.cfg.Metrics.UnitsWasted.Add(float64(min(int(1)<<min(x.part.Level, 30), x.r.Units)))
	}
	return nil
}

// onNeed gives a worker what it lacks and sends its units again.
func (x *Executor) onNeed(msg []byte) {
	if x.need.Decode(msg) != nil {
		x.drop(metrics.DropMisshapen)
		return
	}
	if x.need.Round != x.round {
		x.drop(metrics.DropStale)
		return
	}
	k := x.known[x.need.Worker]
	if x.need.Setup || k == nil {
		delete(x.known, x.need.Worker)
	} else {
		for _, ref := range x.need.Refs {
			k.forget(ref.ID)
		}
	}
	x.sendOwn(x.need.Worker)
}

func (k *acquainted) forget(id uint16) {
	for i := range k.refs {
		if k.refs[i].ID == id {
			k.refs[i].Version = ^uint64(0)
		}
	}
}

// sendOwn sends a worker all units that it has and has not answered.
func (x *Executor) sendOwn(id string) {
	x.list = x.list[:0]
	for u := range x.units {
		if x.units[u].worker == id && x.open(u) {
			x.list = append(x.list, uint32(u))
		}
	}
	x.send(id, x.list, time.Now())
}

// open reports whether a unit's result is still needed from a worker.
func (x *Executor) open(u int) bool {
	if x.r.How == algorithms.Collect {
		return x.units[u].state == running
	}
	return !x.tree.Covered(0, u)
}

// onFail gives a unit that its worker could not compute to another, or fails the
// job.
func (x *Executor) onFail(msg []byte) error {
	if x.fail.Decode(msg) != nil || int(x.fail.Unit) >= max(len(x.units), 1) {
		x.drop(metrics.DropMisshapen)
		return nil
	}
	u := int(x.fail.Unit)
	if x.fail.Round != x.round || !x.open(u) {
		x.drop(metrics.DropStale)
		return nil
	}
	s := &x.units[u]
	if !x.fail.Permanent && s.worker != x.fail.Worker { // another has it by now
		x.drop(metrics.DropStale)
		return nil
	}
	s.tries++
	if x.fail.Permanent || s.tries >= max(maxTries, x.crewSize()) {
		return fmt.Errorf("unit %d on worker %s: %s", u, x.fail.Worker, x.fail.Reason)
	}
	x.d.cfg.Log.Warn("a unit failed and is given to another worker",
		"job", x.id, "round", x.round, "unit", u, "worker", x.fail.Worker, "reason", x.fail.Reason)
	x.giveToOther(u)
	return nil
}

// Close ends the job on the workers: they stop its units and drop what they keep.
func (x *Executor) Close() {
	x.d.mu.Lock()
	delete(x.d.jobs, x.id)
	x.d.mu.Unlock()
	forget := (&protocol.Forget{Epoch: x.d.cfg.Epoch, Job: x.id}).Append(nil)
	for id := range x.known {
		x.d.send(x.d.cfg.Subjects.Work(id), forget)
	}
}
