package worker

import (
	"context"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// unitKey names a collected unit of a job.
type unitKey struct {
	round uint64
	unit  uint32
}

// collected is a unit of a collected round: in work, or done and to be had. The
// worker's mutex guards it.
type collected struct {
	ctx    context.Context // ends when nobody wants the unit any more
	cancel context.CancelFunc

	unit  uint32
	stamp protocol.Stamp // of who asked last, a new leader perhaps
	reply string

	told told // of a child job

	done    bool
	digest  string // of its bytes in results
	bytes   uint64
	compute time.Duration
}

// admitCollected keeps the units of b that nobody has computed or computes.
// Those that are done are returned.
func (j *job) admitCollected(b *batch, reply string) (done []*collected) {
	b.keep(func(_ int, unit uint32) bool {
		key := unitKey{b.run.Round, unit}
		c := j.units[key]
		first := c == nil
		if first {
			c = &collected{unit: unit}
			c.ctx, c.cancel = context.WithCancel(j.ctx)
			j.units[key] = c
			b.units = append(b.units, c)
		}
		c.stamp, c.reply = b.run.Stamp, reply
		if c.done {
			done = append(done, c)
		}
		return first
	})
	return done
}

// failCollected forgets a unit that failed, so that it can be asked for again.
// It returns whom to tell, or that nobody wants to know.
func (j *job) failCollected(c *collected) (stamp protocol.Stamp, reply string, stopped bool) {
	stopped = c.ctx.Err() != nil
	if !stopped {
		c.cancel()
		delete(j.units, unitKey{c.stamp.Round, c.unit})
	}
	return c.stamp, c.reply, stopped
}

// dropCollected stops a unit, or gives up its bytes. mu is held.
func (w *worker) dropCollected(j *job, key unitKey, c *collected) {
	c.cancel()
	if c.done {
		w.results.release(c.digest)
	}
	delete(j.units, key)
}

// computeCollected computes a unit of a collected round and hands its bytes on to be
// stored: a lane does not wait for a disk.
func (w *worker) computeCollected(b *batch, i, lane int) error {
	c := b.units[i]
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	w.procs.begin()
	defer w.procs.end()
	began := time.Now()
	part, err := w.collect(c.ctx, b, i, lane)
	if err != nil {
		return err
	}
	if w.cfg.Spoil != nil {
		w.cfg.Spoil(c.unit, nil, part)
	}
	w.parts <- computed{b.job, c, part, time.Since(began)}
	return nil
}

// computed is a collected unit on its way from a lane to those that keep it.
type computed struct {
	job  *job
	unit *collected
	part []byte
	took time.Duration
}

// maxComputed is how many units may wait for them, beyond one for each keeper,
// before lanes do.
const maxComputed = 4

// keeper stores the bytes of collected units and announces them, until no lane is
// left.
func (w *worker) keeper() {
	for p := range w.parts {
		if err := w.store(p); err != nil {
			w.failCollected(p.job, p.unit, passing(err))
		}
	}
}

func (w *worker) store(p computed) error {
	c := p.unit
	digest, err := w.results.put(p.part)
	if err != nil {
		return err
	}
	w.mu.Lock()
	if c.ctx.Err() != nil { // forgotten meanwhile
		w.mu.Unlock()
		w.results.release(digest)
		return nil
	}
	c.done, c.digest, c.bytes, c.compute = true, digest, uint64(len(p.part)), p.took
	w.mu.Unlock()
	w.announce(c)
	return nil
}

// announce tells the leader where the bytes of a finished unit are, and before that
// the numbers of a child job.
func (w *worker) announce(c *collected) {
	w.mu.Lock()
	reply := c.reply
	m := protocol.Collected{
		Stamp: c.stamp, Worker: w.id, Unit: c.unit,
		Compute: uint64(c.compute), Digest: c.digest, Bytes: c.bytes,
	}
	told, child := protocol.Progress{}, c.told.last.Worker != ""
	if child {
		told = c.told.again(c.stamp)
	}
	w.mu.Unlock()
	if child {
		w.send(reply, told.Append(nil))
	}
	w.send(reply, m.Append(nil))
}
