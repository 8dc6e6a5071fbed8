package netlab

import (
	"container/heap"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// Link is one direction between two hosts: a queue, a transmitter of some rate and a
// wire. It has no clock; times count from any one moment and never go back from call to
// call. A Link is not safe for concurrent use.
type Link struct {
	settings Settings
	seed     uint64
	number   uint64        // packets so far
	free     time.Duration // when the transmitter has sent all that waits
	last     time.Duration // when the last packet arrives
}

// NewLink makes a link.
func NewLink(s Settings, seed uint64) *Link { return &Link{settings: s, seed: seed} }

// Pass takes a packet of so many bytes at a time and returns when it arrives: once,
// twice where it is doubled, or never. arrivals[:n] may be in any order.
func (l *Link) Pass(now time.Duration, size int) (arrivals [2]time.Duration, n int) {
	d := l.settings.draw(l.seed, l.number)
	l.number++
	copies := 1
	if d.doubled {
		copies = 2
	}
	for i := range copies {
		sent, ok := l.transmit(now, size)
		if ok && !d.lost {
			arrivals[n] = l.arrival(sent, d.jitter[i])
			n++
		}
	}
	return arrivals, n
}

// transmit returns when the last bit of a packet is on the wire; false: the queue is full.
func (l *Link) transmit(now time.Duration, size int) (sent time.Duration, ok bool) {
	if l.settings.Rate == 0 {
		return now, true
	}
	start := max(now, l.free)
	if l.waiting(now)+float64(size) > queueBytes {
		return 0, false
	}
	l.free = start + time.Duration(float64(size)*8/float64(l.settings.Rate)*float64(time.Second))
	return l.free, true
}

// waiting returns the bytes that are not on the wire yet.
func (l *Link) waiting(now time.Duration) float64 {
	return max(l.free-now, 0).Seconds() * float64(l.settings.Rate) / 8
}

// arrival returns when a packet arrives that was on the wire at a time. Packets never overtake
// each other.
func (l *Link) arrival(sent, jitter time.Duration) time.Duration {
	l.last = max(sent+l.settings.RTT/2+jitter, l.last)
	return l.last
}

// draw is what chance decides of one packet; a doubled one has two times.
type draw struct {
	lost, doubled bool
	jitter        [2]time.Duration
}

// draw decides what happens to the packet of a number on the link of a seed.
func (s *Settings) draw(seed, number uint64) draw {
	g := rand.NewPCG(seed, number)
	part := func() float64 { return float64(g.Uint64()>>11) / (1 << 53) }
	d := draw{lost: part() < s.Loss, doubled: part() < s.Duplicate}
	for i := range d.jitter {
		d.jitter[i] = time.Duration(part() * float64(s.Jitter))
	}
	return d
}

// seedOf returns the seed of the link between two addresses of a network.
func seedOf(network uint64, from, to uint32) uint64 {
	return rand.NewPCG(network, uint64(from)<<32|uint64(to)).Uint64()
}

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
