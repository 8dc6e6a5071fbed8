package ldlboost

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// slow grows trees by trying every threshold of every feature at every node, each from the rows themselves, in float64,
// without bins, histograms or subtraction. It rounds derivatives as the algorithm does.
type slow struct {
	*problem
	depth, leaves, leafRows int
	l2, minGain             float64
	bound, best             bool // hessian bound; best first
	f                       [][]float64

	nodes []slowNode
}

type slowNode struct {
	rows      []int
	depth     int
	feature   int
	threshold float64
	gain      float64 // 0: no split
	left      int     // 0: not split
}

func (w *slow) sums(rows []int) (g, h []float64) {
	g, h = make([]float64, w.labels), make([]float64, w.labels)
	for _, row := range rows {
		p := softmaxOf(w.f[row])
		for c := range g {
			g[c] += w.weight(row) * math.RoundToEven((p[c]-float64(w.label(row)[c]))*32768) / 32768
			if w.bound {
				h[c] += w.weight(row) * 0.5
			} else {
				h[c] += w.weight(row) * math.RoundToEven(p[c]*(1-p[c])*131072) / 131072
			}
		}
	}
	return g, h
}

func (w *slow) score(rows []int) (score float64) {
	g, h := w.sums(rows)
	for c := range g {
		score += g[c] * g[c] / (max(h[c], 1.0/131072) + w.l2)
	}
	return score
}

// search returns a node with its best split. Gains that differ by rounding alone are equal: the first one is taken.
func (w *slow) search(rows []int, depth int) slowNode {
	n := slowNode{rows: rows, depth: depth}
	if depth == w.depth || len(rows) < 2*w.leafRows {
		return n
	}
	whole := w.score(rows)
	for f := range w.features {
		var values []float64
		for row := range w.rows {
			if w.weight(row) > 0 {
				values = append(values, float64(w.row(row)[f]))
			}
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := range values[1:] {
			threshold := float64(float32((values[i] + values[i+1]) / 2))
			if threshold <= values[i] {
				threshold = values[i+1]
			}
			left, right := w.divide(rows, f, threshold)
			if len(left) < w.leafRows || len(right) < w.leafRows {
				continue
			}
			if gain := (w.score(left)+w.score(right)-whole)/2 - w.minGain; gain > n.gain+1e-9*(1+whole) {
				n.feature, n.threshold, n.gain = f, threshold, gain
			}
		}
	}
	return n
}

func (w *slow) divide(rows []int, f int, threshold float64) (left, right []int) {
	for _, row := range rows {
		if float64(w.row(row)[f]) < threshold {
			left = append(left, row)
		} else {
			right = append(right, row)
		}
	}
	return left, right
}

func (w *slow) split(at int) {
	n := &w.nodes[at]
	n.left = len(w.nodes)
	left, right := w.divide(n.rows, n.feature, n.threshold)
	depth := n.depth + 1
	w.nodes = append(w.nodes, w.search(left, depth), w.search(right, depth))
}

// grow grows one tree.
func (w *slow) grow() {
	var rows []int
	for i := range w.rows {
		if w.weight(i) > 0 {
			rows = append(rows, i)
		}
	}
	w.nodes = []slowNode{w.search(rows, 0)}
	for level := 0; ; level++ {
		var open []int
		for i, n := range w.nodes {
			if n.gain > 0 && n.left == 0 && (w.best || n.depth == level) {
				open = append(open, i)
			}
		}
		slices.SortStableFunc(open, func(a, b int) int {
			if w.nodes[a].gain > w.nodes[b].gain {
				return -1
			}
			return 1
		})
		room := w.leaves - 1 - len(w.nodes)/2
		if w.best {
			room = min(room, 1)
		}
		open = open[:min(room, len(open))]
		if len(open) == 0 {
			return
		}
		slices.Sort(open)
		for _, at := range open {
			w.split(at)
		}
	}
}

// TestGoldenTrees holds the trees of two rounds against the slow program: for columns of all kinds, dense and sparse,
// in one shard and more, with weights and without.
func TestGoldenTrees(t *testing.T) {
	rapid.Check(t, checkGoldenTrees)
}

func checkGoldenTrees(t *rapid.T) {
	p := makeProblem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(10, 90).Draw(t, "rows"),
		rapid.IntRange(1, 9).Draw(t, "features"), rapid.IntRange(2, 4).Draw(t, "labels"))
	w := &slow{problem: p, depth: rapid.IntRange(1, 4).Draw(t, "depth"), leaves: rapid.IntRange(2, 12).Draw(t, "leaves"),
		leafRows: rapid.IntRange(1, 5).Draw(t, "leaf rows"), l2: rapid.SampledFrom([]float64{0.5, 1, 7.5}).Draw(t, "l2"),
		minGain: rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "min gain"), bound: rapid.Bool().Draw(t, "bound"),
		best: rapid.Bool().Draw(t, "best first")}
	set := param.Values{"rounds": int64(2), "leaves": int64(w.leaves), "leaf_rows": int64(w.leafRows),
		"max_depth": int64(w.depth), "l2": w.l2, "min_gain": w.minGain, "validation_fraction": 0.0, "learning_rate": 0.5,
		"bins": int64(255)}
	if rapid.Bool().Draw(t, "weighted") {
		p.weigh(rapid.Uint64().Draw(t, "weights"))
		p.weights[0] = 1.5 // one is above 0
	}
	if w.bound {
		set["hessian"] = "bound"
	}
	if w.best {
		set["grow"] = "leaf"
	}
	d := p.data(rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"), rapid.Bool().Draw(t, "sparse"), dataset.Split{})
	got := model(t, train(t, jobOf(t, d.Manifest, set, dataset.Split{}), d, 1)).(forest.Adds).Additive()
	for range p.rows {
		w.f = append(w.f, slices.Clone(got.Start))
	}
	for _, tree := range got.Trees {
		w.grow()
		w.compare(t, tree)
		w.advance()
	}
}

