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

// spans draws rows of entries, some of them empty, and in any order.
func spans(t *rapid.T, entries int) []Span {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
		from := rapid.IntRange(0, entries).Draw(t, "from")
		return Span{uint32(from), uint32(rapid.IntRange(from, entries).Draw(t, "to"))}
	}), 0, 6).Draw(t, "rows")
}

// TestSparse64 holds both kernels, portable and as vectors, against their sums as they are told, with
// values around dst and m that nothing may touch.
func TestSparse64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, n := shape(t)
		columns++
		index := rapid.SliceOfN(rapid.Uint32Range(0, uint32(columns-1)), 0, 20).Draw(t, "index")
		rows := spans(t, len(index))
		a := values(t, len(index), "a").v
		const pad = 9
		m, x := doubles(t, pad+columns*n+pad, "m"), doubles(t, pad+len(rows)*n+pad, "x")
		product, outers := slices.Clone(x), slices.Clone(m)
		for i, row := range rows {
			for k := row.From; k < row.To; k++ {
				for j := range n {
					at, own := pad+int(index[k])*n+j, pad+i*n+j
					product[own] += float64(float64(a[k]) * m[at])
					outers[at] += float64(float64(a[k]) * x[own])
				}
			}
		}
		inner := func(v []float64) []float64 { return v[pad : len(v)-pad : len(v)-pad] }
		vectors(func(name string) {
			got := slices.Clone(x)
			AddSparseProduct64(inner(got), rows, a, index, inner(m), n)
			requireSame64(t, "AddSparseProduct64 with "+name, got, product)
			got = slices.Clone(m)
			AddSparseProductT64(inner(got), rows, a, index, inner(x), n)
			requireSame64(t, "AddSparseProductT64 with "+name, got, outers)
		})
	})
}

// TestSparse64Refuse: an entry outside the matrix or the entries, and rows of other lengths.
func TestSparse64Refuse(t *testing.T) {
	m, x := make([]float64, 6), make([]float64, 6)
	one, two := []Span{{0, 1}}, []Span{{0, 1}, {1, 2}}
	vectors(func(name string) {
		for i, f := range []func(){
			func() { AddSparseProduct64(x[:3], []Span{{0, 2}}, []float32{1, 1}, []uint32{1, 2}, m, 3) },
			func() { AddSparseProductT64(m, one, []float32{1}, []uint32{2}, x[:3], 3) },
			func() { AddSparseProduct64(x[:3], one, []float32{1}, []uint32{1, 0}, m, 3) },
			func() { AddSparseProduct64(x, two, []float32{1}, []uint32{1}, m, 3) },
			func() { AddSparseProductT64(m, []Span{{1, 0}}, []float32{1}, []uint32{1}, x[:3], 3) },
			func() { AddSparseProduct64(x, one, []float32{1}, []uint32{1}, m, 3) },
			func() { AddSparseProductT64(m, two, []float32{1, 1}, []uint32{1, 1}, x[:3], 3) },
			func() { AddSparseProductT64(m[:2], one, []float32{1}, []uint32{0}, x[:5], 5) },
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

// BenchmarkSparse64 multiplies 64 rows of 21 entries.
func BenchmarkSparse64(b *testing.B) {
	const columns, n, entries = 1869, 5, 21
	m, x := make([]float64, columns*n), make([]float64, 64*n)
	rows, a, index := make([]Span, 64), make([]float32, 64*entries), make([]uint32, 64*entries)
	for k := range index {
		a[k], index[k] = 1, uint32(k*k*4%columns)
	}
	for i := range rows {
		rows[i] = Span{uint32(i * entries), uint32(i*entries + entries)}
	}
	b.Run("product", func(b *testing.B) {
		for b.Loop() {
			AddSparseProduct64(x, rows, a, index, m, n)
		}
	})
	b.Run("transposed", func(b *testing.B) {
		for b.Loop() {
			AddSparseProductT64(m, rows, a, index, x, n)
		}
	})
}
