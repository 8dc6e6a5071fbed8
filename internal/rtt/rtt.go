// Package rtt estimates round trips from samples, as TCP does (RFC 6298): a smoothed
// mean and a smoothed deviation.
package rtt

import (
	"sync"
	"time"
)

// Estimate is what samples of one round trip say. The zero value has none.
type Estimate struct {
	// Mean is the smoothed round trip, Deviation its smoothed mean deviation.
	Mean, Deviation time.Duration
}

// Add takes a sample in.
func (e *Estimate) Add(d time.Duration) {
	if d <= 0 {
		return
	}
	if e.Mean == 0 {
		e.Mean, e.Deviation = d, d/2
		return
	}
	e.Deviation += ((d - e.Mean).Abs() - e.Deviation) / 4
	e.Mean += (d - e.Mean) / 8
}

// Late is the round trip after which an answer is late: the mean and four deviations.
func (e Estimate) Late() time.Duration { return e.Mean + 4*e.Deviation }

// Table has the estimates of several peers by name. All methods may be called
// concurrently.
type Table struct {
	mu    sync.Mutex
	peers map[string]*peer
}

type peer struct {
	Estimate
	last time.Time // when a sample came
}

// Add takes a sample of a peer in.
func (t *Table) Add(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peers == nil {
		t.peers = make(map[string]*peer)
	}
	p := t.peers[name]
	if p == nil {
		p = new(peer)
		t.peers[name] = p
	}
	p.Add(d)
	p.last = time.Now()
}

// Since returns the estimates of the peers that gave a sample within age, and
// forgets the others.
func (t *Table) Since(age time.Duration) map[string]Estimate {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]Estimate)
	for name, p := range t.peers {
		if time.Since(p.last) > age {
			delete(t.peers, name)
			continue
		}
		all[name] = p.Estimate
	}
	return all
}
