package num

import (
	"math"
	"unsafe"
)

// This file has what a linear model with softmax outputs computes of a block of rows: products of float32 rows and
// float64 weights, their softmax, and sums of outer products. All sums are float64.
//
// A block's values (columns×BlockRows) have a column after the other: value j of row i is element
// j·BlockRows + i. The elements behind the last row are working memory.

// BlockRows is the greatest number of rows of a block.
const BlockRows = 64

// TotalLanes is how many sums Softmax keeps of a column: lane l takes the rows i with i mod TotalLanes = l.
const TotalLanes = 8

// scoreLanes is how many sums a score has: lane l takes the features k with k mod scoreLanes = l.
const scoreLanes = 4

// even returns the number of columns of values that ScoreRows writes: n, or one more.
func even(n int) int { return n + n&1 }

// ScoreValues is the length of the values of n columns.
func ScoreValues(n int) int { return even(n) * BlockRows }

// PackedLen is the length of the packed weights of k features and n columns.
func PackedLen(k, n int) int { return ((k+scoreLanes-1)/scoreLanes + 1) * scoreLanes * even(n) }

// PackWeights sets dst (PackedLen) to a matrix m (k×n) and offsets (n) in the order in which ScoreRows
// reads them: of each four features, each column's four weights; then each offset four times.
func PackWeights(dst, m, offsets []float64, k, n int) {
	if n <= 0 || len(m) != k*n || len(offsets) != n || len(dst) != PackedLen(k, n) {
		panic("num: weights of another shape")
	}
	step := scoreLanes * even(n)
	for from := 0; from < k; from += scoreLanes {
		to := dst[from/scoreLanes*step:][:step]
		if k-from < scoreLanes || n&1 > 0 {
			clear(to)
		}
		for l := range min(scoreLanes, k-from) {
			for j, w := range m[(from+l)*n:][:n] {
				to[j*scoreLanes+l] = w
			}
		}
	}
	behind := dst[len(dst)-step:]
	clear(behind[n*scoreLanes:])
	for j, b := range offsets {
		for l := range scoreLanes {
			behind[j*scoreLanes+l] = b
		}
	}
}

// ScoreRows sets dst (ScoreValues) to the products of rows of k features and packed weights, plus the
// offsets. Row i is x[at[i]:at[i]+k]; there are BlockRows at most. A product has four sums: the features of a
// lane in order, each term a fused multiply-add; it is (s0 + s1) + (s2 + s3), to which the offset is added.
func ScoreRows(dst []float64, x []float32, at []int, k int, packed []float64, n int) {
	checkBlock(len(x), at, k)
	if n <= 0 || len(packed) != PackedLen(k, n) || len(dst) != ScoreValues(n) {
		panic("num: a product of matrices whose shapes differ")
	}
	if !Accelerated || k == 0 || len(at) == 0 {
		scoreRowsGo(dst, x, at, k, packed, n)
		return
	}
	whole := len(at) &^ 3
	if whole > 0 {
		scoreFours(dst, x, at[:whole], k, packed, n)
	}
	if whole < len(at) { // the last row again in the place of missing ones
		var rest [4]int
		for i := range rest {
			rest[i] = at[min(whole+i, len(at)-1)]
		}
		scoreFours(dst[whole:], x, rest[:], k, packed, n)
	}
}

// scoreFours is ScoreRows with vectors, for a multiple of four rows. k is above 0.
func scoreFours(dst []float64, x []float32, at []int, k int, packed []float64, n int) {
	width := even(n)
	offsets := &packed[len(packed)-scoreLanes*width]
	if wide {
		scoreRowsAVX512(&dst[0], &x[0], &at[0], len(at)/4, k, &packed[0], width, offsets, width/2)
	} else {
		scoreRowsAVX2(&dst[0], &x[0], &at[0], len(at)/4, k, &packed[0], width, offsets, n)
	}
}

// checkBlock panics if a row of k values that begins at an element of at is not within x.
func checkBlock(x int, at []int, k int) {
	if k < 0 || len(at) > BlockRows {
		panic("num: a block of too many rows")
	}
	for _, a := range at {
		if uint(a) > uint(x-k) || x < k {
			panicIndex()
		}
	}
}

