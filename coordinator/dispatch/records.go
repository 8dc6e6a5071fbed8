package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// recordEvery is the time between two moments at which short parts are recorded: those
// that came meanwhile share the disk's syncs and the log's messages. A leader that ends
// takes with it what it has not recorded: an interval's work.
const recordEvery = protocol.CommitInterval

// short reports whether a part takes so little to compute again that it may be
// recorded beside the rounds.
func short(part *protocol.Collected) bool {
	return part.Compute > 0 && time.Duration(part.Compute) < recordEvery
}

// records has parts that are here recorded.
type records struct {
	x      *Executor
	ctx    context.Context // of what is recorded beside the rounds
	cancel context.CancelFunc
	began  time.Time
	work   sync.WaitGroup
	behind atomic.Int64 // parts that could not be recorded at once, and are not yet
}

func newRecords(x *Executor) *records {
	r := &records{x: x, began: time.Now()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// end stops recording and waits until nobody does.
func (r *records) end() {
	r.cancel()
	r.work.Wait()
}

// beside has a part recorded, of a round of so many units, that is not waited for
// unless it is behind. The round is told where that can never be.
func (r *records) beside(part *protocol.Collected, of int) {
	r.work.Go(func() {
		wait.For(r.ctx, recordEvery-time.Since(r.began)%recordEvery)
		if err := r.record(r.ctx, part, of); err != nil && r.ctx.Err() == nil {
			r.x.mail.putStored(stored{round: part.Round, unit: part.Unit, err: err})
		}
	})
}

// record records a part, however often it takes. The error is ctx's, or says that the
// part can never be recorded: ErrOver, or that its bytes are here no more.
func (r *records) record(ctx context.Context, part *protocol.Collected, of int) error {
	late := false
	defer func() {
		if late {
			r.behind.Add(-1)
			r.x.mail.wake()
		}
	}()
	for pause := recordPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := r.x.d.cfg.Parts.Record(ctx, part, of)
		if err == nil || errors.Is(err, ErrOver) || errors.Is(err, blobs.ErrMissing) {
			return err
		}
		if !late {
			late = true
			r.behind.Add(1)
		}
		r.x.d.cfg.Log.Warn("the result of a task could not be recorded; recording is tried again", "job", r.x.id, "unit", part.Unit, "error", err)
		wait.For(ctx, pause)
	}
	return ctx.Err()
}
