package num

import (
	"math"
	"slices"
	"testing"
)

// TestSquares: vectors and plain code have the bits of one chain a row, for every number of
// columns.
func TestSquares(t *testing.T) {
	s := NewStream(NewKey(1, "test/squares"), 0, 0)
	for n := range 40 {
		panel, x := make([]float64, SquaresRows*n), make([]float64, n)
		for i := range panel {
			panel[i] = s.Normal()
		}
		for i := range x {
			x[i] = s.Normal()
		}
		got, plain := slices.Repeat([]float64{-1}, SquaresRows), slices.Repeat([]float64{-1}, SquaresRows)
		Squares(got, panel, x)
		squaresGo(plain, panel, x)
		for i := range got {
			want := 0.0
			for k := range x {
				d := x[k] - panel[k*SquaresRows+i]
				want += float64(d * d)
			}
			if math.Float64bits(got[i]) != math.Float64bits(want) || math.Float64bits(plain[i]) != math.Float64bits(want) {
				t.Fatalf("%d columns, row %d: %v, plain code %v, want %v", n, i, got[i], plain[i], want)
			}
		}
	}
}

func TestAddConstant(t *testing.T) {
	for n := range 40 {
		v, want := make([]float64, n), make([]float64, n)
		for i := range v {
			v[i] = float64(i) / 3
			want[i] = v[i] + 0.1
		}
		if AddConstant(v, 0.1); !slices.Equal(v, want) {
			t.Fatalf("%v, want %v", v, want)
		}
	}
}

func TestAddSquares(t *testing.T) {
	s := NewStream(NewKey(2, "test/squares"), 0, 0)
	for n := range 40 {
		v, want, y, x := make([]float64, n), make([]float64, n), make([]float64, n), s.Normal()
		for i := range v {
			v[i], y[i] = s.Normal(), s.Normal()
			want[i] = v[i] + float64((x-y[i])*(x-y[i]))
		}
		if AddSquares(v, y, x); !slices.Equal(v, want) {
			t.Fatalf("%v, want %v", v, want)
		}
	}
}

func BenchmarkSquares(b *testing.B) {
	const n = 243
	panel, x, dst := make([]float64, SquaresRows*n), make([]float64, n), make([]float64, SquaresRows)
	for b.Loop() {
		Squares(dst, panel, x)
	}
	b.ReportMetric(float64(b.N)*n*SquaresRows/1e9/b.Elapsed().Seconds(), "Gterms/s")
}
