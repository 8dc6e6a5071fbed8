package measures

import "math"

// Width is the number of sums that describe a set of rows: the number of rows,
// then Count sums of the measures, then Count sums of their squares. The sums of a dataset
// are the sums of its shards, added element by element.
const Width = 1 + 2*Count

// shortRow is the number of labels up to which Accumulate does not allocate.
const shortRow = 128

// Row holds the measures of one row, in the order of All.
type Row [Count]float64

// OfRow returns the measures of one row of float32 shares. d and p are divided by their
// sums; one whose sum is not positive and finite is taken as it is.
func OfRow(d, p []float32) Row {
	var buf [2 * shortRow]float64
	wide := buf[:]
	if 2*len(d) > len(wide) {
		wide = make([]float64, 2*len(d))
	}
	x, y := wide[:len(d)], wide[len(d):2*len(d)]
	widen(x, d)
	widen(y, p)
	normalize(x)
	normalize(y)
	return Row{
		KL(x, y), Euclidean(x, y), Sorensen(x, y), Chi2(x, y), Fidelity(x, y),
		Intersection(x, y), Chebyshev(x, y), Clark(x, y), Canberra(x, y), Cosine(x, y),
	}
}

// Accumulate adds one row to the sums dst (Width values): d is its true
// distribution, p the predicted one (see OfRow).
func Accumulate(dst []float64, d, p []float32) {
	if len(dst) != Width {
		panic("measures: sums of the wrong width")
	}
	accumulate(dst, OfRow(d, p))
}

// accumulate adds the measures of a row to the sums dst.
func accumulate(dst []float64, row Row) {
	dst[0]++
	for i, v := range row {
		dst[1+i] += v
		dst[1+Count+i] += float64(v * v)
	}
}

// FromSums returns mean and population standard deviation over the rows that
// sums (Width values) describe; all are NaN where there are no rows.
func FromSums(sums []float64) Report {
	if len(sums) != Width {
		panic("measures: sums of the wrong width")
	}
	var r Report
	n := sums[0]
	for i := range r {
		mean := sums[1+i] / n
		variance := sums[1+Count+i]/n - float64(mean*mean)
		r[i] = Stat{mean, math.Sqrt(max(variance, 0))}
	}
	return r
}

// OverFolds returns, for each measure, the mean over folds of the folds' means,
// and the population standard deviation of these. All are NaN where there are
// no folds.
func OverFolds(folds []Report) Report {
	var r Report
	n := float64(len(folds))
	for i := range r {
		sum, squares := 0.0, 0.0
		for k := range folds {
			sum += folds[k][i].Mean
		}
		mean := sum / n
		for k := range folds {
			d := folds[k][i].Mean - mean
			squares += float64(d * d)
		}
		r[i] = Stat{mean, math.Sqrt(squares / n)}
	}
	return r
}

func widen(dst []float64, v []float32) {
	if len(dst) != len(v) {
		panic("measures: two rows of different numbers of labels")
	}
	for i, x := range v {
		dst[i] = float64(x)
	}
}

func normalize(p []float64) {
	sum := 0.0
	for _, x := range p {
		sum += x
	}
	if !(sum > 0 && sum <= math.MaxFloat64) {
		return
	}
	for i := range p {
		p[i] /= sum
	}
}
