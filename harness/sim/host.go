package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// host is one life of a process: from its start until it is killed. What a killed
// process still does reaches nobody.
type host struct {
	name string
	dead chan struct{} // closed by kill

	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil: it runs
}

func newHost(name string) *host { return &host{name: name, dead: make(chan struct{})} }

// pass waits while the process is frozen and reports whether it still lives.
func (h *host) pass() bool {
	h.mu.Lock()
	frozen := h.frozen
	h.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-h.dead:
		}
	}
	return h.alive()
}

func (h *host) alive() bool {
	select {
	case <-h.dead:
		return false
	default:
		return true
	}
}

// runs reports whether the process lives and is not frozen.
func (h *host) runs() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.frozen == nil && h.alive()
}

func (h *host) freeze() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen == nil {
		h.frozen = make(chan struct{})
	}
}

func (h *host) thaw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen != nil {
		close(h.frozen)
		h.frozen = nil
	}
}

func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.dead:
	default:
		close(h.dead)
	}
}

// dice is a stream of random numbers for one purpose, so that what one part draws
// does not depend on when the others draw.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64, purpose string) *dice {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return &dice{r: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// chance reports true with probability p.
func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64() < p
}

// between draws a time from [lo, hi).
func (d *dice) between(lo, hi time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return lo + time.Duration(d.r.Int64N(int64(hi-lo)))
}

// n draws an integer from [0, n).
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}
