package num

import "math"

const (
	tieMask   = 1<<29 - 1  // the bits of a float64 that a normal float32 lacks
	tieBits   = 1 << 28    // exactly half way between two normal float32 numbers
	minNormal = 1023 - 126 // the exponent field of float32's smallest normal number
)

// FMA32 returns a·b + c, rounded once to float32 (IEEE 754 fusedMultiplyAdd).
// The float64 product is exact; the float64 sum rounds to the right float32
// unless it looks like a tie, or is subnormal in float32: then fmaSlow decides.
func FMA32(a, b, c float32) float32 {
	p := float64(float64(a) * float64(b))
	s := p + float64(c)
	if u := math.Float64bits(s); u&tieMask == tieBits || u<<1-1 < minNormal<<53-1 {
		return fmaSlow(p, c, s)
	}
	return float32(s)
}

// fmaSlow rounds p + c to float32, where s is p + c rounded to float64: TwoSum
// finds what s lacks, s is rounded to odd with it, and float32 of an odd s is
// right because float64 has more than two bits to spare.
//
//go:noinline
func fmaSlow(p float64, c float32, s float64) float32 {
	b := s - p
	lost := (p - (s - b)) + (float64(c) - b)
	if s == 0 || lost == 0 || lost != lost {
		return float32(s)
	}
	if u := math.Float64bits(s); u&1 == 0 {
		if (lost > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}
