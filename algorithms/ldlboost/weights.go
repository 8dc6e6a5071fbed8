package ldlboost

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
)

// Weights of rows are whole multiples of a unit, a power of two, so that sums of weighted derivatives are exact, too.
// The weight of all training rows is less than 2^weightBits units. Whole weights are exact if they sum to less than
// that. A weight above 0 has one unit at least. Rows of weight 0 are left out. Sums of losses and of degrees are not
// exact with weights: they depend on the shards, but on nothing else.
const weightBits = 36

// leastExponent bounds the unit, which has an inverse.
const leastExponent = -900

// unitOf returns the unit for a weight of all training rows.
func unitOf(weight float64) float64 {
	return math.Ldexp(1, max(boost.Exponent(weight), leastExponent)-weightBits)
}

// unitsOf returns a weight above 0 in units.
func unitsOf(weight, unit float64) int64 { return max(1, boost.RoundToInt(weight/unit)) }
