package jobs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
)

// gauges are the series of one running job. They are gone once it has ended: what is
// set then nobody sees.
type gauges struct {
	all  *metrics.Coordinator
	name string

	steps, moved   prometheus.Gauge
	progress, loss prometheus.Gauge // nil until it is known
}

func newGauges(all *metrics.Coordinator, name string) *gauges {
	return &gauges{all: all, name: name, steps: all.JobSteps.WithLabelValues(name), moved: all.Moved.WithLabelValues(name)}
}

// set shows how far the job is, and that it has just moved.
func (g *gauges) set(p round.Progress, now time.Time) {
	g.steps.Set(float64(p.Step))
	g.moved.Set(float64(now.UnixMilli()) / 1000)
	if p.Steps > 0 {
		if g.progress == nil {
			g.progress = g.all.Progress.WithLabelValues(g.name)
		}
		g.progress.Set(min(1, float64(p.Step)/float64(p.Steps)))
	}
	if p = presentable(p); p.Loss >= 0 {
		if g.loss == nil {
			g.loss = g.all.Loss.WithLabelValues(g.name)
		}
		g.loss.Set(p.Loss)
	}
}
