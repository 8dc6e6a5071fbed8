package rows

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// rowsOf returns dense rows of so many features, or the same rows as sparse ones.
func rowsOf(x []float32, features int, sparse bool) *dataset.Rows {
	r := &dataset.Rows{N: len(x) / features, Features: features, X: x}
	if !sparse {
		return r
	}
	r.Sparse, r.X, r.Start = true, nil, []uint32{0}
	for i, v := range x {
		if v != 0 {
			r.Index, r.X = append(r.Index, uint32(i%features)), append(r.X, v)
		}
		if i%features == features-1 {
			r.Start = append(r.Start, uint32(len(r.X)))
		}
	}
	return r
}

// slowNearest returns the rows of y that are nearest to x, from the nearest on, but not row own.
func slowNearest(x []float32, y *dataset.Rows, scale []float64, own int) (order []uint32) {
	distances := make([]float64, y.N)
	for j := range distances {
		distances[j] = slowDistance(x, y.Dense(j), scale)
	}
	for _, j := range sorted(distances) {
		if j != own {
			order = append(order, uint32(j))
		}
	}
	return order
}

// checkNearest compares brackets with the beginning of an order.
func checkNearest(t interface{ Fatalf(string, ...any) }, who string, ks []int, nearest, order []uint32) {
	from := 0
	for _, k := range ks {
		want := slices.Clone(order[from:k])
		slices.Sort(want)
		if !slices.Equal(nearest[from:k], want) {
			t.Fatalf("%s: the rows up to the %d nearest are %v, want %v", who, k, nearest[from:k], want)
		}
		from = k
	}
}

// checkNeighbours compares Find for the rows of x, and FindOthers for some of y, with a search in plain float64.
func checkNeighbours(t interface{ Fatalf(string, ...any) }, x, y []float32, features int, scale []float64, ks []int) {
	dense, queries := rowsOf(y, features, false), rowsOf(x, features, false)
	var orders [][]uint32
	for i := range queries.N {
		orders = append(orders, slowNearest(queries.Dense(i), dense, scale, -1))
	}
	from := max(0, dense.N-35)
	var others [][]uint32
	for i := from; i < dense.N; i++ {
		others = append(others, slowNearest(dense.Dense(i), dense, scale, i))
	}
	for _, sparse := range []bool{false, true} {
		n := NewNeighbours(rowsOf(y, features, sparse), scale)
		s := n.NewSearch(ks)
		for _, given := range []bool{false, true} {
			next, given := 0, rowsOf(x, features, given)
			refs := make([]dataset.RowRef, given.N)
			for i := range refs {
				refs[i].Pos = uint32(i)
			}
			s.Find(refs, func(uint32) *dataset.Rows { return given }, func(i int, nearest []uint32) {
				if i != next {
					t.Fatalf("row %d is found after row %d", i, next-1)
				}
				next++
				checkNearest(t, fmt.Sprintf("row %d of %d, kept sparse: %v, given sparse: %v", i, given.N, sparse, given.Sparse),
					ks, nearest, orders[i])
			})
			if next != given.N {
				t.Fatalf("%d rows of %d are found", next, given.N)
			}
		}
		if ks[len(ks)-1] < dense.N {
			next := from
			s.FindOthers(from, dense.N, func(i int, nearest []uint32) {
				if i != next {
					t.Fatalf("row %d is found after row %d", i, next-1)
				}
				next++
				checkNearest(t, fmt.Sprintf("kept row %d of %d, sparse: %v", i, dense.N, sparse), ks, nearest, others[i-from])
			})
			if next != dense.N {
				t.Fatalf("%d rows are found up to %d", next, dense.N)
			}
		}
	}
}

// TestNeighbours: few rows of all shapes, with ties, are found as in plain float64.
func TestNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		features, n := rapid.IntRange(1, 12).Draw(t, "features"), rapid.IntRange(1, 300).Draw(t, "rows")
		levels := rapid.IntRange(1, 40).Draw(t, "levels")
		s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "test"), 0, 0)
		draw := func(n int) []float32 {
			x := make([]float32, n*features)
			for i := range x {
				x[i] = float32(int(s.Uint64n(uint64(levels)))-levels/2) / 3
			}
			return x
		}
		var scale []float64
		if rapid.Bool().Draw(t, "scaled") {
			for range features {
				scale = append(scale, math.Exp(s.Normal()))
			}
		}
		ks := rapid.SliceOfNDistinct(rapid.IntRange(1, n), 1, min(n, 6), rapid.ID[int]).Draw(t, "ks")
		slices.Sort(ks)
		checkNeighbours(t, draw(rapid.IntRange(0, 70).Draw(t, "other rows")), draw(n), features, scale, ks)
	})
}

