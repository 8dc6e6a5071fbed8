package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/internal/allocs"
)

// TestClaimsAreNotBelieved: every count and length of every message, made as great
// as it can be, costs no memory.
func TestClaimsAreNotBelieved(t *testing.T) {
	for _, c := range codecs() {
		good := c.sample.Append(nil)
		for at := range good {
			for _, n := range []int{1, 2, 4, 8} {
				if at+n > len(good) || at < 2 {
					continue
				}
				bad := bytes.Clone(good)
				for i := range n {
					bad[at+i] = 0xff
				}
				m := c.empty()
				allocs.AtMost(t, perByte*len(bad)+atLeast, c.name, func() {
					if err := m.Decode(bad); err != nil && !errors.Is(err, ErrMessage) {
						t.Errorf("%s: %v", c.name, err)
					}
				})
			}
		}
	}
}

// TestUnfinishedMessagesAreBounded in bytes: beyond the limit all are dropped, and
// a message that comes alone is always put together.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	j := Joiner{limit: 100}
	piece := func(sender, offset uint64, n int) []byte {
		return (&Fragment{Sender: sender, Message: 1, Offset: offset, Total: 100, Data: make([]byte, n)}).Append(nil)
	}
	add := func(b []byte) []byte {
		t.Helper()
		whole, err := j.Add(b)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	for sender := range uint64(4) {
		add(piece(sender, 0, 30))
		if held := 30 * (sender%3 + 1); sender < 3 && j.held != int(held) {
			t.Errorf("%d bytes are held after sender %d", j.held, sender)
		}
	}
	if j.held != 0 || len(j.open) != 0 {
		t.Fatalf("%d bytes of %d messages are held beyond the limit", j.held, len(j.open))
	}
	add(piece(7, 0, 30))
	add(piece(7, 0, 60)) // begins again
	if whole := add(piece(7, 60, 40)); len(whole) != 100 || j.held != 0 || len(j.open) != 0 {
		t.Errorf("%d bytes came out, %d are held", len(whole), j.held)
	}
	add(piece(8, 0, 30))
	add(piece(8, 50, 30)) // a gap
	if j.held != 0 {
		t.Errorf("%d bytes of a broken message are held", j.held)
	}
}

// FuzzJoinerAdd feeds a Joiner whatever comes on a subject: fragments of any
// sender, order and claim between other bytes. What it holds is what it was given,
// within its bounds.
func FuzzJoinerAdd(f *testing.F) {
	// Each record: how many bytes of a Fragment's head follow, those, and its data.
	record := func(sender, offset, total byte, data ...byte) []byte {
		return append([]byte{sender, 0, offset, total, byte(len(data))}, data...)
	}
	f.Add(bytes.Join([][]byte{record(1, 0, 4, 1, 2), record(2, 0, 2, 9), record(1, 2, 4, 3, 4)}, nil))
	f.Add(bytes.Join([][]byte{record(1, 0, 255, 1, 2), record(1, 0, 3, 9), record(1, 1, 3, 3, 4), record(3, 200, 255)}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := Joiner{limit: 64}
		given := 0
		for len(b) >= 5 {
			n := min(int(b[4]), len(b)-5)
			fragment := Fragment{Sender: uint64(b[0]), Message: uint64(b[1]), Offset: uint64(b[2]), Total: uint64(b[3]), Data: b[5 : 5+n]}
			if fragment.Total == 255 {
				fragment.Total = MaxMessage
			}
			if fragment.Offset == 255 {
				fragment.Offset = math.MaxUint64
			}
			b = b[5+n:]
			whole, err := j.Add(fragment.Append(nil))
			if err != nil && !errors.Is(err, ErrMessage) {
				t.Fatalf("error %v", err)
			}
			if whole != nil && uint64(len(whole)) != fragment.Total {
				t.Fatalf("a message of %d bytes came out where %d are due", len(whole), fragment.Total)
			}
			given += n
			checkHeld(t, &j, given)
		}
	})
}

func checkHeld(t *testing.T, j *Joiner, given int) {
	t.Helper()
	sum := 0
	for _, m := range j.open {
		sum += len(m.b)
	}
	if sum != j.held || sum > given || sum > j.limit || len(j.open) > maxSenders {
		t.Fatalf("%d bytes of %d messages are held, %d are counted, %d were given", sum, len(j.open), j.held, given)
	}
}

// FuzzJoinerRaw feeds a Joiner bytes that are no message at all, one length after
// the other.
func FuzzJoinerRaw(f *testing.F) {
	one := (&Fragment{Sender: 1, Message: 1, Total: 9, Data: []byte{1, 2}}).Append(nil)
	f.Add(append(binary.LittleEndian.AppendUint16(nil, uint16(len(one))), one...))
	f.Add([]byte{2, 0, Version, byte(KindFragment), 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		j := Joiner{limit: 1 << 10}
		allocs.AtMost(t, perByte*len(b)+atLeast, "a stream", func() {
			for len(b) >= 2 {
				n := min(int(binary.LittleEndian.Uint16(b)), len(b)-2)
				if _, err := j.Add(b[2 : 2+n]); err != nil && !errors.Is(err, ErrMessage) {
					t.Fatalf("error %v", err)
				}
				b = b[2+n:]
			}
		})
	})
}
