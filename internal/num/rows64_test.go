package num

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// doubles draws n float64 of usual sizes, some of them zeros or infinite.
func doubles(t *rapid.T, n int, label string) []float64 {
	s := NewStream(Key{1, 4}, 3, rapid.Uint32().Draw(t, label))
	v := make([]float64, n)
	for i := range v {
		switch s.Uint64n(20) {
		case 0:
			v[i] = 0
		case 1:
			v[i] = math.Inf(1)
		case 2:
			v[i] = math.Copysign(0, -1)
		default:
			v[i] = s.Normal()
		}
	}
	return v
}

func requireSame64(t *rapid.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestRowsAt64 holds both kernels, portable and as vectors, against their sums as they are told, with
// values around dst and m that nothing may touch.
func TestRowsAt64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		rows++
		index := rapid.SliceOfN(rapid.Uint32Range(0, uint32(rows-1)), 0, 20).Draw(t, "index")
		a := values(t, len(index), "a").v
		const pad = 9
		m, x := doubles(t, pad+rows*n+pad, "m"), doubles(t, pad+n+pad, "x")
		product, outer := slices.Clone(x), slices.Clone(m)
		for k, row := range index {
			for j := range n {
				at := pad + int(row)*n + j
				product[pad+j] += float64(float64(a[k]) * m[at])
				outer[at] += float64(float64(a[k]) * x[pad+j])
			}
		}
		inner := func(v []float64) []float64 { return v[pad : len(v)-pad : len(v)-pad] }
		vectors(func(name string) {
			got := slices.Clone(x)
			MulAddRowsAt64(inner(got), a, index, inner(m))
			requireSame64(t, "MulAddRowsAt64 with "+name, got, product)
			got = slices.Clone(m)
			AddOuterAt64(inner(got), index, a, inner(x))
			requireSame64(t, "AddOuterAt64 with "+name, got, outer)
		})
	})
}

// TestRowsAt64Refuse: a row outside the matrix, and rows of other lengths.
func TestRowsAt64Refuse(t *testing.T) {
	m, x := make([]float64, 6), make([]float64, 3)
	vectors(func(name string) {
		for i, f := range []func(){
			func() { MulAddRowsAt64(x, []float32{1, 1}, []uint32{1, 2}, m) },
			func() { AddOuterAt64(m, []uint32{2}, []float32{1}, x) },
			func() { MulAddRowsAt64(x, []float32{1}, []uint32{1, 0}, m) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: call %d is accepted", name, i)
					}
				}()
				f()
			}()
		}
	})
}

func BenchmarkRowsAt64(b *testing.B) {
	const rows, n = 1869, 5
	m, x := make([]float64, rows*n), make([]float64, n)
	a, index := make([]float32, 21), make([]uint32, 21)
	for k := range index {
		a[k], index[k] = 1, uint32(k*k*4)
	}
	b.Run("product", func(b *testing.B) {
		for b.Loop() {
			MulAddRowsAt64(x, a, index, m)
		}
	})
	b.Run("outer", func(b *testing.B) {
		for b.Loop() {
			AddOuterAt64(m, index, a, x)
		}
	})
}
