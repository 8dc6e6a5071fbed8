package num

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
