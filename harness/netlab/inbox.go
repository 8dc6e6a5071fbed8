package netlab

import (
	"container/heap"
	"io"
	"sync"
	"time"
)

// packet is on its way until it is due.
type packet struct {
	bytes []byte
	due   time.Duration
	order uint64 // of those that are due together
}

// packets is a heap: the one that is due first is its first.
type packets []packet

func (p packets) Len() int { return len(p) }
func (p packets) Less(i, j int) bool {
	return p[i].due < p[j].due || p[i].due == p[j].due && p[i].order < p[j].order
}
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *packets) Push(x any)   { *p = append(*p, x.(packet)) }
func (p *packets) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1].bytes = nil
	*p = old[:len(old)-1]
	return last
}

// inbox holds the packets that are on their way to a host and writes each when it is due.
// It is safe for concurrent use.
type inbox struct {
	to    io.Writer
	clock func() time.Duration
	wake  chan struct{} // something came that may be due before what is waited for

	mu    sync.Mutex
	queue packets
	count uint64
}

func newInbox(to io.Writer, clock func() time.Duration) *inbox {
	return &inbox{to: to, clock: clock, wake: make(chan struct{}, 1)}
}

// put takes a copy of a packet.
func (b *inbox) put(bytes []byte, due time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	heap.Push(&b.queue, packet{append([]byte(nil), bytes...), due, b.count})
	if b.queue[0].order == b.count {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// take returns the packets that are due, in order, and how long the next one waits; less
// than 0: there is none.
func (b *inbox) take(due []packet) ([]packet, time.Duration) {
	now := b.clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 && b.queue[0].due <= now {
		due = append(due, heap.Pop(&b.queue).(packet))
	}
	if len(b.queue) == 0 {
		return due, -1
	}
	return due, b.queue[0].due - now
}

// run writes packets until done is closed. A packet that the host does not take is lost.
func (b *inbox) run(done <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var due []packet
	for {
		var wait time.Duration
		due, wait = b.take(due[:0])
		for _, p := range due {
			_, _ = b.to.Write(p.bytes)
		}
		if wait >= 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-done:
			return
		case <-b.wake:
		case <-timer.C:
		}
	}
}
