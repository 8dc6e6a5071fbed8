package num

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// shape draws the widths that matter: the usual ones, and each remainder of the
// vector blocks.
func shape(t *rapid.T) (rows, n int) {
	n = rapid.OneOf(rapid.SampledFrom([]int{5, 6, 18, 64}), rapid.IntRange(0, 150)).Draw(t, "n")
	return rapid.IntRange(0, 12).Draw(t, "rows"), n
}

// values draws n float32 of every kind, between guards that must survive.
func values(t *rapid.T, n int, label string) guarded {
	seed := rapid.Uint32().Draw(t, label)
	kind := rapid.SampledFrom([]string{"ordinary", "ties", "any"}).Draw(t, label+" kind")
	s := NewStream(Key{1, 2}, 3, seed)
	g := newGuarded(n)
	for i := range g.v {
		switch x := s.Uint32(); {
		case kind == "ties": // products of 2^-24 or so, added to 1 or so
			g.v[i] = []float32{1, 1 + 0x1p-23, 1 - 0x1p-23, 1 + 0x1p-22}[x%4] * []float32{1, -1, 0x1p-12, -0x1p-12}[x/4%4]
		case kind == "any" && x%4 == 0:
			g.v[i] = math.Float32frombits(s.Uint32())
		case kind == "any" && x%4 == 1:
			g.v[i] = []float32{
				0, float32(math.Copysign(0, -1)), 0x1p-149, -0x1p-130, 0x1p-126, math.MaxFloat32,
				float32(math.Inf(1)), float32(math.NaN()),
			}[x/4%8]
		case kind == "any" && x%4 == 2:
			g.v[i] = float32(math.Ldexp(s.Float64()-0.5, int(s.Uint64n(160))-150))
		default:
			g.v[i] = float32(s.Normal())
		}
	}
	return g
}

// guarded is a slice with values before and after it that nothing may touch.
type guarded struct{ all, v []float32 }

func newGuarded(n int) guarded {
	const pad = 17
	all := make([]float32, n+2*pad)
	for i := range all {
		all[i] = 12345
	}
	return guarded{all, all[pad : pad+n : pad+n]}
}

func (g guarded) clone() guarded {
	all := slices.Clone(g.all)
	pad := (len(all) - len(g.v)) / 2
	return guarded{all, all[pad : pad+len(g.v) : pad+len(g.v)]}
}

func requireSame(t *rapid.T, what string, got, want guarded) {
	for i := range want.all {
		if !sameBits(got.all[i], want.all[i]) {
			t.Fatalf("%s: value %d of %d is %x, want %x", what, i-17, len(want.v), got.all[i], want.all[i])
		}
	}
}

func TestMulAddRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		a, m, dst := values(t, rows, "a"), values(t, rows*n, "m"), values(t, n, "dst")
		want := dst.clone()
		for j := range want.v {
			for k := range rows {
				want.v[j] = bigFMA32(a.v[k], m.v[k*n+j], want.v[j])
			}
		}
		portable := dst.clone()
		mulAddRowsGo(portable.v, a.v, m.v)
		requireSame(t, "portable", portable, want)
		MulAddRows(dst.v, a.v, m.v)
		requireSame(t, "MulAddRows", dst, want)
	})
}

func TestMulAddRowsAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		rows++
		index := rapid.SliceOfN(rapid.Uint32Range(0, uint32(rows-1)), 0, 20).Draw(t, "index")
		a, m, dst := values(t, len(index), "a"), values(t, rows*n, "m"), values(t, n, "dst")
		want := dst.clone()
		for j := range want.v {
			for k, row := range index {
				want.v[j] = bigFMA32(a.v[k], m.v[int(row)*n+j], want.v[j])
			}
		}
		portable := dst.clone()
		mulAddRowsAtGo(portable.v, a.v, index, m.v)
		requireSame(t, "portable", portable, want)
		vectors(func(name string) {
			got := dst.clone()
			MulAddRowsAt(got.v, a.v, index, m.v)
			requireSame(t, name, got, want)
		})
	})
}

func TestAddOuter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		a, m, x := values(t, rows, "a"), values(t, rows*n, "m"), values(t, n, "x")
		want := m.clone()
		for i := range want.v {
			want.v[i] = bigFMA32(a.v[i/n], x.v[i%n], want.v[i])
		}
		portable := m.clone()
		addOuterGo(portable.v, a.v, x.v)
		requireSame(t, "portable", portable, want)
		AddOuter(m.v, a.v, x.v)
		requireSame(t, "AddOuter", m, want)
	})
}

func TestAddOuterAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		rows++
		index := rapid.SliceOfN(rapid.Uint32Range(0, uint32(rows-1)), 0, 20).Draw(t, "index")
		a, m, x := values(t, len(index), "a"), values(t, rows*n, "m"), values(t, n, "x")
		want := m.clone()
		for k, row := range index {
			for j := range x.v {
				at := int(row)*n + j
				want.v[at] = bigFMA32(a.v[k], x.v[j], want.v[at])
			}
		}
		portable := m.clone()
		addOuterAtGo(portable.v, index, a.v, x.v)
		requireSame(t, "portable", portable, want)
		AddOuterAt(m.v, index, a.v, x.v)
		requireSame(t, "AddOuterAt", m, want)
	})
}

