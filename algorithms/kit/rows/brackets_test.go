package rows

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sorted returns the positions of distances from the nearest on, ties by position.
func sorted(distances []float64) []int {
	order := make([]int, len(distances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
	return order
}

// TestBrackets: for several k at once, with many ties, a stable sort of the distances has the rows
// of each k, whatever the values are within the margin. It is said if not enough rows are listed.
func TestBrackets(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "rows")
		different := rapid.IntRange(1, 30).Draw(t, "different distances")
		unit := rapid.SampledFrom([]float64{1. / 3, 1e-30, 1e30}).Draw(t, "unit")
		distances := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			d := float64(rapid.IntRange(0, different).Draw(t, "distance"))
			return d * unit * rapid.SampledFrom([]float64{1, 1, 1, 1, 1, 1, 1e6}).Draw(t, "times")
		}), n, n).Draw(t, "distances")
		limit := rapid.SampledFrom([]float64{math.MaxFloat32, float64(float32(30 * unit)), float64(float32(8 * unit))}).
			Draw(t, "limit")
		off := rapid.Float64Range(0, 5).Draw(t, "error") * unit
		var values []float32
		var listed []uint32
		margin := 0.0
		for i, d := range distances {
			v := float32(d + off*rapid.SampledFrom([]float64{-1, -1, -.3, 0, .7, 1, 1}).Draw(t, "off"))
			margin = max(margin, math.Abs(float64(v)-d))
			if float64(v) <= limit {
				values, listed = append(values, v), append(listed, uint32(i))
			}
		}
		ks := rapid.SliceOfNDistinct(rapid.IntRange(1, n), 1, min(n, 6), rapid.ID[int]).Draw(t, "ks")
		slices.Sort(ks)
		order, b := sorted(distances), newBrackets[float32](ks, n)
		for range 2 { // with what the first call left
			divided := b.divide(values, listed, float32(limit), margin, func(dst []float64, rows []uint32) {
				for i, row := range rows {
					dst[i] = distances[row]
				}
			})
			if !divided && limit == math.MaxFloat32 {
				t.Fatal("all rows are listed, but the nearest are not found")
			}
			from := 0
			for _, k := range ks {
				want := make([]uint32, 0, n)
				for _, i := range order[from:k] {
					want = append(want, uint32(i))
				}
				slices.Sort(want)
				if divided && !slices.Equal(b.rows[from:k], want) {
					t.Fatalf("up to the %d nearest of %v: %v, want %v", k, distances, b.rows[from:k], want)
				}
				from = k
			}
			if !divided {
				refused++
			}
		}
	})
	if refused == 0 {
		t.Error("no list of rows was refused")
	}
}

// TestSelectSmallest: every place, of values that ascend, descend, repeat or do neither.
func TestSelectSmallest(t *testing.T) {
	for name, f := range map[string]func(i int) float64{
		"ascending": func(i int) float64 { return float64(i) }, "descending": func(i int) float64 { return -float64(i) },
		"equal": func(int) float64 { return 1 }, "mixed": func(i int) float64 { return float64(i * 7919 % 101) },
		"organ pipe": func(i int) float64 { return math.Abs(float64(i) - 150) },
	} {
		v := make([]float64, 300)
		for k := range v {
			for i := range v {
				v[i] = f(i)
			}
			want := slices.Sorted(slices.Values(v))
			selectSmallest(v, k)
			if v[k] != want[k] || slices.Max(v[:k+1]) > v[k] || slices.Min(v[k:]) < v[k] {
				t.Fatalf("%s: place %d has %v, want %v", name, k, v[k], want[k])
			}
		}
	}
}
