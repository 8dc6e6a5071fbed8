package protocol

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// sent is one message of a sender, cut into what travels.
type sent struct {
	sender uint64
	whole  []byte
	chunks [][]byte
}

// drawSent draws a message that begins like one and is cut at a drawn limit.
func drawSent(t *rapid.T, sender, number uint64) sent {
	limit := rapid.IntRange(fragmentHead+1, fragmentHead+40).Draw(t, "limit")
	b := append([]byte{Version, byte(KindValue)}, drawBytes(t, "message", 300)...)
	s := sent{sender: sender, whole: b}
	head := rapid.IntRange(0, len(b)).Draw(t, "head")
	err := Split([][]byte{b[:head], b[head:]}, limit, sender, number, func(p []byte) error {
		if len(p) > limit {
			t.Fatalf("a piece of %d bytes, at most %d are carried", len(p), limit)
		}
		s.chunks = append(s.chunks, bytes.Clone(p))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestJoinerPutsTogetherWhatSplitCut, whatever the interleaving of senders, each
// of which sends its own messages in order.
func TestJoinerPutsTogetherWhatSplitCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		senders := rapid.IntRange(1, 5).Draw(t, "senders")
		queues := make([][]sent, senders)
		for s := range queues {
			for n := range rapid.IntRange(1, 3).Draw(t, "messages") {
				queues[s] = append(queues[s], drawSent(t, uint64(s)*7, uint64(n)))
			}
		}
		var j Joiner
		for len(queues) > 0 {
			s := rapid.IntRange(0, len(queues)-1).Draw(t, "next")
			m := &queues[s][0]
			got, err := j.Add(m.chunks[0])
			if err != nil {
				t.Fatal(err)
			}
			m.chunks = m.chunks[1:]
			switch {
			case len(m.chunks) > 0 && got != nil:
				t.Fatalf("a message of %d bytes %d pieces too early", len(got), len(m.chunks))
			case len(m.chunks) == 0 && !bytes.Equal(got, m.whole):
				t.Fatalf("joined %d bytes, sent %d", len(got), len(m.whole))
			}
			if len(m.chunks) > 0 {
				continue
			}
			if queues[s] = queues[s][1:]; len(queues[s]) == 0 {
				queues = append(queues[:s], queues[s+1:]...)
			}
		}
		if open(&j) > 0 {
			t.Fatalf("%d messages are still open", open(&j))
		}
	})
}

// TestGapDropsTheMessage: a piece that is lost, doubled or out of turn costs its
// message and no other: nothing but what was sent ever comes out.
func TestGapDropsTheMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := fragmentHead + 10
		cut := func(number uint64, b []byte) (pieces [][]byte) {
			Split([][]byte{b}, limit, 1, number, func(p []byte) error { pieces = append(pieces, bytes.Clone(p)); return nil })
			return pieces
		}
		first := append([]byte{Version, 4}, bytes.Repeat([]byte{1}, rapid.IntRange(60, 90).Draw(t, "size"))...)
		second := append([]byte{Version, 4}, bytes.Repeat([]byte{2}, 70)...)
		broken := cut(1, first)
		at := rapid.IntRange(0, len(broken)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"lose", "double", "swap"}).Draw(t, "what") {
		case "lose":
			broken = append(broken[:at:at], broken[at+1:]...)
		case "double":
			if at == 0 { // a first piece twice begins anew and does no harm
				at = 1
			}
			broken = append(broken[:at+1:at+1], broken[at:]...)
			if at == len(broken)-2 { // the last one twice comes after the end
				broken = broken[:at]
			}
		case "swap":
			at = max(at, 1)
			broken[at-1], broken[at] = broken[at], broken[at-1]
		}
		var j Joiner
		for _, p := range broken {
			if got, err := j.Add(p); err != nil || got != nil {
				t.Fatalf("%d bytes came of a broken message, error %v", len(got), err)
			}
		}
		var got []byte
		for _, p := range cut(2, second) {
			got, _ = j.Add(p)
		}
		if !bytes.Equal(got, second) {
			t.Fatal("the message after the broken one did not come")
		}
	})
}

// TestPiecesOfTwoMessagesDoNotJoin though their sizes would fit: the end of one was
// lost, and the beginning of the next.
func TestChunksOfTwoMessagesDoNotJoin(t *testing.T) {
	piece := func(message, offset, total uint64) []byte {
		return (&Fragment{Sender: 1, Message: message, Offset: offset, Total: total, Data: []byte{Version, 4}}).Append(nil)
	}
	for what, second := range map[string][]byte{"another message": piece(2, 2, 4), "another total": piece(1, 2, 5)} {
		var j Joiner
		for _, b := range [][]byte{piece(1, 0, 4), second, piece(1, 2, 4)} {
			if got, err := j.Add(b); got != nil || err != nil {
				t.Errorf("%s: joined % x, error %v", what, got, err)
			}
		}
	}
}

// TestWholeMessagesPassThrough unchanged and uncopied.
func TestWholeMessagesPassThrough(t *testing.T) {
	var j Joiner
	b := (&Value{Data: []byte{1}}).Append(nil)
	var got []byte
	err := Split([][]byte{b}, len(b), 1, 1, func(p []byte) (err error) { got, err = j.Add(p); return err })
	if err != nil || &got[0] != &b[0] || len(got) != len(b) {
		t.Errorf("got % x, error %v", got, err)
	}
	if _, err := j.Add([]byte{Version + 1, byte(KindFragment)}); !errors.Is(err, ErrMessage) {
		t.Errorf("a fragment of another version: error %v", err)
	}
	if _, err := j.Add((&Fragment{Total: 1, Offset: 5}).Append(nil)); !errors.Is(err, ErrMessage) {
		t.Errorf("a fragment beyond its end: error %v", err)
	}
}

// TestSplitStopsAtAnError of sending and refuses what nobody would take.
func TestSplitStopsAtAnError(t *testing.T) {
	broken, calls := errors.New("broken"), 0
	err := Split([][]byte{make([]byte, 500)}, 100, 1, 1, func([]byte) error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("error %v after %d calls", err, calls)
	}
	huge := make([]byte, MaxMessage+1) // never touched: costs no memory
	if err := Split([][]byte{huge}, 1<<20, 1, 1, func([]byte) error {
		t.Error("a piece was sent")
		return broken
	}); !errors.Is(err, ErrMessage) {
		t.Errorf("a message that is too large: error %v", err)
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTotalsAreNotBelieved: a total claims what it likes; memory follows what
// has come. Beyond maxSenders open messages the stillest are dropped.
func TestTotalsAreNotBelieved(t *testing.T) {
	var j Joiner
	const senders = 10 * maxSenders
	got := allocated(func() {
		for s := range uint64(senders) {
			f := Fragment{Sender: s, Message: 1, Total: MaxMessage, Data: []byte{Version, 4, 0}}
			if whole, err := j.Add(f.Append(nil)); err != nil || whole != nil {
				t.Fatal(whole, err)
			}
			if open(&j) > maxSenders {
				t.Fatalf("%d messages are open, at most %d may be", open(&j), maxSenders)
			}
		}
	})
	if got > 1<<10*senders {
		t.Errorf("%d bytes for %d fragments", got, senders)
	}
}
