package netlab

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anySettings draws settings that Parse allows.
func anySettings(t *rapid.T) Settings {
	share := func(name string) float64 { return float64(rapid.IntRange(0, 900).Draw(t, name)) / 1000 }
	s := Settings{
		RTT:    time.Duration(rapid.Int64Range(0, int64(maxRTT)).Draw(t, "rtt")),
		Jitter: time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "jitter")),
		Loss:   share("loss"), Duplicate: share("duplicate"),
	}
	if rapid.Bool().Draw(t, "limited") {
		s.Rate = rapid.Int64Range(leastRate, 1e9).Draw(t, "rate")
	}
	return s
}

// sending is a packet that somebody sends.
type sending struct {
	at   time.Duration
	size int
}

func anySendings(t *rapid.T) (list []sending) {
	var at time.Duration
	for range rapid.IntRange(1, 80).Draw(t, "packets") {
		at += time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "pause"))
		list = append(list, sending{at, rapid.IntRange(20, mtu).Draw(t, "size")})
	}
	return list
}

// onWire is how long a packet of a size takes at a rate.
func onWire(size int64, rate int64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(size) * 8 / float64(rate) * float64(time.Second))
}

// No packet arrives before the light could, none waits for longer than a full queue, and
// none that is in order is overtaken.
func TestLinkBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		seed := rapid.Uint64().Draw(t, "seed")
		l := NewLink(s, seed)
		var last time.Duration
		for i, p := range anySendings(t) {
			arrivals, n := l.Pass(p.at, p.size)
			least := p.at + s.RTT/2 + onWire(int64(p.size), s.Rate)
			most := p.at + s.RTT/2 + s.Jitter + onWire(queueBytes, s.Rate) + time.Microsecond
			for _, at := range arrivals[:n] {
				if at < least || at > most {
					t.Fatalf("packet %d of %d bytes, sent at %v, arrives at %v: want %v to %v", i, p.size, p.at, at, least, most)
				}
				if at < last {
					t.Fatalf("packet %d arrives at %v, one before it at %v", i, at, last)
				}
				last = at
			}
		}
	})
}

// Whatever is sent, no more bits pass than the rate allows, and while the queue is never
// full, nothing is lost: each packet follows the one before it without a gap.
func TestLinkRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{RTT: 20 * time.Millisecond, Rate: rapid.Int64Range(leastRate, 1e9).Draw(t, "rate")}
		l := NewLink(s, 1)
		var free time.Duration
		for i, p := range anySendings(t) {
			backlog := max(free-p.at, 0)
			arrivals, n := l.Pass(p.at, p.size)
			full := backlog+onWire(int64(p.size), s.Rate) > onWire(queueBytes, s.Rate)
			edge := (backlog + onWire(int64(p.size), s.Rate) - onWire(queueBytes, s.Rate)).Abs() <= onWire(2, s.Rate)
			if full != (n == 0) && !edge {
				t.Fatalf("packet %d: %d arrivals, a queue that is full: %v", i, n, full)
			}
			if n == 0 {
				continue
			}
			free = max(free, p.at) + onWire(int64(p.size), s.Rate)
			if got := arrivals[0] - s.RTT/2; (got - free).Abs() > time.Microsecond {
				t.Fatalf("packet %d is on the wire at %v, want %v", i, got, free)
			}
		}
	})
}

// What chance decides depends on the seed and the packet's number, not on the times.
func TestLinkIsSeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		s.Rate = 0
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := NewLink(s, seed), NewLink(s, seed)
		var far time.Duration
		for range 20 {
			far += maxRTT + 3*time.Second // nothing is held by the packet before it
			first, n := a.Pass(far, 100)
			second, m := b.Pass(2*far, 1000)
			if n != m {
				t.Fatalf("%d and %d arrivals", n, m)
			}
			for k := range n {
				if first[k]-far != second[k]-2*far {
					t.Fatalf("it takes %v and %v", first[k]-far, second[k]-2*far)
				}
			}
		}
	})
}

// Shares are what they say, of each of many links, and one draw says nothing of the next
// nor of another link's.
func TestDrawShares(t *testing.T) {
	const packets = 20_000
	s := Settings{Jitter: time.Second, Loss: 0.1, Duplicate: 0.2}
	for network := range uint64(3) {
		var lost, doubled, twice, both int
		var jitter time.Duration
		seed, other := seedOf(network, 1, 2), seedOf(network, 2, 1)
		before := false
		for i := range uint64(packets) {
			d := s.draw(seed, i)
			for _, one := range []struct {
				is bool
				n  *int
			}{
				{d.lost, &lost}, {d.doubled, &doubled}, {d.lost && before, &twice}, {d.lost && s.draw(other, i).lost, &both},
			} {
				if one.is {
					*one.n++
				}
			}
			before = d.lost
			jitter += d.jitter[0] / packets
		}
		for what, got := range map[string][2]float64{
			"lost": {float64(lost), 0.1}, "doubled": {float64(doubled), 0.2},
			"lost after a lost one": {float64(twice), 0.01}, "lost on both links": {float64(both), 0.01},
			"jitter": {packets * jitter.Seconds(), 0.5},
		} {
			if share := got[0] / packets; share < 0.85*got[1] || share > 1.15*got[1] {
				t.Errorf("network %d, %s: %.4f, want %.4f", network, what, share, got[1])
			}
		}
	}
}
