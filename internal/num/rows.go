package num

import (
	"math"
	"unsafe"
)

// MulAddRows adds the combination a of the rows of m (len(a) × len(dst),
// row-major) to dst: dst[j] = fma(a[k], m[k,j], dst[j]) for k = 0, 1, ... in
// order. That is dst += aᵀm.
func MulAddRows(dst, a, m []float32) {
	checkRows(len(m), len(a), len(dst))
	if !Accelerated {
		mulAddRowsGo(dst, a, m)
		return
	}
	mulAddRowsAVX2(unsafe.SliceData(dst), len(dst), unsafe.SliceData(a), len(a), unsafe.SliceData(m))
}

// MulAddRowsAt is MulAddRows with the rows index[k] of m: dst[j] =
// fma(a[k], m[index[k],j], dst[j]), the product of a sparse row with m.
func MulAddRowsAt(dst, a []float32, index []uint32, m []float32) {
	checkIndex(len(a), len(index))
	n := len(dst)
	if !Accelerated || n == 0 {
		mulAddRowsAtGo(dst, a, index, m)
		return
	}
	run := mulAddRowsAtAVX2
	if wide && n%64 == 0 && len(a) > 0 {
		run = mulAddRowsAtAVX512
	}
	if !run(unsafe.SliceData(dst), n, unsafe.SliceData(a), len(a), unsafe.SliceData(m),
		unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}

// AddOuter adds the outer product of a and x to m (len(a) × len(x), row-major):
// m[k,j] = fma(a[k], x[j], m[k,j]).
func AddOuter(m, a, x []float32) {
	checkRows(len(m), len(a), len(x))
	if !Accelerated {
		addOuterGo(m, a, x)
		return
	}
	addOuterAVX2(unsafe.SliceData(m), len(x), unsafe.SliceData(a), len(a), unsafe.SliceData(x))
}

// AddOuterAt is AddOuter on the rows index[k] of m: m[index[k],j] =
// fma(a[k], x[j], m[index[k],j]), for k in order where a row comes twice.
func AddOuterAt(m []float32, index []uint32, a, x []float32) {
	checkIndex(len(a), len(index))
	n := len(x)
	if !Accelerated || n == 0 {
		addOuterAtGo(m, index, a, x)
		return
	}
	if !addOuterAtAVX2(unsafe.SliceData(m), n, unsafe.SliceData(a), len(a), unsafe.SliceData(x),
		unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}

// AddOuterVia is AddOuterAt on the rows slot[index[k]] of m. Vectors take rows of whole blocks of
// eight, or of four of the widest.
func AddOuterVia(m []float32, slot, index []uint32, a, x []float32) {
	checkIndex(len(a), len(index))
	n := len(x)
	if !Accelerated || n == 0 || n%64 != 0 {
		for k, c := range index {
			if int(c) >= len(slot) {
				panicIndex()
			}
			AddOuterAt(m, slot[c:c+1], a[k:k+1], x)
		}
		return
	}
	run := addOuterViaAVX2
	if wide {
		run = addOuterViaAVX512
	}
	if len(a) > 0 && !run(unsafe.SliceData(m), n, unsafe.SliceData(a), len(a), unsafe.SliceData(x),
		unsafe.SliceData(index),
		unsafe.SliceData(slot), len(slot), len(m)/n) {
		panicIndex()
	}
}

// AddOuter64 is AddOuter into float64 sums: m[k,j] += a[k]·x[j], the product
// exact and the sum rounded once.
func AddOuter64(m []float64, a, x []float32) {
	checkRows(len(m), len(a), len(x))
	if !Accelerated {
		addOuter64Go(m, a, x)
		return
	}
	addOuter64AVX2(unsafe.SliceData(m), len(x), unsafe.SliceData(a), len(a), unsafe.SliceData(x))
}

func checkRows(have, rows, width int) {
	if have < rows*width {
		panic("num: a matrix shorter than its shape")
	}
}

func checkIndex(values, index int) {
	if values != index {
		panic("num: a sparse row of different numbers of values and indices")
	}
}

func panicIndex() { panic("num: a row index outside its matrix") }

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

// The portable kernels, which the assembly must equal bit for bit.

func mulAddRowsGo(dst, a, m []float32) {
	n := len(dst)
	for k, x := range a {
		mulAddRow(dst, x, m[k*n:k*n+n])
	}
}

func mulAddRowsAtGo(dst, a []float32, index []uint32, m []float32) {
	n := len(dst)
	for k, x := range a {
		at := int(index[k]) * n
		if at+n > len(m) {
			panicIndex()
		}
		mulAddRow(dst, x, m[at:at+n])
	}
}

func addOuterGo(m, a, x []float32) {
	n := len(x)
	for k, y := range a {
		mulAddRow(m[k*n:k*n+n], y, x)
	}
}

func addOuterAtGo(m []float32, index []uint32, a, x []float32) {
	n := len(x)
	for k, y := range a {
		at := int(index[k]) * n
		if at+n > len(m) {
			panicIndex()
		}
		mulAddRow(m[at:at+n], y, x)
	}
}

func addOuter64Go(m []float64, a, x []float32) {
	n := len(x)
	for k, y := range a {
		row, v := m[k*n:k*n+n], float64(y)
		for j, z := range x[:len(row)] {
			row[j] += float64(v * float64(z)) // exact
		}
	}
}

// mulAddRow sets dst[j] = fma(a, x[j], dst[j]), with FMA32 written out.
func mulAddRow(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	y := float64(a)
	for j, c := range dst {
		p := float64(y * float64(x[j]))
		s := p + float64(c)
		if u := math.Float64bits(s); u&tieMask == tieBits || u<<1-1 < minNormal<<53-1 {
			dst[j] = fmaSlow(p, c, s)
			continue
		}
		dst[j] = float32(s)
	}
}

// Span is where the entries of a sparse row stand: those from From on, before To.
type Span struct{ From, To uint32 }

// AddSparseProduct64 adds the product of sparse rows and m to dst (row-major, a row of n for each span):
// the entries of a row, with values a in the columns that index names, each add a[k]·m[index[k],j] to
// its dst[j], in order. The rows of m have n values. Each product is rounded before it is added.
func AddSparseProduct64(dst []float64, rows []Span, a []float32, index []uint32, m []float64, n int) {
	checkSpans(len(dst), rows, len(a), len(index), n)
	if len(dst) == 0 {
		return
	}
	if Accelerated {
		if !addSparseProduct64AVX2(&dst[0], n, &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index),
			unsafe.SliceData(m), len(m)/n) {
			panicIndex()
		}
		return
	}
	for i, r := range rows {
		for k := r.From; k < r.To; k++ {
			addScaled64(dst[i*n:][:n], float64(a[k]), rowAt(m, index[k], n))
		}
	}
}

// AddSparseProductT64 adds the product of the transpose of sparse rows and x (row-major, a row of n for each
// span) to m, whose rows have n values: m[index[k],j] += a[k]·x[i,j] for the rows and their entries k
// in order, each product rounded before it is added.
func AddSparseProductT64(m []float64, rows []Span, a []float32, index []uint32, x []float64, n int) {
	checkSpans(len(x), rows, len(a), len(index), n)
	if len(x) == 0 {
		return
	}
	if Accelerated {
		if !addSparseProductT64AVX2(unsafe.SliceData(m), n, &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index),
			&x[0], len(m)/n) {
			panicIndex()
		}
		return
	}
	for i, r := range rows {
		for k := r.From; k < r.To; k++ {
			addScaled64(rowAt(m, index[k], n), float64(a[k]), x[i*n:][:n])
		}
	}
}

func checkSpans(values int, rows []Span, a, index, n int) {
	checkIndex(a, index)
	checkSame(values, len(rows)*n)
	for _, r := range rows {
		if r.From > r.To || int(r.To) > a {
			panicIndex()
		}
	}
}

// rowAt returns a row of n values.
func rowAt(m []float64, row uint32, n int) []float64 {
	at := int(row) * n
	if at+n > len(m) {
		panicIndex()
	}
	return m[at : at+n]
}
