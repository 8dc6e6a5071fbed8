package num

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestKeepPositive holds each element against its definition: zeros of both signs and what is no
// number, in any lane, included.
func TestKeepPositive(t *testing.T) {
	special := rapid.SampledFrom([]float32{
		0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Copysign(math.NaN(), -1)),
		float32(math.Inf(1)), float32(math.Inf(-1)), 1e-45, -1e-45, 1, -1,
	})
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		dst, v, by := values(t, n, "dst"), values(t, n, "v"), values(t, n, "by")
		for i := range by.v {
			if rapid.Bool().Draw(t, "special") {
				by.v[i] = special.Draw(t, "by")
			}
		}
		want := dst.clone()
		for i, x := range by.v {
			if want.v[i] = 0; x > 0 {
				want.v[i] = v.v[i]
			}
		}
		KeepPositive(dst.v, v.v, by.v)
		requireSame(t, "kept", dst, want)
	})
}