// AddRowOuters adds Σ_i p_i x_iᵀ to the first k columns of sums (n×stride): x_i are rows as in ScoreRows, and p_i
// their values in p. Each sum takes the rows in order, each term a fused multiply-add. The stride is a multiple of
// 8, and the columns from k on are working memory.
func AddRowOuters(sums []float64, stride int, x []float32, at []int, k int, p []float64, n int) {
	checkBlock(len(x), at, k)
	if stride%8 != 0 || stride < k || n < 0 || len(sums) != n*stride || len(p) < n*BlockRows {
		panic("num: a product of matrices whose shapes differ")
	}
	if !Accelerated || len(at) == 0 || k == 0 || n == 0 {
		addRowOutersGo(sums, stride, x, at, k, p, n)
		return
	}
	done := 0
	if wide && k >= 16 {
		done = k &^ 15
		addRowOutersAVX512(&sums[0], stride, &x[0], &at[0], len(at), done, &p[0], n)
	}
	if done < k {
		addRowOutersAVX2(&sums[done], stride, unsafe.SliceData(x[done:]), &at[0], len(at), k-done, &p[0], n)
	}
}

// entryColumns is how many columns the products of sparse rows take at a time.
const entryColumns = 8

// ScoreEntries is ScoreRows for sparse rows, BlockRows at most, and weights that are not packed, m (features×n) and
// offsets. Row i has the entries in its span, with values a in the columns that index names. A score is the
// offset, to which the row's terms are added in order, each a fused multiply-add.
func ScoreEntries(dst []float64, rows []Span, a []float32, index []uint32, m, offsets []float64, n int) {
	checkEntries(len(dst), rows, len(a), len(index), m, n)
	checkSame(len(offsets), n)
	if len(rows) == 0 {
		return
	}
	if !Accelerated {
		scoreEntriesGo(dst, rows, a, index, m, offsets, n)
		return
	}
	for from := 0; from < n; from += entryColumns {
		if !scoreEntriesAVX2(&dst[from*BlockRows], &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index),
			from64(m, from),
			len(m)/n, n, min(n-from, entryColumns), &offsets[from]) {
			panicIndex()
		}
	}
}

// AddEntryOuters adds Σ_i x_i p_iᵀ to m (features×n): x_i are the sparse rows, as in ScoreEntries, and p_i their values
// in p. Each sum takes the rows in order, each term a fused multiply-add.
func AddEntryOuters(m []float64, rows []Span, a []float32, index []uint32, p []float64, n int) {
	checkEntries(len(p), rows, len(a), len(index), m, n)
	if len(rows) == 0 {
		return
	}
	if !Accelerated {
		addEntryOutersGo(m, rows, a, index, p, n)
		return
	}
	for from := 0; from < n; from += entryColumns {
		if !addEntryOutersAVX2(from64(m, from), &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index),
			&p[from*BlockRows],
			len(m)/n, n, min(n-from, entryColumns)) {
			panicIndex()
		}
	}
}

func checkEntries(values int, rows []Span, a, index int, m []float64, n int) {
	checkIndex(a, index)
	if n <= 0 || len(m)%n != 0 || values < n*BlockRows || len(rows) > BlockRows {
		panic("num: a product of matrices whose shapes differ")
	}
	for _, r := range rows {
		if r.From > r.To || int(r.To) > a {
			panicIndex()
		}
	}
}

// from64 returns the place of v[from], of an empty v too.
func from64(v []float64, from int) *float64 { return unsafe.SliceData(v[min(from, len(v)):]) }

// SoftmaxRows is what Softmax tells of each row besides its values: the greatest score, and Σ exp(score -
// greatest), at least 1.
type SoftmaxRows struct{ Most, Sum [BlockRows]float64 }

// Softmax replaces the scores of rows (n columns, as ScoreRows makes them) by exp(s) / Σ exp(s), and adds these to
// totals (n×TotalLanes). Exponentials are within 1 unit in the last place; a score that is more than 700 below its
// row's greatest counts as 700 below it. A row with a score that is infinite or no number has a Sum that is none.
func Softmax(v []float64, n, rows int, totals []float64, of *SoftmaxRows) {
	if n <= 0 || rows < 0 || rows > BlockRows || len(v) < n*BlockRows || len(totals) != n*TotalLanes {
		panic("num: values of another shape")
	}
	whole := WholeVectors(rows)
	if Accelerated && whole > 0 {
		run := softmaxAVX2
		if wide {
			run = softmaxAVX512
		}
		run(&v[0], n, whole, &totals[0], &of.Most[0], &of.Sum[0])
	}
	softmaxGo(v, n, whole, rows, totals, of)
}

