// Package referee computes units on a coordinator, with the kernels and the data
// that workers use: it says who is right when two workers' bytes differ, and is
// the second opinion where there is one worker only. It implements
// dispatch.Verifier.
package referee

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/open"
)

// DefaultMemory bounds, in bytes, the decoded shards that a Referee holds.
const DefaultMemory = 1 << 30

// ErrTooLarge says that a unit's shards do not fit into the referee's memory.
var ErrTooLarge = errors.New("the task's shards need more memory than the leader has for verifying workers")

// Blobs is where shards come from.
type Blobs interface {
	// Get returns a blob's bytes, verified.
	Get(ctx context.Context, digest string) ([]byte, error)
}

// Referee computes units, one at a time. What it derives it forgets after each
// unit, so that nothing spoils the next; decoded shards it keeps within Memory.
type Referee struct {
	Blobs  Blobs
	Memory int64 // bytes of shards; 0: DefaultMemory

	id    uint64    // of job
	job   *open.Job // nil: none is open
	bytes int64     // of its shards
}

var _ dispatch.Verifier = (*Referee)(nil)

// Sum implements dispatch.Verifier.
func (r *Referee) Sum(ctx context.Context, c *dispatch.Case, dst *round.Partial) (err error) {
	defer withStack(&err)
	defer engine.Guard(&err, computing)
	u, err := r.prepare(ctx, c)
	if err != nil {
		return err
	}
	kept := engine.NewDerivedCache(engine.DerivedLimit)
	return engine.RunUnit(dst, r.job.Kernel, u, r.job.Data, c.Round.Vars, kept, r.job.Kernel.NewScratch())
}

// Collect implements dispatch.Verifier.
func (r *Referee) Collect(ctx context.Context, c *dispatch.Case) (part []byte, err error) {
	defer withStack(&err)
	defer engine.Guard(&err, computing)
	u, err := r.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	child := func(ctx context.Context, j *round.Job) ([]byte, error) {
		return local.Child(ctx, r.job, j, local.Options{})
	}
	return engine.RunCollected(ctx, r.job.Kernel, u, r.job.Data, c.Round.Vars, child, r.job.Kernel.NewScratch())
}

const computing = "computing the task"

// withStack adds the stack of a panic to the error that it became: the leader logs it.
func withStack(err *error) {
	if stack := engine.PanicStack(*err); stack != "" {
		*err = fmt.Errorf("%w\n%s", *err, stack)
	}
}

// prepare brings the job and the shards of a unit to hand. Another job before it is given
// up.
func (r *Referee) prepare(ctx context.Context, c *dispatch.Case) (u round.Unit, err error) {
	if r.job == nil || r.id != c.ID {
		r.id, r.bytes = c.ID, 0
		r.job, err = open.Open(c.Job, c.Manifest, func(digest string, _ int64) ([]byte, error) { return r.Blobs.Get(ctx, digest) })
		if err != nil {
			return u, err
		}
	}
	u = c.Round.Unit(c.Unit)
	lo, hi := u.Shards(len(c.Manifest.Shards))
	if c.Round.Child != nil {
		lo, hi = 0, len(c.Manifest.Shards)
	}
	return u, r.load(ctx, c.Manifest, lo, hi)
}

// load decodes the shards [lo, hi) that are not there yet; where they would not fit
// beside the others, those go.
func (r *Referee) load(ctx context.Context, m *dataset.Manifest, lo, hi int) error {
	limit, need, all := r.Memory, int64(0), int64(0)
	if limit == 0 {
		limit = DefaultMemory
	}
	for s := lo; s < hi; s++ {
		all += m.Shards[s].Bytes
		if !r.job.Data.HasShard(s) {
			need += m.Shards[s].Bytes
		}
	}
	if all > limit {
		return fmt.Errorf("%w: the shards need %s, want at most %s", ErrTooLarge, units.Format(all), units.Format(limit))
	}
	if r.bytes+need > limit {
		for s := range m.Shards {
			r.job.Data.SetShard(s, nil)
		}
		r.bytes = 0
	}
	for s := lo; s < hi; s++ {
		if !r.job.Data.HasShard(s) {
			if err := r.loadShard(ctx, m, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Referee) loadShard(ctx context.Context, m *dataset.Manifest, s int) error {
	b, err := r.Blobs.Get(ctx, m.Shards[s].Digest)
	if err != nil {
		return fmt.Errorf("shard %d: %w", s, err)
	}
	rows, _, err := dataset.DecodeShard(b)
	if err == nil {
		_, err = r.job.AddShard(s, rows)
	}
	if err != nil {
		return fmt.Errorf("shard %d: %w", s, err)
	}
	r.bytes += m.Shards[s].Bytes
	return nil
}
