package num

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAddProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(0, 9).Draw(t, "m"), rapid.OneOf(rapid.IntRange(1, 80), rapid.SampledFrom([]int{32, 64})).
			Draw(t, "n")
		k := rapid.IntRange(0, 9).Draw(t, "k")
		a, b, dst := values(t, m*k, "a"), values(t, k*n, "b"), values(t, m*n, "dst")
		aT, want := newGuarded(m*k), dst.clone()
		for i := range m {
			for s := range k {
				aT.v[s*m+i] = a.v[i*k+s]
			}
			for j := range n {
				for s := range k {
					want.v[i*n+j] = bigFMA32(a.v[i*k+s], b.v[s*n+j], want.v[i*n+j])
				}
			}
		}
		for name, f := range map[string]func(dst []float32){
			"AddProduct":  func(dst []float32) { AddProduct(dst, a.v, b.v, k, n) },
			"AddProductT": func(dst []float32) { AddProductT(dst, aT.v, b.v, k, n) },
			"portable":    func(dst []float32) { addProductGo(dst, a.v, b.v, m, k, n, k, 1) },
		} {
			got := dst.clone()
			f(got.v)
			requireSame(t, name, got, want)
		}
	})
}

// crossed is a case of AddProduct64T, between guards that must survive.
type crossed struct {
	m, n, k, stride int
	a, dst          []float64
	b               []float32
}

const crossedPad = 9

func newCrossed(m, n, k, stride int, seed uint32) *crossed {
	s := NewStream(Key{7, 8}, 0, seed)
	c := &crossed{
		m: m, n: n, k: k, stride: stride,
		a: make([]float64, m*stride), b: make([]float32, n*stride), dst: make([]float64, m*n+2*crossedPad),
	}
	for i := range c.a {
		c.a[i] = float64(special(s))
	}
	for i := range c.b {
		c.b[i] = special(s)
	}
	for i := range c.dst {
		c.dst[i] = s.Normal()
	}
	return c
}

// special draws ordinary values, zeros and subnormal ones, and those of g at its floor.
func special(s *Stream) float32 {
	switch s.Uint32() % 8 {
	case 0:
		return 0
	case 1:
		return math.Float32frombits(s.Uint32() >> 10)
	case 2:
		return float32(1e20 * s.Float64())
	}
	return float32(s.Float64())
}

// sums returns dst as a function leaves it, guards included.
func (c *crossed) sums(f func(dst []float64)) []float64 {
	dst := slices.Clone(c.dst)
	f(dst[crossedPad : crossedPad+c.m*c.n : crossedPad+c.m*c.n])
	return dst
}

func (c *crossed) check(t testing.TB) {
	t.Helper()
	want := c.sums(func(dst []float64) {
		for i := range c.m {
			for j := range c.n {
				for s := range c.k {
					dst[i*c.n+j] = math.FMA(c.a[i*c.stride+s], float64(c.b[j*c.stride+s]), dst[i*c.n+j])
				}
			}
		}
	})
	got := c.sums(func(dst []float64) { AddProduct64T(dst, c.a, c.b, c.k, c.stride, c.b[:len(c.b)/2], new(Tile)) })
	portable := c.sums(func(dst []float64) { addProduct64TGo(dst, c.a, c.b, c.k, c.stride) })
	for i, w := range want {
		if !sameBits64(got[i], w) || !sameBits64(portable[i], w) {
			t.Fatalf("%d×%d, %d terms of %d: value %d is %x, portable %x, want %x", c.m, c.n, c.k, c.stride, i-crossedPad,
				got[i], portable[i], w)
		}
	}
}

// TestAddProduct64T holds it against the sums written out, in all shapes of a leaf
// update: labels, leaves and rows.
func TestAddProduct64T(t *testing.T) {
	for _, m := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 18, 64, 65} {
		for _, n := range []int{1, 2, 4, 6, 8, 16, 20, 32, 64} {
			for _, k := range []int{0, 1, 8, 31, 32, 33, 64, 65} {
				newCrossed(m, n, k, k+(8-k%8), uint32(k)).check(t)
			}
		}
	}
	newCrossed(5, 512, 65, 65, 1).check(t) // a stride of no whole vectors
	newCrossed(18, 512, 64, 64, 2).check(t)
}

// TestAddProduct64TShapes draws the shapes and strides that no leaf update has, too.
func TestAddProduct64TShapes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, k := rapid.IntRange(0, 70).Draw(rt, "m"), rapid.IntRange(0, 100).Draw(rt, "k")
		n := rapid.OneOf(rapid.SampledFrom([]int{2, 4, 8, 16, 32, 64, 128, 512}), rapid.IntRange(0, 70)).Draw(rt, "n")
		newCrossed(m, n, k, max(1, k+rapid.IntRange(0, 20).Draw(rt, "more")), rapid.Uint32().Draw(rt, "seed")).check(t)
	})
}

