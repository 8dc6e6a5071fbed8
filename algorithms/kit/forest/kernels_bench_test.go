package forest

import (
	"strconv"
	"testing"

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
