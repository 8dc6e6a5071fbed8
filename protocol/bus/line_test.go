package bus

import (
	"testing"

	"pgregory.net/rapid"
)

// crowd is a server with clients, without goroutines.
type crowd struct {
	t       *rapid.T
	in      *intake
	senders []*sender
	inside  map[*sender]bool // let in, and not taken wholly
	brings  map[*sender]int64
	waits   int64 // for this process, in fact
}

func newCrowd(t *rapid.T, most int64) *crowd {
	c := &crowd{t: t, inside: make(map[*sender]bool), brings: make(map[*sender]int64)}
	c.in = &intake{room: room{most: most}, looks: true}
	for range rapid.IntRange(2, 10).Draw(t, "senders") {
		c.senders = append(c.senders, newSender())
	}
	return c
}

// ask has a sender ask with n bytes.
func (c *crowd) ask(s *sender, n int64) {
	c.brings[s] = n
	if !c.in.ask(s, n) {
		c.t.Fatal("a sender may not ask")
	}
}

// let has those come in that may.
func (c *crowd) let() {
	for _, s := range c.senders {
		select {
		case ok := <-s.turn:
			if !ok {
				c.t.Fatal("a sender was refused")
			}
			c.inside[s] = true
		default:
		}
	}
}

// deliver has the server take what a sender brings, and end says that it has.
func (c *crowd) deliver(s *sender) {
	c.waits += c.brings[s]
	c.brings[s] = 0
	if c.waits > c.in.room.most {
		c.t.Fatalf("%d bytes wait, at most %d may", c.waits, c.in.room.most)
	}
}

func (c *crowd) end(s *sender) {
	delete(c.inside, s)
	c.in.taken(s)
}

// look looks what waits; no goroutine of the intake does.
func (c *crowd) look() {
	c.in.lookOnce()
	c.in.looks = true
	c.let()
}

// happen has something happen.
func (c *crowd) happen() {
	s := rapid.SampledFrom(c.senders).Draw(c.t, "sender")
	switch {
	case rapid.IntRange(0, 2).Draw(c.t, "drain") == 0:
		c.waits -= rapid.Int64Range(0, c.waits).Draw(c.t, "drained")
	case s.waits():
	case !c.inside[s]:
		c.ask(s, rapid.Int64Range(1, c.in.room.most).Draw(c.t, "size"))
	case c.brings[s] > 0:
		c.deliver(s)
	default:
		c.end(s)
	}
	c.let()
}

// Whatever happens while it is looked what waits, and between, no more waits than may; and
// once nothing does, everybody has come in.
func TestIntakeHasRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, rapid.Int64Range(10, 1000).Draw(t, "room"))
		c.in.waits = func() int64 {
			found := c.waits
			for range rapid.IntRange(0, 5).Draw(t, "meanwhile") {
				c.happen()
			}
			return found
		}
		for range 200 {
			if rapid.IntRange(0, 5).Draw(t, "look") == 0 {
				c.look()
			}
			c.happen()
		}
		c.in.waits = func() int64 { return 0 }
		for range len(c.senders) + 1 {
			for _, s := range c.senders {
				if c.inside[s] {
					c.end(s)
				}
			}
			c.look()
		}
		if s := c.in.line.first(); s != nil || c.in.room.entered != 0 || c.in.room.since < 0 {
			t.Fatalf("%+v waits with room %+v", s, c.in.room)
		}
	})
}

// Of those that always have something to send, none gets ahead of another by more than two
// messages; and the turn of one whose last is over is before any other has two.
func TestLineIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const largest = 1000
		var l line
		sent := make(map[*sender]int64)
		for range rapid.IntRange(2, 10).Draw(t, "senders") {
			s := newSender()
			sent[s] = 0
			l.join(s, rapid.Int64Range(1, largest).Draw(t, "size"))
		}
		guest := newSender()
		passed := make(map[*sender]int64) // bytes let in while the guest waits
		for range 300 {
			if !guest.waits() && l.clock >= guest.end && rapid.IntRange(0, 10).Draw(t, "guest") == 0 {
				clear(passed)
				l.join(guest, rapid.Int64Range(1, largest).Draw(t, "size"))
			}
			s := l.first()
			l.next()
			if passed[s] += s.bytes; guest.waits() && passed[s] > guest.bytes+largest {
				t.Fatalf("%d bytes of one sender pass a guest that waits with %d", passed[s], guest.bytes)
			}
			if s == guest {
				continue
			}
			sent[s] += s.bytes
			l.join(s, rapid.Int64Range(1, largest).Draw(t, "size"))
			for other, bytes := range sent {
				if ahead := sent[s] - bytes; ahead > 2*largest {
					t.Fatalf("a sender is %d bytes ahead of another, which waits: %v", ahead, other.waits())
				}
			}
		}
	})
}

// A heartbeat waits for no message of those who send without pause, however many they are.
func TestHeartbeatPassesMessages(t *testing.T) {
	var l line
	for range 200 {
		l.join(newSender(), maxPayload)
	}
	guest := newSender()
	for range 1000 {
		l.join(guest, 500)
		if l.first() != guest {
			t.Fatal("a large message goes first")
		}
		l.next()
		s := l.first()
		l.next()
		l.join(s, maxPayload)
	}
}
