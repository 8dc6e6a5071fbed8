package num

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"unsafe"
)

func TestVectors(t *testing.T) {
	a, b := []float32{1, -2, 0x1p24}, []float32{3, 0.5, 0x1p-24}
	if got := Sum64(a); got != 0x1p24-1 {
		t.Errorf("Sum64 = %v", got)
	}
	Add32(a, b)
	if want := []float32{4, -1.5, 0x1p24}; !slices.Equal(a, want) {
		t.Errorf("Add32 = %v, want %v", a, want)
	}
	Scale32(a, -2)
	if want := []float32{-8, 3, -0x1p25}; !slices.Equal(a, want) {
		t.Errorf("Scale32 = %v, want %v", a, want)
	}
	whole, more := make([]int32, 45), make([]int32, 45)
	for i := range whole {
		whole[i], more[i] = int32(i), 1<<31-1-int32(i)
	}
	AddInt32(whole, more)
	for i, x := range whole {
		if x != 1<<31-1 {
			t.Errorf("AddInt32: number %d is %d", i, x)
		}
	}
	c := []float64{1, 2}
	Add64(c, []float64{3, 4})
	if want := []float64{4, 6}; !slices.Equal(c, want) {
		t.Errorf("Add64 = %v, want %v", c, want)
	}
}

func TestCanonical(t *testing.T) {
	minus := math.Copysign(0, -1)
	v, w := []float32{float32(minus), 0, -1, float32(math.NaN())}, []float64{minus, 0, -1, math.NaN()}
	Canonical32(v)
	Canonical64(w)
	for i := range 2 {
		if math.Float32bits(v[i]) != 0 || math.Float64bits(w[i]) != 0 {
			t.Errorf("zero %d keeps its sign", i)
		}
	}
	if v[2] != -1 || v[3] == v[3] || w[2] != -1 || w[3] == w[3] {
		t.Errorf("other values change: %v %v", v, w)
	}
}

func TestFinite(t *testing.T) {
	inf := math.Inf(-1)
	for _, x := range []float64{inf, -inf, math.NaN()} {
		if Finite64([]float64{1, x}) || Finite32([]float32{1, float32(x)}) {
			t.Errorf("%v counts as finite", x)
		}
	}
	if !Finite64([]float64{0, math.MaxFloat64}) || !Finite32([]float32{0, -math.MaxFloat32}) || !Finite32(nil) {
		t.Error("finite values do not count as finite")
	}
}

func TestViews(t *testing.T) {
	f, d, u := []float32{1.5, -2}, []float64{1.5, -2}, []uint32{1, 0x01020304}
	var want []byte
	for _, x := range f {
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(x))
	}
	for _, x := range d {
		want = binary.LittleEndian.AppendUint64(want, math.Float64bits(x))
	}
	for _, x := range u {
		want = binary.LittleEndian.AppendUint32(want, x)
	}
	if got := slices.Concat(Bytes32(f), Bytes64(d), BytesU32(u)); !bytes.Equal(got, want) {
		t.Errorf("bytes %x, want %x", got, want)
	}
	if !slices.Equal(Float32s(Bytes32(f)), f) || !slices.Equal(Float64s(Bytes64(d)), d) ||
		!slices.Equal(Uint32s(BytesU32(u)), u) {
		t.Error("a view of a view is not the slice")
	}
	Float32s(Bytes32(f))[0] = 7
	if f[0] != 7 {
		t.Error("an aligned view is a copy")
	}
	if Bytes32(nil) != nil || Float64s(nil) != nil || len(Float32s([]byte{})) != 0 {
		t.Error("a view of nothing is something")
	}
}

func TestViewOfUnalignedBytes(t *testing.T) {
	b := Bytes64(make([]float64, 4))
	for i := range b {
		b[i] = byte(i)
	}
	for off := range 8 {
		got := Float64s(b[off : off+16])
		want := math.Float64frombits(binary.LittleEndian.Uint64(b[off+8:]))
		if got[1] != want || uintptr(unsafe.Pointer(&got[0]))%unsafe.Alignof(want) != 0 {
			t.Errorf("offset %d: %x, want %x, aligned", off, got[1], want)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	b.Run("Exp", func(b *testing.B) {
		for x := 0.0; b.Loop(); x += 0x1p-20 {
			Exp(x)
		}
	})
	b.Run("Log", func(b *testing.B) {
		for x := 0.1; b.Loop(); x += 0x1p-20 {
			Log(x)
		}
	})
	b.Run("SigmoidPairs/n=64", func(b *testing.B) {
		f, s, t := make([]float32, 64), make([]float32, 64), make([]float32, 64)
		for i := range f {
			f[i] = float32(i-32) / 8
		}
		for b.Loop() {
			SigmoidPairs(s, t, f)
		}
	})
	b.Run("Permutation.At/n=7755", func(b *testing.B) {
		p := NewPermutation(Key{1, 2}, 3, 4, 7755)
		for i := uint64(0); b.Loop(); i++ {
			p.At(i % 7755)
		}
	})
	b.Run("Normal", func(b *testing.B) {
		for s := NewStream(Key{1, 2}, 3, 4); b.Loop(); {
			s.Normal()
		}
	})
}
