package worker

import (
	"sync"
	"time"
)

// processors says on how many processors goroutines should run. While a worker computes only tasks
// of reduce rounds, which take a fraction of a millisecond, as many as it has slots are enough. With
// one more that is idle, each message wakes a thread there that looks for work in vain. That takes
// longer than a hop between goroutines. All other work (tasks of gather rounds, opening jobs,
// fetching and verifying shards) has all processors, so that it does not hold up tasks.
type processors struct {
	set       func(n int) // nil if the number does not change
	few, many int

	mu    sync.Mutex // guards what follows
	least bool       // true if few is in force
	other int        // what goes on that is not a task of a reduce round
	ended time.Time  // when such work ended last
}

// calmAfter is how long there must be no other work before few is enough. To change the number
// stops all goroutines for some ten microseconds.
const calmAfter = 50 * time.Millisecond

// newProcessors is for a number of slots and of processors. The number does not change if set is
// nil, or if there are not more processors than slots.
func newProcessors(slots, all int, set func(int)) *processors {
	if slots >= all {
		set = nil
	}
	return &processors{set: set, few: slots, many: all, ended: time.Now()}
}

// begin says that other work begins, and end that it ends. They nest. The worker's stop
// calls begin without end.
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

// backlog does things in the background, in order, and at most limit of them at the same time.
type backlog[T comparable] struct {
	limit   int
	procs   *processors
	work    func(T)
	running *sync.WaitGroup // its goroutines

	mu     sync.Mutex // guards what follows
	queue  []T
	queued map[T]bool // the things in queue
	active int        // goroutines, at most limit
}

// add queues things, unless they are queued already.
func (b *backlog[T]) add(things ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued == nil {
		b.queued = make(map[T]bool)
	}
	for _, x := range things {
		if !b.queued[x] {
			b.queued[x] = true
			b.queue = append(b.queue, x)
		}
	}
	for range min(b.limit-b.active, len(b.queue)) {
		b.active++
		b.running.Go(b.run)
	}
}

// run does what is queued until nothing is.
func (b *backlog[T]) run() {
	b.procs.begin()
	defer b.procs.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		x := b.queue[0]
		b.queue = b.queue[1:]
		delete(b.queued, x)
		b.mu.Unlock()
		b.work(x)
		b.mu.Lock()
	}
	b.active--
}
