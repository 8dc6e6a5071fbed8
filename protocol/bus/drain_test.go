package bus

import (
	"testing"
	"time"
)

// TestDrain: clients that read nothing are too slow soon, those that read a trickle after some seconds, also where the
// message goes on as fast as they read, and those that read as fast as a thin link is never, however much waits.
func TestDrain(t *testing.T) {
	const every, most = 100 * time.Millisecond, time.Minute
	for _, x := range []struct {
		name   string
		rate   int64 // bytes a second that are read
		others int64 // that others send
		goesOn bool
		want   time.Duration // until they are too slow; 0: never
	}{
		{"nothing", 0, 0, false, stuckFor + 2*every},
		{"nothing, while others send", 0, 1 << 20, false, stuckFor + 2*every},
		{"a byte at a time", 10, 0, false, slowFor + every},
		{"a byte at a time, and as much is sent", 10, 0, true, slowFor + every},
		{"less than the least", leastRead * 9 / 10, 0, false, slowFor + every},
		{"less than the least, and as much is sent", leastRead * 9 / 10, 0, true, slowFor + every},
		{"the least", leastRead + 10, 0, false, 0},
		{"the least, and as much is sent", leastRead + 10, 0, true, 0},
		{"much", 1 << 30, 0, false, 0},
	} {
		var d drain
		began, waits, after := time.Unix(1000, 0), int64(1<<40), time.Duration(0)
		d.begin()
		for at := every; at <= most && after == 0; at += every {
			waits += x.others*int64(every)/int64(time.Second) - x.rate*int64(every)/int64(time.Second)
			if x.goesOn {
				n := x.rate * int64(every) / int64(time.Second)
				d.sent, waits = d.sent+n, waits+n
			}
			if d.slow(waits, began.Add(at)) {
				after = at
			}
		}
		if after != x.want {
			t.Errorf("%s: too slow after %v, want %v", x.name, after, x.want)
		}
	}
}

// TestRoomWhereNothingWaits: a piece that more listen to than may wait at once goes out where nothing waits, and not
// where something does.
func TestRoomWhereNothingWaits(t *testing.T) {
	r := newRelief(64<<20, 0)
	if !r.roomFor(longAhead+1) || !r.roomFor(1) {
		t.Error("there is no room where nothing waits")
	}
	if !r.fits(1) {
		t.Fatal("a byte does not fit")
	}
	if r.roomFor(longAhead) || !r.roomFor(longAhead-1) {
		t.Error("with a byte on its way there is room for longAhead, or for no less")
	}
	r.sent(1)
	if r.roomFor(longAhead) {
		t.Error("a byte that was sent, and that no look has seen since, does not count")
	}
}
