package linalg

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// random returns a matrix with normal values, some of them 0 or subnormal.
func random(r *rand.Rand, rows, columns int) Matrix {
	m := New(rows, columns)
	for i := range m.V {
		m.V[i] = r.NormFloat64()
		switch r.IntN(40) {
		case 0:
			m.V[i] = 0
		case 1:
			m.V[i] = 5e-324
		}
	}
	return m
}

// spread returns m with the same values in a larger array, transposed there or not.
func spread(r *rand.Rand, m Matrix, transposed bool) Matrix {
	if transposed {
		return spread(r, m.T(), false).T()
	}
	wide := random(r, m.Rows+2, m.Columns+3).Part(1, m.Rows+1, 2, m.Columns+2)
	fill(wide, m)
	return wide
}

func fill(dst, m Matrix) {
	for i := range m.Rows {
		for j := range m.Columns {
			dst.Set(i, j, m.At(i, j))
		}
	}
}

func clone(m Matrix) Matrix {
	c := New(m.Rows, m.Columns)
	fill(c, m)
	return c
}

// sameBits compares two matrices bit for bit.
func sameBits(t interface{ Fatalf(string, ...any) }, what string, have, want Matrix) {
	for i := range want.Rows {
		for j := range want.Columns {
			if math.Float64bits(have.At(i, j)) != math.Float64bits(want.At(i, j)) {
				t.Fatalf("%s: element (%d, %d) is %v, not %v", what, i, j, have.At(i, j), want.At(i, j))
			}
		}
	}
}

// sizes are around the edges of tiles and blocks.
var sizes = rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 17, 24, 31, 63, 64, 65, 191, 192, 193, 255,
	256, 257, 300})

// TestProduct holds products to a chain of fused multiply-adds for each element.
func TestProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := sizes.Draw(t, "m"), sizes.Draw(t, "k"), sizes.Draw(t, "n")
		if m*k*n > 1<<21 {
			t.Skip("large")
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		a, b, c := random(r, m, k), random(r, k, n), random(r, m, n)
		sign := 1.0
		if flag("subtract") {
			sign = -1
		}
		want := clone(c)
		for i := range m {
			for j := range n {
				sum := c.At(i, j)
				for l := range k {
					sum = math.FMA(sign*a.At(i, l), b.At(l, j), sum)
				}
				want.Set(i, j, sum)
			}
		}
		have := spread(r, c, flag("c transposed"))
		guard := slices.Clone(have.V)
		addProduct(have, spread(r, a, flag("a transposed")), spread(r, b, flag("b transposed")), sign)
		sameBits(t, fmt.Sprintf("%d×%d×%d", m, k, n), have, want)
		fill(have, c)
		if !slices.EqualFunc(have.V, guard, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) {
			t.Fatalf("a value outside of the product has changed")
		}
	})
}

func TestTile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, depth := range []int{0, 1, 2, 5, 64} {
		a, b, c := random(r, depth, tileRows), random(r, depth, tileColumns), random(r, tileRows, 20)
		want := slices.Clone(c.V)
		addTileGo(want, 20, a.V, b.V)
		addTile(c.V, 20, a.V, b.V)
		if !slices.Equal(c.V, want) {
			t.Errorf("a tile of depth %d differs from its twin", depth)
		}
	}
}

func TestGram(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 12, 13, 200, 400} {
		a := random(r, 37, n)
		have, want := New(n, n), New(n, n)
		Gram(have, a)
		AddProduct(want, a.T(), a)
		sameBits(t, fmt.Sprint(n), have, want)
	}
}

// definite returns a positive definite matrix.
func definite(r *rand.Rand, n int) Matrix {
	a := New(n, n)
	Gram(a, random(r, n+3, n))
	for i := range n {
		a.Set(i, i, a.At(i, i)+0.1)
	}
	return a
}

