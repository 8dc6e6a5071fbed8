package eigen

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/linalg"
)

// Threshold returns T (C×C) so that Z = A·T has the singular vectors of a tall matrix A and its singular values less
// tau, or 0 (Cai, Candès and Shen 2010, "A Singular Value Thresholding Algorithm"). Z minimises
// ½‖Z - A‖² + tau·‖Z‖_tr. gram is AᵀA = V diag(s²) Vᵀ, and is not changed; T is V diag(max(0, 1 - tau/s)) Vᵀ. norm is
// the trace norm of Z: the sum of its singular values.
func Threshold(gram linalg.Matrix, tau float64) (t linalg.Matrix, norm float64) {
	values, vectors := spectrum(gram)
	n := gram.Rows
	t = linalg.New(n, n)
	for k, square := range values {
		s := math.Sqrt(max(0, square))
		if s <= tau {
			continue
		}
		norm += s - tau
		factor := 1 - tau/s
		for i := range n {
			x := factor * vectors.At(i, k)
			for j := range n {
				t.Set(i, j, t.At(i, j)+float64(x*vectors.At(j, k)))
			}
		}
	}
	return t, norm
}

// TraceNorm returns the sum of the singular values of a tall matrix A; gram is AᵀA, and is not changed.
func TraceNorm(gram linalg.Matrix) (sum float64) {
	values, _ := spectrum(gram)
	for _, square := range values {
		sum += math.Sqrt(max(0, square))
	}
	return sum
}

// spectrum returns the eigenvalues and the eigenvectors of a matrix that stays as it is.
func spectrum(gram linalg.Matrix) ([]float64, linalg.Matrix) {
	n := gram.Rows
	own := linalg.New(n, n)
	for i := range n {
		for j := range n {
			own.Set(i, j, gram.At(i, j))
		}
	}
	return Symmetric(own)
}
