package num

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
		at += ratios(r[at:], sum[at:], d[at:], g[at:], weight, floor)
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
	for at := 0; at < n; {
		done, width := ratioRows(r, sum, d, g, floor, at)
		at += done
		end := min(n, at+width) // what vectors of whole columns leave
		if at < end {
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