// LogSum returns Σ ln Σ exp(score) over the first rows. Eight sums at a time are multiplied before their logarithm
// is taken.
func (s *SoftmaxRows) LogSum(rows int) (sum float64) {
	for from := 0; from < rows; from += 8 {
		product, most := 1.0, 0.0
		for i := from; i < min(from+8, rows); i++ {
			product *= s.Sum[i]
			most += s.Most[i]
		}
		sum += most + Log(product)
	}
	return sum
}

// The portable kernels, which the assembly must equal bit for bit.

func scoreRowsGo(dst []float64, x []float32, at []int, k int, packed []float64, n int) {
	step := scoreLanes * even(n)
	offsets := packed[len(packed)-step:]
	for i, a := range at {
		for j := range n {
			var s [scoreLanes]float64
			row, w := x[a:a+k], packed[j*scoreLanes:]
			for ; len(row) >= scoreLanes; row, w = row[scoreLanes:], w[step:] {
				for l, y := range row[:scoreLanes] {
					s[l] = math.FMA(float64(y), w[l], s[l])
				}
			}
			for l, y := range row {
				s[l] = math.FMA(float64(y), w[l], s[l])
			}
			dst[j*BlockRows+i] = ((s[0] + s[1]) + (s[2] + s[3])) + offsets[j*scoreLanes]
		}
	}
}

func addRowOutersGo(sums []float64, stride int, x []float32, at []int, k int, p []float64, n int) {
	for i, a := range at {
		row := x[a : a+k]
		for j := range n {
			y, sum := p[j*BlockRows+i], sums[j*stride:][:len(row)]
			for l, z := range row {
				sum[l] = math.FMA(float64(z), y, sum[l])
			}
		}
	}
}

func scoreEntriesGo(dst []float64, rows []Span, a []float32, index []uint32, m, offsets []float64, n int) {
	for i, r := range rows {
		for j, b := range offsets {
			dst[j*BlockRows+i] = b
		}
		for k := r.From; k < r.To; k++ {
			x := float64(a[k])
			for j, w := range rowAt(m, index[k], n) {
				dst[j*BlockRows+i] = math.FMA(x, w, dst[j*BlockRows+i])
			}
		}
	}
}

func addEntryOutersGo(m []float64, rows []Span, a []float32, index []uint32, p []float64, n int) {
	for i, r := range rows {
		for k := r.From; k < r.To; k++ {
			x, row := float64(a[k]), rowAt(m, index[k], n)
			for j := range row {
				row[j] = math.FMA(x, p[j*BlockRows+i], row[j])
			}
		}
	}
}

// softmaxGo does the rows [from, rows).
func softmaxGo(v []float64, n, from, rows int, totals []float64, of *SoftmaxRows) {
	for i := from; i < rows; i++ {
		most := v[i]
		for j := 1; j < n; j++ {
			if x := v[j*BlockRows+i]; !(most > x) {
				most = x
			}
		}
		sum := 0.0
		for j := range n {
			e := expBelow(v[j*BlockRows+i] - most)
			v[j*BlockRows+i] = e
			sum += e
		}
		of.Most[i], of.Sum[i] = most, sum
		share := 1 / sum
		for j := range n {
			p := float64(v[j*BlockRows+i] * share)
			v[j*BlockRows+i] = p
			totals[j*TotalLanes+i%TotalLanes] += p
		}
	}
}

// belowLeast is the least x that expBelow takes the exponential of.
const belowLeast = -700

// expInv and the others take x to k·ln 2 + r with |r| <= ln 2 / 2.
const (
	expInv = 0x1.71547652b82fep+0  // 1 / ln 2
	expHi  = 0x1.62e42fefa39efp-1  // ln 2
	expLo  = 0x1.abc9e3b39803fp-56 // ln 2 - expHi
)

// expBelow returns e^x for x <= 0, and e^belowLeast below that: the series of e^r up to r¹³, which leaves less
// than 2^-56, in Horner's form.
func expBelow(x float64) float64 {
	if belowLeast > x {
		x = belowLeast
	}
	shifted := math.FMA(x, expInv, expShift)
	k := shifted - expShift
	r := math.FMA(k, -expHi, x)
	r = math.FMA(k, -expLo, r)
	p := expSeries[0]
	for _, c := range expSeries[1:] {
		p = math.FMA(p, r, c)
	}
	return float64(p * math.Float64frombits((math.Float64bits(shifted)+1023)<<52))
}

// expSeries are 1/13!, 1/12!, ..., 1/0!.
var expSeries = [...]float64{
	1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1,
}
