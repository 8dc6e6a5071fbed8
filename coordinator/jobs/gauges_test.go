package jobs

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
)

// gathered reads the gauges of jobs by their name.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			if len(m.Label) == 1 && m.Label[0].GetName() == "name" {
				found[f.GetName()] = m.Gauge.GetValue()
			}
		}
	}
	return found
}

// TestGauges: what is not known has no series, and nothing is above its end.
func TestGauges(t *testing.T) {
	reg := prometheus.NewRegistry()
	g := newGauges(metrics.NewCoordinator(reg), "job")
	now := time.UnixMilli(1_700_000_000_250)
	for _, loss := range []float64{-1, math.NaN(), math.Inf(1)} {
		g.set(round.Progress{Step: 3, Loss: loss}, now)
	}
	got := gathered(t, reg)
	if len(got) != 2 || got["coppice_job_steps"] != 3 || got["coppice_job_last_progress_timestamp_seconds"] != 1_700_000_000.25 {
		t.Errorf("at first there are %v", got)
	}
	g.set(round.Progress{Step: 30, Steps: 20, Loss: 0.5}, now)
	if got = gathered(t, reg); got["coppice_job_progress_ratio"] != 1 || got["coppice_job_loss"] != 0.5 {
		t.Errorf("then there are %v", got)
	}
}

// TestPresentable: what people are shown can be written as JSON.
func TestPresentable(t *testing.T) {
	for _, loss := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		p := presentable(round.Progress{Step: 7, Loss: loss})
		if b, err := json.Marshal(p); err != nil || p.Loss != -1 || p.Step != 7 {
			t.Errorf("%v is shown as %s, %v", loss, b, err)
		}
	}
}
