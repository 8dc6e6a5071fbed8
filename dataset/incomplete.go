package dataset

import "math"

// MissingDegree is a degree that is not known, in Rows.D: a NaN with one bit pattern, so that equal rows have equal
// bytes. Only rows of incomplete labels (Rows.Incomplete) have it, so no reader of degrees can take it for a 0.
var MissingDegree = math.Float32frombits(0x7fc00000)

// CountMissing returns how many degrees of a label distribution are missing.
func CountMissing(label []float32) (n int) {
	for _, d := range label {
		if d != d {
			n++
		}
	}
	return n
}

// Unassigned returns 1 less the sum of the degrees that are not missing, and at least 0: what the missing ones sum to.
func Unassigned(label []float32) float64 {
	sum := 0.0
	for _, d := range label {
		if d == d {
			sum += float64(d)
		}
	}
	return max(0, 1-sum)
}

// Repair sets the only missing degree of a label distribution to 1 less the others, at least 0. It returns how many
// degrees are still missing: 0, or at least 2.
func Repair(label []float32) (missing int) {
	if missing = CountMissing(label); missing != 1 {
		return missing
	}
	rest := float32(Unassigned(label))
	for c, d := range label {
		if d != d {
			label[c] = rest
		}
	}
	return 0
}
