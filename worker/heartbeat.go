package worker

import (
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// fullEvery is the number of heartbeats from one full one to the next if nothing happens. A
	// full one may get lost.
	fullEvery = 20
	// fullGap is the least time between two full heartbeats, as a fraction 1/fullGap of the
	// interval. A worker that fetches a thousand shards does not send a thousand lists.
	fullGap = 4
)

// heartbeat tells all coordinators that the worker is there. A full heartbeat also says what the
// worker holds.
type heartbeat struct {
	*env
	http  string // the address of the worker's HTTP server, or empty
	jobs  *jobs
	cache *cache
	disk  *folderWatch
	kick  chan struct{} // one token: send a full one soon

	beat protocol.Heartbeat // memory of send
	buf  []byte
}

// full asks for a full heartbeat soon. It never blocks.
func (h *heartbeat) full() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// run sends heartbeats until the session ends.
func (h *heartbeat) run(s *session) {
	every := heartbeatOf(s.cluster)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var gap <-chan time.Time // runs after a full heartbeat
	kick := h.kick
	for n := 0; ; n++ {
		full := n%fullEvery == 0
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		case <-kick:
			full = true
		case <-gap:
			gap, kick = nil, h.kick
			n--
			continue
		}
		if full {
			kick, gap = nil, time.After(every/fullGap)
		}
		h.send(s, full, false)
	}
}

// send sends one heartbeat. One goroutine at a time calls it.
func (h *heartbeat) send(s *session, full, leaving bool) {
	h.beat = protocol.Heartbeat{
		Worker: h.id, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Slots: h.cfg.Slots, Metrics: h.http, Leaving: leaving, Full: full, Busy: int(h.jobs.busy.Load()), Chunks: true, Bundles: true,
		Problem: h.disk.trouble(),
	}
	if trip := h.link.roundTrip.Load(); trip != nil {
		h.beat.RoundTrip, h.beat.Late = max(1, trip.Mean.Microseconds()), max(1, trip.Late().Microseconds())
	}
	if full {
		h.beat.Holds, _ = h.cache.holdings()
		h.beat.Host, h.beat.Load, h.beat.Address = machine.Name(), machine.Load(), s.conn.LocalAddress()
	}
	h.buf = h.beat.Append(h.buf[:0])
	h.link.send(s.subjects.Heartbeats(), h.buf)
}
