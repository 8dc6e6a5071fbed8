// Package eigen computes the eigenvalues and the eigenvectors of small symmetric matrices, with the same bits
// everywhere.
package eigen

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/linalg"
)

// mostSweeps bounds the sweeps; a few are enough for any matrix.
const mostSweeps = 60

// Symmetric returns the eigenvalues of a symmetric matrix, in no order, and a matrix whose columns are their
// eigenvectors, of length 1. It uses the memory of a. The method is Jacobi's: rotations in a fixed order set one
// element to 0 each, until no element outside the diagonal is large enough to change the diagonal.
func Symmetric(a linalg.Matrix) (values []float64, vectors linalg.Matrix) {
	n := a.Rows
	vectors = linalg.New(n, n)
	for i := range n {
		vectors.Set(i, i, 1)
	}
	for range mostSweeps {
		rotated := false
		for i := range n {
			for j := i + 1; j < n; j++ {
				x := a.At(i, j)
				if small := 1e-17 * (math.Abs(a.At(i, i)) + math.Abs(a.At(j, j))); math.Abs(x) <= small {
					a.Set(i, j, 0)
					a.Set(j, i, 0)
					continue
				}
				rotated = true
				rotate(a, vectors, i, j)
			}
		}
		if !rotated {
			break
		}
	}
	values = make([]float64, n)
	for i := range values {
		values[i] = a.At(i, i)
	}
	return values, vectors
}

// rotate makes the element (i, j) 0.
func rotate(a, vectors linalg.Matrix, i, j int) {
	// Golub and Van Loan 2013, section 8.5: t is the smaller root of t² + 2·theta·t = 1.
	theta := (a.At(j, j) - a.At(i, i)) / (2 * a.At(i, j))
	t := math.Copysign(1/(math.Abs(theta)+math.Sqrt(float64(theta*theta)+1)), theta)
	c := 1 / math.Sqrt(float64(t*t)+1)
	s := float64(t * c)
	turn := func(m linalg.Matrix) {
		for k := range m.Rows {
			x, y := m.At(k, i), m.At(k, j)
			m.Set(k, i, float64(c*x)-float64(s*y))
			m.Set(k, j, float64(s*x)+float64(c*y))
		}
	}
	turn(a)
	turn(a.T())
	turn(vectors)
	a.Set(i, j, 0)
	a.Set(j, i, 0)
}
