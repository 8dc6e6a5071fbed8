package worker

import (
	"context"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// fullEvery is how many beats pass between two full ones when nothing happens:
	// a full beat may get lost.
	fullEvery = 20
	// fullGap is the least time between two full beats, in parts of a heartbeat:
	// a worker that fetches a thousand shards does not send a thousand lists.
	fullGap = 4
)

// pulse publishes a worker's heartbeats.
type pulse struct {
	kick chan struct{} // one token: something changed, beat full soon
	beat protocol.Beat
	buf  []byte
}

func newPulse() *pulse { return &pulse{kick: make(chan struct{}, 1)} }

// full asks for a full beat soon. It never blocks.
func (p *pulse) full() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// run beats at every interval, and full soon after a kick, until ctx is done.
func (p *pulse) run(ctx context.Context, every time.Duration, w *worker) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var gap <-chan time.Time // runs after a full beat
	kick := p.kick
	for n := 0; ; n++ {
		full := n%fullEvery == 0
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-kick:
			full = true
		case <-gap:
			gap, kick = nil, p.kick
			n--
			continue
		}
		if full {
			kick, gap = nil, time.After(every/fullGap)
		}
		p.send(w, full, false)
	}
}

// inWork returns how many units the worker computes now.
func (w *worker) inWork() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy
}

// from returns the address from which the worker is connected; empty: it is not.
func (w *worker) from() string {
	if s := w.session.Load(); s != nil {
		return s.conn.LocalAddress()
	}
	return ""
}

// send publishes one beat.
func (p *pulse) send(w *worker, full, leaving bool) {
	p.beat = protocol.Beat{
		Worker: w.id, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Slots: w.cfg.Slots, Metrics: w.address, Leaving: leaving, Full: full, Busy: w.inWork(), Pieces: true, Bundles: true,
		Problem: w.disk.trouble(),
	}
	if trip := w.trip.Load(); trip != nil {
		p.beat.RoundTrip, p.beat.Late = max(1, trip.Mean.Microseconds()), max(1, trip.Late().Microseconds())
	}
	if full {
		p.beat.Holds, _ = w.cache.holdings()
		p.beat.Host, p.beat.Load, p.beat.Address = machine.Name(), machine.Load(), w.from()
	}
	p.buf = p.beat.Append(p.buf[:0])
	w.send(w.subjects().Beats(), p.buf)
}
