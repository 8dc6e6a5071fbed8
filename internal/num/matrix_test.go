package num

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTranspose32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.SampledFrom(columnCounts).Draw(t, "rows"), rapid.SampledFrom(columnCounts).Draw(t, "columns")
		from, to := columns+rapid.IntRange(0, 9).Draw(t, "more"), rows+rapid.IntRange(0, 9).Draw(t, "more")
		src, dst := values(t, (rows-1)*from+columns, "matrix"), newGuarded((columns-1)*to+rows)
		want := dst.clone()
		for i := range rows {
			for j := range columns {
				want.v[j*to+i] = src.v[i*from+j]
			}
		}
		vectors(func(name string) {
			got := dst.clone()
			Transpose32(got.v, to, src.v, from, rows, columns)
			requireSame(t, name, got, want)
		})
	})
}

// TestMulProduct holds the product of sums against one sum after the other.
func TestMulProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := rapid.IntRange(0, 20).Draw(t, "m"), rapid.IntRange(0, 7).Draw(t, "k"), rapid.SampledFrom(columnCounts).
			Draw(t, "n")
		a, b, dst := values(t, m*k, "a"), values(t, k*n, "b"), values(t, m*n, "dst")
		want := dst.clone()
		for i := range m {
			for j := range n {
				sum := float32(0)
				for c := range k {
					sum = FMA32(a.v[i*k+c], b.v[c*n+j], sum)
				}
				want.v[i*n+j] *= sum
			}
		}
		vectors(func(name string) {
			got := dst.clone()
			MulProduct(got.v, a.v, b.v, k, n)
			requireSame(t, name, got, want)
		})
	})
}

// TestProductWidths holds the products of every vector against one sum after the other,
// of the rows and columns at which blocks end.
func TestProductWidths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := rapid.IntRange(0, 20).Draw(t, "m"), rapid.IntRange(0, 7).Draw(t, "k"), rapid.SampledFrom(columnCounts).
			Draw(t, "n")
		a, b, dst := values(t, m*k, "a"), values(t, k*n, "b"), values(t, m*n, "dst")
		want, wantT := dst.clone(), dst.clone()
		addProductGo(want.v, a.v, b.v, m, k, n, k, 1)
		addProductGo(wantT.v, a.v, b.v, m, k, n, 1, m)
		vectors(func(name string) {
			got, gotT := dst.clone(), dst.clone()
			AddProduct(got.v, a.v, b.v, k, n)
			AddProductT(gotT.v, a.v, b.v, k, n)
			requireSame(t, name, got, want)
			requireSame(t, name+", transposed", gotT, wantT)
		})
	})
}

func TestStandardise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		x, a, b, dst := values(t, n, "x"), values(t, n, "shift"), values(t, n, "scale"), newGuarded(n)
		shift, scale, want := make([]float64, n), make([]float64, n), dst.clone()
		for i := range n {
			shift[i], scale[i] = float64(a.v[i])/3, float64(b.v[i])/7
			centred := float64(x.v[i]) - shift[i]
			want.v[i] = float32(centred * scale[i])
		}
		vectors(func(name string) {
			got := dst.clone()
			Standardise(got.v, x.v, shift, scale)
			requireSame(t, name, got, want)
		})
	})
}

// TestCanonicalFinite: Canonical32 finds a number that is not finite wherever it is.
func TestCanonicalFinite(t *testing.T) {
	for _, n := range []int{1, 8, 64, 72, 140} {
		for at := range n {
			for _, x := range []float64{math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN()} {
				vectors(func(name string) {
					v := make([]float32, n)
					v[at] = float32(x)
					if got, want := Canonical32(v), x == math.MaxFloat32; got != want {
						t.Fatalf("%s: %v at %d of %d: finite is %v", name, x, at, n, got)
					}
				})
			}
		}
	}
}

// TestVectorLoops holds Add32, Scale32 and Canonical32 against single values.
func TestVectorLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 140).Draw(t, "n")
		v, w, factor := values(t, n, "v"), values(t, n, "w"), values(t, 1, "factor").v[0]
		sum, scaled, canonical := v.clone(), v.clone(), v.clone()
		for i, x := range v.v {
			sum.v[i], scaled.v[i] = x+w.v[i], x*factor
			if x == 0 {
				canonical.v[i] = 0
			}
		}
		vectors(func(name string) {
			got := v.clone()
			Add32(got.v, w.v)
			requireSame(t, name+", sum", got, sum)
			got = v.clone()
			Scale32(got.v, factor)
			requireSame(t, name+", scaled", got, scaled)
			got = v.clone()
			finite := Canonical32(got.v)
			requireSame(t, name+", canonical", got, canonical)
			if finite != Finite32(v.v) {
				t.Fatalf("%s: finite is %v of %v", name, finite, v.v)
			}
		})
	})
}
