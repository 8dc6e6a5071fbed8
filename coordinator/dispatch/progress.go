package dispatch

import (
	"context"
	"math"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// Watcher is told how far the units of collected rounds are. All but Read is called by
// the goroutine that calls Do.
type Watcher interface {
	// Begin is told of a round that begins.
	Begin(r *round.Round)
	// Read reads off the bytes of a unit how far it is. It may be called concurrently;
	// false: they do not tell.
	Read(part []byte) (round.Progress, bool)
	// Have is told that the result of a unit is here; before: it was recorded before
	// this round began here. Progress is nil where it is not known (yet).
	Have(unit int, p *round.Progress, before bool)
	// NotRun is told that a unit has ended without a result.
	NotRun(unit int)
	// Report is told what a worker says of a unit's child job.
	Report(m *protocol.Progress)
	// Look is called now and then.
	Look(now time.Time)
}

// unwatched is the Watcher of a job that has none.
type unwatched struct{}

func (unwatched) Begin(*round.Round)                     {}
func (unwatched) Read([]byte) (p round.Progress, _ bool) { return p, false }
func (unwatched) Have(int, *round.Progress, bool)        {}
func (unwatched) NotRun(int)                             {}
func (unwatched) Report(*protocol.Progress)              {}
func (unwatched) Look(time.Time)                         {}

// Live is how far a job is that this leader drives, beyond what is committed.
type Live struct {
	Units    int // of the collected round under way, or of the last one
	InFlight int // of them, that workers compute just now
	// Left is how many seconds the collected round takes still where all slots of the workers compute it, as
	// estimated from the units of each group that have ended; 0: not known.
	Left float64
	// Progress is nil where the committed one is all there is to tell.
	Progress *round.Progress
}

// shown is what Show was told last.
type shown struct {
	units    int
	progress round.Progress
}

// Show makes known how far the job is, of whose round there are so many units.
func (x *Executor) Show(units int, p round.Progress) { x.shown.Store(&shown{units, p}) }

// Live tells how far a job is, where this leader drives it.
func (d *Dispatcher) Live(job uint64) (live Live, ok bool) {
	d.mu.Lock()
	x := d.jobs[job]
	d.mu.Unlock()
	if x == nil {
		return Live{}, false
	}
	live.InFlight, live.Left = int(x.inFlight.Load()), math.Float64frombits(x.left.Load())
	if s := x.shown.Load(); s != nil {
		p := s.progress
		live.Units, live.Progress = s.units, &p
	}
	return live, true
}

// onProgress takes in how far a child job is, from a worker that has the unit.
func (c *collection) onProgress(msg []byte) {
	x := c.x
	var m protocol.Progress
	if m.Decode(msg) != nil || int(m.Unit) >= len(x.units) || x.r.Child == nil {
		x.drop(metrics.DropMisshapen)
		return
	}
	u := &x.units[m.Unit]
	if m.Round != x.round || !x.d.trusts(m.Worker) {
		x.drop(metrics.DropStale)
		return
	}
	if u.state == running && u.seatOf(m.Worker) != nil {
		x.watch.Report(&m)
	}
}

// readRecorded reads off the parts that were recorded before how far their units are.
func (c *collection) readRecorded(ctx context.Context) {
	x, round := c.x, c.x.round
	recorded := make(map[int]digests.Digest)
	for u, d := range c.digests {
		if d != (digests.Digest{}) {
			recorded[u] = d
		}
	}
	if len(recorded) == 0 {
		return
	}
	c.fetches.Go(func() {
		for u, d := range recorded {
			part, err := x.d.cfg.Parts.Load(ctx, d.String())
			if err != nil { // the end of the round says so
				continue
			}
			if p, ok := x.watch.Read(part); ok {
				x.mail.putStored(stored{round: round, unit: uint32(u), before: &p})
			}
		}
	})
}
