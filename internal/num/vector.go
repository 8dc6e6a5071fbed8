// Package num holds all arithmetic that reaches a model's digest or a measure.
//
// Everything here gives the same bits on every processor and in every build
// mode. Three rules make that so:
//
//   - exp, log, sine, cosine, random streams and normals are written here from
//     IEEE 754 additions, multiplications, divisions and square roots, each
//     correctly rounded. Of package math only Sqrt, FMA, Floor, bit functions and
//     constants are used.
//   - Nothing fuses by itself: the compiler may turn x*y + z into one rounding
//     (arm64 and GOAMD64=v3 do), so each product that is added to something is
//     written float64(x*y) + z. A test of the package nofuse looks for fused
//     instructions in what is compiled.
//   - Where a fused multiply-add is wanted it is explicit and exact: float32
//     matrix kernels use FMA32 for each element, with the sum over k in order.
//     Vector lanes run across outputs or across rows, never across k.
//
// The package is pure: no state, no goroutine, no I/O, no allocation in kernels.
package num

import (
	"math"
	"unsafe"
)

// What is done element by element. Vectors of eight do what they can, and a loop the rest; the bits are the same.

// WholeVectors returns how many of n elements the vectors of eight take: none on a
// processor without, which must not even see an instruction of theirs.
func WholeVectors(n int) int {
	if !Accelerated {
		return 0
	}
	return n &^ 7
}

func checkSame(a, b int) {
	if a != b {
		panic("num: vectors of different lengths")
	}
}

// Add32 adds src to dst, element by element. Both have the same length.
func Add32(dst, src []float32) {
	checkSame(len(dst), len(src))
	n := WholeVectors(len(src))
	if Accelerated && n > 0 {
		add32AVX2(&dst[0], &src[0], n)
	}
	src = src[n:]
	dst = dst[n:][:len(src)]
	for i, x := range src {
		dst[i] += x
	}
}

// AddInt32 is Add32 of whole numbers.
func AddInt32(dst, src []int32) {
	checkSame(len(dst), len(src))
	n := WholeVectors(len(src))
	if Accelerated && n > 0 {
		addInt32AVX2(&dst[0], &src[0], n)
	}
	src = src[n:]
	dst = dst[n:][:len(src)]
	for i, x := range src {
		dst[i] += x
	}
}

// Add64 adds src to dst, element by element. Both have the same length.
func Add64(dst, src []float64) {
	checkSame(len(dst), len(src))
	n := WholeVectors(len(src))
	if Accelerated && n > 0 {
		add64AVX2(&dst[0], &src[0], n)
	}
	src = src[n:]
	dst = dst[n:][:len(src)]
	for i, x := range src {
		dst[i] += x
	}
}

// AddConstant adds x to each element of v.
func AddConstant(v []float64, x float64) {
	n := WholeVectors(len(v))
	if Accelerated && n > 0 {
		addConstantAVX2(&v[0], n, x)
	}
	v = v[n:]
	for i := range v {
		v[i] += x
	}
}

// AddScaled64 adds a·x to dst, each product rounded before it is added. The slices have the
// same length.
func AddScaled64(dst []float64, a float64, x []float64) {
	checkSame(len(dst), len(x))
	n := WholeVectors(len(dst))
	if Accelerated && n > 0 {
		addScaled64AVX2(&dst[0], a, &x[0], n)
	}
	addScaled64(dst[n:], a, x[n:])
}

// addScaled64 is AddScaled64 without vectors.
func addScaled64(dst []float64, a float64, x []float64) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += float64(a * x[j])
	}
}

// AddSquares adds (x - y_i)² to each element i of v. The difference, its square and the sum are
// rounded one by one.
func AddSquares(v, y []float64, x float64) {
	checkSame(len(v), len(y))
	n := WholeVectors(len(v))
	if Accelerated && n > 0 {
		addSquaresAVX2(&v[0], &y[0], n, x)
	}
	y = y[n:]
	v = v[n:][:len(y)]
	for i := range v {
		d := x - y[i]
		v[i] += float64(d * d)
	}
}

// Fill sets all elements of v to x.
func Fill[T any](v []T, x T) {
	for i := range v {
		v[i] = x
	}
}

// Mul32 multiplies dst by a, element by element. Both have the same length.
func Mul32(dst, a []float32) {
	checkSame(len(dst), len(a))
	n := WholeVectors(len(dst))
	if Accelerated && n > 0 {
		mul32AVX2(&dst[0], &a[0], n)
	}
	a = a[n:]
	dst = dst[n:][:len(a)]
	for i := range dst {
		dst[i] *= a[i]
	}
}

