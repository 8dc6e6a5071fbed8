package worker

import (
	"sync"
	"time"
)

// processors says on how many processors goroutines should run. While a worker computes only tasks of reduce rounds, which
// take a fraction of a millisecond, as many as it has slots are enough. With one more that is idle, each message wakes a
// thread there that looks for work in vain, which takes longer than a hop between goroutines. All other work (tasks of
// gather rounds, opening jobs, fetching and verifying shards) has all processors, so that it does not hold up tasks.
type processors struct {
	set       func(n int) // nil if the number does not change
	few, many int

	mu    sync.Mutex // guards what follows
	least bool       // true if few is in force
	other int        // what goes on that is not a task of a reduce round
	ended time.Time  // when such work ended last
}

// calmAfter is how long there must be no other work before few is enough. To change the number stops all goroutines for
// some ten microseconds.
const calmAfter = 50 * time.Millisecond

// newProcessors is for a number of slots and of processors. The number does not change if set is nil, or if there are not
// more processors than slots.
func newProcessors(slots, all int, set func(int)) *processors {
	if slots >= all {
		set = nil
	}
	return &processors{set: set, few: slots, many: all, ended: time.Now()}
}

// begin says that other work begins, and end that it ends.
func (p *processors) begin() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.other++
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
	p.other--
	p.ended = time.Now()
}

// step says that tasks of a reduce round have come.
func (p *processors) step() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.least && p.other == 0 && time.Since(p.ended) >= calmAfter {
		p.least = true
		p.set(p.few)
	}
}
