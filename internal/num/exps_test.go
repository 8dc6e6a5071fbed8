package num

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestExps: vectors have the bits of Exp, whatever the values, and write nothing else.
func TestExps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		s := NewStream(Key{1, 5}, 3, rapid.Uint32().Draw(t, "seed"))
		wild := rapid.SampledFrom([]uint64{0, 3, 40}).Draw(t, "wild")
		x := make([]float64, n)
		for i := range x {
			switch x[i] = 30 * s.Normal(); {
			case wild == 0 || s.Uint64n(wild) > 0:
			case s.Uint64n(2) == 0:
				x[i] = math.Float64frombits(s.Uint64())
			default:
				x[i] = []float64{0, math.Copysign(0, -1), 700, -700, 701, -701, 709.8, -745.2, -800, math.Inf(1), math.Inf(-1),
					math.NaN()}[s.Uint64n(12)]
			}
		}
		want := make([]float64, n)
		for i, v := range x {
			want[i] = Exp(v)
		}
		vectors(func(name string) {
			got := slices.Repeat([]float64{7}, n+2)
			Exps(got[1:n+1], x)
			requireSame64(t, "Exps with "+name, got[1:n+1], want)
			if got[0] != 7 || got[n+1] != 7 {
				t.Fatalf("with %s values beside are written", name)
			}
			own := slices.Clone(x)
			Exps(own, own)
			requireSame64(t, "Exps in place with "+name, own, want)
		})
	})
}

// TestCanonical64: vectors turn -0 into +0 and leave the rest.
func TestCanonical64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		x := doubles(t, n+2, "x")
		want := slices.Clone(x)
		for i, v := range x[1 : n+1] {
			if v == 0 {
				want[i+1] = 0
			}
		}
		vectors(func(name string) {
			got := slices.Clone(x)
			Canonical64(got[1 : n+1])
			requireSame64(t, "Canonical64 with "+name, got, want)
		})
	})
}

func BenchmarkExps(b *testing.B) {
	x, y := make([]float64, 320), make([]float64, 320)
	for i := range x {
		x[i] = -float64(i) / 30
	}
	vectors(func(name string) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Exps(y, x)
			}
		})
	})
}
