package worker

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/protocol"
)

// job is what a worker keeps of a job: all of it can be had again. The worker's
// mutex guards it, but for what is said below.
type job struct {
	id       uint64
	epoch    uint64 // of the latest Setup
	start    uint64 // of it
	spec     *round.Job
	manifest *dataset.Manifest
	ctx      context.Context // ends when the job is forgotten
	cancel   context.CancelFunc

	// Set before ready is closed, and constant afterwards.
	ready   chan struct{}
	failure *failure                            // nil: open is set
	open    *open.Job                           // its shards come when units need them
	kept    atomic.Pointer[engine.DerivedCache] // derived values; may be replaced
	scratch []any                               // by lane; each lane uses its own only

	lacks  int      // number of shards that open has not
	shards []*shard // that it has
	values values
	past   []past // oldest first

	stamp   protocol.Stamp // of the round in work
	begun   bool           // there was one
	pending []bool         // units of the round in work that batches hold
	live    []*batch       // not retired
	idle    []*batch       // retired, for their memory
	units   map[unitKey]*collected

	users     int // batches and tasks; the last one of a forgotten job closes it
	forgotten bool
	used      [laneKinds]time.Duration
	touched   uint64 // when it was last used, by the worker's count of orders
}

func newJob(ctx context.Context, m *protocol.Setup, lanes int, kept *engine.DerivedMemory) *job {
	j := &job{
		id: m.ID, epoch: m.Epoch, start: m.Start, spec: m.Job, manifest: m.Manifest,
		ready: make(chan struct{}), scratch: make([]any, lanes),
		lacks: len(m.Manifest.Shards), values: make(values), units: make(map[unitKey]*collected),
	}
	j.kept.Store(kept.NewCache())
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// anew reports whether the leader that the job is from begins to drive it again:
// its Forget got lost. Under another leader the job stays, and its rounds are told
// apart by the epoch.
func (j *job) anew(m *protocol.Setup) bool {
	if m.Epoch == j.epoch {
		return m.Start > j.start
	}
	j.epoch, j.start = m.Epoch, m.Start
	return false
}

// prepared reports whether the job's set-up is over.
func (j *job) prepared() bool {
	select {
	case <-j.ready:
		return true
	default:
		return false
	}
}

// lost reports whether the set-up failed for a reason that may be gone by now.
func (j *job) lost() bool {
	return j.prepared() && j.failure != nil && !j.failure.permanent
}

// complete reports whether a batch can run at once.
func (j *job) complete(b *batch) bool {
	if !j.prepared() || j.failure != nil {
		return false
	}
	if j.lacks == 0 {
		return true
	}
	for i := range b.run.Units {
		lo, hi := b.shards(i)
		for s := lo; s < hi; s++ {
			if !j.open.Data.HasShard(s) {
				return false
			}
		}
	}
	return true
}

// newer reports whether s is of a later leader, or of a later round under the
// same: then what was asked before is superseded.
func newer(s, than protocol.Stamp) bool {
	return s.Epoch > than.Epoch || s.Epoch == than.Epoch && s.Round > than.Round
}

// admit marks the units of b that nobody computes yet as pending and drops the
// others from b. The rest ascends.
func (j *job) admit(b *batch) {
	slices.Sort(b.run.Units)
	if len(j.pending) != int(b.run.Of) {
		j.pending = make([]bool, b.run.Of)
	}
	b.keep(func(_ int, unit uint32) bool {
		first := !j.pending[unit]
		j.pending[unit] = true
		return first
	})
}

// settle takes the marks of b's units back once they were answered.
func (j *job) settle(b *batch) {
	for _, unit := range b.run.Units {
		j.unmark(b, unit)
	}
}

func (j *job) unmark(b *batch, unit uint32) {
	if b.run.How == round.Sum && b.run.Stamp == j.stamp && int(unit) < len(j.pending) {
		j.pending[unit] = false
	}
}

// begin makes s the job's round in work.
func (j *job) begin(s protocol.Stamp) {
	j.stamp, j.begun = s, true
	clear(j.pending)
}