// hard are rows that float32 products do not order: by the number of the row and the column.
var hard = map[string]func(s *num.Stream, i, c int) float64{
	"normal":        func(s *num.Stream, _, _ int) float64 { return s.Normal() },
	"equal":         func(*num.Stream, int, int) float64 { return 1 },
	"binary":        func(s *num.Stream, _, _ int) float64 { return float64(s.Uint64n(2)) },
	"duplicates":    func(_ *num.Stream, i, c int) float64 { return math.Sqrt(float64(1 + i%37*(c+1))) },
	"far away":      func(s *num.Stream, _, _ int) float64 { return 1e6 + s.Normal() },
	"two clusters":  func(s *num.Stream, i, _ int) float64 { return float64(i%2*2-1)*1e5 + s.Normal() },
	"two scales":    func(s *num.Stream, i, _ int) float64 { return s.Normal() * (1e-3 + float64(i%3)*1e3) },
	"outliers":      func(s *num.Stream, i, _ int) float64 { return s.Normal() * math.Pow(10, float64(i%50/49*12)) },
	"huge":          func(s *num.Stream, _, _ int) float64 { return s.Normal() * 1e16 },
	"one huge":      func(s *num.Stream, i, _ int) float64 { return s.Normal() * math.Pow(10, float64(i%800/799*30)) },
	"near the end":  func(s *num.Stream, i, _ int) float64 { return s.Normal() * 3e37 },
	"tiny":          func(s *num.Stream, _, _ int) float64 { return s.Normal() * 1e-30 },
	"subnormal":     func(s *num.Stream, _, _ int) float64 { return s.Normal() * 1e-44 },
	"one dimension": func(s *num.Stream, i, c int) float64 { return float64(i) * math.Abs(float64(1-c)) },
	"geometric":     func(s *num.Stream, i, c int) float64 { return math.Pow(1.01, float64(i)) * s.Normal() },
	"sorted":        func(s *num.Stream, i, _ int) float64 { return float64(i) + s.Normal() },
}

// TestHardNeighbours: rows that products do not order, and so many rows that a sample bounds the values.
func TestHardNeighbours(t *testing.T) {
	for name, f := range hard {
		t.Run(name, func(t *testing.T) {
			s := num.NewStream(num.NewKey(1, "test"), 0, 0)
			for _, n := range []int{700, 2*sampleRows + 100, 6 * sampleRows} { // of the last a list holds not all
				for _, features := range []int{1, 7} {
					if n*features > 2e4 {
						continue
					}
					rows := func(n int) (x []float32) {
						for i := range n * features {
							x = append(x, float32(max(-math.MaxFloat32, min(math.MaxFloat32, f(s, i/features, i%features)))))
						}
						return x
					}
					if n < 6*sampleRows {
						checkNeighbours(t, rows(33), rows(n), features, nil, []int{1, 4, 8, 16, 32, 64, n / 4})
					}
					checkNeighbours(t, rows(3), rows(n), features, slices.Repeat([]float64{1. / 3}, features), []int{5})
				}
			}
		})
	}
}

// TestMargin: no value is off by more than the margin of rows of values up to it.
func TestMargin(t *testing.T) {
	for name, f := range hard {
		for _, features := range []int{1, 3, 50, 300} {
			s, n := num.NewStream(num.NewKey(1, "test"), 0, 0), panelRows
			var x []float32
			for i := range n * features {
				x = append(x, float32(f(s, i/features, i%features)))
			}
			r := rowsOf(x, features, false)
			near := NewNeighbours(r, nil)
			if !near.products {
				continue
			}
			search := near.NewSearch([]int{1})
			a, wide := search.products.a[:features], make([]float64, features)
			for i := 0; i < n; i += 1 + features/10 {
				expand(wide, r, i, nil)
				norm := near.centre(a, wide, -1)
				search.multiply(&near.all, 1, func(_ int, tile []float32) {
					plain := slices.Clone(near.all.half)
					addPlainProduct(plain, a, near.all.values, features)
					for j := range n {
						want := (slowDistance(r.Dense(i), r.Dense(j), nil) - norm) / 2
						for _, v := range []float32{tile[j], plain[j]} {
							if margin := near.errorOf(norm, float64(v)); math.Abs(float64(v)-want) > margin {
								t.Fatalf("%s, %d features: the value of rows %d and %d is %v, want %v within %v", name, features, i, j, v,
									want, margin)
							}
						}
					}
				})
			}
		}
	}
}

// TestSearchDoesNotAllocate: not in blocks of rows, or when one is left out.
func TestSearchDoesNotAllocate(t *testing.T) {
	for name, o := range storages {
		r := kept(t, generated(t, o), 1, &Wanted{})
		s := NewNeighbours(r, nil).NewSearch([]int{4, 16})
		refs, sum := make([]dataset.RowRef, 40), uint32(0)
		n := testing.AllocsPerRun(10, func() {
			s.Find(refs, func(uint32) *dataset.Rows { return r }, func(_ int, nearest []uint32) { sum += nearest[0] })
			s.FindOthers(0, 40, func(_ int, nearest []uint32) { sum += nearest[0] })
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkFindOthers(b *testing.B) {
	const n, features = 20000, 50
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	x := make([]float32, n*features)
	for i := range x {
		x[i] = float32(s.Normal())
	}
	near := NewNeighbours(rowsOf(x, features, false), nil)
	for _, ks := range [][]int{{5}, {4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}} {
		b.Run(fmt.Sprint(ks[len(ks)-1]), func(b *testing.B) {
			search, at := near.NewSearch(ks), 0
			for b.Loop() {
				search.FindOthers(at, at+mostQueries, func(int, []uint32) {})
				at = (at + mostQueries) % (n - mostQueries)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/mostQueries/n, "ns/pair")
		})
	}
}