// TestCholesky holds the factor and both solutions to the formulas, bit for bit, and to gonum.
func TestCholesky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 7, 8, 9, 16, 17, 23, 64, 65, 100, 210}).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a := definite(r, n)
		l := spread(r, a, rapid.Bool().Draw(t, "transposed"))
		if err := Cholesky(l); err != nil {
			t.Fatal(err)
		}
		want := clone(a)
		if err := choleskyBase(want, 0); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "L", l, want)
		b := random(r, n, rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "columns"))
		x := clone(b)
		SolveLower(x, l)
		SolveUpper(x, l.T())
		slow := clone(b)
		slowSolve(slow, want)
		sameBits(t, "x", x, slow)
		for j := range b.Columns {
			for i := range n {
				sum := -b.At(i, j)
				for k := range n {
					sum += a.At(i, k) * x.At(k, j)
				}
				if math.Abs(sum) > 1e-8*float64(n) {
					t.Fatalf("the residual is %v in element (%d, %d)", sum, i, j)
				}
			}
		}
		var judge mat.Cholesky
		if !judge.Factorize(mat.NewSymDense(n, a.V)) {
			t.Fatal("gonum refuses the matrix")
		}
		var theirs mat.TriDense
		judge.LTo(&theirs)
		for i := range n {
			for j := range i + 1 {
				if math.Abs(theirs.At(i, j)-l.At(i, j)) > 1e-9*float64(n) {
					t.Fatalf("L of gonum has %v, this one %v in (%d, %d)", theirs.At(i, j), l.At(i, j), i, j)
				}
			}
		}
	})
}

// slowSolve solves l·lᵀ·x = b element by element.
func slowSolve(b, l Matrix) {
	n := b.Rows
	for j := range b.Columns {
		for i := range n {
			sum := b.At(i, j)
			for k := range i {
				sum = math.FMA(-l.At(i, k), b.At(k, j), sum)
			}
			b.Set(i, j, sum/l.At(i, i))
		}
		for i := n - 1; i >= 0; i-- {
			sum := b.At(i, j)
			for k := n - 1; k > i; k-- {
				sum = math.FMA(-l.At(k, i), b.At(k, j), sum)
			}
			b.Set(i, j, sum/l.At(i, i))
		}
	}
}

func TestCholeskyRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 20, 70} {
		for _, bad := range []float64{-1e3, 0, math.NaN(), math.Inf(1)} {
			a := definite(r, n)
			a.Set(n-1, n-1, bad)
			if bad == 0 && n == 1 {
				a.Set(0, 0, 0)
			}
			if err := Cholesky(a); !errors.Is(err, ErrIndefinite) {
				t.Errorf("%d rows, the last pivot %v: %v", n, bad, err)
			}
		}
	}
}

func TestShapesAreChecked(t *testing.T) {
	for name, f := range map[string]func(){
		"product": func() { AddProduct(New(2, 2), New(2, 3), New(2, 2)) },
		"part":    func() { New(2, 2).Part(0, 3, 0, 1) },
		"values":  func() { Of(make([]float64, 5), 2, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: wrong shapes are not refused", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkProduct(b *testing.B) { benchmark(b, 2, func(c, x, y Matrix) { AddProduct(c, x, y) }) }
func BenchmarkGram(b *testing.B)    { benchmark(b, 1, func(c, x, y Matrix) { Gram(c, x) }) }
func BenchmarkCholesky(b *testing.B) {
	const n = 1000
	a := definite(rand.New(rand.NewPCG(1, 1)), n)
	l := New(n, n)
	for b.Loop() {
		copy(l.V, a.V)
		if err := Cholesky(l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n*n*n/3/1e9/b.Elapsed().Seconds(), "GFLOP/s")
}

func benchmark(b *testing.B, operations float64, f func(c, x, y Matrix)) {
	const n = 1000
	r := rand.New(rand.NewPCG(1, 1))
	x, y, c := random(r, n, n), random(r, n, n), New(n, n)
	for i := range x.V {
		x.V[i], y.V[i] = r.Float64(), r.Float64()
	}
	for b.Loop() {
		f(c, x, y)
	}
	b.ReportMetric(float64(b.N)*operations*n*n*n/1e9/b.Elapsed().Seconds(), "GFLOP/s")
}
