package worker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/metrics"
)

// drops counts messages that are not obeyed.
type drops struct {
	epoch     prometheus.Counter // of a leader of before
	late      prometheus.Counter // of a round of before
	malformed prometheus.Counter
}

func newDrops(m *metrics.Worker) drops {
	reason := m.OrdersDropped.WithLabelValues
	return drops{epoch: reason("leader_epoch"), late: reason("late"), malformed: reason("malformed")}
}
