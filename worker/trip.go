package worker

import (
	"context"
	"time"

	"github.com/coppice-ldl/coppice/internal/rtt"
)

// How often the round trip to the NATS server is measured, and how long one measurement
// may take.
const (
	tripEvery  = time.Second
	tripAtMost = 2 * time.Second
)

// measure measures the round trip to the session's NATS server until the session ends.
func (w *worker) measure(s *session) {
	w.trip.Store(nil)
	tick := time.NewTicker(tripEvery)
	defer tick.Stop()
	var e rtt.Estimate
	for {
		ctx, cancel := context.WithTimeout(s.ctx, tripAtMost)
		d, err := s.conn.RTT(ctx)
		cancel()
		if err == nil {
			e.Add(d)
			now := e
			w.trip.Store(&now)
			w.metrics.RoundTrip.Set(e.Mean.Seconds())
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
