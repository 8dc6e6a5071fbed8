package boost_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aosoldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// twin grows a tree by trying every threshold of every feature at every node, each from the rows
// themselves, in float64. The derivatives are rounded as the algorithm says; nothing else is like it.
type twin struct {
	*problem
	leaves, leafRows int
	l2               float64 // in units
	unit             float64
	p                [][]float64 // predicted degrees by row
	label            int         // of a tree for one label; -1: nodes choose two labels
	width            int

	nodes                []twinNode
	feature, left, count []uint32
	threshold            []float64
	leaf                 []float32
}

type twinNode struct {
	rows      []int
	r, s      int
	g, h      []float64 // by row of the problem
	feature   int
	threshold float64
	gain      float64 // 0: no split
	inner     bool
}

func (w *twin) fixed(x float64) float64 { return math.RoundToEven(x * w.unit) }

func (w *twin) first(row, c int) float64 {
	return w.fixed(w.p[row][c] - float64(w.problem.label(row)[c]))
}

func (w *twin) second(row, r, s int) float64 {
	p := w.p[row]
	return w.fixed(p[r]*(1-p[r])) + w.fixed(p[s]*(1-p[s])) + 2*w.fixed(p[r]*p[s])
}

// choose sets the derivatives of the node's rows.
func (w *twin) choose(n *twinNode) {
	n.g, n.h = make([]float64, w.rows), make([]float64, w.rows)
	sum := func(f func(row int) float64) (total float64) {
		for _, row := range n.rows {
			total += f(row)
		}
		return total
	}
	if w.label >= 0 {
		for _, row := range n.rows {
			p := w.p[row][w.label]
			n.g[row], n.h[row] = w.first(row, w.label), w.fixed(p*(1-p))
		}
		return
	}
	total := func(c int) float64 { return sum(func(row int) float64 { return w.first(row, c) }) }
	for c := range w.labels {
		if -total(c) > -total(n.r) {
			n.r = c
		}
	}
	best := -1.0
	for c := range w.labels {
		difference := total(c) - total(n.r)
		h := sum(func(row int) float64 { return w.second(row, n.r, c) })
		if c != n.r && difference*difference/max(1, h) > best {
			best, n.s = difference*difference/max(1, h), c
		}
	}
	for _, row := range n.rows {
		n.g[row], n.h[row] = w.first(row, n.s)-w.first(row, n.r), 2*w.second(row, n.r, n.s)
	}
}

// score returns G²/(H + λ) of some rows under a node's derivatives.
func (w *twin) score(n *twinNode, rows []int) float64 {
	g, h := 0.0, 0.0
	for _, row := range rows {
		g, h = g+n.g[row], h+n.h[row]
	}
	return g * g / (h + w.l2)
}

