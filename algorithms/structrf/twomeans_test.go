package structrf

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// slowTwoMeans is the twin of Classify: k-means on a list that holds every copy of
// every row, with all sums made anew in each iteration. It returns the groups of
// the copies, or nil for a leaf.
func slowTwoMeans(key num.Key, s *forest.BootstrapSample, n *forest.Node) []uint32 {
	var copies [][]float64
	for _, row := range n.Rows {
		x := make([]float64, s.Width)
		for j, v := range s.Label(row) {
			x[j] = float64(v)
		}
		for range s.Weight[row] {
			copies = append(copies, x)
		}
	}
	a, b := slowSeeds(num.NewStream(key, n.Path, s.Tree), copies)
	if b == nil {
		return nil
	}
	group := make([]uint32, len(copies))
	for iteration := range 100 {
		before := slices.Clone(group)
		normal, middle := make([]float64, s.Width), make([]float64, s.Width)
		for j := range normal {
			normal[j], middle[j] = b[j]-a[j], 0.5*(a[j]+b[j])
		}
		for i, x := range copies {
			group[i] = 0
			if slowDot(x, normal) > slowDot(middle, normal) {
				group[i] = 1
			}
		}
		if !slices.Contains(group, 0) || !slices.Contains(group, 1) {
			return nil
		}
		if iteration > 0 && slices.Equal(before, group) {
			break
		}
		a, b = slowMean(copies, group, 0), slowMean(copies, group, 1)
	}
	return group
}

func slowDot(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// slowMean is the mean of a group, its degrees in units of 2^-36.
func slowMean(copies [][]float64, group []uint32, want uint32) []float64 {
	mean := make([]float64, len(copies[0]))
	for j := range mean {
		sum, n := int64(0), 0
		for i, x := range copies {
			if group[i] == want {
				sum += int64(math.Floor(x[j]*(1<<36) + 0.5))
				n++
			}
		}
		mean[j] = float64(sum) / (float64(n) * (1 << 36))
	}
	return mean
}

// slowSeeds draws the first centres by k-means++; b is nil where all copies are the
// same.
func slowSeeds(stream *num.Stream, copies [][]float64) (a, b []float64) {
	a = copies[stream.Uint64n(uint64(len(copies)))]
	var distinct [][]float64 // rows, in order, with their shares
	var share []float64
	total := 0.0
	for from := 0; from < len(copies); {
		to := from
		for to < len(copies) && &copies[to][0] == &copies[from][0] {
			to++
		}
		d := 0.0
		for j, v := range copies[from] {
			d += float64((v - a[j]) * (v - a[j]))
		}
		distinct, share = append(distinct, copies[from]), append(share, float64(to-from)*d)
		total += share[len(share)-1]
		from = to
	}
	if total == 0 {
		return a, nil
	}
	at, sum := stream.Float64()*total, 0.0
	for i, x := range distinct {
		if share[i] > 0 {
			b = x
		}
		if sum += share[i]; sum > at {
			return a, x
		}
	}
	return a, b
}

// drawSample draws label distributions, some of them alike, on a grid or not.
func drawSample(t *rapid.T) *forest.BootstrapSample {
	return sampleOf(t, rapid.SampledFrom([]int{1, 2, 3, 10, 30, 200}).Draw(t, "rows"))
}

func sampleOf(t *rapid.T, n int) *forest.BootstrapSample {
	s := &forest.BootstrapSample{Tree: 3, Width: rapid.IntRange(1, 5).Draw(t, "labels")}
	stream := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	grid := rapid.SampledFrom([]float64{2, 4, 1 << 20}).Draw(t, "grid")
	for range n {
		d, sum := make([]float32, s.Width), float32(0)
		for c := range d {
			d[c] = float32(math.Floor(stream.Float64() * grid))
			sum += d[c]
		}
		for c := range d {
			if d[c] /= sum; sum == 0 {
				d[c] = 1 / float32(s.Width)
			}
		}
		s.Labels = append(s.Labels, d...)
		s.Weight = append(s.Weight, 1+uint32(stream.Uint64n(4)))
		s.Class = append(s.Class, 7)
	}
	return s
}

// drawNode draws a node of some of the sample's rows.
func drawNode(t *rapid.T, s *forest.BootstrapSample) *forest.Node {
	n := &forest.Node{Path: rapid.Uint64Range(1, 1<<40).Draw(t, "path")}
	stream := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "in node"), "test"), 0, 0)
	least := rapid.Uint64Range(0, 3).Draw(t, "left out")
	for row, w := range s.Weight {
		if stream.Uint64n(4) >= least || row == 0 {
			n.Rows, n.Copies = append(n.Rows, uint32(row)), n.Copies+int(w)
		}
	}
	return n
}

