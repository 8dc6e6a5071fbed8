package netlab

import (
	"math/rand/v2"
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
	last     time.Duration // when the last packet in order arrives
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
			arrivals[n] = l.arrival(sent, d.jitter[i], d.late)
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
	if l.waiting(now)+float64(size) > float64(l.settings.Queue) {
		return 0, false
	}
	l.free = start + time.Duration(float64(size)*8/float64(l.settings.Rate)*float64(time.Second))
	return l.free, true
}

// waiting returns the bytes that are not on the wire yet.
func (l *Link) waiting(now time.Duration) float64 {
	return max(l.free-now, 0).Seconds() * float64(l.settings.Rate) / 8
}

// leastLate is how much longer a packet takes at least that others overtake.
const leastLate = time.Millisecond

// arrival returns when a packet arrives that was on the wire at a time. Those that are in
// order never overtake each other.
func (l *Link) arrival(sent, jitter time.Duration, late bool) time.Duration {
	at := sent + l.settings.RTT/2 + jitter
	if late {
		return max(at, l.last) + max(l.settings.RTT/4, leastLate)
	}
	l.last = max(at, l.last)
	return l.last
}

// draw is what chance decides of one packet; a doubled one has two times.
type draw struct {
	lost, doubled, late bool
	jitter              [2]time.Duration
}

// draw decides what happens to the packet of a number on the link of a seed.
func (s *Settings) draw(seed, number uint64) draw {
	g := rand.NewPCG(seed, number)
	part := func() float64 { return float64(g.Uint64()>>11) / (1 << 53) }
	d := draw{lost: part() < s.Loss, doubled: part() < s.Duplicate, late: part() < s.Reorder}
	for i := range d.jitter {
		d.jitter[i] = time.Duration(part() * float64(s.Jitter))
	}
	return d
}

// seedOf returns the seed of the link between two addresses of a network.
func seedOf(network uint64, from, to uint32) uint64 {
	return rand.NewPCG(network, uint64(from)<<32|uint64(to)).Uint64()
}
