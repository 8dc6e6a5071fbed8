package simplex

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestWeighted: the point is on the simplex, and no neighbour on the simplex has a smaller objective. With equal
// weights it is the projection.
func TestWeighted(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for n := 1; n < 7; n++ {
		for range 100 {
			a, b, m, order := make([]float64, n), make([]float64, n), make([]float64, n), make([]int, n)
			plain, sorted := make([]float64, n), make([]float64, n)
			for c := range n {
				a[c], b[c] = 0.1+3*s.Float64(), s.Normal()
				plain[c] = b[c]
			}
			Weighted(m, a, b, order)
			objective := func(m []float64) (sum float64) {
				for c, x := range m {
					sum += a[c]*x*x/2 - b[c]*x
				}
				return sum
			}
			whole, least := 0.0, objective(m)
			for _, x := range m {
				if whole += x; x < 0 {
					t.Fatalf("%v", m)
				}
			}
			if math.Abs(whole-1) > 1e-12 {
				t.Fatalf("the sum is %v", whole)
			}
			for i := range n {
				for j := range n {
					step := math.Min(1e-3, m[i])
					near := append([]float64{}, m...)
					near[i] -= step
					near[j] += step
					if objective(near) < least-1e-12 {
						t.Fatalf("a %v, b %v: %v has %v, %v has %v", a, b, m, least, near, objective(near))
					}
				}
			}
			for c := range a {
				a[c] = 1
			}
			Weighted(m, a, b, order)
			Project(plain, sorted)
			for c := range m {
				if math.Abs(m[c]-plain[c]) > 1e-12 {
					t.Fatalf("%v, but the projection is %v", m, plain)
				}
			}
		}
	}
}

// TestProducts: sums of rows give XᵀX, its square norms, and the solution of the normal equations.
func TestProducts(t *testing.T) {
	const rows, q, n = 9, 4, 2
	s := num.NewStream(num.NewKey(2, "test"), 0, 0)
	x, w := linalg.New(rows, q), make([]float64, q*n)
	for i := range x.V {
		x.V[i] = s.Normal()
	}
	for i := range w {
		w[i] = s.Normal()
	}
	triangle, xm, square := make([]float64, Triangle(q)), make([]float64, q*n), 0.0
	for i := range rows {
		row, scores := x.V[i*q:][:q], make([]float64, n)
		Scores(scores, row, w)
		AddGram(triangle, row, 1)
		AddOuter(xm, row, scores, 1)
		for _, v := range scores {
			square += v * v
		}
	}
	k := Gram(triangle, q)
	if got := Square(k, w); math.Abs(got-square) > 1e-9*square {
		t.Errorf("the square is %v, want %v", got, square)
	}
	factor, err := Factor(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	Solve(factor, xm)
	for i := range w {
		if math.Abs(xm[i]-w[i]) > 1e-9 {
			t.Errorf("weight %d is %v, want %v", i, xm[i], w[i])
		}
	}
	if _, err := Factor(linalg.New(2, 2), 0); err == nil {
		t.Error("products that are 0 have a factor")
	}
}
