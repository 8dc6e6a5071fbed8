package statistics

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// The integral of RangeCDF is cut at ±rangeLimit, beyond which the normal density is below
// 1e-22, into pieces of so many points of Gauss and Legendre.
const (
	rangeLimit  = 10
	rangePieces = 40
	rangePoints = 16
)

// RangeCDF is the probability that the range of k independent standard normal values is at
// most q: k ∫ φ(z) (Φ(z) - Φ(z - q))^(k-1) dz, the studentised range with infinitely many
// degrees of freedom. Its error is below 1e-12.
func RangeCDF(q float64, k int) float64 {
	if q <= 0 {
		return 0
	}
	density := func(z float64) float64 {
		inside := float64(normalCDF(z)) - float64(normalCDF(z-q))
		return normalDensity(z) * math.Pow(inside, float64(k-1))
	}
	sum, width := 0.0, 2*float64(rangeLimit)/rangePieces
	for i := range rangePieces {
		from := float64(float64(i)*width) - rangeLimit
		sum += quad.Fixed(density, from, from+width, rangePoints, quad.Legendre{}, 1)
	}
	return min(1, float64(k)*sum)
}

// RangeQuantile is the q with RangeCDF p, by bisection, for 0 < p < 1 and k of at least 2.
func RangeQuantile(p float64, k int) float64 {
	if !(p > 0 && p < 1) || k < 2 {
		panic("statistics: no such quantile of a range")
	}
	low, high := 0.0, 1.0
	for RangeCDF(high, k) < p && high < 64 {
		low, high = high, 2*high
	}
	for range 60 {
		if middle := (low + high) / 2; RangeCDF(middle, k) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}
