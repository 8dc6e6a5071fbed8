package main

import (
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
)

// pulseEvery is the time from one look to the next at whether there is something to show.
const pulseEvery = 500 * time.Millisecond

// pulse shows the progress of a job that this process trains, also while the job tells nothing: a
// tree, or an exact fit, may take minutes.
type pulse struct {
	mu    sync.Mutex // of what follows
	meter *meter
	began time.Time
	last  *round.Progress // nil: the job has told nothing

	over  chan struct{}
	ended sync.WaitGroup
}

// newPulse begins to show.
func newPulse(m *meter) *pulse {
	p := &pulse{meter: m, began: m.now(), over: make(chan struct{})}
	p.ended.Go(p.beat)
	return p
}

func (p *pulse) beat() {
	every := time.NewTicker(pulseEvery)
	defer every.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-every.C:
			p.again()
		}
	}
}

// training shows what the job tells.
func (p *pulse) training(told round.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &told
	p.meter.training(told)
}

// again shows what the job told last.
func (p *pulse) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.meter.show("training for " + duration(p.meter.now().Sub(p.began).Seconds()))
		return
	}
	p.meter.training(*p.last)
}

// stop ends it: nothing is shown after that.
func (p *pulse) stop() {
	close(p.over)
	p.ended.Wait()
}
