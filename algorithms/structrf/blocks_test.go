package structrf

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/num"
)

// checkGroups holds each kernel against plain sums over rows, bit for bit.
func checkGroups(t *rapid.T) {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	width := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7, 8, 9, 17, 18, 64, 65}).Draw(t, "labels")
	blocks := rapid.IntRange(1, 9).Draw(t, "blocks")
	rows := blocks * lanes
	labels := make([]float32, rows*width)
	for i := range labels {
		labels[i] = float32(s.Float64())
		if s.Uint64n(4) == 0 {
			labels[i] = rapid.SampledFrom([]float32{0, 1, math.SmallestNonzeroFloat32, 0x1p-37, 0.5}).Draw(t, "degree")
		}
	}
	var index []uint32
	for range rows {
		index = append(index, uint32(s.Uint64n(uint64(rows))))
	}
	const guard = 7
	x := make([]float32, rows*width+1)
	x[rows*width] = guard
	for b := range blocks {
		gather(x[b*width*lanes:(b+1)*width*lanes], labels, (*[lanes]uint32)(index[b*lanes:]), width)
	}
	at := func(i int) []float32 { return labels[int(index[i])*width : (int(index[i])+1)*width] }
	for i := range rows {
		for j, v := range at(i) {
			if got := x[(i/lanes*width+j)*lanes+i%lanes]; got != v {
				t.Fatalf("label %d of row %d is %v, want %v", j, i, got, v)
			}
		}
	}
	if x[rows*width] != guard {
		t.Fatal("gather wrote behind its block")
	}
	v := make([]float64, width)
	for j := range v {
		v[j] = s.Normal()
	}
	checkPlane(t, x, v, at, blocks)
	dst, want := make([]float64, rows), make([]float64, rows)
	distances(dst, x, v)
	for i := range want {
		for j, a := range at(i) {
			d := float64(a) - v[j]
			want[i] += float64(d * d)
		}
	}
	if !slices.Equal(dst, want) {
		t.Fatalf("distances %v, want %v", dst, want)
	}
	checkAddLabels(t, s, labels, width, index[:rapid.IntRange(0, rows).Draw(t, "rows whose labels to add")])
	checkAddRows(t, s, index[:rapid.IntRange(0, rows).Draw(t, "rows to add")], rows, (width+3)&^3)
}

// checkPlane holds beyond against sums; half of the time the plane goes through a row.
func checkPlane(t *rapid.T, x []float32, normal []float64, at func(int) []float32, blocks int) {
	sums := make([]float64, blocks*lanes)
	for i := range sums {
		for j, a := range at(i) {
			sums[i] += float64(float64(a) * normal[j])
		}
	}
	plane := sums[rapid.IntRange(0, len(sums)-1).Draw(t, "on the plane")]
	sets := make([]uint8, blocks)
	aboveThreshold(sets, x, normal, plane)
	for i, sum := range sums {
		if got := sets[i/lanes]>>(i%lanes)&1 == 1; got != (sum > plane) {
			t.Fatalf("row %d is beyond: %v, sum %v, plane %v", i, got, sum, plane)
		}
	}
}

func checkAddRows(t *rapid.T, s *num.Stream, index []uint32, rows, width int) {
	x, dst := make([]int64, rows*width), make([]int64, width)
	for i := range x {
		x[i] = int64(s.Uint64n(1 << 60))
	}
	for j := range dst {
		dst[j] = int64(j)
	}
	want := slices.Clone(dst)
	for _, row := range index {
		for j := range want {
			want[j] += x[int(row)*width+j]
		}
	}
	addRows(dst, x, index)
	if !slices.Equal(dst, want) {
		t.Fatalf("sums %v, want %v", dst, want)
	}
}

// checkAddLabels holds sums of labels against addLabelsGo, for all weights that addLabels supports.
func checkAddLabels(t *rapid.T, s *num.Stream, labels []float32, width int, index []uint32) {
	weight := make([]uint32, len(labels)/width)
	for i := range weight {
		weight[i] = uint32(1 + s.Uint64n(3))
		if s.Uint64n(8) == 0 {
			weight[i] = mostWeight
		}
	}
	dst, want := make([]int64, (width+3)&^3), make([]int64, (width+3)&^3)
	for j := range dst {
		dst[j], want[j] = int64(j), int64(j)
	}
	addLabels(dst, labels, width, weight, index)
	addLabelsGo(want, labels, width, weight, index)
	if !slices.Equal(dst, want) {
		t.Fatalf("sums of labels %v, want %v", dst, want)
	}
}

// TestGroups: the kernels, whichever run here, are sums over labels in order.
func TestGroups(t *testing.T) { rapid.Check(t, checkGroups) }

func FuzzGroups(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkGroups)) }

// TestPortableGroups holds the portable kernels against those that run here.
func TestPortableGroups(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for _, width := range []int{1, 3, 4, 6, 18, 65} {
		labels := make([]float32, 16*width)
		v := make([]float64, width)
		for i := range labels {
			labels[i] = float32(s.Float64())
		}
		for j := range v {
			v[j] = s.Normal()
		}
		x, y := make([]float32, 16*width), make([]float32, 16*width)
		for b := range 2 {
			rows := [lanes]uint32{15, 3, 3, 0, 9, 8, 2, 14}
			gather(x[b*width*lanes:], labels, &rows, width)
			gatherGo(y[b*width*lanes:], labels, &rows, width)
		}
		if !slices.Equal(x, y) {
			t.Errorf("%d labels: blocks differ", width)
		}
		d, e := make([]float64, 16), make([]float64, 16)
		distances(d, x, v)
		distancesGo(e, x, v)
		if !slices.Equal(d, e) {
			t.Errorf("%d labels: distances differ", width)
		}
		a, b := make([]uint8, 2), make([]uint8, 2)
		aboveThreshold(a, x, v, 0.1)
		aboveThresholdGo(b, x, v, 0.1)
		if !slices.Equal(a, b) {
			t.Errorf("%d labels: sets %v and %v", width, a, b)
		}
	}
}

// TestPickWithoutRest: where rounding leaves no share above what was drawn, the last
// row of a positive share is it.
func TestPickWithoutRest(t *testing.T) {
	k := &twoMeans{distances: []float64{0, 2, 1, 0, 0}, sums: []float64{0, 2, 3, 3, 3}}
	for at, want := range map[float64]int{0: 1, 1.9: 1, 2: 2, 2.9: 2, 3: 2, 4: 2} {
		if got := k.pick(at); got != want {
			t.Errorf("at %v row %d, want %d", at, got, want)
		}
	}
}

// BenchmarkBeyond assigns 1,024 rows; bytes are those of their labels.
func BenchmarkBeyond(b *testing.B) {
	for _, width := range []int{5, 18} {
		b.Run(strconv.Itoa(width), func(b *testing.B) {
			const blocks = 128
			x, normal, sets := make([]float32, blocks*lanes*width), make([]float64, width), make([]uint8, blocks)
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				aboveThreshold(sets, x, normal, 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*blocks*lanes), "ns/row")
		})
	}
}
