package eigen

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestThreshold: A·T minimises ½‖Z - A‖² + tau·‖Z‖_tr. The derivative of the objective along any direction is not
// negative, so the objective of random neighbours is not less. The norm is the trace norm of A·T.
func TestThreshold(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for _, c := range []struct {
		rows, columns, rank int
		tau                 float64
	}{{12, 4, 4, 0.7}, {12, 4, 2, 0.7}, {6, 1, 1, 0.2}, {9, 3, 3, 100}, {9, 3, 3, 0}, {9, 3, 0, 0.5}} {
		a := linalg.New(c.rows, c.columns)
		for range c.rank {
			u, v := make([]float64, c.rows), make([]float64, c.columns)
			for i := range u {
				u[i] = s.Normal()
			}
			for i := range v {
				v[i] = s.Normal()
			}
			for i := range u {
				for j := range v {
					a.Set(i, j, a.At(i, j)+u[i]*v[j])
				}
			}
		}
		gram := func(m linalg.Matrix) linalg.Matrix {
			g := linalg.New(c.columns, c.columns)
			linalg.AddProduct(g, m.T(), m)
			return g
		}
		threshold, norm := Threshold(gram(a), c.tau)
		z := linalg.New(c.rows, c.columns)
		linalg.AddProduct(z, a, threshold)
		objective := func(z linalg.Matrix) float64 {
			sum := c.tau * TraceNorm(gram(z))
			for i, x := range z.V {
				sum += (x - a.V[i]) * (x - a.V[i]) / 2
			}
			return sum
		}
		if got := TraceNorm(gram(z)); math.Abs(got-norm) > 1e-6*max(1, norm) {
			t.Errorf("%+v: the norm is %v, want %v", c, norm, got)
		}
		least := objective(z)
		for range 200 {
			near := linalg.New(c.rows, c.columns)
			for i := range near.V {
				near.V[i] = z.V[i] + 1e-2*s.Normal()
			}
			if f := objective(near); f < least-1e-7 {
				t.Fatalf("%+v: the objective is %v, of a neighbour %v", c, least, f)
			}
		}
	}
}
