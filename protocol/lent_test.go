package protocol

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestLentPart: a part whose numbers stay in the message has the numbers that a copy has, bit for bit, at
// places where numbers may be, in the message's memory; and what is no message is refused alike.
func TestLentPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := drawPartial(t).Append(nil)
		if rapid.Bool().Draw(t, "broken") {
			msg = msg[:rapid.IntRange(0, len(msg)-1).Draw(t, "length")]
		}
		// A message may stand anywhere.
		memory := make([]byte, len(msg)+8)
		lent := memory[rapid.IntRange(0, 7).Draw(t, "at"):][:len(msg)]
		copy(lent, msg)
		a, b := Partial{Partial: new(round.Partial)}, Partial{Partial: &round.Partial{Lent: true}}
		errA, errB := a.Decode(msg), b.Decode(lent)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("errors %v and %v", errA, errB)
		}
		if errA != nil {
			return
		}
		p, q := a.Partial, b.Partial
		if !sameBits(p.F32, q.F32) || !sameBits(p.Values, q.Values) || !slices.Equal(p.Index, q.Index) ||
			!slices.Equal(p.I32, q.I32) ||
			len(p.F64) != len(q.F64) || p.Width != q.Width || a.Worker != b.Worker || a.Compute != b.Compute {
			t.Fatalf("%+v, want %+v", q, p)
		}
		for _, v := range [][]float32{q.F32, num.Float32s(num.BytesI32(q.I32)), q.Values} {
			if len(v) == 0 {
				continue
			}
			at := uintptr(unsafe.Pointer(&v[0]))
			if from := uintptr(unsafe.Pointer(&memory[0])); at%4 != 0 || at < from || at >= from+uintptr(len(memory)) {
				t.Fatalf("numbers at %#x, the message is at %#x", at, from)
			}
		}
		if again := b.Append(nil); !bytes.Equal(again, msg) {
			t.Fatalf("%x is written again as %x", msg, again)
		}
	})
}

// TestNumbersStayWhereTheyCame: the numbers of a long message that was joined, in new memory or in that of one before,
// stand where such numbers may be: none is moved.
func TestNumbersStayWhereTheyCame(t *testing.T) {
	j := NewJoiner(nil)
	for i := range 40 {
		p := Partial{Worker: strings.Repeat("w", i%9), Partial: &round.Partial{F64: make([]float64, i%3),
			F32: make([]float32, leastSpare/4+i), I32: make([]int32, 1+i%5)}}
		for k := range p.Partial.F32 {
			p.Partial.F32[k] = float32(k * i)
		}
		v := Value{Data: num.Bytes32(p.Partial.F32)}
		got := Partial{Partial: &round.Partial{Lent: true}}
		msg := rejoined(t, j, p.Append(nil), uint64(2*i))
		_, begin := p.append(nil, false)
		at, whole := &msg[begin[0]], &msg[begin[1]]
		if err := got.Decode(msg); err != nil || !sameBits(got.Partial.F32, p.Partial.F32) {
			t.Fatalf("part %d: other numbers, or %v", i, err)
		}
		if unsafe.Pointer(&got.Partial.F32[0]) != unsafe.Pointer(at) ||
			unsafe.Pointer(&got.Partial.I32[0]) != unsafe.Pointer(whole) {
			t.Fatalf("part %d: its numbers were moved", i)
		}
		j.Room.Reuse(msg)
		msg = rejoined(t, j, v.Append(nil), uint64(2*i+1))
		var value Value
		if err := value.Decode(msg); err != nil || !bytes.Equal(value.Data, v.Data) || !num.Aligned(value.Data) {
			t.Fatalf("value %d: other bytes, or not aligned, or %v", i, err)
		}
		j.Room.Reuse(msg)
	}
	if held := j.Room.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// TestParts: the parts of a partial, one behind the other, are the message, and large lists are not copied.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPartial(t)
		parts := p.Parts(nil)
		if got := bytes.Join(parts[:], nil); !bytes.Equal(got, p.Append(nil)) {
			t.Fatalf("parts %x, want %x", got, p.Append(nil))
		}
		if n := p.Partial.I32; len(n) > 0 && &parts[3][0] != &num.BytesI32(n)[0] {
			t.Fatal("the int32 numbers were copied")
		}
	})
}

// rejoined returns a message that was cut and joined.
func rejoined(t *testing.T, j *Joiner, msg []byte, number uint64) (whole []byte) {
	t.Helper()
	err := Split([][]byte{msg}, 64<<10, 1, number, func(b []byte) (err error) {
		whole, err = j.Add(b)
		return err
	})
	if err != nil || whole == nil {
		t.Fatalf("message %d: %v", number, err)
	}
	return whole
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestFewLargeSpares: of large messages the memory of two is kept, of smaller ones that of four.
func TestFewLargeSpares(t *testing.T) {
	for size, want := range map[int]int{leastSpare: mostSpare, largeSpare: mostLarge} {
		r := NewRoom(0)
		for range mostSpare + 1 {
			r.Reuse(make([]byte, 0, size+spareRoom))
		}
		n := 0
		for r.taken(size, 0) != nil {
			n++
		}
		if n != want {
			t.Errorf("the memory of %d messages of %d bytes is kept, want %d", n, size, want)
		}
	}
}
