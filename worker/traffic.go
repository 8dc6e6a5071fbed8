package worker

import (
	"github.com/coppice-ldl/coppice/metrics"
)

// traffic counts what the connection carries, and has the worker say what it
// holds when the connection comes back: a leader may have changed unheard.
type traffic struct {
	*metrics.Traffic
	w *worker
}

// Reconnected implements bus.Traffic.
func (t *traffic) Reconnected() {
	t.Traffic.Reconnected()
	t.w.beat.full()
	t.w.tell()
}
