package forest

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// maxDraws bounds the size of a sample: xlogx(maxDraws) stays below 2^62.
const maxDraws = 1 << 26

// nat is one nat in the fixed-point numbers of xlogx.
const nat = 1 << 31

// minGain is 2^-20 nats. A node is not split unless the gain times the node's copies is
// greater. It is above the rounding error of a sum of xlogx entries that is 0 without
// rounding (2^-32 nats for each of at most 2^10 entries).
const minGain = nat >> 20

// xlogx returns n ln n for n from 0 to most, 0 for 0, in units of 2^-31.
// Entropies of counts are sums and differences of these integers: they are exact in any
// order, so equal splits have equal gains on every machine.
// With c_k samples of class k among n, n times the entropy in nats is
// xlogx(n) - Σ xlogx(c_k).
func xlogx(most int) []int64 {
	table := make([]int64, most+1)
	for n := 2; n <= most; n++ {
		x := float64(n)
		table[n] = int64(math.Floor(float64(float64(x*num.Log(x))*nat) + 0.5))
	}
	return table
}
