package structrf

import (
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// maxIterations bounds the iterations of two-means.
const maxIterations = 100

// mostFixed is how many rows have stored fixed-point numbers, at most: the numbers of more rows take too much memory.
const mostFixed = 1 << 18

// twoMeans is the labeller of structrf: it clusters the label distributions of each
// node into two groups by k-means (Algorithm 1 of Chen et al. 2018, lines 8 and 9). Rows are
// weighted by their copies. The first centres come from k-means++ with the random stream of
// (seed, tree, path of the node). Sums over labels are float64, in order. Sums of degrees
// over a group's rows are integers in units of 2^-36: they are exact, so a row that changes
// groups is subtracted from one sum and added to the other.
type twoMeans struct {
	key     num.Key
	targets bool // labels are targets in bounds

	fixed  []int64 // by row of the sample, stride numbers each: weight × degree, fixed-point; empty if rows are many
	light  bool    // no row of the sample has more than mostWeight copies
	stride int     // labels, rounded up to a whole vector

	x          []float32 // labels of the current node, in blocks
	distances  []float64 // by row of the node: weighted squared distance from the first centre
	sums       []float64 // by row: the sum of distances up to it
	group      []uint8   // by block: the rows in group 1
	nearSecond []uint8   // by block: the rows nearer to centre 1
	joining    []uint32  // rows of the sample that move to group 1
	leaving    []uint32  // rows that move to group 0
	copies     [2]int
	all        []int64 // Σ over all rows, by label
	second     []int64 // Σ over group 1, by label
	moving     []int64 // Σ over rows that leave
	centre     [2][]float64
	normal     []float64 // centre 1 - centre 0

	sum []float64 // by label, for a leaf
}

// Begin implements forest.Labeller.
func (k *twoMeans) Begin(s *forest.BootstrapSample) {
	if len(k.normal) != s.Width {
		k.normal, k.sum = make([]float64, s.Width), make([]float64, s.Width)
		k.centre[0], k.centre[1] = make([]float64, s.Width), make([]float64, s.Width)
		k.stride = (s.Width + 3) &^ 3
		k.all, k.second, k.moving = make([]int64, k.stride), make([]int64, k.stride), make([]int64, k.stride)
	}
	k.fixed = k.fixed[:0]
	if len(s.Weight) > mostFixed {
		k.light = slices.Max(s.Weight) <= mostWeight
		return
	}
	forest.Resized(&k.fixed, len(s.Weight)*k.stride)
	for row, w := range s.Weight {
		label := s.Label(uint32(row))
		grains := k.fixed[row*k.stride : (row+1)*k.stride]
		for j, v := range label {
			grains[j] = int64(w) * toFixed(float64(v))
		}
		clear(grains[len(label):])
	}
}

// addRows adds to dst the products of weight and degree of rows, fixed-point, by label.
func (k *twoMeans) addRows(dst []int64, s *forest.BootstrapSample, rows []uint32) {
	if len(k.fixed) > 0 {
		addRows(dst, k.fixed, rows)
		return
	}
	if !k.light {
		addLabelsGo(dst, s.Labels, s.Width, s.Weight, rows)
		return
	}
	addLabels(dst, s.Labels, s.Width, s.Weight, rows)
}

// negativeEntropy returns Σ d ln d in nats; terms with d = 0 count 0. It is the RowValue of
// a row.
func negativeEntropy(d []float32) float64 {
	sum := 0.0
	for _, v := range d {
		if v > 0 {
			sum += float64(float64(v) * num.Log(float64(v)))
		}
	}
	return sum
}

// Classify implements forest.Labeller: a row's class is its cluster. It reports
// false if all distributions are equal, or if one cluster becomes empty.
func (k *twoMeans) Classify(s *forest.BootstrapSample, n *forest.Node) bool {
	k.fillBlocks(s, n)
	if !k.chooseCentres(s, n) {
		return false
	}
	clear(k.all)
	k.addRows(k.all, s, n.Rows)
	for range maxIterations {
		moved := k.assign(s, n)
		if k.copies[0] == 0 || k.copies[1] == 0 {
			return false
		}
		if !moved {
			break
		}
		k.moveCentres()
	}
	for i, row := range n.Rows {
		s.Class[row] = uint32(k.group[i/lanes] >> (i % lanes) & 1)
	}
	return true
}

// fillBlocks copies the node's label distributions to blocks and puts all rows in group 0.
// The last block is filled up with copies of the node's last row.
func (k *twoMeans) fillBlocks(s *forest.BootstrapSample, n *forest.Node) {
	blocks := (len(n.Rows) + lanes - 1) / lanes
	size := s.Width * lanes
	forest.Resized(&k.x, blocks*size)
	forest.Resized(&k.group, blocks)
	forest.Resized(&k.nearSecond, blocks)
	clear(k.group)
	var rows [lanes]uint32
	for b := range blocks {
		listed := copy(rows[:], n.Rows[b*lanes:])
		for i := listed; i < lanes; i++ {
			rows[i] = n.Rows[len(n.Rows)-1]
		}
		gather(k.x[b*size:(b+1)*size], s.Labels, &rows, s.Width)
	}
	clear(k.second)
	k.copies = [2]int{n.Copies, 0}
}

// chooseCentres chooses the first centres by k-means++: a sample drawn uniformly, and one
// drawn by squared distance from it. It reports false if all distances are 0.
func (k *twoMeans) chooseCentres(s *forest.BootstrapSample, n *forest.Node) bool {
	stream := num.NewStream(k.key, n.Path, s.Tree)
	centre(k.centre[0], s, pickCopy(s, n, stream.Uint64n(uint64(n.Copies))))
	size := len(k.group) * lanes
	forest.Resized(&k.distances, size)
	distances(k.distances, k.x, k.centre[0])
	k.distances = k.distances[:len(n.Rows)]
	forest.Resized(&k.sums, len(n.Rows))
	total := 0.0
	for i, row := range n.Rows {
		d := float64(float64(s.Weight[row]) * k.distances[i])
		total += d
		k.distances[i], k.sums[i] = d, total
	}
	if total == 0 {
		return false
	}
	centre(k.centre[1], s, n.Rows[k.pick(float64(stream.Float64()*total))])
	return true
}

// centre sets dst to the label distribution of a row.
func centre(dst []float64, s *forest.BootstrapSample, row uint32) {
	for j, v := range s.Label(row) {
		dst[j] = float64(v)
	}
}

// pickCopy returns the row of copy number at of the node, from 0.
func pickCopy(s *forest.BootstrapSample, n *forest.Node, at uint64) uint32 {
	sum := uint64(0)
	for _, row := range n.Rows {
		if sum += uint64(s.Weight[row]); sum > at {
			return row
		}
	}
	return n.Rows[len(n.Rows)-1]
}

// pick returns the first row of the node whose sum of distances is above at. If rounding
// leaves none, it returns the last row with a distance above 0.
func (k *twoMeans) pick(at float64) int {
	i, _ := slices.BinarySearchFunc(k.sums, at, func(sum, at float64) int {
		if sum > at {
			return 1
		}
		return -1
	})
	if i < len(k.sums) {
		return i
	}
	for i--; i > 0 && k.distances[i] == 0; i-- {
	}
	return i
}

// assign puts each row in the group of the nearer centre, group 0 among ties, and reports
// whether any row changed groups. A row is nearer to centre 1 if
// (c1 - c0)·x > (c1 - c0)·(c0 + c1)/2.
func (k *twoMeans) assign(s *forest.BootstrapSample, n *forest.Node) (moved bool) {
	plane := 0.0
	for j, a := range k.centre[0] {
		b := k.centre[1][j]
		k.normal[j] = b - a
		plane += float64((b - a) * float64(0.5*(a+b)))
	}
	aboveThreshold(k.nearSecond, k.x, k.normal, plane)
	if rest := len(n.Rows) % lanes; rest > 0 {
		k.nearSecond[len(k.nearSecond)-1] &= 1<<rest - 1
	}
	k.joining, k.leaving = k.joining[:0], k.leaving[:0]
	for b, set := range k.nearSecond {
		if changed := set ^ k.group[b]; changed != 0 {
			k.regroup(s, n.Rows[b*lanes:], set, changed)
			k.group[b] = set
		}
	}
	k.addRows(k.second, s, k.joining)
	if len(k.leaving) > 0 {
		clear(k.moving)
		k.addRows(k.moving, s, k.leaving)
		for j, v := range k.moving {
			k.second[j] -= v
		}
	}
	return len(k.joining)+len(k.leaving) > 0
}

// regroup lists the rows of a block that change groups (bits of changed), and moves their
// copies. rows begins with the rows of the block; set has those that are in group 1 now.
func (k *twoMeans) regroup(s *forest.BootstrapSample, rows []uint32, set, changed uint8) {
	join, leave := len(k.joining), len(k.leaving)
	k.joining, k.leaving = slices.Grow(k.joining, lanes)[:join+lanes], slices.Grow(k.leaving, lanes)[:leave+lanes]
	second := 0 // copies that join
	for ; changed != 0; changed &= changed - 1 {
		i := bits.TrailingZeros8(changed)
		row, joins := rows[i], int(set>>i&1) // which no branch could guess
		k.joining[join], k.leaving[leave] = row, row
		join, leave = join+joins, leave+1-joins
		second += int(s.Weight[row]) * (2*joins - 1)
	}
	k.joining, k.leaving = k.joining[:join], k.leaving[:leave]
	k.copies[0], k.copies[1] = k.copies[0]-second, k.copies[1]+second
}

// moveCentres moves the centres to the means of their groups.
func (k *twoMeans) moveCentres() {
	first, second := float64(float64(k.copies[0])*fixedOne), float64(float64(k.copies[1])*fixedOne)
	for j, sum := range k.second[:len(k.normal)] {
		k.centre[0][j] = float64(k.all[j]-sum) / first
		k.centre[1][j] = float64(sum) / second
	}
}

// Leaf implements forest.Labeller: the mean distribution of the leaf's samples. The
// loss Σ w Σ d ln(d/m) is Σ w Σ d ln d - n Σ m ln m, as m is their mean. The loss of targets is their squared error.
func (k *twoMeans) Leaf(dst []float32, s *forest.BootstrapSample, n *forest.Node) float64 {
	sum := k.sum
	if k.targets {
		return forest.MeanTargets(dst, sum, s, n)
	}
	clear(sum)
	loss := 0.0
	for _, row := range n.Rows {
		w := float64(s.Weight[row])
		loss += float64(w * s.RowValues[row])
		for j, v := range s.Label(row) {
			sum[j] += float64(w * float64(v))
		}
	}
	copies := float64(n.Copies)
	for j, v := range sum {
		mean := v / copies
		dst[j] = float32(mean)
		if mean > 0 {
			loss -= float64(copies * float64(mean*num.Log(mean)))
		}
	}
	return max(0, loss)
}

var _ forest.Labeller = (*twoMeans)(nil)