// Scale32 multiplies v by a.
func Scale32(v []float32, a float32) {
	n := WholeVectors(len(v))
	if Accelerated && n > 0 {
		scale32AVX2(&v[0], n, a)
	}
	v = v[n:]
	for i := range v {
		v[i] *= a
	}
}

// Standardise sets dst to (x - shift)·scale, computed in float64 and rounded once more,
// element by element. All have the same length.
func Standardise(dst, x []float32, shift, scale []float64) {
	checkSame(len(x), len(dst))
	checkSame(len(shift), len(dst))
	checkSame(len(scale), len(dst))
	n := WholeVectors(len(dst))
	if Accelerated && n > 0 {
		standardiseAVX2(&dst[0], &x[0], &shift[0], &scale[0], n)
	}
	dst = dst[n:]
	x, shift, scale = x[n:][:len(dst)], shift[n:][:len(dst)], scale[n:][:len(dst)]
	for i, v := range x {
		dst[i] = float32((float64(v) - shift[i]) * scale[i])
	}
}

// KeepPositive sets dst to the elements of v where those of by are above 0, and to 0 elsewhere: at
// 0, below, and at what is no number. All have the same length; dst may be v or by.
func KeepPositive(dst, v, by []float32) {
	checkSame(len(dst), len(v))
	checkSame(len(dst), len(by))
	n := WholeVectors(len(dst))
	if Accelerated && n > 0 {
		keepPositiveAVX2(&dst[0], &v[0], &by[0], n)
	}
	dst = dst[n:]
	v, by = v[n:][:len(dst)], by[n:][:len(dst)]
	for i, x := range by { // without a branch, which processors would guess wrong half the time
		keep := uint32(0)
		if x > 0 {
			keep = 1
		}
		dst[i] = math.Float32frombits(math.Float32bits(v[i]) & -keep)
	}
}

// Canonical32 turns each -0 of v into +0, as partials are written (design
// section 8.4); then an absent row and a row of zeros are the same bytes. It reports whether v has neither an
// infinity nor a NaN.
func Canonical32(v []float32) (finite bool) {
	n, finite := WholeVectors(len(v)), true
	if Accelerated && n > 0 {
		finite = canonical32AVX2(&v[0], n)
	}
	v = v[n:]
	for i, x := range v {
		if x == 0 {
			v[i] = 0
		}
		finite = finite && x-x == 0
	}
	return finite
}

// Canonical64 is Canonical32 for float64; it reports nothing.
func Canonical64(v []float64) {
	n := WholeVectors(len(v))
	if Accelerated && n > 0 {
		canonical64AVX2(&v[0], n)
	}
	v = v[n:]
	for i, x := range v {
		if x == 0 {
			v[i] = 0
		}
	}
}

// Finite32 reports whether v has neither an infinity nor a NaN.
func Finite32(v []float32) bool {
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// Finite64 is Finite32 for float64.
func Finite64(v []float64) bool {
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// Sum64 returns the sum of v in float64, in order.
func Sum64(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	return sum
}

// Dot64 returns Σ a·b: four sums of every fourth product. The products after the last whole four
// go to the first sum, and (s0 + s1) + (s2 + s3) is the result. Each product
// is rounded. The slices have the same length.
func Dot64(a, b []float64) float64 {
	checkSame(len(a), len(b))
	var s [4]float64
	if n := len(a) &^ 3; Accelerated && n > 0 {
		dot64AVX2(&s[0], &a[0], &b[0], n)
		a, b = a[n:], b[n:]
	}
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s[0] += float64(x[0] * y[0])
		s[1] += float64(x[1] * y[1])
		s[2] += float64(x[2] * y[2])
		s[3] += float64(x[3] * y[3])
	}
	for ; i < len(a); i++ {
		s[0] += float64(a[i] * b[i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// SquaresRows is how many rows a panel of Squares has.
const SquaresRows = 16

// Squares sets dst (16) to the squared Euclidean distances Σ_k (x_k - panel_k,i)² between x and
// the 16 rows i of a panel (len(x)×16, column after column). Each is a chain over ascending k:
// the difference, its square and the sum are rounded one by one.
func Squares(dst, panel, x []float64) {
	checkSame(len(dst), SquaresRows)
	checkSame(len(panel), SquaresRows*len(x))
	if Accelerated {
		squaresAVX2(&dst[0], unsafe.SliceData(panel), unsafe.SliceData(x), len(x))
		return
	}
	squaresGo(dst, panel, x)
}

func squaresGo(dst, panel, x []float64) {
	sum := (*[SquaresRows]float64)(dst)
	clear(sum[:])
	for k, v := range x {
		for i, y := range (*[SquaresRows]float64)(panel[k*SquaresRows:]) {
			d := v - y
			sum[i] += float64(d * d)
		}
	}
}
