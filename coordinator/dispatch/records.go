package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// recordEvery is the time between two moments at which parts are recorded: those that
// came meanwhile share the disk's syncs and the log's messages. A leader that ends takes
// with it what it has not recorded; the workers that made those parts still have them.
const recordEvery = protocol.CommitInterval

// records has parts that are here recorded, beside the rounds of their job.
type records struct {
	x      *Executor
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	work   sync.WaitGroup
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

// add has a part recorded, of a round of so many units.
func (r *records) add(part *protocol.Collected, of int) {
	r.work.Go(func() {
		for wait := recordPause; ; wait = min(2*wait, longestPause) {
			pause(r.ctx, recordEvery-time.Since(r.began)%recordEvery)
			if r.once(part, of) {
				return
			}
			pause(r.ctx, wait)
		}
	})
}

// once tries to record a part and reports whether that is over. Where no part of the
// round can be any more, the round is told, unless it has ended.
func (r *records) once(part *protocol.Collected, of int) (over bool) {
	if r.ctx.Err() != nil {
		return true
	}
	err := r.x.d.cfg.Parts.Record(r.ctx, part, of)
	switch {
	case err == nil || r.ctx.Err() != nil:
		return true
	case errors.Is(err, ErrOver):
		r.x.mail.putStored(stored{round: part.Round, unit: part.Unit, err: err})
		return true
	}
	r.x.d.cfg.Log.Warn("a part could not be recorded and is tried again", "job", r.x.id, "unit", part.Unit, "error", err)
	return false
}
