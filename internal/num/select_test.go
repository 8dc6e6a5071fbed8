package num

import (
	"math"
	"slices"
	"testing"
)

// TestBelow: vectors and plain code list the values up to a limit, of all numbers of values, with
// infinities and NaN.
func TestBelow(t *testing.T) {
	s := NewStream(NewKey(1, "test/select"), 0, 0)
	for n := range 70 {
		v := make([]float32, n)
		for i := range v {
			v[i] = []float32{float32(s.Normal()), .5, float32(math.Inf(1)), float32(math.Inf(-1)),
				float32(math.NaN())}[s.Uint64n(9)/2]
		}
		for _, limit := range []float32{.5, -1, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1))} {
			var want []float32
			var rows []uint32
			for i, x := range v {
				if x <= limit {
					want, rows = append(want, x), append(rows, uint32(1000+i))
				}
			}
			dst, at := make([]float32, n), make([]uint32, n)
			found := Below(dst, at, v, limit, 1000)
			if !slices.Equal(dst[:found], want) || !slices.Equal(at[:found], rows) {
				t.Fatalf("%v up to %v: %v at %v", v, limit, dst[:found], at[:found])
			}
		}
	}
}

// TestAddRows64: vectors and plain code have the bits of one chain a column, for every width.
func TestAddRows64(t *testing.T) {
	s := NewStream(NewKey(2, "test/select"), 0, 0)
	const rows = 9
	for n := range 60 {
		m := make([]float32, rows*n)
		for i := range m {
			m[i] = float32(s.Normal())
		}
		for _, index := range [][]uint32{{}, {rows - 1}, {3, 0, 3, rows - 1, 5}} {
			got := make([]float64, n+1)
			for i := range got {
				got[i] = s.Normal()
			}
			want, plain := slices.Clone(got), slices.Clone(got)
			for _, r := range index {
				for c := range n {
					want[c] += float64(m[int(r)*n+c])
				}
			}
			AddRows64(got[:n], m, index)
			addRows64Go(plain[:n], m, index)
			if !slices.Equal(got, want) || !slices.Equal(plain, want) {
				t.Fatalf("%d columns: %v, plain code %v, want %v", n, got, plain, want)
			}
		}
	}
	for _, f := range []func(){
		func() { AddRows64(make([]float64, 2), make([]float32, 6), []uint32{0, 3}) },
		func() { addRows64Go(make([]float64, 2), make([]float32, 6), []uint32{0, 3}) },
		func() { Below(make([]float32, 7), make([]uint32, 8), make([]float32, 8), 0, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("what is outside was not refused")
				}
			}()
			f()
		}()
	}
}

// TestSquaresAt: vectors and plain code have the bits of one chain a row, for every width and number of rows.
func TestSquaresAt(t *testing.T) {
	s := NewStream(NewKey(4, "test/select"), 0, 0)
	const rows = 11
	for n := range 40 {
		m, x, scale := make([]float32, rows*n), make([]float64, n), make([]float64, n)
		for i := range m {
			m[i] = float32(s.Normal())
		}
		for i := range x {
			x[i], scale[i] = s.Normal(), 1+s.Normal()/3
		}
		index := []uint32{3, 0, 3, rows - 1, 5, 7, 1, 2, 9}
		for listed := range len(index) + 1 {
			got := make([]float64, listed)
			SquaresAt(got, x, scale, m, index[:listed])
			for k, r := range index[:listed] {
				want := 0.0
				for c := range x {
					d := x[c] - float64(float64(m[int(r)*n+c])*scale[c])
					want += float64(d * d)
				}
				row := m[int(r)*n : int(r)*n+n]
				var plain [4]float64
				squaresAtGo(&plain, x, scale, row, row, row, row)
				if got[k] != want || plain != [4]float64{want, want, want, want} {
					t.Fatalf("%d columns, row %d of %d: %v, plain code %v, want %v", n, k, listed, got[k], plain, want)
				}
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a row outside the matrix was not refused")
		}
	}()
	SquaresAt(make([]float64, 1), make([]float64, 2), make([]float64, 2), make([]float32, 6), []uint32{3})
}

func BenchmarkBelow(b *testing.B) {
	const n = 256
	s := NewStream(NewKey(3, "test/select"), 0, 0)
	v, dst, at := make([]float32, n), make([]float32, n), make([]uint32, n)
	for i := range v {
		v[i] = float32(s.Normal())
	}
	for b.Loop() {
		Below(dst, at, v, -1, 0)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/n, "ns/value")
}
