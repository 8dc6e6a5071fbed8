package dispatch

import (
	"maps"
	"time"

	"github.com/coppice-ldl/coppice/metrics"
)

// mostCompute bounds what is believed of a worker that says how long it computed.
const mostCompute = 30 * 24 * time.Hour

// computeTime is what a worker says that it computed, in nanoseconds.
func computeTime(ns uint64) time.Duration { return time.Duration(min(ns, uint64(mostCompute))) }

// paces are the recent seconds of a unit, by kind.
type paces struct {
	mean  map[string]float64
	total map[string]float64 // seconds, of all units
}

// The bound of kinds, and the weight of a new time in the mean.
const (
	maxPaces   = 16
	paceWeight = 0.125
)

// add takes in that a unit took so many seconds, or several on average.
func (p *paces) add(kind string, units int, seconds float64) {
	if p.mean == nil {
		p.mean, p.total = make(map[string]float64), make(map[string]float64)
	}
	if kind == "" {
		kind = metrics.Other
	}
	was, known := p.mean[kind]
	switch {
	case known:
		p.mean[kind] = was + paceWeight*(seconds-was)
	case len(p.mean) < maxPaces:
		p.mean[kind] = seconds
	default:
		return
	}
	p.total[kind] += float64(units) * seconds
}

// main returns the kind that most time went into; empty: there is none.
func (p *paces) main() (kind string) {
	for k, seconds := range p.total {
		if kind == "" || seconds > p.total[kind] || seconds == p.total[kind] && k < kind {
			kind = k
		}
	}
	return kind
}

// worked counts units of the round that a worker says it computed in all that time.
func (x *Executor) worked(id string, units int, compute uint64) {
	d, took := x.d, computeTime(compute)
	units = max(1, units)
	mean := took.Seconds() / float64(units)
	d.cfg.Metrics.Compute.Observe(took.Seconds())
	d.cfg.Metrics.UnitSeconds.Observe(x.r.Kind, mean)
	now := time.Now()
	d.mu.Lock()
	w := d.crew.workers[id]
	if w == nil {
		id = metrics.Other
	} else {
		w.units += uint64(units)
		w.result = now
		w.paces.add(x.r.Kind, units, mean)
	}
	d.mu.Unlock()
	d.cfg.Metrics.Shares.Add(id, units, took, now)
}

// forgetShares drops the series of workers that are gone.
func (d *Dispatcher) forgetShares(now time.Time) {
	d.cfg.Metrics.Shares.Expire(func(id string) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.crew.workers[id] != nil
	}, now)
}

// unitSeconds returns the worker's paces for people.
func (w *worker) unitSeconds() map[string]float64 { return maps.Clone(w.paces.mean) }
