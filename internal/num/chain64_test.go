package num

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestChains64: vectors have the bits of the portable loops.
func TestChains64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		a, b := doubles(t, n, "a"), doubles(t, n, "b")
		var s [4]float64
		for i := range n {
			lane := i % 4
			if i >= n&^3 {
				lane = 0
			}
			s[lane] += float64(a[i] * b[i])
		}
		sum := []float64{(s[0] + s[1]) + (s[2] + s[3])}
		scaled := slices.Clone(b)
		for i, x := range a {
			scaled[i] += float64(0.7 * x)
		}
		vectors(func(name string) {
			requireSame64(t, "Dot64 with "+name, []float64{Dot64(a, b)}, sum)
			got := slices.Clone(b)
			AddScaled64(got, 0.7, a)
			requireSame64(t, "AddScaled64 with "+name, got, scaled)
		})
	})
}
