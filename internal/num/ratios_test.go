package num

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// width draws how many rows a block has: no vector, whole ones, and some with a rest.
func width(t *rapid.T) int { return rapid.IntRange(0, 70).Draw(t, "width") }

func TestMul32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		v, a := values(t, n, "v"), values(t, n, "a")
		want := v.clone()
		for i, x := range a.v {
			want.v[i] *= x
		}
		Mul32(v.v, a.v)
		requireSame(t, "product", v, want)
	})
}

func TestAdd64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		a, b := values(t, n, "a"), values(t, n, "b")
		dst, src, want := make([]float64, n+2), make([]float64, n), make([]float64, n+2)
		for i := range src {
			dst[i+1], src[i] = float64(a.v[i])*1e-9, float64(b.v[i])
			want[i+1] = dst[i+1] + src[i]
		}
		Add64(dst[1:n+1], src)
		for i, x := range want {
			if !sameBits64(dst[i], x) {
				t.Fatalf("sum %d of %d is %v, want %v", i-1, n, dst[i], x)
			}
		}
	})
}

// TestRatios holds each element against the scalar formula: what is negative, not
// finite or below the floor, in any lane, included.
func TestRatios(t *testing.T) {
	share := rapid.Float32Range(0, 1)
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		draw := func(name string) guarded {
			g := newGuarded(n)
			for i := range g.v {
				x := share
				if rapid.IntRange(0, 30).Draw(t, "any") == 0 {
					x = anyFloat32()
				}
				g.v[i] = x.Draw(t, name)
			}
			return g
		}
		d, g := draw("d"), draw("g")
		r, sum := newGuarded(n), make([]float64, n)
		wantR, wantSum := r.clone(), make([]float64, n)
		weight, floor := rapid.Float32Range(0, 3).Draw(t, "weight"), float32(1e-20)
		for i := range n {
			sum[i] = float64(i)
			wantSum[i] = sum[i]
			below := g.v[i]
			if below < floor {
				below = floor
			}
			wantR.v[i] = float32(weight*d.v[i]) / below
			if d.v[i] > 0 {
				wantSum[i] += float64(float64(d.v[i]) * Log(float64(d.v[i])/float64(below)))
			}
		}
		Ratios(r.v, sum, d.v, g.v, weight, floor)
		requireSame(t, "ratio", r, wantR)
		for i := range sum {
			if math.Float64bits(sum[i]) != math.Float64bits(wantSum[i]) && !(sum[i] != sum[i] && wantSum[i] != wantSum[i]) {
				t.Fatalf("sum %d is %v, want %v: d = %v, g = %v", i, sum[i], wantSum[i], d.v[i], g.v[i])
			}
		}
	})
}

// TestRatiosLogarithm holds the vectors' logarithm against Log where its argument
// changes form: around powers of two and their roots, and at the ends of float32.
func TestRatiosLogarithm(t *testing.T) {
	var d, g []float32
	for e := -140; e < 60; e++ {
		for _, m := range []float32{1, 0.99999994, 1.0000001, math.Sqrt2, 1.4142134, 1.4142137, 1.7} {
			d, g = append(d, float32(math.Ldexp(float64(m), e))), append(g, 1)
			d, g = append(d, m), append(g, float32(math.Ldexp(1, e)))
		}
	}
	r, sum := make([]float32, len(d)), make([]float64, len(d))
	Ratios(r, sum, d, g, 1, math.SmallestNonzeroFloat32)
	for i, x := range d {
		term := float64(x) * Log(float64(x)/float64(g[i]))
		if want := 0 + term; sum[i] != want {
			t.Errorf("%v·ln(%v/%v) = %v, want %v", x, x, g[i], sum[i], want)
		}
	}
}
