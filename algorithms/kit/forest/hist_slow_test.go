package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// slowCounted grows a tree by trying every threshold between the bins of a node's samples, each from the samples
// themselves, in float64, without histograms, subtraction or tables. It draws samples by the sum of Poisson
// probabilities.
type slowCounted struct {
	*countedProblem
	edges        *edges
	copies       []float64
	tried        func(path uint64) []int // features, ascending
	least, depth int

	nodes []slowSprout // in the order in which a grower makes them
}

type slowSprout struct {
	copies    float64
	feature   int
	threshold float64
	gain      float64 // 0: a leaf
	leaf      []float64
}

// shares returns the copies of some rows by class.
func (w *slowCounted) shares(rows []int) (counts []float64, n float64) {
	counts = make([]float64, max(2, w.labels))
	for _, row := range rows {
		counts[greatest(w.label(row))] += w.copies[row]
		n += w.copies[row]
	}
	return counts, n
}

// entropy returns the entropy of the classes of some rows, times their copies, in units of 2^-31 nats. It rounds each
// n ln n as the algorithm does: splits whose gains are equal without rounding need not be equal with it.
func (w *slowCounted) entropy(rows []int) (sum float64) {
	counts, n := w.shares(rows)
	for _, k := range counts {
		if k > 0 {
			sum -= math.Round(k * math.Log(k) * (1 << 31))
		}
	}
	return sum + math.Round(n*math.Log(max(1, n))*(1<<31))
}

// bin returns the bin of a value: the number of thresholds between neighbouring bins that are not above it.
func (w *slowCounted) bin(column int, x float32) (bin int) {
	for _, g := range w.edges.gaps[column] {
		if float64(x) >= (float64(g.Lower)+float64(g.Upper))/2 {
			bin++
		}
	}
	return bin
}

// grow makes the next node, whose number is at, and all below it. The first of equal gains is taken.
func (w *slowCounted) grow(at int, rows []int, depth int, path uint64) {
	counts, n := w.shares(rows)
	w.nodes[at] = slowSprout{copies: n}
	best, whole := slowSprout{copies: n, gain: 1 << 11}, w.entropy(rows)
	var left, right []int
	if int(n) >= w.least && depth < w.depth {
		for _, feature := range w.tried(path) {
			column := int(w.edges.place[feature])
			if column < 0 {
				continue
			}
			var bins []int
			for _, row := range rows {
				bins = append(bins, w.bin(column, w.row(row)[feature]))
			}
			present := slices.Clone(bins)
			slices.Sort(present)
			present = slices.Compact(present)
			for i := range len(present) - 1 {
				var l, r []int
				for k, row := range rows {
					if bins[k] <= present[i] {
						l = append(l, row)
					} else {
						r = append(r, row)
					}
				}
				if gain := whole - w.entropy(l) - w.entropy(r); gain > best.gain {
					gaps := w.edges.gaps[column]
					best.feature, best.gain, left, right = feature, gain, l, r
					best.threshold = (float64(gaps[present[i]].Lower) + float64(gaps[present[i+1]-1].Upper)) / 2
				}
			}
		}
	}
	if left == nil {
		for _, k := range counts[:w.labels] {
			w.nodes[at].leaf = append(w.nodes[at].leaf, k/n)
		}
		return
	}
	best.gain /= n * (1 << 31)
	w.nodes[at] = best
	child := len(w.nodes)
	w.nodes = append(w.nodes, slowSprout{}, slowSprout{})
	w.grow(child, left, depth+1, 2*path)
	w.grow(child+1, right, depth+1, 2*path+1)
}

// draw draws the copies of a tree, and returns the rows that it has.
func (w *slowCounted) draw(seed uint64, tree uint32, mean float64) (rows []int) {
	w.copies = make([]float64, w.rows)
	for row := range w.rows {
		x := num.Philox(num.NewKey(seed, "counted/poisson"), [4]uint32{uint32(row), tree, 0, 0})
		at := math.Ldexp(float64(x[1])*(1<<32)+float64(x[0]), -64)
		term := math.Exp(-mean)
		for sum := term; sum <= at; sum += term {
			w.copies[row]++
			term *= mean / w.copies[row]
		}
		if w.copies[row] > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// TestSlowTrees holds trees by histograms against the slow program: with samples that are drawn, few bins and few
// features, dense and sparse.
func TestSlowTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := makeCountedProblem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(30, 150).Draw(t, "rows"),
			rapid.IntRange(1, 8).Draw(t, "features"), rapid.IntRange(1, 4).Draw(t, "labels"))
		w := &slowCounted{countedProblem: p, least: rapid.IntRange(2, 12).Draw(t, "min samples"),
			depth: rapid.IntRange(1, 6).Draw(t, "depth")}
		testedLimits.small = rapid.SampledFrom([]int64{0, 4}).Draw(t, "small")
		set := param.Values{"trees": int64(4), "min_samples": int64(w.least), "max_depth": int64(w.depth),
			"split": "histogram", "bins": int64(rapid.SampledFrom([]int{2, 7, 255}).Draw(t, "bins")),
			"features":       rapid.SampledFrom([]string{"all", "0.5"}).Draw(t, "features tried"),
			"sampling_ratio": rapid.SampledFrom([]float64{0.5, 1}).Draw(t, "sampling ratio")}
		d := p.data(rapid.SampledFrom([]int{1, 4}).Draw(t, "shards"), rapid.Bool().Draw(t, "sparse"), dataset.Split{})
		tr := contract.Train(t, counted, countedJob(t, set, d.Manifest, dataset.Split{}), d, 1, nil).(*countedTrainer)
		w.edges = tr.edges
		for number, tree := range tr.trees {
			w.tried = func(path uint64) (list []int) {
				q := tr.cfg.tried(p.features)
				drawn := num.NewPermutation(num.NewKey(1, "counted/features"), path, uint32(number), uint64(p.features))
				for i := range p.features {
					if drawn.Inverse(uint64(i)) < uint64(q) {
						list = append(list, i)
					}
				}
				return list
			}
			w.nodes = make([]slowSprout, 1)
			if rows := w.draw(1, uint32(number), set["sampling_ratio"].(float64)); len(rows) > 0 {
				w.grow(0, rows, 0, 1)
				w.compare(t, tree)
			}
		}
	})
}

// compare compares a tree with the slow program's.
func (w *slowCounted) compare(t *rapid.T, tree *Tree) {
	if tree.Nodes() != len(w.nodes) {
		t.Fatalf("the tree has %d nodes, the slow program %d", tree.Nodes(), len(w.nodes))
	}
	for i, n := range w.nodes {
		feature, left, split := tree.Test(i)
		if split != (n.leaf == nil) || float64(tree.Samples(i)) != n.copies {
			t.Fatalf("node %d: split %v, %d samples; the slow program: %+v", i, split, tree.Samples(i), n)
		}
		if split && (int(feature) != n.feature || tree.threshold[i] != n.threshold ||
			math.Abs(tree.gain[i]-n.gain) > 1e-8*(1+n.gain)) {
			t.Fatalf("node %d: x[%d] < %v, gain %v; the slow program: %+v", i, feature, tree.threshold[i], tree.gain[i], n)
		}
		if split {
			continue
		}
		for c, want := range n.leaf {
			if x := tree.Distribution(int(left))[c]; math.Abs(float64(x)-want) > 1e-6 {
				t.Fatalf("node %d: the leaf has %v, the slow program %v", i, tree.Distribution(int(left)), n.leaf)
			}
		}
	}
}
