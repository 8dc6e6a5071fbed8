package linalg

import (
	"errors"
	"fmt"
	"math"
)

// ErrRank is wrapped by LeastSquares's error about columns that depend on each other.
var ErrRank = errors.New("linalg: the columns of the matrix are linearly dependent")

// panel is how many columns Householder reflections take at a time. It decides bits.
const panel = 32

// LeastSquares returns the x, of a.Columns×b.Columns, of the least ‖a·x - b‖ for each column of b,
// by Householder reflections. a has no fewer rows than columns. A column whose part that is
// orthogonal to the columns before is below limit times its length makes an error that wraps
// ErrRank; 0 asks for columns that are exactly dependent only.
func LeastSquares(a, b Matrix, limit float64) (Matrix, error) {
	m, n := a.Rows, a.Columns
	if m < n || b.Rows != m {
		return Matrix{}, fmt.Errorf("linalg: least squares needs as many rows as columns or more, got %d rows, %d columns, "+
			"and %d right sides of %d rows", m, n, b.Columns, b.Rows)
	}
	w := New(n+b.Columns, m) // the columns of a and b, as rows
	for i := range m {
		for j := range n {
			w.Set(j, i, a.At(i, j))
		}
		for j := range b.Columns {
			w.Set(n+j, i, b.At(i, j))
		}
	}
	lengths := make([]float64, n)
	for j := range lengths {
		lengths[j] = norm(w.row(j))
	}
	for j := 0; j < n; j += panel {
		to := min(j+panel, n)
		v, t := reflectPanel(w.Part(j, to, j, m))
		apply(w.Part(to, w.Rows, j, m), v, t)
	}
	for j, length := range lengths {
		if r := math.Abs(w.At(j, j)); !(r > limit*length) {
			return Matrix{}, fmt.Errorf("%w: column %d has length %v, but only %v orthogonal to the columns before it", ErrRank,
				j, length, r)
		}
	}
	x := New(n, b.Columns)
	for i := range n {
		for j := range b.Columns {
			x.Set(i, j, w.At(n+j, i))
		}
	}
	SolveUpper(x, w.Part(0, n, 0, n).T())
	return x, nil
}

// reflectPanel replaces the columns that the rows of w hold by their part of R; what is below
// R's diagonal is no longer used. It returns the reflections I - vᵀ·t·v of all of them together:
// v has a row for each, t is upper triangular (Schreiber and Van Loan 1989).
func reflectPanel(w Matrix) (v, t Matrix) {
	n := w.Rows
	v, t = New(n, w.Columns), New(n, n)
	for j := range n {
		row := v.row(j)[j:]
		tau := reflection(row, w.row(j)[j:])
		for k := j + 1; k < n; k++ {
			to := w.row(k)[j:]
			AddScaled(to, float64(-tau*dot(row, to)), row)
		}
		t.Set(j, j, tau)
		var overlap [panel]float64
		for k := range j {
			overlap[k] = dot(v.row(k)[j:], row)
		}
		for i := range j {
			sum := 0.0
			for k := i; k < j; k++ {
				sum = math.FMA(t.At(i, k), overlap[k], sum)
			}
			t.Set(i, j, -tau*sum)
		}
	}
	return v, t
}

// reflection sets v, with v[0] = 1, and returns tau so that (I - tau·v·vᵀ)·x is zero but for its
// first element, and sets x to that.
func reflection(v, x []float64) (tau float64) {
	v[0] = 1
	length := norm(x)
	if length == 0 {
		return 0
	}
	head := x[0]
	first := -math.Copysign(length, head)
	for i := 1; i < len(x); i++ {
		v[i] = x[i] / (head - first)
		x[i] = 0
	}
	x[0] = first
	return (first - head) / first
}

// apply applies the transposed reflections of a panel to the columns that the rows of w hold.
func apply(w, v, t Matrix) {
	if w.Rows == 0 {
		return
	}
	share, turned := New(w.Rows, v.Rows), New(w.Rows, v.Rows)
	AddProduct(share, w, v.T())
	AddProduct(turned, share, t)
	SubtractProduct(w, turned, v)
}

// norm returns the Euclidean length of v.
func norm(v []float64) float64 {
	scale := 0.0
	for _, x := range v {
		scale = max(scale, math.Abs(x))
	}
	if scale == 0 || math.IsInf(scale, 1) || math.IsNaN(scale) {
		return scale
	}
	sum := 0.0
	for _, x := range v {
		y := x / scale
		sum = math.FMA(y, y, sum)
	}
	return scale * math.Sqrt(sum)
}

// dot returns Σ a·b: four chains over every fourth product, added at the end.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 = math.FMA(x[0], y[0], s0)
		s1 = math.FMA(x[1], y[1], s1)
		s2 = math.FMA(x[2], y[2], s2)
		s3 = math.FMA(x[3], y[3], s3)
	}
	for ; i < len(a); i++ {
		s0 = math.FMA(a[i], b[i], s0)
	}
	return (s0 + s1) + (s2 + s3)
}

// AddScaled adds s·v to dst.
func AddScaled(dst []float64, s float64, v []float64) {
	v = v[:len(dst)]
	for i := range dst {
		dst[i] = math.FMA(s, v[i], dst[i])
	}
}
