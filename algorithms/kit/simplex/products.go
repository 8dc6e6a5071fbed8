package simplex

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Columns are what a linear function reads of a sample: its scaled features, and a 1 for the offset if Bias is true.
type Columns struct {
	Features int
	Bias     bool
}

// Count returns the number of columns, q.
func (x Columns) Count() int {
	if x.Bias {
		return x.Features + 1
	}
	return x.Features
}

// Read sets dst to the columns of a row.
func (x Columns) Read(dst []float64, rows *dataset.Rows, pos int, scale *scaling.Values) {
	if rows.Sparse {
		clear(dst)
		columns, values := rows.NonZeros(pos)
		for i, c := range columns {
			dst[c] = float64(values[i])
		}
	} else {
		for i, v := range rows.Dense(pos) {
			dst[i] = float64(v)
		}
	}
	for i, factor := range scale.Scale {
		dst[i] = (dst[i] - scale.Shift[i]) * factor
	}
	if x.Bias {
		dst[x.Features] = 1
	}
}

// Triangle returns the number of elements on and below the diagonal of a q×q matrix.
func Triangle(q int) int { return q * (q + 1) / 2 }

// AddGram adds the products of a row's columns, times the weight of the row, to sums, a triangle, row by row.
func AddGram(sums, row []float64, weight float64) {
	for i, x := range row {
		if x *= weight; x != 0 {
			num.AddScaled64(sums[:i+1], x, row[:i+1])
		}
		sums = sums[i+1:]
	}
}

// AddOuter adds the products of a row's columns with values, times the weight of the row, to sums: columns×values,
// row-major.
func AddOuter(sums, row, values []float64, weight float64) {
	for _, x := range row {
		if x *= weight; x != 0 {
			num.AddScaled64(sums[:len(values)], x, values)
		}
		sums = sums[len(values):]
	}
}

// Scores sets dst to a row's columns times weights: columns×labels, row-major.
func Scores(dst, row, weights []float64) {
	clear(dst)
	for _, x := range row {
		if x != 0 {
			num.AddScaled64(dst, x, weights[:len(dst)])
		}
		weights = weights[len(dst):]
	}
}

// Gram returns the symmetric matrix of a triangle.
func Gram(triangle []float64, q int) linalg.Matrix {
	m := linalg.New(q, q)
	for i := range q {
		for j, x := range triangle[:i+1] {
			m.Set(i, j, x)
			m.Set(j, i, x)
		}
		triangle = triangle[i+1:]
	}
	return m
}

// Factor returns the Cholesky factor of k + ridge·I.
func Factor(k linalg.Matrix, ridge float64) (linalg.Matrix, error) {
	f := linalg.New(k.Rows, k.Rows)
	copy(f.V, k.V)
	for i := range k.Rows {
		f.Set(i, i, f.At(i, i)+ridge)
	}
	if err := linalg.Cholesky(f); err != nil {
		return f, errors.New("the products of the features cannot be solved for: scale the features, or use a greater ridge")
	}
	return f, nil
}

// Solve replaces b (columns×labels, row-major) by the weights w with (k + ridge·I)·w = b.
func Solve(factor linalg.Matrix, b []float64) {
	right := linalg.Of(b, factor.Rows, len(b)/factor.Rows)
	linalg.SolveLower(right, factor)
	linalg.SolveUpper(right, factor.T())
}

// Square returns ‖X·w‖², the squares of the scores of all samples, where k is XᵀX and w is columns×labels.
func Square(k linalg.Matrix, w []float64) float64 {
	n := len(w) / k.Rows
	product := linalg.New(k.Rows, n)
	linalg.AddProduct(product, k, linalg.Of(w, k.Rows, n))
	return max(0, num.Dot64(product.V, w))
}

// Fits returns an error if the products of so many features, with labels, are too many.
func Fits(m *dataset.Manifest) error {
	q, n := int64(m.Features+1), int64(m.Labels)
	if sums := q*(q+1)/2 + q*n; sums > MaxProducts {
		return fmt.Errorf("the products of features and labels would hold %d values (%d features, %d labels), at most %d "+
			"are possible", sums, m.Features, m.Labels, MaxProducts)
	}
	return nil
}