// search finds the node's best split.
func (w *twin) search(n *twinNode) {
	if len(n.rows) < 2*w.leafRows {
		return
	}
	whole := w.score(n, n.rows)
	best := whole * (1 + 0x1p-44)
	for f := range w.features {
		var values []float64
		for _, row := range n.rows {
			values = append(values, float64(w.row(row)[f]))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := range values[1:] {
			threshold := (values[i] + values[i+1]) / 2
			left, right := w.divide(n.rows, f, threshold)
			if len(left) < w.leafRows || len(right) < w.leafRows {
				continue
			}
			if sum := w.score(n, left) + w.score(n, right); sum > best {
				best = sum
				n.feature, n.threshold, n.gain = f, threshold, sum-whole
			}
		}
	}
}

func (w *twin) divide(rows []int, f int, threshold float64) (left, right []int) {
	for _, row := range rows {
		if float64(w.row(row)[f]) < threshold {
			left = append(left, row)
		} else {
			right = append(right, row)
		}
	}
	return left, right
}

func (w *twin) add(rows []int) {
	n := twinNode{rows: rows}
	w.choose(&n)
	w.search(&n)
	w.nodes = append(w.nodes, n)
	w.feature, w.left, w.count = append(w.feature, math.MaxUint32), append(w.left, 0), append(w.count, uint32(len(rows)))
	w.threshold = append(w.threshold, 0)
}

// grow grows the tree: the arrays are those of a model.
func (w *twin) grow() {
	var rows []int
	for i := range w.rows {
		rows = append(rows, i)
	}
	w.add(rows)
	for range w.leaves - 1 {
		best := -1
		for i, n := range w.nodes {
			if n.gain > 0 && !n.inner && (best < 0 || n.gain > w.nodes[best].gain) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		n := &w.nodes[best]
		n.inner = true
		w.feature[best], w.threshold[best], w.left[best] = uint32(n.feature), n.threshold, uint32(len(w.nodes))
		left, right := w.divide(n.rows, n.feature, n.threshold)
		w.add(left)
		w.add(right)
	}
	for i, n := range w.nodes {
		if !n.inner {
			w.left[i] = uint32(len(w.leaf) / w.width)
			w.leaf = append(w.leaf, w.leafOf(&n)...)
		}
	}
}

// leafOf returns a leaf's numbers: a Newton step.
func (w *twin) leafOf(n *twinNode) []float32 {
	g, h := 0.0, 0.0
	for _, row := range n.rows {
		g, h = g+n.g[row], h+n.h[row]
	}
	if w.label >= 0 {
		return []float32{float32(-g / (h + w.l2))}
	}
	numbers := make([]float32, w.labels)
	step := float32(max(-5, min(5, g/(h/2))))
	numbers[n.r], numbers[n.s] = step, -step
	return numbers
}

// firstRound grows the trees of the first round, from F, one after the other.
func firstRound(a algorithms.Algorithm, p *problem, start []float64, leaves, leafRows int, l2 float64) []*twin {
	sum, mean := 0.0, make([]float64, p.labels)
	most := slices.Max(start)
	for c, f := range start {
		mean[c] = num.Exp(f - most)
		sum += mean[c]
	}
	for c := range mean {
		mean[c] /= sum
	}
	log := 0
	for 1<<log < p.rows {
		log++
	}
	one := twin{problem: p, leaves: leaves, leafRows: leafRows, unit: math.Ldexp(1, min(40, 52-log)), width: 1}
	one.l2 = max(1, l2*one.unit)
	for range p.rows {
		one.p = append(one.p, mean)
	}
	if a.Name() == aosoldlogitboost.Name {
		one.label, one.width, one.l2 = -1, p.labels, 1
		one.grow()
		return []*twin{&one}
	}
	var all []*twin
	for c := range p.labels {
		w := one
		w.label = c
		w.grow()
		all = append(all, &w)
	}
	return all
}

// TestFirstRound holds the trees of the first round against the twin: for rows of all kinds, dense and
// sparse, in one shard and more.
func TestFirstRound(t *testing.T) {
	testkit.WithoutRace(t)
	for _, a := range both {
		t.Run(a.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkFirstRound(t, a) })
		})
	}
}

func checkFirstRound(t *rapid.T, a algorithms.Algorithm) {
	p := makeProblem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(10, 120).Draw(t, "rows"), rapid.IntRange(1, 9).
		Draw(t, "features"),
		rapid.IntRange(2, 4).Draw(t, "labels"))
	leaves, leafRows := rapid.IntRange(2, 12).Draw(t, "leaves"), rapid.IntRange(1, 5).Draw(t, "leaf rows")
	set := param.Values{"rounds": int64(1), "leaves": int64(leaves), "leaf_rows": int64(leafRows),
		"validation_fraction": 0.0}
	if rapid.Bool().Draw(t, "from zero") {
		set["start"] = "zero"
	}
	l2 := 0.0
	if a.Name() != aosoldlogitboost.Name {
		l2 = rapid.SampledFrom([]float64{0, 1, 7.5}).Draw(t, "l2")
		set["l2"] = l2
	}
	d := p.data(rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"), rapid.Bool().Draw(t, "sparse"), dataset.Split{})
	got := tensors(t, train(t, a, jobOf(t, a, d.Manifest, set, dataset.Split{}), d, 1))
	var feature, left, count []uint32
	var threshold []float64
	var leaf []float32
	for _, w := range firstRound(a, p, got["start"].F64, leaves, leafRows, l2) {
		feature, left, count = append(feature, w.feature...), append(left, w.left...), append(count, w.count...)
		threshold, leaf = append(threshold, w.threshold...), append(leaf, w.leaf...)
	}
	if !slices.Equal(got["feature"].U32, feature) || !slices.Equal(got["left"].U32, left) ||
		!slices.Equal(got["samples"].U32, count) ||
		!slices.Equal(got["threshold"].F64, threshold) {
		t.Fatalf("features %v, thresholds %v, rows %v; the twin has %v, %v, %v", got["feature"].U32, got["threshold"].F64,
			got["samples"].U32,
			feature, threshold, count)
	}
	for i, x := range got["leaf"].F32 {
		if math.Abs(float64(x-leaf[i])) > 1e-6*(1+math.Abs(float64(x))) {
			t.Fatalf("leaves %v, the twin has %v", got["leaf"].F32, leaf)
		}
	}
}
