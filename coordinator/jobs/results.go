package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// Results implements dispatch.Results on the log and the blob folders.
type Results struct {
	Epoch uint64
	Store Log
	Blobs Blobs

	mu   sync.Mutex
	lost digests.Set // recorded results that no coordinator has any longer; mu guards it
}

// errResultLost says that no coordinator has a recorded result any longer: its job starts again from its last commit and
// computes the task once more, to the same bytes.
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
	entry := protocol.ResultEntry{Epoch: r.Epoch, Job: c.Job, Round: c.Round + 1, Task: c.Task, Of: uint32(of), Digest: c.Digest, Bytes: c.Bytes, Compute: c.Compute, Failed: failed}
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
	for _, target := range []error{state.ErrStaleEpoch, state.ErrStaleRound, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning} {
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
