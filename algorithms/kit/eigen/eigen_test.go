package eigen

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestSymmetric: the vectors are orthonormal, and the matrix times each of them is its value times the vector, for
// random matrices, some of them of low rank, and a matrix that is 0.
func TestSymmetric(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for _, n := range []int{1, 2, 3, 8, 30} {
		for _, rank := range []int{0, 1, n} {
			a := linalg.New(n, n)
			for range rank {
				v := make([]float64, n)
				for i := range v {
					v[i] = s.Normal()
				}
				sign := s.Normal()
				for i := range n {
					for j := range n {
						a.Set(i, j, a.At(i, j)+sign*v[i]*v[j])
					}
				}
			}
			values, vectors := Symmetric(linalg.Of(slices.Clone(a.V), n, n))
			greatest := 1.0
			for _, x := range values {
				greatest = math.Max(greatest, math.Abs(x))
			}
			for k := range n {
				for l := range n {
					dot, want := 0.0, 0.0
					if k == l {
						want = 1
					}
					product := 0.0
					for i := range n {
						dot += vectors.At(i, k) * vectors.At(i, l)
						product += a.At(l, i) * vectors.At(i, k)
					}
					if math.Abs(dot-want) > 1e-13*float64(n) {
						t.Errorf("%d rows, rank %d: the product of vectors %d and %d is %v", n, rank, k, l, dot)
					}
					if by := product - values[k]*vectors.At(l, k); math.Abs(by) > 1e-13*greatest*float64(n) {
						t.Errorf("%d rows, rank %d: vector %d differs by %v in row %d", n, rank, k, by, l)
					}
				}
			}
		}
	}
}