func TestAddOuter64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := shape(t)
		a, x := values(t, rows, "a"), values(t, n, "x")
		const pad = 9
		got := make([]float64, rows*n+2*pad)
		s := NewStream(Key{3, 4}, 0, rapid.Uint32().Draw(t, "m"))
		for i := range got {
			got[i] = s.Normal()
		}
		want, portable := slices.Clone(got), slices.Clone(got)
		for i := range rows * n {
			want[pad+i] = math.FMA(float64(a.v[i/n]), float64(x.v[i%n]), want[pad+i])
		}
		addOuter64Go(portable[pad:pad+rows*n:pad+rows*n], a.v, x.v)
		AddOuter64(got[pad:pad+rows*n:pad+rows*n], a.v, x.v)
		for i, w := range want {
			if !sameBits64(got[i], w) || !sameBits64(portable[i], w) {
				t.Fatalf("value %d is %x, portable %x, want %x", i-pad, got[i], portable[i], w)
			}
		}
	})
}

func sameBits64(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

func TestRowsOutsideTheirMatrixPanic(t *testing.T) {
	m := make([]float32, 100)[:12] // the spare capacity is no part of it
	one, x := []float32{1}, make([]float32, 4)
	for name, f := range map[string]func(){
		"MulAddRows":           func() { MulAddRows(x, make([]float32, 4), m) },
		"MulAddRowsAt":         func() { MulAddRowsAt(x, one, []uint32{3}, m) },
		"MulAddRowsAt far":     func() { MulAddRowsAt(x, one, []uint32{math.MaxUint32}, m) },
		"MulAddRowsAt lengths": func() { MulAddRowsAt(x, one, []uint32{1, 2}, m) },
		"MulAddRowsAt wide": func() {
			MulAddRowsAt(make([]float32, 64), []float32{1, 1}, []uint32{2, 3}, make([]float32, 200))
		},
		"mulAddRowsAtGo":        func() { mulAddRowsAtGo(x, one, []uint32{3}, m) },
		"AddOuter":              func() { AddOuter(m, make([]float32, 4), x) },
		"AddOuterAt":            func() { AddOuterAt(m, []uint32{3}, one, x) },
		"AddOuterAt second":     func() { AddOuterAt(m, []uint32{0, 3}, []float32{0, 0}, x) },
		"AddOuterAt lengths":    func() { AddOuterAt(m, nil, one, x) },
		"AddOuter64":            func() { AddOuter64(make([]float64, 3), one, x) },
		"Add32":                 func() { Add32(x, one) },
		"SigmoidPairs":          func() { SigmoidPairs(x, x, one) },
		"Float32s":              func() { Float32s(make([]byte, 6)) },
		"Permutation":           func() { p := NewPermutation(Key{}, 0, 0, 3); p.At(3) },
		"Permutation of none":   func() { p := NewPermutation(Key{}, 0, 0, 0); p.At(0) },
		"Permutation's inverse": func() { p := NewPermutation(Key{}, 0, 0, 3); p.Inverse(3) },
		"Uint64n":               func() { NewStream(Key{}, 0, 0).Uint64n(0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if s := fmt.Sprint(recover()); len(s) < 4 || s[:4] != "num:" {
					t.Errorf("panic %q", s)
				}
			}()
			f()
		})
	}
}

func TestKernelsDoNotAllocate(t *testing.T) {
	dst, a, m, w := make([]float32, 18), make([]float32, 4), make([]float32, 72), make([]float64, 72)
	index := []uint32{0, 1, 2, 3}
	if n := testing.AllocsPerRun(20, func() {
		MulAddRows(dst, a, m)
		MulAddRowsAt(dst, a, index, m)
		AddOuter(m, a, dst)
		AddOuterAt(m, index, a, dst)
		AddOuter64(w, a, dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKernels(b *testing.B) {
	for _, n := range []int{5, 6, 18, 64} {
		const rows = 64
		a, m, x, w := make([]float32, rows), make([]float32, rows*n), make([]float32, n), make([]float64, rows*n)
		index := make([]uint32, rows)
		for i := range a {
			a[i], index[i] = float32(i)*0x1p-20, uint32(i)
		}
		for name, f := range map[string]func(){
			"MulAddRows":      func() { MulAddRows(x, a, m) },
			"MulAddRows/go":   func() { mulAddRowsGo(x, a, m) },
			"MulAddRowsAt":    func() { MulAddRowsAt(x, a, index, m) },
			"MulAddRowsAt/go": func() { mulAddRowsAtGo(x, a, index, m) },
			"AddOuter":        func() { AddOuter(m, a, x) },
			"AddOuter/go":     func() { addOuterGo(m, a, x) },
			"AddOuterAt":      func() { AddOuterAt(m, index, a, x) },
			"AddOuterAt/go":   func() { addOuterAtGo(m, index, a, x) },
			"AddOuter64":      func() { AddOuter64(w, a, x) },
			"AddOuter64/go":   func() { addOuter64Go(w, a, x) },
		} {
			b.Run(fmt.Sprintf("%s/rows=%d/n=%d", name, rows, n), func(b *testing.B) {
				for i := range m {
					m[i] = float32(i%37) / 16
				}
				for i := range x {
					x[i] = 1 / float32(i+3)
				}
				for b.Loop() {
					f()
				}
			})
		}
	}
}
