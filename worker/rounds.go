package worker

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// start hands a batch to its lanes, at once or when its job and shards are at
// hand. mu is held.
func (w *worker) start(b *batch, reply string) {
	j := b.job
	if b.size() == 0 { // all of it is in work already, or done
		j.retire(b)
		return
	}
	b.begin(reply)
	if b.run.How == round.Sum {
		w.procs.step()
	}
	j.users++
	j.live = append(j.live, b)
	if j.complete(b) && w.tooLarge(b) == nil {
		w.lanesOf(b).add(b)
		return
	}
	b.preparing = true
	w.tasks.Go(func() { w.prepare(b) })
}

func (w *worker) lanesOf(b *batch) *lanes {
	if b.run.How == round.Collect {
		return w.lanes[collectLanes]
	}
	return w.lanes[sumLanes]
}

// prepare waits for a batch's job, fetches the shards that it lacks and hands it
// to its lanes. Units that cannot be computed fail.
func (w *worker) prepare(b *batch) {
	w.procs.begin()
	defer w.procs.end()
	j := b.job
	select {
	case <-j.ready:
	case <-j.ctx.Done():
	}
	errs := w.gather(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	b.preparing = false
	if !b.dropped {
		b.keep(func(i int, unit uint32) bool {
			if errs[i] != nil {
				j.unmark(b, unit)
			}
			return errs[i] == nil
		})
		b.left = b.size()
	}
	if b.left == 0 {
		w.retire(b)
		return
	}
	w.lanesOf(b).add(b)
}

// gather brings the shards of a batch to hand. It returns, and reports, why
// units cannot be computed.
func (w *worker) gather(b *batch) []error {
	j, errs := b.job, make([]error, b.size())
	lacks := make([]error, len(j.manifest.Shards)) // by shard
	refusal := w.tooLarge(b)
	if j.ctx.Err() == nil && j.failure == nil && refusal == nil {
		w.loadShards(b, lacks)
	}
	for i := range errs {
		errs[i] = refusal
		if refusal == nil {
			errs[i] = j.whyNot(b, i, lacks)
		}
		if errs[i] != nil && (i == 0 || refusal == nil || !failureOf(refusal).permanent) { // one says it for all
			w.fail(b, i, errs[i])
		}
	}
	return errs
}

// whyNot says why the i-th unit of b cannot be computed.
func (j *job) whyNot(b *batch, i int, lacks []error) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	if j.failure != nil {
		return j.failure
	}
	lo, hi := b.shards(i)
	return errors.Join(lacks[lo:hi]...)
}

// wholeShare is what a unit on the whole dataset takes at most, in parts of its
// decoded shards: the shards, and as much twice for its own arrays.
const wholeShare = 3

// maxPartials bounds the partials that a batch holds at once, in bytes of their
// dense values.
const maxPartials = 8 * protocol.MaxMessage

// checkPartials says why the partials of a summed batch would take more memory than
// any job's do, or returns nil. They are added as they come, so that few are held:
// those of the lanes, and the nodes of the tree that have no sibling yet.
func (w *worker) checkPartials(b *batch) error {
	shape, runs := &b.run.Shape, 0
	for i, u := range b.run.Units {
		if i == 0 || u != b.run.Units[i-1]+1 {
			runs++
		}
	}
	held := w.cfg.Slots + min(b.size(), 2*runs*bits.Len32(b.run.Of))
	if one := 8*shape.F64 + 4*shape.F32; held*one > maxPartials {
		return permanent(fmt.Errorf("worker: the tasks need up to %d partial results of %d bytes, but a worker keeps at most %s of them", held, one, units.Format(maxPartials)))
	}
	return nil
}

// tooLarge says why a batch would take more memory than this worker has, or returns
// nil.
func (w *worker) tooLarge(b *batch) error {
	if b.run.How == round.Sum {
		if err := w.checkPartials(b); err != nil {
			return err
		}
	}
	limit := w.cfg.MemoryBytes
	if limit == 0 || b.run.Scope != round.Whole && !b.run.Child {
		return nil
	}
	need := int64(0)
	for _, shard := range b.job.manifest.Shards {
		need += wholeShare * shard.Bytes
	}
	if err := w.demand(b); err != nil {
		return err
	}
	if need <= limit {
		return nil
	}
	return unable(fmt.Errorf("worker: a task on the whole dataset needs up to %s, but --memory of worker %s is %s",
		units.Format(need), w.id, units.Format(limit)))
}

// demand says why the arrays that the algorithm makes for a unit on the whole dataset would take
// more memory than this worker has, or returns nil.
func (w *worker) demand(b *batch) error {
	if b.job.open == nil {
		return nil
	}
	k, ok := b.job.open.Kernel.(round.Demanding)
	if !ok {
		return nil
	}
	bytes, what := k.Demand()
	if bytes <= w.cfg.MemoryBytes {
		return nil
	}
	return unable(fmt.Errorf("worker: a task on the whole dataset needs up to %s (%s), but --memory of worker %s is %s",
		units.Format(bytes), what, w.id, units.Format(w.cfg.MemoryBytes)))
}

// fetchAtOnce is how many shards one batch fetches at the same time.
const fetchAtOnce = 4

// loadShards opens the shards that b needs and its job has not; errs says, by
// shard, why one is not to be had.
func (w *worker) loadShards(b *batch, errs []error) {
	var group errgroup.Group
	group.SetLimit(fetchAtOnce)
	for _, s := range w.lacking(b) {
		group.Go(func() error {
			errs[s] = w.loadShard(b.job, s)
			return nil
		})
	}
	group.Wait()
}

