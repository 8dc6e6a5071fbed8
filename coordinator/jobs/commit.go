package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// baseInterval is the commit interval while commits are cheap.
const baseInterval = protocol.CommitInterval

// maxShare bounds commits to one part in maxShare of the time, as far as the
// greatest interval allows.
const maxShare = 34

// committer commits a job's trainer state at the commit interval. The driver runs
// ahead of it: one commit is in flight at most, and the driver waits only when
// more than two intervals are uncommitted.
type committer struct {
	d        *driver
	interval time.Duration
	costs    costs     // of the last commits
	began    time.Time // when the state last handed to Raft was cut
	flight   chan committed
	buf      []byte // of the state in flight
	progress []byte
	curve    []byte // what is new of it
	mark     curve.Mark
}

// committed is the end of a commit.
type committed struct {
	err  error
	cost time.Duration
}

func newCommitter(d *driver) *committer {
	return &committer{d: d, interval: baseInterval, costs: costs{0}, began: time.Now()}
}

// costs are what the last commits took, at most three. A driver begins with one of 0:
// the first commit alone does not say that commits are slow either.
type costs []time.Duration

// with returns the costs after one more commit.
func (c costs) with(cost time.Duration) costs {
	c = append(c, cost)
	return c[max(0, len(c)-3):]
}

// typical returns the median of three costs, and the least of fewer: one commit that
// had to wait for an election, or for a cut network, says nothing about the next.
func (c costs) typical() time.Duration {
	sorted := slices.Sorted(slices.Values(c))
	return sorted[len(sorted)/3]
}

// stretch returns the interval that suits commits which take cost.
func stretch(cost time.Duration) time.Duration {
	return max(baseInterval, min(maxShare*cost, max(protocol.CommitAtMost, 4*cost)))
}

// logSpeed is how many bytes of state a second are expected to get through Raft,
// before a commit has told.
const logSpeed = 50 << 20

func expected(bytes int) time.Duration {
	return time.Duration(float64(bytes) / logSpeed * float64(time.Second))
}

// offer cuts and commits the state if the interval is over.
func (c *committer) offer(ctx context.Context, rounds uint64, t round.Trainer) error {
	age := time.Since(c.began)
	if age < c.interval {
		return nil
	}
	began := time.Now()
	defer func() { c.d.m.cfg.Metrics.CommitWait.Add(time.Since(began).Seconds()) }()
	if c.flight != nil {
		if err, done := c.poll(age > 2*c.interval); err != nil || !done {
			return err
		}
	}
	return c.cut(ctx, rounds, t)
}

// poll looks whether the commit in flight is done, or waits for it.
func (c *committer) poll(wait bool) (err error, done bool) {
	if !wait {
		select {
		case end := <-c.flight:
			return c.land(end), true
		default:
			return nil, false
		}
	}
	return c.land(<-c.flight), true
}

// land takes the end of a commit in.
func (c *committer) land(end committed) error {
	c.flight = nil
	c.costs = c.costs.with(end.cost)
	c.interval = stretch(c.costs.typical())
	if end.err == nil {
		c.d.curve.Committed(c.mark)
	}
	return end.err
}

// cut writes the state, or marshals it, and sends it on its way.
func (c *committer) cut(ctx context.Context, rounds uint64, t round.Trainer) error {
	if w, ok := t.(round.StateWriter); ok && c.d.large {
		size, err := stateSize(w)
		if err != nil {
			return err
		}
		if size > blobFrom {
			return c.cutBlob(ctx, rounds, t, size)
		}
	}
	var err error
	if c.buf, err = t.AppendState(c.buf[:0]); err != nil {
		return fmt.Errorf("the training state could not be saved: %w", err)
	}
	if !c.early(len(c.buf)) {
		c.send(t, func() error { return c.commit(ctx, rounds) })
	}
	return nil
}

// early reports whether a state of so many bytes is not to be committed yet: the log has it in
// parts, or the disk as a blob.
func (c *committer) early(bytes int) bool {
	due := stretch(expected(bytes))
	if time.Since(c.began) >= due {
		return false
	}
	c.interval = due
	return true
}

// send has a commit of the trainer's state on its way.
func (c *committer) send(t round.Trainer, commit func() error) {
	c.progress = progressJSON(t.Progress())
	rest, mark := c.d.curve.Uncommitted()
	c.curve, c.mark = rest.Checked(), mark
	c.began = time.Now()
	began, flight := c.began, make(chan committed, 1)
	c.flight = flight
	c.d.m.cfg.Metrics.Interval.WithLabelValues(c.d.job.Name).Set(c.interval.Seconds())
	go func() {
		err := commit()
		cost := time.Since(began)
		c.d.m.cfg.Metrics.Commit.Observe(cost.Seconds())
		flight <- committed{err, cost}
	}()
}

// entry begins the entry of a state of so many bytes.
func (c *committer) entry(rounds uint64, bytes int) protocol.CommitEntry {
	return protocol.CommitEntry{Epoch: c.d.m.cfg.Epoch, Job: c.d.job.ID, Round: rounds, Total: uint64(bytes), Progress: c.progress}
}

// commit proposes the state in buf, in pieces or as a blob.
func (c *committer) commit(ctx context.Context, rounds uint64) error {
	e := c.entry(rounds, len(c.buf))
	if len(c.buf) > protocol.MaxRaftState {
		blob, err := c.d.m.cfg.Blobs.Put(ctx, c.buf)
		if err != nil {
			return fmt.Errorf("the training state could not be saved: %w", err)
		}
		e.Blob, e.Curve = blob, c.curve
		return c.propose(ctx, &e)
	}
	for at := 0; at < len(c.buf); at += protocol.CommitChunk {
		e.Offset, e.Data = uint64(at), c.buf[at:min(at+protocol.CommitChunk, len(c.buf))]
		if at+len(e.Data) == len(c.buf) {
			e.Curve = c.curve
		}
		if err := c.propose(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

func (c *committer) propose(ctx context.Context, e *protocol.CommitEntry) error {
	_, _, err := c.d.m.cfg.Store.Propose(ctx, e.Append(nil))
	return err
}

// settle waits for the commit in flight.
func (c *committer) settle() error {
	if c.flight == nil {
		return nil
	}
	err, _ := c.poll(true)
	return err
}

// stop waits for the commit in flight, whatever comes of it.
func (c *committer) stop() { _ = c.settle() }
