package structrf

import (
	"github.com/coppice-ldl/coppice/algorithms/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// maxIterations bounds the iterations of two-means.
const maxIterations = 100

// grain is one in the fixed-point sums of degrees: the sum of a greatest sample
// stays below 2^63.
const grain = 1 << 36

// twoMeans is the labeller of structrf: it clusters the label distributions of each
// node into two groups by k-means (Algorithm 1, lines 8 and 9), each row weighted
// by its copies, from one k-means++ start drawn from the stream of (seed, tree,
// path of the node). Sums over labels are float64, in order. Sums of degrees over a
// group's rows are whole multiples of 2^-36: they are exact, so a row that changes
// groups is taken off one sum and added to the other.
type twoMeans struct {
	key num.Key

	x      []float64 // rows×labels of the node at work
	weight []float64 // by row
	far    []float64 // by row: weighted squared distance from the first centre
	group  []uint32  // by row: 0 or 1
	copies [2]float64
	all    []int64 // Σ over all rows, by label
	second []int64 // Σ over group 1, by label
	centre [2][]float64
	normal []float64 // centre 1 - centre 0

	sum     []float64 // by label, for a leaf
	entropy []float64 // by row of the sample: Σ d ln d
}

// Begin implements forest.Labeller.
func (k *twoMeans) Begin(s *forest.Sample) {
	if len(k.normal) != s.Width {
		k.normal, k.sum = make([]float64, s.Width), make([]float64, s.Width)
		k.centre[0], k.centre[1] = make([]float64, s.Width), make([]float64, s.Width)
		k.all, k.second = make([]int64, s.Width), make([]int64, s.Width)
	}
	k.entropy = k.entropy[:0]
	for row := range s.Weight {
		k.entropy = append(k.entropy, negativeEntropy(s.Label(uint32(row))))
	}
}

// negativeEntropy returns Σ d ln d in nats; terms with d = 0 count 0.
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
// false where all distributions are the same, or one cluster ends up empty.
func (k *twoMeans) Classify(s *forest.Sample, n *forest.Node) bool {
	k.gather(s, n)
	if !k.seed(s, n) {
		return false
	}
	for range maxIterations {
		moved := k.assign()
		if k.copies[0] == 0 || k.copies[1] == 0 {
			return false
		}
		if !moved {
			break
		}
		k.move()
	}
	for i, row := range n.Rows {
		s.Class[row] = k.group[i]
	}
	return true
}

// gather copies the node's label distributions; all rows are in group 0.
func (k *twoMeans) gather(s *forest.Sample, n *forest.Node) {
	k.x, k.weight, k.group = k.x[:0], k.weight[:0], k.group[:0]
	clear(k.all)
	clear(k.second)
	for _, row := range n.Rows {
		w := s.Weight[row]
		for j, v := range s.Label(row) {
			k.x = append(k.x, float64(v))
			k.all[j] += int64(w) * fixed(float64(v))
		}
		k.weight = append(k.weight, float64(w))
		k.group = append(k.group, 0)
	}
	k.copies = [2]float64{float64(n.Copies), 0}
}

// fixed returns a degree in units of 2^-36, rounded.
func fixed(x float64) int64 { return int64(float64(x*grain) + 0.5) }

func (k *twoMeans) row(i int) []float64 {
	c := len(k.normal)
	return k.x[i*c : (i+1)*c : (i+1)*c]
}

// seed chooses the first centres by k-means++: a sample drawn evenly, and one drawn
// by squared distance from it. It reports false where all distances are 0.
func (k *twoMeans) seed(s *forest.Sample, n *forest.Node) bool {
	stream := num.NewStream(k.key, n.Path, s.Tree)
	copy(k.centre[0], k.row(pick(k.weight, float64(stream.Uint64n(uint64(n.Copies))))))
	k.far = k.far[:0]
	total := 0.0
	for i, w := range k.weight {
		d := float64(w * squaredDistance(k.row(i), k.centre[0]))
		k.far = append(k.far, d)
		total += d
	}
	if total == 0 {
		return false
	}
	copy(k.centre[1], k.row(pick(k.far, float64(stream.Float64()*total))))
	return true
}

// pick returns the first index whose share, the sum of weights up to it, is above
// at; the last index of a positive weight where rounding leaves none.
func pick(weights []float64, at float64) int {
	sum, last := 0.0, 0
	for i, w := range weights {
		sum += w
		if sum > at {
			return i
		}
		if w > 0 {
			last = i
		}
	}
	return last
}

func squaredDistance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
		sum += float64(d * d)
	}
	return sum
}

// assign gives each row to the nearer centre, the first one among ties, and reports
// whether any changed groups. A row is nearer to the second where it lies beyond
// the bisecting plane: (c1 - c0)·x > (c1 - c0)·(c0 + c1)/2.
func (k *twoMeans) assign() (moved bool) {
	plane := 0.0
	for j, a := range k.centre[0] {
		b := k.centre[1][j]
		k.normal[j] = b - a
		plane += float64((b - a) * float64(0.5*(a+b)))
	}
	n := len(k.group)
	for i := 0; i+1 < n; i += 2 {
		a, b := dots(k.row(i), k.row(i+1), k.normal)
		moved = k.put(i, a > plane) || moved
		moved = k.put(i+1, b > plane) || moved
	}
	if n%2 == 1 {
		a, _ := dots(k.row(n-1), k.row(n-1), k.normal)
		moved = k.put(n-1, a > plane) || moved
	}
	return moved
}

// dots returns Σ a[i]·n[i] and Σ b[i]·n[i], each in order: side by side, as one sum
// alone waits for its own additions.
func dots(a, b, n []float64) (x, y float64) {
	a, b = a[:len(n)], b[:len(n)]
	for i, v := range n {
		x += float64(a[i] * v)
		y += float64(b[i] * v)
	}
	return x, y
}

// put puts a row into a group and reports whether it was in the other one.
func (k *twoMeans) put(i int, second bool) (moved bool) {
	group := uint32(0)
	if second {
		group = 1
	}
	if group == k.group[i] {
		return false
	}
	k.change(i, group)
	return true
}

// change moves a row to the other group.
func (k *twoMeans) change(i int, group uint32) {
	w := k.weight[i]
	k.group[i] = group
	k.copies[group] += w
	k.copies[1-group] -= w
	n := int64(w)
	if group == 0 {
		n = -n
	}
	for j, v := range k.row(i) {
		k.second[j] += n * fixed(v)
	}
}

// move moves the centres to the means of their groups.
func (k *twoMeans) move() {
	first, second := float64(k.copies[0]*grain), float64(k.copies[1]*grain)
	for j, sum := range k.second {
		k.centre[0][j] = float64(k.all[j]-sum) / first
		k.centre[1][j] = float64(sum) / second
	}
}

// Leaf implements forest.Labeller: the mean distribution of the leaf's samples. The
// loss Σ w Σ d ln(d/m) is Σ w Σ d ln d - n Σ m ln m, as m is their mean.
func (k *twoMeans) Leaf(dst []float32, s *forest.Sample, n *forest.Node) float64 {
	sum := k.sum
	clear(sum)
	loss := 0.0
	for _, row := range n.Rows {
		w := float64(s.Weight[row])
		loss += float64(w * k.entropy[row])
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
