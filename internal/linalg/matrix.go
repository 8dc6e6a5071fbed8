// Package linalg is float64 linear algebra with the same bits on every processor: products,
// Cholesky, triangular systems and Householder QR.
//
// Each element of a result is one chain of fused multiply-adds in an order that the function's
// comment tells. Blocks, vectors and processors change no bits. Only QR has a block width that
// its bits depend on.
package linalg

import (
	"fmt"
)

// Matrix is a view of float64 values: element (i, j) is V[First + i·RowStep + j·ColumnStep].
type Matrix struct {
	Rows, Columns       int
	First               int
	RowStep, ColumnStep int
	V                   []float64
}

// New returns a matrix of zeros, rows one behind the other.
func New(rows, columns int) Matrix { return Of(make([]float64, rows*columns), rows, columns) }

// Of returns a view of v as a matrix, rows one behind the other. It panics if v has another
// length.
func Of(v []float64, rows, columns int) Matrix {
	if len(v) != rows*columns {
		panic(fmt.Sprintf("linalg: %d values for a matrix of %d×%d", len(v), rows, columns))
	}
	return Matrix{Rows: rows, Columns: columns, RowStep: columns, ColumnStep: 1, V: v}
}

// T returns the transpose, a view of the same values.
func (m Matrix) T() Matrix {
	return Matrix{Rows: m.Columns, Columns: m.Rows, First: m.First, RowStep: m.ColumnStep, ColumnStep: m.RowStep, V: m.V}
}

// reversed returns the view with the rows from the last to the first.
func (m Matrix) reversed() Matrix {
	m.First += max(0, m.Rows-1) * m.RowStep
	m.RowStep = -m.RowStep
	return m
}

// Part returns the view of rows [r0, r1) and columns [c0, c1).
func (m Matrix) Part(r0, r1, c0, c1 int) Matrix {
	if r0 < 0 || r0 > r1 || r1 > m.Rows || c0 < 0 || c0 > c1 || c1 > m.Columns {
		panic(fmt.Sprintf("linalg: rows %d to %d, columns %d to %d of a matrix of %d×%d", r0, r1, c0, c1, m.Rows, m.Columns))
	}
	m.First += r0*m.RowStep + c0*m.ColumnStep
	m.Rows, m.Columns = r1-r0, c1-c0
	return m
}

// At returns an element.
func (m Matrix) At(i, j int) float64 { return m.V[m.First+i*m.RowStep+j*m.ColumnStep] }

// Set sets an element.
func (m Matrix) Set(i, j int, x float64) { m.V[m.First+i*m.RowStep+j*m.ColumnStep] = x }

// row returns row i where the values of a row are neighbours.
func (m Matrix) row(i int) []float64 { return m.V[m.First+i*m.RowStep:][:m.Columns] }
