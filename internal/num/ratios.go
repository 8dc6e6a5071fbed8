package num

import "unsafe"

// The ratios of K-L divergences, of many rows side by side: slices of one value for each row.
// Lanes run across rows, so a row's bits are what it has alone.

// Ratios sets r to weight·d/g, with g not below floor, which is above 0, and adds
// d·ln(d/g) to sum in float64 where d > 0: the terms of a K-L divergence in nats.
func Ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	n := len(r)
	checkSame(len(sum), n)
	checkSame(len(d), n)
	checkSame(len(g), n)
	for at := 0; at < n; {
		if Accelerated {
			at += ratiosAVX2(unsafe.SliceData(r[at:]), unsafe.SliceData(sum[at:]), unsafe.SliceData(d[at:]), unsafe.SliceData(g[at:]),
				(n-at)&^(ratioLanes-1), weight, floor)
		}
		end := min(n, at+ratioLanes) // too few for a vector, or one that is not finite
		ratiosGo(r[at:end], sum[at:end], d[at:end], g[at:end], weight, floor)
		at = end
	}
}

// ratioLanes is how many ratios a vector has.
const ratioLanes = 4

func ratiosGo(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	sum, d, g = sum[:len(r)], d[:len(r)], g[:len(r)]
	for i, x := range d {
		y := max(g[i], floor)
		r[i] = weight * x / y
		if x > 0 {
			sum[i] += float64(float64(x) * Log(float64(x)/float64(y)))
		}
	}
}

// RatioRows sets r to d/g, with g not below floor, which is above 0, and adds to sum, of
// each column, the sum of d·ln(d/g) where d > 0, the first row first: K-L divergences in
// nats. r, d and g have rows as long as sum.
func RatioRows(r []float32, sum []float64, d, g []float32, floor float32) {
	n := len(sum)
	checkSame(len(d), len(r))
	checkSame(len(g), len(r))
	if n == 0 || len(r)%n != 0 {
		panic("num: a matrix of incomplete rows")
	}
	width := mostColumns // columns that are to be done otherwise before the next vector
	switch {
	case wide:
		width = 2 * ratioLanes
	case Accelerated:
		width = ratioLanes
	}
	for at := 0; at < n; {
		if columns := (n - at) &^ (width - 1); Accelerated && columns > 0 && len(r) > 0 {
			rr, s, dd, gg := unsafe.SliceData(r[at:]), unsafe.SliceData(sum[at:]), unsafe.SliceData(d[at:]), unsafe.SliceData(g[at:])
			if wide {
				at += ratioRowsAVX512(rr, s, dd, gg, len(r)/n, n, columns, floor)
			} else {
				var work ratioWork
				at += ratioRowsAVX2(rr, s, dd, gg, len(r)/n, n, columns, floor, &work)
			}
		}
		// Vectors of whole columns leave the last ones, and stop at a ratio that is not finite.
		if end := min(n, at+width); at < end {
			ratioColumns(r, sum, d, g, floor, at, end)
			at = end
		}
	}
}

// mostColumns is how many columns are summed beside each other.
const mostColumns = 64

// ratioColumns is RatioRows of the columns [from, to), mostColumns at the most.
func ratioColumns(r []float32, sum []float64, d, g []float32, floor float32, from, to int) {
	var sums [mostColumns]float64
	kl := sums[:to-from]
	for at := 0; at < len(r); at += len(sum) {
		Ratios(r[at+from:at+to], kl, d[at+from:at+to], g[at+from:at+to], 1, floor)
	}
	Add64(sum[from:to], kl)
}

// ratioTerms is how many vectors of a column go through a part of the logarithm at a time.
const ratioTerms = 32

// ratioWork is what these parts leave to each other, four vectors of each, and room to align
// them.
type ratioWork [ratioTerms*4*ratioLanes + ratioLanes]float64
