package jobs

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/spec"
)

// blobFrom is the size above which a state is a blob, where the trainer can write it to one. The log would take it
// up to MaxRaftState, but in memory as well as on the disk, and in parts that are synced one by one.
const blobFrom = 8 << 20

// leanFrom is the size of messages from which on a job is run with little garbage.
const leanFrom = 16 << 20

// prepare estimates the job's memory: whether its state may be above blobFrom, and whether its messages are large. It
// may err: a state that is said to be small is committed in memory, however large it is. end is called after the rounds.
func (d *driver) prepare() (end func()) {
	need, err := spec.Estimate(d.job.Job, d.job.Manifest)
	d.large = err == nil && need.State > blobFrom
	if err == nil && need.Message >= leanFrom && d.m.cfg.Lean != nil {
		return d.m.cfg.Lean()
	}
	return func() {}
}

// counter is a writer that counts.
type counter int

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// stateSize returns the bytes of a state.
func stateSize(t round.StateWriter) (int, error) {
	var c counter
	if err := t.WriteState(&c); err != nil {
		return 0, fmt.Errorf("the training state could not be saved: %w", err)
	}
	return int(c), nil
}

// cutBlob writes a large state, of size bytes, to a blob while the driver waits, so that no copy of it is
// in memory. To have it on the disk, and on those of others, the driver does not wait.
func (c *committer) cutBlob(ctx context.Context, rounds uint64, t round.Trainer, size int) error {
	c.buf = nil
	if c.early(size) {
		return nil
	}
	blob, err := c.d.m.cfg.Blobs.Writer()
	if err != nil {
		return fmt.Errorf("the training state could not be saved: %w", err)
	}
	if err := t.(round.StateWriter).WriteState(blob); err != nil {
		blob.Close()
		return fmt.Errorf("the training state could not be saved: %w", err)
	}
	c.send(t, func() error { return c.commitBlob(ctx, rounds, blob) })
	return nil
}

// commitBlob keeps a blob on a majority, and proposes it as the state.
func (c *committer) commitBlob(ctx context.Context, rounds uint64, blob *blobs.Writer) error {
	defer blob.Close()
	size := blob.Size()
	digest, err := blob.Commit("")
	if err == nil {
		err = c.d.m.cfg.Blobs.Spread(ctx, digest, uint64(size))
	}
	if err != nil {
		return fmt.Errorf("the training state could not be saved: %w", err)
	}
	e := c.entry(rounds, int(size))
	e.Blob, e.Curve = digest, c.curve
	return c.propose(ctx, &e)
}
