package num

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// columnCounts are no vector, whole ones, and some with a rest.
var columnCounts = []int{1, 7, 8, 9, 15, 16, 17, 24, 32, 48, 63, 64, 65, 96}

// walk draws a tree of up to 31 split nodes, over a few units.
func walk(t *rapid.T) (phi []uint32, units, n int) {
	phi = make([]uint32, 1<<rapid.IntRange(0, 5).Draw(t, "levels")-1)
	units = rapid.IntRange(1, 9).Draw(t, "units")
	for i := range phi {
		phi[i] = uint32(rapid.IntRange(0, units-1).Draw(t, "unit"))
	}
	return phi, units, rapid.SampledFrom(columnCounts).Draw(t, "columns")
}

func TestDescend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phi, units, n := walk(t)
		s, u, node := values(t, units*n, "s"), values(t, units*n, "t"), newGuarded((2*len(phi)+1)*n)
		want := node.clone()
		for i := range n {
			want.v[i] = 1
		}
		for k := range len(phi) * n {
			i, c := k/n, k%n
			want.v[(2*i+1)*n+c] = want.v[k] * s.v[int(phi[i])*n+c]
			want.v[(2*i+2)*n+c] = want.v[k] * u.v[int(phi[i])*n+c]
		}
		vectors(func(name string) {
			got := node.clone()
			Descend(got.v, s.v, u.v, phi, n)
			requireSame(t, name, got, want)
		})
	})
}

func TestAscend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phi, units, n := walk(t)
		df, s, u, mass := values(t, units*n, "df"), values(t, units*n, "s"), values(t, units*n, "t"),
			values(t, (2*len(phi)+1)*n, "mass")
		wantDF, wantMass := df.clone(), mass.clone()
		for i := len(phi) - 1; i >= 0; i-- {
			for c := range n {
				at := int(phi[i])*n + c
				left, right := wantMass.v[(2*i+1)*n+c], wantMass.v[(2*i+2)*n+c]
				toRight, toLeft := float32(s.v[at]*right), float32(u.v[at]*left)
				change := float32(toRight - toLeft)
				wantDF.v[at] = wantDF.v[at] + change
				wantMass.v[i*n+c] = left + right
			}
		}
		vectors(func(name string) {
			gotDF, gotMass := df.clone(), mass.clone()
			Ascend(gotDF.v, gotMass.v, s.v, u.v, phi, n)
			requireSame(t, name+", df", gotDF, wantDF)
			requireSame(t, name+", mass", gotMass, wantMass)
		})
	})
}

// TestWalkOutside: a unit that is none must not be read.
func TestWalkOutside(t *testing.T) {
	for _, n := range []int{5, 8, 16, 32} {
		node, s, df := make([]float32, 3*n), make([]float32, 2*n), make([]float32, 2*n)
		for name, walk := range map[string]func(){
			"Descend": func() { Descend(node, s, s, []uint32{2}, n) },
			"Ascend":  func() { Ascend(df, node, s, s, []uint32{2}, n) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of %d columns: no panic", name, n)
					}
				}()
				walk()
			}()
		}
	}
}

// TestRatioRows holds a matrix of ratios against its rows, one after the other: what is
// negative, not finite or below the floor, in any column, included.
func TestRatioRows(t *testing.T) {
	share := rapid.Float32Range(0, 1)
	rapid.Check(t, func(t *rapid.T) {
		rows, n := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.SampledFrom(columnCounts).Draw(t, "columns")
		odd := rapid.SampledFrom([]int{10, 100, 1000}).Draw(t, "odd")
		draw := func(name string) guarded {
			g, s := newGuarded(rows*n), NewStream(Key{4, 5}, 6, rapid.Uint32().Draw(t, name))
			for i := range g.v {
				if g.v[i] = float32(s.Float64()); int(s.Uint32())%odd == 0 {
					g.v[i] = rapid.OneOf(share, anyFloat32()).Draw(t, name+"'s")
				}
			}
			return g
		}
		d, g, floor := draw("d"), draw("g"), float32(1e-20)
		r, sum := newGuarded(rows*n), make([]float64, n)
		wantR, wantSum := r.clone(), make([]float64, n)
		for i := range n {
			sum[i] = float64(i)
			kl := 0.0
			for at := i; at < rows*n; at += n {
				below := g.v[at]
				if below < floor {
					below = floor
				}
				wantR.v[at] = d.v[at] / below
				if d.v[at] > 0 {
					kl += float64(float64(d.v[at]) * Log(float64(d.v[at])/float64(below)))
				}
			}
			wantSum[i] = sum[i] + kl
		}
		vectors(func(name string) {
			gotR, gotSum := r.clone(), slices.Clone(sum)
			RatioRows(gotR.v, gotSum, d.v, g.v, floor)
			requireSame(t, name, gotR, wantR)
			for i := range sum {
				if !sameBits64(gotSum[i], wantSum[i]) {
					t.Fatalf("%s: sum %d of %d is %v, want %v", name, i, n, gotSum[i], wantSum[i])
				}
			}
		})
	})
}

// TestSigmoidWidths holds every vector's sigmoids against SigmoidPair: around 0, where
// one side rounds to 1, and where the other ends.
func TestSigmoidWidths(t *testing.T) {
	var f []float32
	for e := -150; e < 12; e++ {
		for _, m := range []float64{1, 1.0000001, 1.3, math.Sqrt2, 1.9999999} {
			x := float32(math.Ldexp(m, e))
			f = append(f, x, -x)
		}
	}
	for x := float32(-210); x < 210; x += 0.37 {
		f = append(f, x)
	}
	f = append(f, 0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()))
	s, u := make([]float32, len(f)), make([]float32, len(f))
	vectors(func(name string) {
		SigmoidPairs(s, u, f)
		for i, x := range f {
			if a, b := SigmoidPair(x); !sameBits(s[i], a) || !sameBits(u[i], b) {
				t.Errorf("%s: σ(±%v) = %v and %v, want %v and %v", name, x, s[i], u[i], a, b)
			}
		}
	})
}

// TestRatioOfQuotient holds that a quotient of float32 values in float64, rounded once more,
// is their quotient in float32.
func TestRatioOfQuotient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, g := anyFloat32().Draw(t, "d"), anyFloat32().Draw(t, "g")
		if a, b := float32(float64(d)/float64(g)), d/g; !sameBits(a, b) {
			t.Fatalf("%x/%x is %x in float32 and %x in float64", d, g, b, a)
		}
	})
}
