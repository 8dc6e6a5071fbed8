package bus

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/protocol"
)

// pipe is a link with a round trip, a rate and a queue that never drops, in which pieces of
// a window travel; it returns how long a pull of total bytes takes, and the longest time
// that something else would have waited in the queue behind it, once the first pieces
// told how the link is.
func pipe(w *window, trip time.Duration, rate float64, total int) (took, queued time.Duration) {
	type part struct {
		n           int
		asked, came time.Duration
	}
	var now, free time.Duration // free: when the link has sent what it has
	var out []part
	inFlight, asked, got := 0, 0, 0
	for got < total {
		for asked < total && (inFlight == 0 || inFlight+w.chunk() <= w.size()) {
			n := min(w.chunk(), total-asked)
			free = max(free, now+trip/2) + time.Duration(float64(n)/rate*float64(time.Second))
			out = append(out, part{n, now, free + trip/2})
			asked, inFlight = asked+n, inFlight+n
			if got > 4*firstWindow {
				queued = max(queued, free-now-trip/2)
			}
		}
		p := out[0]
		out = out[1:]
		now = p.came
		inFlight, got = inFlight-p.n, got+p.n
		w.came(p.n, now-p.asked)
	}
	return now, queued
}

// On any link a pull uses most of the rate, and leaves room for heartbeats: what is queued
// is a few times spareDelay at most, or than the least window where that takes longer.
func TestWindowFollowsTheLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trip := time.Duration(rapid.IntRange(1, 300_000).Draw(t, "trip in us")) * time.Microsecond
		rate := float64(rapid.IntRange(50_000, 1_000_000_000).Draw(t, "bytes a second"))
		total := int(min(max(20*rate, 1<<20), 64<<20))
		took, queued := pipe(new(window), trip, rate, total)
		inBytes := func(n float64) time.Duration { return time.Duration(n / rate * float64(time.Second)) }
		if most := 4*spareDelay + inBytes(firstWindow+2*leastChunk) + trip; queued > most {
			t.Errorf("%v queued, at most %v should be", queued, most)
		}
		best := inBytes(float64(total)) + trip
		if bound := inBytes(mostWindow) + trip; inBytes(mostWindow) < trip { // the window bounds the rate
			best = time.Duration(float64(total) / mostWindow * float64(bound))
		}
		if took > 4*best+20*trip {
			t.Errorf("%v for %d bytes, at best %v", took, total, best)
		}
	})
}

// What does not come makes a window small at once and never none; pieces stay within what
// a reply carries; patience grows with what a piece takes and with each try.
func TestWindowBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		for range rapid.IntRange(1, 200).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "lost") {
				w.silent()
			} else {
				w.came(rapid.IntRange(0, protocol.BlobChunk).Draw(t, "n"), time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms"))*
					time.Millisecond)
			}
			if w.size() < leastWindow || w.size() > mostWindow || w.chunk() < leastChunk || w.chunk() > protocol.BlobChunk {
				t.Fatalf("a window of %d, pieces of %d", w.size(), w.chunk())
			}
			if w.patience(1) < chunkTimeout || w.patience(1) < patiencePaces*w.last ||
				w.patience(2) != min(2*w.patience(1), mostPatience) || w.patience(9) != w.patience(4) {
				t.Fatalf("patience %v, %v", w.patience(1), w.patience(2))
			}
		}
		if w.silent(); w.size() > max(leastWindow, mostWindow/2) {
			t.Fatalf("%d after a silence", w.size())
		}
	})
}

// A pull whose way becomes a longer one, for good, is soon as fast as one that begins there.
func TestWindowFollowsALongerWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := time.Duration(rapid.IntRange(1, 20).Draw(t, "trip before in ms")) * time.Millisecond
		far := time.Duration(rapid.IntRange(100, 300).Draw(t, "trip in ms")) * time.Millisecond
		rate := float64(rapid.IntRange(1_000_000, 100_000_000).Draw(t, "bytes a second"))
		const total = 32 << 20
		began, _ := pipe(new(window), far, rate, total)
		var w window
		pipe(&w, near, rate, total)
		if took, _ := pipe(&w, far, rate, total); took > 2*began+120*far {
			t.Errorf("%v for %d bytes, and %v where the way was as long from the beginning", took, total, began)
		}
	})
}

// However long a piece took once, a lost one is asked for again in time.
func TestPatienceIsBounded(t *testing.T) {
	var w window
	w.came(leastChunk, time.Hour)
	for tries := 1; tries <= chunkTries; tries++ {
		if p := w.patience(tries); p != mostPatience {
			t.Errorf("try %d: %v", tries, p)
		}
	}
}