// lacking lists the shards that b needs and its job has not, in order.
func (w *worker) lacking(b *batch) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lacks []int
	for i := range b.run.Units {
		lo, hi := b.shards(i)
		for s := lo; s < hi; s++ {
			if !b.job.open.Data.HasShard(s) {
				lacks = append(lacks, s)
			}
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// loadShard adds one shard to the job. Whatever stops it is a passing failure, unless
// the shard itself is wrong.
func (w *worker) loadShard(j *job, s int) error {
	opened, err := w.addShard(j, s)
	var f *failure
	switch {
	case errors.As(err, &f):
		return err
	case err != nil:
		return passing(err)
	case opened == nil: // another batch was faster
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.lacks--
	j.shards = append(j.shards, opened)
	return nil
}

// addShard opens a shard and adds it to the job; nil: the job has it already. Where it is
// not as the manifest says, its file is read once more: it may have changed since it was
// found right.
func (w *worker) addShard(j *job, s int) (*shard, error) {
	ref := j.manifest.Shards[s]
	for again := false; ; again = true {
		opened, err := w.cache.acquire(j.ctx, ref)
		if err != nil {
			return nil, err
		}
		added, err := j.open.AddShard(s, opened.rows)
		if added {
			return opened, nil
		}
		w.cache.release(opened)
		switch {
		case err == nil:
			return nil, nil
		case again:
			return nil, permanent(fmt.Errorf("shard %.12s: %w", ref.Digest, err))
		}
		w.cache.distrust(j.ctx, []dataset.ShardRef{ref})
	}
}

// end answers a summed batch whose units are all computed, and gives it up.
func (w *worker) end(b *batch) {
	w.mu.Lock()
	dropped := b.dropped
	w.mu.Unlock()
	if b.run.How == round.Sum && !dropped {
		w.answer(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.run.How == round.Sum {
		b.job.settle(b)
	}
	w.retire(b)
}

// longPart is from how many bytes of numbers on a part is sent without a copy of them.
const longPart = 1 << 20

// answer sends the maximal nodes of the reduction tree that a batch fills
// (design section 8.4).
func (w *worker) answer(b *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part.Stamp, b.part.Worker = b.run.Stamp, w.id
	b.tree.Nodes(func(level, i int, p *round.Partial) {
		b.part.Level, b.part.Index, b.part.Partial = uint8(level), uint32(i), p
		b.part.Compute = uint64(b.computed(level, i))
		if 4*len(p.F32) >= longPart {
			parts := b.part.Parts(b.buf[:0])
			w.sendParts(b.reply, parts[:]...)
			return
		}
		b.buf = b.part.Append(b.buf[:0])
		w.send(b.reply, b.buf)
	})
	b.part.Partial = nil
}

// fail tells the leader that a unit of b was not computed. What was stopped on
// purpose is no failure.
func (w *worker) fail(b *batch, i int, err error) {
	w.mu.Lock()
	stopped := b.dropped || b.job.ctx.Err() != nil
	w.mu.Unlock()
	switch {
	case stopped:
	case b.units != nil:
		w.failCollected(b.job, b.units[i], err)
	default:
		w.tellFailure(b.run.Stamp, b.reply, b.run.Units[i], err)
	}
}

// failCollected forgets a collected unit and tells the leader, unless nobody wants
// it any more.
func (w *worker) failCollected(j *job, c *collected, err error) {
	w.mu.Lock()
	stamp, reply, stopped := j.failCollected(c)
	stopped = stopped || j.ctx.Err() != nil
	w.mu.Unlock()
	if !stopped {
		w.tellFailure(stamp, reply, c.unit, err)
	}
}

func (w *worker) tellFailure(stamp protocol.Stamp, reply string, unit uint32, err error) {
	w.metrics.UnitsFailed.Inc()
	f := failureOf(err)
	w.log.Warn("a task failed", "job", stamp.Job, "round", stamp.Round, "unit", unit, "permanent", f.permanent, "reason", f)
	m := protocol.Fail{Stamp: stamp, Worker: w.id, Unit: unit, Permanent: f.permanent, NonFinite: f.nonFinite, Unable: f.unable, Reason: f.Error()}
	w.send(reply, m.Append(nil))
}

// retire gives up a batch that is done. mu is held.
func (w *worker) retire(b *batch) {
	b.job.retire(b)
	w.leave(b.job)
}

// dropBatch stops a batch: what has not begun is not computed, and nothing is
// sent. mu is held.
func (w *worker) dropBatch(b *batch) {
	if b.dropped {
		return
	}
	b.dropped = true
	w.lanesOf(b).remove(b)
	rest := b.size() - b.next
	b.next = b.size()
	b.left -= rest
	if b.left == 0 && !b.preparing && !b.ending {
		w.retire(b)
	}
}

// supersedeSums stops the summed rounds of a job. mu is held.
func (w *worker) supersedeSums(j *job) {
	for i := len(j.live) - 1; i >= 0; i-- {
		if j.live[i].run.How == round.Sum {
			w.dropBatch(j.live[i])
		}
	}
}

// supersede stops all that a job computes for rounds other than this one. mu is
// held.
func (w *worker) supersede(j *job, round uint64) {
	w.supersedeSums(j)
	for i := len(j.live) - 1; i >= 0; i-- {
		if j.live[i].run.Round != round {
			w.dropBatch(j.live[i])
		}
	}
	for key, c := range j.units {
		if key.round != round {
			w.passCollected(j, key, c)
		}
	}
}
