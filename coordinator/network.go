package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/protocol"
)

// trip is the round trip to another process.
type trip struct {
	to   string // "coordinator b", "worker w1"
	mean time.Duration
}

// trips lists the round trips, the longest first.
func trips(coordinators map[string]rtt.Estimate, workers []protocol.Worker) []trip {
	var list []trip
	for id, e := range coordinators {
		list = append(list, trip{"coordinator " + id, e.Mean})
	}
	for _, w := range workers {
		list = append(list, trip{"worker " + w.ID, time.Duration(w.RoundTrip * float64(time.Millisecond))})
	}
	slices.SortFunc(list, func(a, b trip) int {
		return cmp.Or(cmp.Compare(b.mean, a.mean), cmp.Compare(a.to, b.to))
	})
	return list
}

// networkVerdict says, where the longest round trip is too long for the timeouts, which
// heartbeat would suit it, and that in a sentence; else neither.
func networkVerdict(list []trip, t *protocol.Timeouts) (needed time.Duration, text string) {
	if len(list) == 0 || t.Suits(list[0].mean) {
		return 0, ""
	}
	longest := list[0]
	text = fmt.Sprintf("the round trip to %s takes %d ms, more than a third of the election timeout (%v)", longest.to, longest.mean.Milliseconds(), t.RaftElection)
	needed = protocol.HeartbeatFor(longest.mean)
	if needed == 0 {
		return longest.mean, text + fmt.Sprintf(": that is too long even for the largest --heartbeat, %v", protocol.MaxHeartbeat)
	}
	return needed, text + fmt.Sprintf(": start every coordinator with --heartbeat %v", needed)
}

// network is what a coordinator remembers of its verdicts.
type network struct {
	slow bool      // the log says so
	told time.Time // when it was logged last
	well time.Time // since when nothing is slow; zero: it is
}

const (
	// tellAgain is how often a verdict that stays is logged.
	tellAgain = 10 * time.Minute
	// wellFor is for how long nothing is slow before the log says so: round trips may be about
	// as long as they may be.
	wellFor = 30 * time.Second
)

// news takes a verdict in and reports what the log should say: that it is slow, or that it
// is not any more.
func (w *network) news(slow bool, now time.Time) (warn, inform bool) {
	switch {
	case slow:
		w.well = time.Time{}
		warn = !w.slow || now.Sub(w.told) > tellAgain
	case w.slow && w.well.IsZero():
		w.well = now
	case w.slow:
		inform = now.Sub(w.well) >= wellFor
	}
	if warn {
		w.told = now
	}
	w.slow = (w.slow || warn) && !inform
	return warn, inform
}

// observeNetwork looks at the round trips, sets their metrics and says, in the log and
// wherever warning is shown, what does not suit.
func (n *node) observeNetwork(w *network) {
	coordinators := n.store.RoundTrips()
	n.metrics.RaftRoundTrip.Reset()
	for id, e := range coordinators {
		n.metrics.RaftRoundTrip.WithLabelValues(id).Set(e.Mean.Seconds())
	}
	var workers []protocol.Worker
	if d := n.leading.Load(); d != nil {
		workers = d.Workers()
	}
	needed, text := networkVerdict(trips(coordinators, workers), &n.cfg.timeouts)
	n.metrics.Heartbeat.Set(n.cfg.Heartbeat.Seconds())
	n.metrics.HeartbeatNeeded.Set(needed.Seconds())
	n.slow.Store(&text)
	switch warn, inform := w.news(text != "", time.Now()); {
	case warn:
		n.cfg.Log.Warn("the network is too slow for the timeouts: leaders may change and tasks may be computed twice", "reason", text)
	case inform:
		n.cfg.Log.Info("the network is fast enough for the timeouts again")
	}
}

// warning says what does not suit, though this coordinator can lead and serve; empty:
// nothing.
func (n *node) warning() string {
	list := n.store.Guests()
	if text := n.slow.Load(); text != nil && *text != "" {
		list = append(list, *text)
	}
	return strings.Join(list, "; ")
}