// compare compares a tree with the latest tree of the algorithm.
func (w *slow) compare(t *rapid.T, tree *forest.Tree) {
	if tree.Nodes() != len(w.nodes) {
		t.Fatalf("the tree has %d nodes, the slow program %d", tree.Nodes(), len(w.nodes))
	}
	for i, n := range w.nodes {
		feature, left, split := tree.Test(i)
		if split != (n.left > 0) || int(tree.Samples(i)) != len(n.rows) {
			t.Fatalf("node %d: split %v, %d samples; the slow program: %+v", i, split, tree.Samples(i), n)
		}
		if split {
			if int(feature) != n.feature || int(left) != n.left || tree.Threshold(i) != n.threshold ||
				math.Abs(tree.Gain(i)-n.gain) > 1e-9*(1+n.gain) {
				t.Fatalf("node %d: x[%d] < %v, left %d, gain %v; the slow program: %+v", i, feature, tree.Threshold(i), left,
					tree.Gain(i), n)
			}
			continue
		}
		for c, want := range w.leaf(&n) {
			if x := tree.Distribution(int(left))[c]; math.Abs(float64(x)-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("node %d: the leaf has %v, the slow program %v", i, tree.Distribution(int(left)), w.leaf(&n))
			}
		}
	}
}

func (w *slow) leaf(n *slowNode) (v []float64) {
	g, h := w.sums(n.rows)
	for c := range g {
		v = append(v, -g[c]/(max(h[c], 1.0/131072)+w.l2))
	}
	return v
}

// advance adds the last tree to F: half of its leaves, less their mean.
func (w *slow) advance() {
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.left > 0 {
			continue
		}
		v := w.leaf(n)
		mean := 0.0
		for _, x := range v {
			mean += float64(float32(x)) / float64(len(v))
		}
		for _, row := range n.rows {
			for c, x := range v {
				w.f[row][c] += 0.5 * (float64(float32(x)) - mean)
			}
		}
	}
}

