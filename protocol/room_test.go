package protocol

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// open returns how many messages a joiner's room has that are not finished.
func open(j *Joiner) int {
	if j.Room == nil {
		return 0
	}
	return len(j.Room.open)
}

// clock is a time that stands still between steps.
type clock struct{ t time.Time }

func (c *clock) now() time.Time       { return c.t }
func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }
func (c *clock) room(limit int) *Room { r := NewRoom(limit); r.now = c.now; return r }
func newClock() *clock                { return &clock{time.Unix(1000, 0)} }
func bit(sender, offset, total uint64, n int) []byte {
	return (&Fragment{Sender: sender, Message: 1, Offset: offset, Total: total, Data: make([]byte, n)}).Append(nil)
}

// put adds a fragment and returns the size of the message that is whole with it.
func put(t *testing.T, j *Joiner, b []byte) int {
	t.Helper()
	whole, err := j.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return len(whole)
}

// The message that has not grown for longest makes room for others, over all joiners;
// one that grows does not, nor does what is whole.
func TestStillMessagesMakeRoom(t *testing.T) {
	c := newClock()
	r := c.room(100 << 10)
	a, b := &Joiner{Room: r}, &Joiner{Room: r}
	const k = 1 << 10
	put(t, a, bit(1, 0, 40*k, 20*k)) // takes 40 KiB
	c.pass(10 * time.Millisecond)
	put(t, b, bit(1, 0, 40*k, 20*k))
	c.pass(stillAfter / 2)
	put(t, a, bit(1, 20*k, 40*k, 16*k)) // still grows
	c.pass(stillAfter / 2)
	if r.Held() != 80*k || r.Dropped() != 0 {
		t.Fatalf("%d bytes are held, %d dropped", r.Held(), r.Dropped())
	}
	if !r.Take(60*k) || r.Held() != 100*k || r.Dropped() != 1 {
		t.Fatalf("%d bytes are held, %d dropped", r.Held(), r.Dropped())
	}
	if r.Take(1) || r.Dropped() != 2 {
		t.Error("a message that grows was dropped for one that is whole")
	}
	if n := put(t, b, bit(1, 20*k, 40*k, 20*k)); n != 0 {
		t.Error("a message came out that was dropped")
	}
	if n := put(t, a, bit(1, 36*k, 40*k, 4*k)); n != 40*k || r.Held() != 60*k {
		t.Errorf("%d bytes came out, %d are held", n, r.Held())
	}
	r.Give(60 * k)
	if r.Held() != 0 {
		t.Errorf("%d bytes are held", r.Held())
	}
}

// A sender that adds a few bytes now and then does not grow.
func TestDripsAreStill(t *testing.T) {
	c := newClock()
	r := c.room(100)
	j := &Joiner{Room: r}
	put(t, j, bit(1, 0, 90, 30))
	for i := range uint64(20) {
		c.pass(stillAfter / 10)
		put(t, j, bit(1, 30+i, 90, 1))
	}
	if n := put(t, j, bit(2, 0, 90, 45)); n != 0 || open(j) != 1 {
		t.Fatalf("%d messages are open", open(j))
	}
	if n := put(t, j, bit(2, 45, 90, 45)); n != 90 || r.Dropped() != 1 {
		t.Errorf("%d bytes came out, %d dropped", n, r.Dropped())
	}
}

// However many grow at once, in whatever order, the room is never exceeded, what comes
// out is what was sent, and the message that was begun first comes out.
func TestTheFirstOfManyIsFinished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		size := rapid.IntRange(100, 400).Draw(t, "size")
		r := c.room(rapid.IntRange(size, 3*size).Draw(t, "limit"))
		j := &Joiner{Room: r}
		senders := rapid.IntRange(1, 10).Draw(t, "senders")
		var pieces [][][]byte
		var whole [][]byte
		for s := range senders {
			m := append([]byte{Version, 4}, bytes.Repeat([]byte{byte(s)}, size-2)...)
			whole = append(whole, m)
			var list [][]byte
			_ = Split([][]byte{m}, fragmentHead+rapid.IntRange(10, 99).Draw(t, "piece"), uint64(s), 1, func(p []byte) error {
				list = append(list, bytes.Clone(p))
				return nil
			})
			pieces = append(pieces, list)
		}
		add := func(s int) (out bool) {
			c.pass(time.Millisecond)
			got, err := j.Add(pieces[s][0])
			pieces[s] = pieces[s][1:]
			if err != nil || got != nil && !bytes.Equal(got, whole[s]) {
				t.Fatalf("sender %d: % x, error %v", s, got, err)
			}
			if r.Held() > r.Limit() {
				t.Fatalf("%d bytes are held, at most %d may be", r.Held(), r.Limit())
			}
			return got != nil
		}
		first := add(0)
		for {
			var left []int
			for s, list := range pieces {
				if len(list) > 0 {
					left = append(left, s)
				}
			}
			if len(left) == 0 {
				break
			}
			if s := rapid.SampledFrom(left).Draw(t, "next"); add(s) && s == 0 {
				first = true
			}
		}
		if !first || r.Held() != 0 || open(j) != 0 {
			t.Fatalf("the first message came: %v; %d bytes of %d messages are held", first, r.Held(), open(j))
		}
	})
}

// Of more senders than there is a place for, the one that began first is finished: what is
// dropped is the message that was begun last.
func TestManySendersAreFinished(t *testing.T) {
	c := newClock()
	j := &Joiner{Room: c.room(0)}
	const senders, n = maxSenders + 100, 10
	whole := 0
	for _, at := range []uint64{0, n} {
		for sender := range uint64(senders) {
			c.pass(10 * time.Microsecond)
			came := put(t, j, bit(sender, at, 2*n, n)) > 0
			if came {
				whole++
			}
			if at > 0 && sender == 0 && !came {
				t.Error("the message that was begun first was dropped")
			}
		}
	}
	if whole < maxSenders-1 {
		t.Errorf("%d of %d messages came out", whole, senders)
	}
}

// A joiner that is closed leaves nothing in its room, and others there go on.
func TestClosedJoinerLeavesNothing(t *testing.T) {
	r := newClock().room(1000)
	a, b := NewJoiner(r), NewJoiner(r)
	put(t, a, bit(1, 0, 100, 50))
	put(t, a, bit(2, 0, 100, 50))
	put(t, b, bit(1, 0, 100, 50))
	a.Close()
	if r.Held() != 100 || len(r.open) != 1 || r.Dropped() != 0 {
		t.Errorf("%d bytes of %d messages are held, %d dropped", r.Held(), len(r.open), r.Dropped())
	}
	if n := put(t, b, bit(1, 50, 100, 50)); n != 100 {
		t.Errorf("%d bytes came out", n)
	}
	new(Joiner).Close()
}
