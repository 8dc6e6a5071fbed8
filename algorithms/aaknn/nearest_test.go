package aaknn

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

// TestNearest: for several k at once, with many ties, the rows of each k are those of a stable
// sort.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "rows")
		different := rapid.IntRange(1, 30).Draw(t, "different distances")
		distances := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, different).Draw(t, "distance")) / 3
		}), n, n).Draw(t, "distances")
		if rapid.Bool().Draw(t, "one is left out") {
			distances[rapid.IntRange(0, n-1).Draw(t, "which")] = math.Inf(1)
		}
		ks := rapid.SliceOfNDistinct(rapid.IntRange(1, n), 1, min(n, 6), rapid.ID[int]).Draw(t, "ks")
		slices.Sort(ks)
		order, s := sorted(distances), newNearest(ks, n)
		for range 2 { // with what the first call left
			s.find(distances)
			for b, k := range ks {
				var got []int
				for i, row := range s.rows {
					if int(s.bracket[i]) <= b {
						got = append(got, int(row))
					}
				}
				want := slices.Clone(order[:k])
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("the %d nearest of %v are %v, want %v", k, distances, got, want)
				}
			}
		}
	})
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

func TestCandidates(t *testing.T) {
	for rows, want := range map[int][]int{
		1: {1}, 2: {1}, 4: {3}, 5: {4}, 31: {4}, 32: {4, 8}, 192: {4, 8, 16, 32}, 6980: {4, 8, 16, 32, 64, 128, 256, 512, 1024},
	} {
		if got := candidates(rows); !slices.Equal(got, want) {
			t.Errorf("of %d rows: %v, want %v", rows, got, want)
		}
	}
}
