package ndf

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// portable runs f without vector instructions.
func portable(f func()) {
	defer switchVectors(switchVectors(false))
	f()
}

// TestVectors: vectors and plain code give the same bits, at every length.
func TestVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "rows")
		s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "vectors"), 0, 0)
		f, w, g := make([]float32, n), make([]float32, n), make([]float64, n)
		for i := range f {
			f[i], w[i], g[i] = float32(20*s.Normal()), float32(s.Uint64n(4)), s.Normal()
		}
		var route routing
		route.set(f)
		fl, fr := route.left, route.right
		pl, pr := s.Float64(), float64(s.Uint64n(2))*s.Float64()
		type result struct {
			mass, sums    [2]float64
			g             []float64
			tanhs, slopes []float32
		}
		compute := func() (r result) {
			r.mass[0], r.mass[1] = routedMass(fl, fr, w)
			r.sums[0], r.sums[1] = ratioSums(fl, fr, w, pl, pr)
			r.g = slices.Clone(g)
			addRatios(r.g, fl, fr, w, pl, pr)
			r.tanhs = slices.Clone(f)
			tanhs(r.tanhs)
			r.slopes = slices.Clone(r.tanhs)
			tanhSlopes(r.slopes, f, float32(pr-pl))
			return r
		}
		a := compute()
		var b result
		portable(func() { b = compute() })
		if a.mass != b.mass || a.sums != b.sums || !slices.Equal(a.g, b.g) || !slices.Equal(a.tanhs, b.tanhs) ||
			!slices.Equal(a.slopes, b.slopes) {
			t.Fatalf("vectors %v, plain %v", a, b)
		}
	})
}

// TestTanh: tanh is near that of package math, odd, and rounds to 1 far from 0.
func TestTanh(t *testing.T) {
	for i := range 40_001 {
		x := float32(i-20_000) / 1000
		have := tanh32(x)
		if want := math.Tanh(float64(x)); math.Abs(float64(have)-want) > 1.5e-7 || have != -tanh32(-x) {
			t.Fatalf("tanh %v is %v, want %v", x, have, want)
		}
	}
	for _, x := range []float32{12, 1e30, float32(math.Inf(1)), float32(math.NaN())} {
		if tanh32(x) != 1 {
			t.Errorf("tanh %v is %v", x, tanh32(x))
		}
	}
}
