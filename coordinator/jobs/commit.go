package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// baseInterval is the commit interval while commits are cheap.
	baseInterval = protocol.CommitInterval
	// maxShare bounds commits to one part in maxShare of the time, up to the greatest interval.
	maxShare = 34
	// logSpeed is how many bytes of state a second are expected to pass through Raft, before a commit has told.
	logSpeed = 50 << 20
	// blobFrom is the size above which a state is a blob, if the trainer can write it to one. The log would take it up to
	// MaxRaftState, but in memory as well as on the disk, and in chunks that are synced one by one.
	blobFrom = 8 << 20
)

// committer commits a job's training state at the commit interval, while the driver goes on. At most one commit is in
// flight. The driver waits for it only if more than two intervals are uncommitted. It is used by the driver's
// goroutine.
type committer struct {
	d        *driver
	interval time.Duration
	costs    costs          // of the last commits
	began    time.Time      // when the last state was taken that was handed to Raft
	flight   chan committed // nil: no commit is in flight

	// The state in flight.
	buf      []byte
	progress []byte
	curve    []byte // the part of the learning curve that is not committed
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

// costs are how long the last commits took, at most three. The first of a driver is 0: the first commit alone does not
// show that commits are slow.
type costs []time.Duration

// with returns the costs after one more commit.
func (c costs) with(cost time.Duration) costs {
	c = append(c, cost)
	return c[max(0, len(c)-3):]
}

// typical returns the median of three costs, and the least of fewer: one commit that waited for an election, or for a
// cut network, shows nothing about the next.
func (c costs) typical() time.Duration {
	sorted := slices.Sorted(slices.Values(c))
	return sorted[len(sorted)/3]
}

// stretch returns the commit interval for commits that take cost.
func stretch(cost time.Duration) time.Duration {
	return max(baseInterval, min(maxShare*cost, max(protocol.CommitAtMost, 4*cost)))
}

// offer commits the trainer's state if the interval is over.
func (c *committer) offer(ctx context.Context, rounds uint64, t round.Trainer) error {
	age := time.Since(c.began)
	if age < c.interval {
		return nil
	}
	began := time.Now()
	defer func() { c.d.m.cfg.Metrics.CommitWait.Add(time.Since(began).Seconds()) }()
	if done, err := c.poll(age > 2*c.interval); err != nil || !done {
		return err
	}
	if w, ok := t.(round.StateWriter); ok && c.d.large {
		var size counter
		if err := w.WriteState(&size); err != nil {
			return stateError(err)
		}
		if size > blobFrom {
			return c.offerBlob(ctx, rounds, t, w, int(size))
		}
	}
	var err error
	if c.buf, err = t.AppendState(c.buf[:0]); err != nil {
		return stateError(err)
	}
	if c.isDue(len(c.buf)) {
		c.start(t, func() error { return c.commit(ctx, rounds) })
	}
	return nil
}

// poll takes in the end of the commit in flight, if there is one. done is false if it has not ended and wait is false.
func (c *committer) poll(wait bool) (done bool, err error) {
	var end committed
	switch {
	case c.flight == nil:
		return true, nil
	case wait:
		end = <-c.flight
	default:
		select {
		case end = <-c.flight:
		default:
			return false, nil
		}
	}
	c.flight = nil
	c.costs = c.costs.with(end.cost)
	c.interval = stretch(c.costs.typical())
	if end.err == nil {
		c.d.curve.Committed(c.mark)
	}
	return true, end.err
}

// settle waits for the commit in flight.
func (c *committer) settle() error {
	_, err := c.poll(true)
	return err
}

// isDue reports whether a state of so many bytes is to be committed now. Large states are committed less often.
func (c *committer) isDue(bytes int) bool {
	due := stretch(time.Duration(float64(bytes) / logSpeed * float64(time.Second)))
	if time.Since(c.began) >= due {
		return true
	}
	c.interval = due
	return false
}

// start starts a commit of the trainer's state.
func (c *committer) start(t round.Trainer, commit func() error) {
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

// commit proposes the state in buf, in chunks or as a blob.
func (c *committer) commit(ctx context.Context, rounds uint64) error {
	e := c.entry(rounds, len(c.buf))
	if len(c.buf) > protocol.MaxRaftState {
		blob, err := c.d.m.cfg.Blobs.Put(ctx, c.buf)
		if err != nil {
			return stateError(err)
		}
		e.Blob = blob
		return c.propose(ctx, c.last(&e))
	}
	for at := 0; at < len(c.buf); at += protocol.CommitChunk {
		e.Offset, e.Data = uint64(at), c.buf[at:min(at+protocol.CommitChunk, len(c.buf))]
		if at+len(e.Data) == len(c.buf) {
			c.last(&e)
		}
		if err := c.propose(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// offerBlob writes a large state to a blob while the driver waits, so that memory has no copy of it. The driver does
// not wait until the blob is on the disk, and on the disks of others.
func (c *committer) offerBlob(ctx context.Context, rounds uint64, t round.Trainer, w round.StateWriter,
	size int) error {
	c.buf = nil
	if !c.isDue(size) {
		return nil
	}
	blob, err := c.d.m.cfg.Blobs.Writer()
	if err != nil {
		return stateError(err)
	}
	if err := w.WriteState(blob); err != nil {
		blob.Close()
		return stateError(err)
	}
	c.start(t, func() error {
		defer blob.Close()
		size := blob.Size()
		digest, err := blob.Commit("")
		if err == nil {
			err = c.d.m.cfg.Blobs.Spread(ctx, digest, uint64(size))
		}
		if err != nil {
			return stateError(err)
		}
		e := c.entry(rounds, int(size))
		e.Blob = digest
		return c.propose(ctx, c.last(&e))
	})
	return nil
}

// entry returns the entry of a state of so many bytes, without the state.
func (c *committer) entry(rounds uint64, bytes int) protocol.CommitEntry {
	return protocol.CommitEntry{Epoch: c.d.m.cfg.Epoch, Job: c.d.job.ID, Round: rounds, Total: uint64(bytes),
		Progress: c.progress}
}

// last adds to the last entry of a state what comes with the state.
func (c *committer) last(e *protocol.CommitEntry) *protocol.CommitEntry {
	e.Curve, e.Events = c.curve, c.d.m.cfg.Journal.Take(c.d.job.ID, false)
	return e
}

func (c *committer) propose(ctx context.Context, e *protocol.CommitEntry) error {
	_, _, err := c.d.m.cfg.Store.Propose(ctx, e.Append(nil))
	return err
}

func stateError(err error) error { return fmt.Errorf("the training state could not be saved: %w", err) }

// counter is a writer that counts bytes.
type counter int

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// presentable returns progress for display. JSON has no word for a loss that is not finite: it counts as not known.
func presentable(p round.Progress) round.Progress {
	if p.Loss-p.Loss != 0 {
		p.Loss = -1
	}
	if p.Validation-p.Validation != 0 {
		p.Validation, p.ValidatedAt = 0, 0
	}
	if p.BestLoss-p.BestLoss != 0 {
		p.BestLoss = 0
	}
	return p
}

// progressJSON encodes progress for display.
func progressJSON(p round.Progress) []byte {
	b, err := json.Marshal(presentable(p))
	if err != nil {
		panic(fmt.Sprintf("jobs: progress does not marshal: %v", err))
	}
	return b
}

// Results implements dispatch.Results on the log and the blob folders.
type Results struct {
	Epoch uint64
	Store Log
	Blobs Blobs
	// Journal has the events that go into the log with results.
	Journal *Journal

	mu   sync.Mutex
	lost digests.Set // recorded results that no coordinator has any longer; mu guards it
}

// errResultLost says that no coordinator has a recorded result any longer: its job starts again from its last commit
// and computes the task once more, to the same bytes.
var errResultLost = errors.New("no coordinator has the recorded result of a task any more; the task is computed again")

// setLost remembers whether a result is lost.
func (r *Results) setLost(text string, lost bool) {
	d, ok := digests.Parse(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !lost:
		delete(r.lost, d)
	case ok:
		if r.lost == nil {
			r.lost = make(digests.Set)
		}
		r.lost[d] = struct{}{}
	}
}

// Known implements dispatch.Results.
func (r *Results) Known(job, round uint64) (known []schedule.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.Store.State().Job(job); j != nil {
		for p := range j.RecordedFrom(round+1, 0) {
			if !r.lost.Contains(p.Digest) {
				known = append(known, schedule.Known{Task: p.Task, Digest: p.Digest, Took: time.Duration(p.Compute)})
			}
		}
	}
	return known
}

// Fetch implements dispatch.Results.
func (r *Results) Fetch(ctx context.Context, c *protocol.Result) ([]byte, error) {
	return r.Blobs.Take(ctx, c.Worker, c.Digest, c.Bytes)
}

// Keep implements dispatch.Results.
func (r *Results) Keep(result []byte) (digest string, err error) { return r.Blobs.Keep(result) }

// Record implements dispatch.Results.
func (r *Results) Record(ctx context.Context, c *protocol.Result, of int, failed bool) error {
	if j := r.Store.State().Job(c.Job); j != nil && j.Round > c.Round { // copies are not needed
		return fmt.Errorf("%w: %w", dispatch.ErrOver, state.ErrStaleRound)
	}
	if err := r.Blobs.Spread(ctx, c.Digest, c.Bytes); err != nil {
		return err
	}
	r.setLost(c.Digest, false)
	entry := protocol.ResultEntry{Epoch: r.Epoch, Job: c.Job, Round: c.Round + 1, Task: c.Task, Of: uint32(of),
		Digest: c.Digest, Bytes: c.Bytes, Compute: c.Compute, Failed: failed, Events: r.Journal.Take(c.Job, false)}
	return r.propose(ctx, protocol.EntryResult, entry)
}

// Withhold implements dispatch.Results.
func (r *Results) Withhold(ctx context.Context, job, round uint64, tasks []uint32, took time.Duration) error {
	for some := range slices.Chunk(tasks, protocol.MaxWithheld) {
		entry := protocol.WithholdEntry{Epoch: r.Epoch, Job: job, Round: round + 1, Tasks: some, Compute: uint64(took)}
		if err := r.propose(ctx, protocol.EntryWithhold, entry); err != nil {
			return err
		}
	}
	return nil
}

// propose commits an entry. What the state machine refuses, it would refuse again.
func (r *Results) propose(ctx context.Context, kind protocol.EntryKind, entry any) error {
	_, _, err := r.Store.Propose(ctx, protocol.EncodeEntry(kind, entry))
	for _, target := range []error{state.ErrStaleEpoch, state.ErrStaleRound, state.ErrFinal, state.ErrDeleted,
		state.ErrNotRunning} {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", dispatch.ErrOver, err)
		}
	}
	return err
}

// Load implements dispatch.Results.
func (r *Results) Load(ctx context.Context, digest string) ([]byte, error) {
	b, err := r.Blobs.Get(ctx, digest)
	if errors.Is(err, blobs.ErrMissing) {
		r.setLost(digest, true)
		err = fmt.Errorf("%w: %w", errResultLost, err)
	}
	return b, err
}
