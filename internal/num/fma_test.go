package num

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// anyFloat32 draws every kind of float32: random bits, subnormals, infinities,
// zeros of both signs, huge and ordinary numbers, and short mantissas that make
// ties likely.
func anyFloat32() *rapid.Generator[float32] {
	bits := rapid.Map(rapid.Uint32(), math.Float32frombits)
	short := rapid.Custom(func(t *rapid.T) float32 {
		m := rapid.Int32Range(-1<<13, 1<<13).Draw(t, "m")
		return float32(math.Ldexp(float64(m), rapid.IntRange(-160, 110).Draw(t, "e")))
	})
	special := rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32,
		-math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126,
		0x1.fffffep-127, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1 + 0x1p-12, 1 + 0x1p-23})
	return rapid.OneOf(bits, short, special, rapid.Float32Range(-4, 4))
}

func TestFMA32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyFloat32().Draw(t, "a"), anyFloat32().Draw(t, "b"), anyFloat32().Draw(t, "c")
		if got, want := FMA32(a, b, c), bigFMA32(a, b, c); !sameBits(got, want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	})
}

// nearHalf draws a, b and c such that a·b is half a unit in the last place of c
// but for a few of its last bits, of either sign: what double rounding gets
// wrong. A third of the c are subnormal.
func nearHalf(s *Stream) (a, b, c float32) {
	i := float64(s.Uint64n(4))
	a, b = float32(1+i*0x1p-23), float32(1-i*0x1p-23)
	m, e := float64(1<<23+s.Uint64n(1<<23)), -int(s.Uint64n(124))
	if s.Uint64n(3) == 0 {
		m, e = float64(s.Uint64n(1<<23)), -126
	}
	c = float32(math.Ldexp(m, e-23))
	a = float32(math.Ldexp(float64(a), e/2-12))
	b = float32(math.Ldexp(float64(b), e-e/2-12))
	switch s.Uint64n(4) {
	case 0:
		a = -a
	case 1:
		c = -c
	case 2:
		a, c = -a, -c
	}
	return a, b, c
}

func TestFMA32Ties(t *testing.T) {
	s := NewStream(NewKey(1, "test/fma"), 0, 0)
	differ := 0
	for range 100000 {
		a, b, c := nearHalf(s)
		got, want := FMA32(a, b, c), bigFMA32(a, b, c)
		if !sameBits(got, want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			differ++
		}
	}
	if differ < 10000 {
		t.Errorf("only %d of the triples tell FMA32 from a rounded float64 FMA", differ)
	}
	if x := float32(1 + 0x1p-12); FMA32(x, x, 0x1p-60) != 1+0x1p-11+0x1p-23 {
		t.Error("the example of the design document rounds wrongly")
	}
}

func TestFMA32Overflow(t *testing.T) {
	const huge = math.MaxFloat32
	half := float32(0x1p102) // half a unit in the last place of huge, twice over
	for _, c := range []struct{ a, b, c, want float32 }{
		{huge, 1, half, huge}, {huge, 1, half * 2, float32(math.Inf(1))},
		{huge, 1, math.Nextafter32(half*2, 0), huge}, {huge, huge, -huge, float32(math.Inf(1))},
		{huge, -2, huge, -huge}, {float32(math.Inf(1)), 0, 1, float32(math.NaN())},
	} {
		if got := FMA32(c.a, c.b, c.c); !sameBits(got, c.want) {
			t.Errorf("FMA32(%x, %x, %x) = %x, want %x", c.a, c.b, c.c, got, c.want)
		}
	}
}
