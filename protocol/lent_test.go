package protocol

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/round"
)

// TestLentPart: a part whose numbers stay in the message has the numbers that a copy has, bit for bit, at
// places where numbers may be, in the message's memory; and what is no message is refused alike.
func TestLentPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := drawPart(t).Append(nil)
		if rapid.Bool().Draw(t, "broken") {
			msg = msg[:rapid.IntRange(0, len(msg)-1).Draw(t, "length")]
		}
		// A message may stand anywhere.
		memory := make([]byte, len(msg)+8)
		lent := memory[rapid.IntRange(0, 7).Draw(t, "at"):][:len(msg)]
		copy(lent, msg)
		a, b := Part{Partial: new(round.Partial)}, Part{Partial: &round.Partial{Lent: true}}
		errA, errB := a.Decode(msg), b.Decode(lent)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("errors %v and %v", errA, errB)
		}
		if errA != nil {
			return
		}
		p, q := a.Partial, b.Partial
		if !sameBits(p.F32, q.F32) || !sameBits(p.Values, q.Values) || !slices.Equal(p.Index, q.Index) || len(p.F64) != len(q.F64) || p.Width != q.Width || a.Worker != b.Worker || a.Compute != b.Compute {
			t.Fatalf("%+v, want %+v", q, p)
		}
		for _, v := range [][]float32{q.F32, q.Values} {
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

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