// TestAddProductShapes holds larger products than TestAddProduct against the portable
// ones.
func TestAddProductShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, k := rapid.IntRange(0, 70).Draw(t, "m"), rapid.IntRange(0, 130).Draw(t, "k")
		n := rapid.OneOf(rapid.SampledFrom([]int{8, 31, 32, 33, 64, 65, 96, 128}), rapid.IntRange(1, 150)).Draw(t, "n")
		s := NewStream(Key{9, 1}, 0, rapid.Uint32().Draw(t, "seed"))
		a, b, dst := make([]float32, m*k), make([]float32, k*n), newGuarded(m*n)
		for _, v := range [][]float32{a, b, dst.v} {
			for i := range v {
				v[i] = special(s)
			}
		}
		want, wantT, gotT := dst.clone(), dst.clone(), dst.clone()
		addProductGo(want.v, a, b, m, k, n, k, 1)
		addProductGo(wantT.v, a, b, m, k, n, 1, m)
		AddProduct(dst.v, a, b, k, n)
		AddProductT(gotT.v, a, b, k, n)
		requireSame(t, "AddProduct", dst, want)
		requireSame(t, "AddProductT", gotT, wantT)
	})
}

// TestProductsOfOtherShapesPanic: nothing is read or written outside a matrix.
func TestProductsOfOtherShapesPanic(t *testing.T) {
	v, w := make([]float32, 12), make([]float64, 12)
	for name, f := range map[string]func(){
		"AddProduct, a":       func() { AddProduct(v, v[:5], v[:8], 2, 4) },
		"AddProduct, b":       func() { AddProduct(v, v[:6], v[:7], 2, 4) },
		"AddProduct, dst":     func() { AddProduct(v[:11], v[:6], v[:8], 2, 4) },
		"AddProductT":         func() { AddProductT(v, v[:6], v[:8], 3, 4) },
		"AddProduct64T":       func() { AddProduct64T(w[:3], w[:8], v[:8], 4, 4, nil, new(Tile)) },
		"AddProduct64T terms": func() { AddProduct64T(w[:4], w[:8], v[:8], 5, 4, nil, new(Tile)) },
		"Quotients":           func() { Quotients(w, v[:5], v, v, 1) },
		"Momentum":            func() { Momentum(v, v[:3], v, 1, 1, 1) },
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

func TestTranspose64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := rapid.IntRange(0, 70).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "n")
		m, dst := make([]float64, rows*n), make([]float64, rows*n)
		for i := range m {
			m[i] = float64(i)
		}
		Transpose64(dst, m, n)
		for i := range rows {
			for j := range n {
				if dst[j*rows+i] != m[i*n+j] {
					t.Fatalf("%d×%d: value (%d, %d) is %v", rows, n, j, i, dst[j*rows+i])
				}
			}
		}
	})
}

func TestQuotients(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rows := 1+width(t), rapid.IntRange(0, 3).Draw(t, "rows")
		w, d, g := values(t, n, "w"), values(t, n*rows, "d"), values(t, n*rows, "g")
		r := make([]float64, n*rows)
		Quotients(r, w.v, d.v, g.v, 1e-20)
		for i, x := range r {
			below := g.v[i]
			if below < 1e-20 {
				below = 1e-20
			}
			if want := float64(float32(w.v[i%n]*d.v[i]) / below); !sameBits64(x, want) {
				t.Fatalf("quotient %d of %d is %v, want %v: w = %v, d = %v, g = %v", i, n, x, want, w.v[i%n], d.v[i], g.v[i])
			}
		}
	})
}

// BenchmarkProducts has the two products of a block of 64 rows in a leaf update, and
// AddProduct where it is fastest, for what else there is to reach.
func BenchmarkProducts(b *testing.B) {
	const rows, leaves = 64, 64
	for _, labels := range []int{5, 18, 64} {
		p, q, g := make([]float32, leaves*rows), make([]float32, leaves*labels), make([]float32, labels*rows)
		r, sums, tile := make([]float64, labels*rows), make([]float64, labels*leaves), new(Tile)
		w := make([]float32, rows)
		for i := range p {
			p[i] = float32(i%37) / 1024
		}
		for name, f := range map[string]func(){
			"AddProductT":      func() { AddProductT(g, q, p, leaves, rows) },
			"AddProductT/go":   func() { addProductGo(g, q, p, labels, leaves, rows, 1, labels) },
			"AddProduct64T":    func() { AddProduct64T(sums, r, p, rows, rows, p, tile) },
			"AddProduct64T/go": func() { addProduct64TGo(sums, r, p, rows, rows) },
		} {
			b.Run(fmt.Sprintf("%s/labels=%d", name, labels), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(2*rows*leaves*float64(labels)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		b.Run(fmt.Sprintf("Quotients/labels=%d", labels), func(b *testing.B) {
			for b.Loop() {
				Quotients(r, w, g, g, 1e-20)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(r)), "ns/ratio")
		})
	}
}
