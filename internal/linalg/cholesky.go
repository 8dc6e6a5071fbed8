package linalg

import (
	"errors"
	"fmt"
	"math"
)

// ErrIndefinite is wrapped by Cholesky's error about a matrix that is not positive definite.
var ErrIndefinite = errors.New("linalg: the matrix is not positive definite")

// base is the size up to which systems are solved element by element.
const base = 8

// Cholesky replaces the part of a symmetric matrix on and below the diagonal by L with
// L·Lᵀ = a. The part above the diagonal is not read and not changed. L_ij is
// (a_ij - Σ_{k<j} L_ik·L_jk) / L_jj, a chain over ascending k. An error wraps ErrIndefinite;
// then a part of a has been replaced.
func Cholesky(a Matrix) error { return cholesky(a, 0) }

// cholesky is Cholesky of the part of a matrix that begins with element (at, at).
func cholesky(a Matrix, at int) error {
	n := a.Rows
	if n <= base {
		return choleskyBase(a, at)
	}
	h := half(n)
	if err := cholesky(a.Part(0, h, 0, h), at); err != nil {
		return err
	}
	below := a.Part(h, n, 0, h)
	solveRight(below, a.Part(0, h, 0, h))
	rest := a.Part(h, n, h, n)
	for j := 0; j < n-h; j += blockColumns { // what is above the diagonal blocks is left out
		to := min(j+blockColumns, n-h)
		subtractLower(rest.Part(j, n-h, j, to), below.Part(j, n-h, 0, h), below.Part(j, to, 0, h))
	}
	return cholesky(rest, at+h)
}

// half returns the size of the first part of n: a multiple of the base.
func half(n int) int { return (n/2 + base - 1) / base * base }

// subtractLower subtracts x·yᵀ from c without changing what is above c's diagonal.
func subtractLower(c, x, y Matrix) {
	n := c.Columns
	above := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		for j := i + 1; j < n; j++ {
			above = append(above, c.At(i, j))
		}
	}
	SubtractProduct(c, x, y.T())
	at := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			c.Set(i, j, above[at])
			at++
		}
	}
}

func choleskyBase(a Matrix, at int) error {
	for j := range a.Rows {
		for i := j; i < a.Rows; i++ {
			sum := a.At(i, j)
			for k := range j {
				sum = math.FMA(-a.At(i, k), a.At(j, k), sum)
			}
			if i > j {
				a.Set(i, j, sum/a.At(j, j))
				continue
			}
			if !(sum > 0) || math.IsInf(sum, 1) {
				return fmt.Errorf("%w: pivot %d is %v", ErrIndefinite, at+j, sum)
			}
			a.Set(j, j, math.Sqrt(sum))
		}
	}
	return nil
}

// solveRight replaces b by x with x·lᵀ = b, where l is lower triangular: chains over ascending k.
func solveRight(b, l Matrix) { SolveLower(b.T(), l) }

// SolveLower replaces b by x with l·x = b; of l what is on and below the diagonal is read. Each
// element is (b_ij - Σ_{k<i} l_ik·x_kj) / l_ii, a chain over ascending k.
func SolveLower(b, l Matrix) {
	n := b.Rows
	if n > base {
		h := half(n)
		SolveLower(b.Part(0, h, 0, b.Columns), l.Part(0, h, 0, h))
		SubtractProduct(b.Part(h, n, 0, b.Columns), l.Part(h, n, 0, h), b.Part(0, h, 0, b.Columns))
		SolveLower(b.Part(h, n, 0, b.Columns), l.Part(h, n, h, n))
		return
	}
	solveBase(b, l)
}

// solveBase is SolveLower for few rows, element by element.
func solveBase(b, l Matrix) {
	var t [base][base]float64
	for i := range l.Rows {
		for k := range i + 1 {
			t[i][k] = l.At(i, k)
		}
	}
	for j := range b.Columns {
		var x [base]float64
		at := b.First + j*b.ColumnStep
		for i := range b.Rows {
			sum := b.V[at]
			for k, y := range x[:i] {
				sum = math.FMA(-t[i][k], y, sum)
			}
			x[i] = sum / t[i][i]
			b.V[at] = x[i]
			at += b.RowStep
		}
	}
}

// SolveUpper replaces b by x with u·x = b; of u what is on and above the diagonal is read. Each
// element is (b_ij - Σ_{k>i} u_ik·x_kj) / u_ii, a chain over descending k.
func SolveUpper(b, u Matrix) {
	n := b.Rows
	if n > base {
		h := half(n)
		SolveUpper(b.Part(h, n, 0, b.Columns), u.Part(h, n, h, n))
		subtractDescending(b.Part(0, h, 0, b.Columns), u.Part(0, h, h, n), b.Part(h, n, 0, b.Columns))
		SolveUpper(b.Part(0, h, 0, b.Columns), u.Part(0, h, 0, h))
		return
	}
	solveBase(b.reversed(), u.reversed().T().reversed().T())
}
