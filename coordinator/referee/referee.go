// Package referee computes units on a coordinator, with the kernels and the data
// that workers use: it says who is right when two workers' bytes differ, and is
// the second opinion where there is one worker only. It implements
// dispatch.Referee.
package referee

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/internal/local"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/round"
)

// DefaultMemory bounds, in bytes, the decoded shards that a Referee holds.
const DefaultMemory = 1 << 30

// ErrTooLarge says that a unit's shards do not fit into the referee's memory.
var ErrTooLarge = errors.New("the unit's shards are larger than the memory that the leader gives to checking a worker")

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

	job    uint64
	kernel round.Kernel
	data   *dataset.Data
	folds  []uint16 // of rows, where the split lists them
	bytes  int64    // of the shards in data
}

var _ dispatch.Referee = (*Referee)(nil)

// Sum implements dispatch.Referee.
func (r *Referee) Sum(ctx context.Context, c *dispatch.Case, dst *round.Partial) (err error) {
	defer caught(&err)
	u, err := r.prepare(ctx, c)
	if err != nil {
		return err
	}
	kept := engine.NewDerivedCache(engine.DerivedLimit)
	return engine.RunUnit(dst, r.kernel, u, r.data, c.Round.Vars, kept, r.kernel.NewScratch())
}

// Collect implements dispatch.Referee.
func (r *Referee) Collect(ctx context.Context, c *dispatch.Case) (part []byte, err error) {
	defer caught(&err)
	u, err := r.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	child := func(ctx context.Context, j *round.Job) ([]byte, error) {
		return local.Child(ctx, j, r.whole(c.Manifest), local.Options{})
	}
	return engine.RunCollected(ctx, r.kernel, u, r.data, c.Round.Vars, child, r.kernel.NewScratch())
}

// caught turns a kernel's panic into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("computing the unit panicked: %v\n%s", p, debug.Stack())
	}
}

// prepare brings the kernel and the shards of a unit to hand.
func (r *Referee) prepare(ctx context.Context, c *dispatch.Case) (u round.Unit, err error) {
	if r.kernel == nil || r.job != c.ID {
		if err := r.take(ctx, c); err != nil {
			r.kernel = nil
			return u, err
		}
	}
	u = c.Round.Unit(c.Unit)
	lo, hi := u.Shards(len(c.Manifest.Shards))
	if c.Round.Children != nil {
		lo, hi = 0, len(c.Manifest.Shards)
	}
	return u, r.load(ctx, c.Manifest, lo, hi)
}

// take makes the kernel of a job and forgets the one before.
func (r *Referee) take(ctx context.Context, c *dispatch.Case) (err error) {
	r.job, r.kernel, r.folds, r.bytes = c.ID, nil, nil, 0
	if digest := c.Job.Split.Assigned; digest != "" {
		b, err := r.Blobs.Get(ctx, digest)
		if err != nil {
			return fmt.Errorf("the folds of rows: %w", err)
		}
		if r.folds, err = c.Job.Split.Decode(b, c.Manifest.Rows); err != nil {
			return err
		}
	}
	roles, err := c.Job.Split.Assign(c.Manifest.Rows, r.folds)
	if err != nil {
		return err
	}
	r.data = dataset.NewData(c.Manifest, roles)
	r.kernel, err = pipeline.NewKernel(c.Job, c.Manifest)
	return err
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
		if !r.data.HasShard(s) {
			need += m.Shards[s].Bytes
		}
	}
	if all > limit {
		return fmt.Errorf("%w: %s, of %s", ErrTooLarge, units.Format(all), units.Format(limit))
	}
	if r.bytes+need > limit {
		for s := range m.Shards {
			r.data.SetShard(s, nil)
		}
		r.bytes = 0
	}
	for s := lo; s < hi; s++ {
		if !r.data.HasShard(s) {
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
		err = m.CheckShard(s, rows)
	}
	if err != nil {
		return fmt.Errorf("shard %d: %w", s, err)
	}
	r.data.SetShard(s, rows)
	r.bytes += m.Shards[s].Bytes
	return nil
}

// whole is the job's dataset, every shard of which is at hand.
func (r *Referee) whole(m *dataset.Manifest) *local.Data {
	d := &local.Data{Manifest: m, Assigned: r.folds}
	for s := range m.Shards {
		d.Shards = append(d.Shards, r.data.Shard(s))
	}
	return d
}