// TestDerivatives: g, h, leaves and gains follow from the loss, by finite differences. A leaf minimises the loss to
// second order. The gain is how much lower two leaves make it than one.
func TestDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := makeProblem(rapid.Uint64().Draw(t, "seed"), 8, 3, rapid.IntRange(2, 5).Draw(t, "labels"))
		f := make([][]float64, p.rows)
		for i := range f {
			for range p.labels {
				f[i] = append(f[i], rapid.Float64Range(-3, 3).Draw(t, "f"))
			}
		}
		const l2, step = 0.75, 1e-4
		loss := func(rows []int, c int, by float64) (sum float64) {
			for _, i := range rows {
				moved := slices.Clone(f[i])
				moved[c] += by
				for k, q := range softmaxOf(moved) {
					sum -= float64(p.label(i)[k]) * math.Log(q)
				}
			}
			return sum
		}
		cfg := &Config{Hessian: hessianDiagonal, L2: l2, LeafRows: 1}
		s := newSearch(cfg, p.labels, false)
		sumsOf := func(rows []int) []float64 {
			sums, one := make([]float64, cfg.width(p.labels, false)), make([]int32, cfg.width(p.labels, false))
			for _, i := range rows {
				quantise(one, softmaxOf(f[i]), p.label(i))
				for k, x := range one {
					sums[k] += float64(x)
				}
			}
			return sums
		}
		// taken is what a leaf takes off the second order of the loss of some rows, with the penalty l2/2 v².
		taken := func(rows []int) (least float64) {
			leaf := make([]float32, p.labels)
			s.leaf(leaf, sumsOf(rows))
			for c := range leaf {
				at, up, down := loss(rows, c, 0), loss(rows, c, step), loss(rows, c, -step)
				first, second := (up-down)/(2*step), (up-2*at+down)/(step*step)
				if want := -first / (second + l2); math.Abs(float64(leaf[c])-want) > 2e-3*(1+math.Abs(want)) {
					t.Fatalf("label %d: the leaf has %v, finite differences %v", c, leaf[c], want)
				}
				least += first * first / (2 * (second + l2))
			}
			return least
		}
		all := []int{0, 1, 2, 3, 4, 5, 6, 7}
		cut := rapid.IntRange(1, 7).Draw(t, "cut")
		want := taken(all[:cut]) + taken(all[cut:]) - taken(all)
		whole, left := sumsOf(all), sumsOf(all[:cut])
		if got := (s.score(left) + s.scoreRest(whole, left) - s.score(whole)) / 2; math.Abs(got-want) > 2e-3 {
			t.Fatalf("the gain is %v, finite differences %v", got, want)
		}
	})
}

// TestMissingDegrees: finite differences of the K-L divergence in which the missing labels are one label give the first
// derivatives, and complete distributions do not change.
func TestMissingDegrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(3, 6).Draw(t, "labels")
		var f []float64
		label := slices.Clone(makeProblem(rapid.Uint64().Draw(t, "seed"), 1, 3, labels).label(0))
		missing := rapid.IntRange(2, labels).Draw(t, "missing")
		for c := range labels {
			f = append(f, rapid.Float64Range(-3, 3).Draw(t, "f"))
			if c >= labels-missing {
				label[c] = dataset.MissingDegree
			}
		}
		p := softmaxOf(f)
		whole := complete(make([]float32, labels), label, p)
		sum := 0.0
		for c, d := range whole {
			sum += float64(d)
			const step = 1e-5
			at := func(by float64) float64 {
				moved := slices.Clone(f)
				moved[c] += by
				return mergedLoss(label, softmaxOf(moved))
			}
			if want := (at(step) - at(-step)) / (2 * step); math.Abs(p[c]-float64(d)-want) > 1e-6 {
				t.Fatalf("label %d: the derivative is %v, finite differences %v", c, p[c]-float64(d), want)
			}
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Fatalf("the degrees %v sum to %v", whole, sum)
		}
	})
}
