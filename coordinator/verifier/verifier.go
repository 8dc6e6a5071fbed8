// Package verifier computes tasks on a coordinator, with the kernels and the data that workers use. It decides if the
// results of two workers differ, and is the second computer if there is one worker. It implements dispatch.Verifier.
package verifier

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

// DefaultMemory bounds, in bytes, the decoded shards that a Verifier holds.
const DefaultMemory = 1 << 30

// ErrTooLarge says that a task's shards do not fit into the verifier's memory.
var ErrTooLarge = errors.New("the task's shards need more memory than the leader has for verifying workers")

// Blobs has the shards.
type Blobs interface {
	// Get returns a blob's bytes, verified.
	Get(ctx context.Context, digest string) ([]byte, error)
}

// Verifier computes tasks, one at a time. It forgets derived values after each task, so that nothing spoils the next.
// It keeps decoded shards within Memory.
type Verifier struct {
	Blobs  Blobs
	Memory int64 // bytes of shards; 0: DefaultMemory

	id    uint64    // of job
	job   *open.Job // nil: none is open
	bytes int64     // of its shards
}

var _ dispatch.Verifier = (*Verifier)(nil)

// Reduce implements dispatch.Verifier.
func (v *Verifier) Reduce(ctx context.Context, c *dispatch.Case, dst *round.Partial) (err error) {
	defer withStack(&err)
	defer engine.Guard(&err, computing)
	u, err := v.prepare(ctx, c)
	if err != nil {
		return err
	}
	kept := engine.NewDerivedCache(engine.DerivedLimit)
	return engine.RunTask(dst, v.job.Kernel, u, v.job.Data, c.Round.Vars, kept, v.job.Kernel.NewScratch())
}

// Gather implements dispatch.Verifier.
func (v *Verifier) Gather(ctx context.Context, c *dispatch.Case) (part []byte, err error) {
	defer withStack(&err)
	defer engine.Guard(&err, computing)
	u, err := v.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	child := func(ctx context.Context, j *round.Job) ([]byte, error) {
		return local.SubJob(ctx, v.job, j, local.Options{})
	}
	return engine.RunGather(ctx, v.job.Kernel, u, v.job.Data, c.Round.Vars, child, v.job.Kernel.NewScratch())
}

const computing = "computing the task"

// withStack adds the stack of a panic to the error that it became: the leader logs it.
func withStack(err *error) {
	if stack := engine.PanicStack(*err); stack != "" {
		*err = fmt.Errorf("%w\n%s", *err, stack)
	}
}

// prepare opens the job of a task and loads its shards. Another job is closed.
func (v *Verifier) prepare(ctx context.Context, c *dispatch.Case) (u round.Task, err error) {
	if v.job == nil || v.id != c.ID {
		v.id, v.bytes = c.ID, 0
		v.job, err = open.Open(c.Job, c.Manifest, func(digest string, _ int64) ([]byte, error) {
			return v.Blobs.Get(ctx, digest)
		})
		if err != nil {
			return u, err
		}
	}
	u = c.Round.Task(c.Task)
	lo, hi := u.Shards(len(c.Manifest.Shards))
	if u.SubJob != nil {
		lo, hi = 0, len(c.Manifest.Shards)
	}
	return u, v.load(ctx, c.Manifest, lo, hi)
}

// load decodes the shards [lo, hi) that are not loaded yet. If they do not fit with the others, the others are dropped.
func (v *Verifier) load(ctx context.Context, m *dataset.Manifest, lo, hi int) error {
	limit, need, all := v.Memory, int64(0), int64(0)
	if limit == 0 {
		limit = DefaultMemory
	}
	for s := lo; s < hi; s++ {
		all += m.Shards[s].Bytes
		if !v.job.Data.HasShard(s) {
			need += m.Shards[s].Bytes
		}
	}
	if all > limit {
		return fmt.Errorf("%w: the shards need %s, want at most %s", ErrTooLarge, units.Format(all), units.Format(limit))
	}
	if v.bytes+need > limit {
		for s := range m.Shards {
			v.job.Data.SetShard(s, nil)
		}
		v.bytes = 0
	}
	for s := lo; s < hi; s++ {
		if v.job.Data.HasShard(s) {
			continue
		}
		b, err := v.Blobs.Get(ctx, m.Shards[s].Digest)
		if err == nil {
			var rows *dataset.Rows
			if rows, err = dataset.DecodeShard(b); err == nil {
				_, err = v.job.AddShard(s, rows)
			}
		}
		if err != nil {
			return fmt.Errorf("shard %d: %w", s, err)
		}
		v.bytes += m.Shards[s].Bytes
	}
	return nil
}
