package forest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// benchmarkEntries are the entries of a column of n rows, each of its own value.
func benchmarkEntries(n int) (entries []uint32, side []uint8) {
	s := num.NewStream(num.NewKey(1, "bench"), 0, 0)
	for row := range uint32(n) {
		entries, side = append(entries, row|NewValue), append(side, uint8(s.Uint64n(2)))
	}
	for i := range entries {
		j := int(s.Uint64n(uint64(n)))
		entries[i], entries[j] = entries[j], entries[i]
	}
	return entries, append(side, make([]uint8, SideSlack)...)[:n]
}

// BenchmarkPartition divides a column; bytes are those of its entries.
func BenchmarkPartition(b *testing.B) {
	for _, n := range []int{12, 100, 1500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			entries, side := benchmarkEntries(n)
			spare := make([]uint32, n+VectorSlack)
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				Partition(entries, spare, side)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
		})
	}
}

// BenchmarkScan tries all thresholds of a column.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{12, 100, 1500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			entries, side := benchmarkEntries(n)
			packed, both := make([]uint64, n), uint64(0)
			for i := range packed {
				packed[i] = 1 << (32 * side[i])
				both += packed[i]
			}
			t := new(entropyTables)
			t.prepare(1<<30, xlogx(n), uint32(both), uint32(both>>32))
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				scanBinary(entries, packed, t, 0, 1<<60)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/threshold")
		})
	}
}

// BenchmarkWalk takes 256 rows down one tree of 2^depth leaves.
func BenchmarkWalk(b *testing.B) {
	for _, depth := range []int{6, 12} {
		b.Run("depth="+strconv.Itoa(depth), func(b *testing.B) {
			s := num.NewStream(num.NewKey(1, "bench"), 0, 0)
			const features, rows = 24, 256
			tree := new(Tree)
			tree.Reset(1)
			var grow func(at, depth int)
			grow = func(at, depth int) {
				if depth == 0 {
					tree.Leaf(at)
					return
				}
				tree.Split(at, uint32(s.Uint64n(features)), s.Normal(), 0)
				left := int(tree.left[at])
				grow(left, depth-1)
				grow(left+1, depth-1)
			}
			grow(0, depth)
			w := newModel([]*Tree{tree}, features, 1).walker()
			x, leaves := make([]uint32, rows*w.width), make([]uint32, rows)
			for i := range x {
				x[i] = clamp(float32(s.Normal()))
			}
			for b.Loop() {
				walkRows(leaves, &w.nodes, x, w.width, 0, depth)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row/tree")
		})
	}
}

// BenchmarkLeader grows forests by histograms. It tells how long the trainer takes for all rounds, and for the longest
// one. DESIGN.md has the numbers.
func BenchmarkLeader(b *testing.B) {
	for _, c := range []struct {
		rows, features, labels int
		set                    param.Values
	}{
		{20_000, 100, 20, param.Values{"trees": int64(8), "min_samples": int64(2), "bins": int64(256)}},
		{60_000, 50, 10, param.Values{"trees": int64(10), "min_samples": int64(80)}},
		{60_000, 50, 10, param.Values{"trees": int64(10), "min_samples": int64(2), "features": "sqrt"}},
	} {
		p := &countedProblem{rows: c.rows, features: c.features, labels: c.labels,
			x: make([]float32, c.rows*c.features), d: make([]float32, c.rows*c.labels)}
		s := num.NewStream(num.NewKey(5, "bench"), 0, 0)
		uniform := func() float32 { return float32(s.Uint64n(1<<20)) / (1 << 20) }
		for i := range p.x {
			p.x[i] = uniform()
		}
		for i := range p.d {
			x := p.row(i / c.labels)
			p.d[i] = uniform() + 2*x[i%c.labels%c.features]*x[(i%c.labels+7)%c.features]
		}
		c.set["split"] = splitHistogram
		d := p.data(4, false, dataset.Split{})
		b.Run(fmt.Sprintf("%dx%dx%d", c.rows, c.features, c.labels), func(b *testing.B) {
			total, longest := time.Duration(0), time.Duration(0)
			for b.Loop() {
				j := countedJob(b, c.set, d.Manifest, dataset.Split{})
				tr, k := contract.Begin(b, oneHot.New(), j, d.Manifest)
				for {
					r, err := tr.Next()
					if err != nil {
						b.Fatal(err)
					}
					if r == nil {
						break
					}
					res := contract.Compute(b, r, d, contract.By(k))
					began := time.Now()
					if err := tr.Fold(res); err != nil {
						b.Fatal(err)
					}
					took := time.Since(began)
					total, longest = total+took, max(longest, took)
				}
			}
			b.ReportMetric(total.Seconds()/float64(b.N), "s/forest")
			b.ReportMetric(longest.Seconds(), "s/longest-round")
		})
	}
}
