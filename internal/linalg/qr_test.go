package linalg

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func dense(m Matrix) *mat.Dense {
	d := mat.NewDense(m.Rows, m.Columns, nil)
	for i := range m.Rows {
		for j := range m.Columns {
			d.Set(i, j, m.At(i, j))
		}
	}
	return d
}

// TestLeastSquares holds solutions to gonum's, and their residual to be orthogonal to the
// columns.
func TestLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 5, 31, 32, 33, 64, 70}).Draw(t, "columns")
		m := n + rapid.SampledFrom([]int{0, 1, 7, 60}).Draw(t, "more rows")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, b := random(r, m, n), random(r, m, 2)
		for i := range n { // far from dependent
			a.Set(i, i, a.At(i, i)+math.Copysign(float64(n), a.At(i, i)))
		}
		x, err := LeastSquares(spread(r, a, rapid.Bool().Draw(t, "transposed")), b, 1e-12)
		if err != nil {
			t.Fatal(err)
		}
		var want mat.Dense
		if err := want.Solve(dense(a), dense(b)); err != nil {
			t.Fatal(err)
		}
		residual, across := clone(b), New(n, 2)
		SubtractProduct(residual, a, x)
		AddProduct(across, a.T(), residual)
		for i := range n {
			for j := range 2 {
				if math.Abs(x.At(i, j)-want.At(i, j)) > 1e-9 {
					t.Fatalf("x(%d, %d) is %v, gonum's is %v", i, j, x.At(i, j), want.At(i, j))
				}
				if math.Abs(across.At(i, j)) > 1e-9*float64(m) {
					t.Fatalf("the residual has %v along column %d", across.At(i, j), i)
				}
			}
		}
	})
}

// TestLeastSquaresIllConditioned has a condition of 1e9, of which normal equations lose all digits.
func TestLeastSquaresIllConditioned(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	a, x := New(60, 10), New(10, 1)
	for i := range a.Rows {
		p := r.Float64()
		for j := range a.Columns {
			a.Set(i, j, math.Pow(p, float64(j)))
		}
	}
	for j := range x.V {
		x.V[j] = r.NormFloat64()
	}
	b := New(60, 1)
	AddProduct(b, a, x)
	have, err := LeastSquares(a, b, 1e-14)
	if err != nil {
		t.Fatal(err)
	}
	for j := range x.V {
		if math.Abs(have.V[j]-x.V[j]) > 1e-6 {
			t.Errorf("coefficient %d is %v, not %v", j, have.V[j], x.V[j])
		}
	}
}

func TestLeastSquaresRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	a := random(r, 50, 40)
	for i := range a.Rows {
		a.Set(i, 35, a.At(i, 3)-2*a.At(i, 20))
	}
	if _, err := LeastSquares(a, New(50, 1), 1e-10); !errors.Is(err, ErrRank) {
		t.Errorf("dependent columns: %v", err)
	}
	if _, err := LeastSquares(New(5, 2), New(5, 1), 0); !errors.Is(err, ErrRank) {
		t.Errorf("columns of zeros: %v", err)
	}
	if _, err := LeastSquares(New(2, 5), New(2, 1), 0); err == nil {
		t.Error("fewer rows than columns are not refused")
	}
}

func BenchmarkLeastSquares(b *testing.B) {
	const m, n = 1980, 990
	r := rand.New(rand.NewPCG(1, 1))
	x, y := New(m, n), New(m, 1)
	for i := range x.V {
		x.V[i] = r.NormFloat64()
	}
	for b.Loop() {
		if _, err := LeastSquares(x, y, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*2*n*n*(m-n/3.0)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
}