// TestTwoMeansEqualsItsTwin: weights are copies, and a row that changes groups
// changes both means exactly.
func TestTwoMeansEqualsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		n := drawNode(t, s)
		k := &twoMeans{key: num.NewKey(5, "structrf/two-means")}
		k.Begin(s)
		want := slowTwoMeans(k.key, s, n)
		if got := k.Classify(s, n); got != (want != nil) {
			t.Fatalf("Classify is %v, want %v", got, want != nil)
		}
		if want == nil {
			return
		}
		copies := 0
		for _, row := range n.Rows {
			if s.Class[row] != want[copies] {
				t.Fatalf("row %d is in group %d, want %d", row, s.Class[row], want[copies])
			}
			copies += int(s.Weight[row])
		}
		again := slices.Clone(s.Class)
		k.Classify(s, n)
		if !slices.Equal(again, s.Class) {
			t.Fatal("the same node has other groups the second time")
		}
	})
}

// TestTwoMeansFindsPlantedGroups: groups far apart are found whatever the start.
func TestTwoMeansFindsPlantedGroups(t *testing.T) {
	s := &forest.BootstrapSample{Width: 2}
	for i := range 20 {
		x := float32(0.1) + float32(i%10)/100
		if i >= 12 {
			x += 0.7
		}
		s.Labels = append(s.Labels, x, 1-x)
		s.Weight, s.Class = append(s.Weight, 1), append(s.Class, 0)
	}
	n := &forest.Node{Copies: 20}
	for row := range uint32(20) {
		n.Rows = append(n.Rows, row)
	}
	k := &twoMeans{key: num.NewKey(1, "test")}
	k.Begin(s)
	for path := range uint64(50) {
		if n.Path = path + 1; !k.Classify(s, n) {
			t.Fatal("a leaf")
		}
		for row, class := range s.Class {
			if (class == s.Class[0]) != (row < 12) {
				t.Fatalf("path %d: row %d is in group %d", n.Path, row, class)
			}
		}
	}
}

// TestEqualDistributionsMakeALeaf: nothing tells the rows apart.
func TestEqualDistributionsMakeALeaf(t *testing.T) {
	s := &forest.BootstrapSample{Width: 2, Labels: []float32{0.1, 0.9, 0.1, 0.9}, Weight: []uint32{3, 1},
		Class: []uint32{0, 0}}
	k := &twoMeans{key: num.NewKey(1, "test")}
	k.Begin(s)
	if k.Classify(s, &forest.Node{Rows: []uint32{0, 1}, Copies: 4, Path: 1}) {
		t.Error("equal rows were clustered")
	}
}

// TestLeaf: a leaf is the mean of its samples, and its loss their mean K-L from it.
func TestLeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		n := drawNode(t, s)
		for row := range s.Weight {
			s.RowValues = append(s.RowValues, negativeEntropy(s.Label(uint32(row))))
		}
		k := &twoMeans{}
		k.Begin(s)
		got := make([]float32, s.Width)
		loss := k.Leaf(got, s, n)
		wantLoss := 0.0
		for j := range got {
			sum := 0.0
			for _, row := range n.Rows {
				sum += float64(s.Weight[row]) * float64(s.Label(row)[j])
			}
			mean := sum / float64(n.Copies)
			if got[j] != float32(mean) {
				t.Fatalf("label %d is %v, want %v", j, got[j], float32(mean))
			}
			for _, row := range n.Rows {
				if d := float64(s.Label(row)[j]); d > 0 {
					wantLoss += float64(s.Weight[row]) * d * math.Log(d/mean)
				}
			}
		}
		if math.Abs(loss-wantLoss) > 1e-9 || loss < 0 {
			t.Fatalf("loss %v, want %v", loss, wantLoss)
		}
	})
}
