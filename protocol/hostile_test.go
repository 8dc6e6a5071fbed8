package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
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

// FuzzJoinerAdd feeds a Joiner whatever comes on a subject: fragments of any
// sender, order and claim between other bytes. What it holds is what it was given,
// within its bounds.
func FuzzJoinerAdd(f *testing.F) {
	// Each record: how many bytes of a Fragment's head follow, those, and its data.
	record := func(sender, offset, total byte, data ...byte) []byte {
		return append([]byte{sender, 0, offset, total, byte(len(data))}, data...)
	}
	f.Add(bytes.Join([][]byte{record(1, 0, 4, 1, 2), record(2, 0, 2, 9), record(1, 2, 4, 3, 4)}, nil))
	f.Add(bytes.Join([][]byte{record(1, 0, 255, 1, 2), record(1, 0, 3, 9), record(1, 1, 3, 3, 4), record(3, 200, 255)},
		nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := Joiner{Room: NewRoom(64)}
		given := 0
		for len(b) >= 5 {
			n := min(int(b[4]), len(b)-5)
			fragment := Fragment{Sender: uint64(b[0]), Message: uint64(b[1]), Offset: uint64(b[2]), Total: uint64(b[3]),
				Data: b[5 : 5+n]}
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
	sum, came := 0, 0
	for _, m := range j.Room.open {
		sum += m.room
		came += m.came
		if m.came > m.room || cap(m.b) > m.room {
			t.Fatalf("%d bytes came for a message, of which %d are counted and %d held", m.came, m.room, cap(m.b))
		}
	}
	if held := j.Room.Held(); sum != held || came > given || held > j.Room.limit || open(j) > maxSenders {
		t.Fatalf("%d bytes of %d messages are held, %d are counted, %d were given", sum, open(j), held, given)
	}
}

// FuzzJoinerRaw feeds a Joiner bytes that are no message at all, one length after
// the other.
func FuzzJoinerRaw(f *testing.F) {
	one := (&Fragment{Sender: 1, Message: 1, Total: 9, Data: []byte{1, 2}}).Append(nil)
	f.Add(append(binary.LittleEndian.AppendUint16(nil, uint16(len(one))), one...))
	f.Add([]byte{2, 0, Version, byte(KindFragment), 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		j := Joiner{Room: NewRoom(1 << 10)}
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
