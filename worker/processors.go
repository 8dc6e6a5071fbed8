package worker

import (
	"sync"
	"time"
)

// processors says on how many processors goroutines should run. While a worker does nothing but steps,
// which take a fraction of a millisecond, as many as it has slots are enough: with one more idle, each message wakes a
// thread on it that looks for work in vain, which takes longer than a hop from goroutine to goroutine.
// Whatever else it does (trees, folds, set-up, fetching and verifying of shards) has all processors, lest steps wait for it.
type processors struct {
	set       func(n int) // nil: they stay as they are
	few, many int

	mu     sync.Mutex
	least  bool // few is in force
	beside int  // what goes on beside summed units
	ended  time.Time
}

// calmAfter passes without anything else before few is enough: changing the number stops all goroutines for
// some ten microseconds.
const calmAfter = 50 * time.Millisecond

// newProcessors is for so many slots where there are so many processors; they stay as they are where set is
// nil, or where slots are not fewer.
func newProcessors(slots, all int, set func(int)) *processors {
	if slots >= all {
		set = nil
	}
	return &processors{set: set, few: slots, many: all, ended: time.Now()}
}

// begin says that something begins that is no summed unit; end, that it ends.
func (p *processors) begin() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside++
	if p.least {
		p.least = false
		p.set(p.many)
	}
}

func (p *processors) end() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside--
	p.ended = time.Now()
}

// step says that units of a summed round have come.
func (p *processors) step() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.least && p.beside == 0 && time.Since(p.ended) >= calmAfter {
		p.least = true
		p.set(p.few)
	}
}
