package explain

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
)

// drawTree draws a tree of at most a depth, with leaves of a number of values. Features occur repeatedly on paths.
func drawTree(t *rapid.T, features, width, depth int) *forest.Tree {
	tree := new(forest.Tree)
	tree.Reset(width)
	var grow func(node, level, samples int)
	grow = func(node, level, samples int) {
		tree.SetSamples(node, samples)
		if level == depth || samples < 2 || level > 0 && rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
			for c, leaf := 0, tree.Leaf(node); c < width; c++ {
				leaf[c] = rapid.Float32Range(-3, 3).Draw(t, "value")
			}
			return
		}
		feature := rapid.IntRange(0, features-1).Draw(t, "feature")
		tree.Split(node, uint32(feature), float64(rapid.IntRange(-2, 2).Draw(t, "threshold")), 1)
		_, left, _ := tree.Test(node)
		to := rapid.IntRange(1, samples-1).Draw(t, "samples")
		grow(int(left), level+1, to)
		grow(int(left)+1, level+1, samples-to)
	}
	grow(0, 0, rapid.IntRange(1, 60).Draw(t, "root samples"))
	return tree
}

// drawAdditive draws a sum of trees: with leaves of all labels, or of one label for each tree.
func drawAdditive(t *rapid.T, features, labels, depth int) *forest.Additive {
	a := &forest.Additive{Features: features, Labels: labels, Factor: rapid.Float64Range(0.1, 2).Draw(t, "factor"),
		Centred: rapid.Bool().Draw(t, "centred")}
	width := rapid.SampledFrom([]int{1, labels}).Draw(t, "width")
	for range labels * rapid.IntRange(1, 2).Draw(t, "rounds") {
		a.Trees = append(a.Trees, drawTree(t, features, width, depth))
	}
	for range labels {
		a.Start = append(a.Start, rapid.Float64Range(-1, 1).Draw(t, "start"))
	}
	return a
}

// expected is the value of a set of features at a tree, by its definition: a split on another feature takes both
// children.
func expected(tree *forest.Tree, node int, x []float32, set uint, width int) []float64 {
	f, left, split := tree.Test(node)
	if !split {
		values := make([]float64, width)
		for c, v := range tree.Distribution(int(left)) {
			values[c] = float64(v)
		}
		return values
	}
	if set>>f&1 == 1 {
		if float64(x[f]) < tree.Threshold(node) {
			return expected(tree, int(left), x, set, width)
		}
		return expected(tree, int(left)+1, x, set, width)
	}
	values := make([]float64, width)
	for child := int(left); child <= int(left)+1; child++ {
		by := float64(tree.Samples(child)) / float64(tree.Samples(node))
		for c, v := range expected(tree, child, x, set, width) {
			values[c] += by * v
		}
	}
	return values
}

// output is the output of a sum of trees for a set of features.
func output(a *forest.Additive, x []float32, set uint) []float64 {
	sums := make([]float64, a.Labels)
	for i, tree := range a.Trees {
		label, all := a.Label(i)
		for c, v := range expected(tree, 0, x, set, tree.Labels) {
			if all {
				label = c
			}
			sums[label] += v
		}
	}
	a.Outputs(sums, true)
	return sums
}

// bruteForce computes Shapley values by their definition, over all sets of features.
func bruteForce(a *forest.Additive, x []float32) []float64 {
	n := a.Features
	factorial := func(k int) float64 { return math.Gamma(float64(k + 1)) }
	values := make([]float64, n*a.Labels)
	for set := range uint(1) << n {
		size := bits.OnesCount(set)
		with := output(a, x, set)
		for f := range n {
			weight := -factorial(size) * factorial(n-size-1) / factorial(n)
			if set>>f&1 == 1 {
				weight = factorial(size-1) * factorial(n-size) / factorial(n)
			}
			if size == n && set>>f&1 == 0 {
				continue
			}
			for c, v := range with {
				values[f*a.Labels+c] += weight * v
			}
		}
	}
	return values
}

// TestBruteForce: SHAP values are the Shapley values of their game, and sum to the output less the expected output.
func TestBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		features, labels := rapid.IntRange(1, 5).Draw(t, "features"), rapid.IntRange(1, 3).Draw(t, "labels")
		a := drawAdditive(t, features, labels, rapid.IntRange(0, 7).Draw(t, "depth"))
		e, err := newExplainer(a)
		if err != nil {
			t.Fatal(err)
		}
		lane := e.NewLane()
		for range 2 { // a lane is used again
			x := make([]float32, features)
			for i := range x {
				x[i] = float32(rapid.IntRange(-3, 3).Draw(t, "x"))
			}
			got := make([]float64, features*labels)
			lane.Explain(got, &dataset.Rows{N: 1, Features: features, X: x}, 0)
			for i, want := range bruteForce(a, x) {
				if math.Abs(got[i]-want) > 1e-11 {
					t.Fatalf("value %d is %v, want %v", i, got[i], want)
				}
			}
			full, none := output(a, x, 1<<features-1), output(a, x, 0)
			for c := range labels {
				sum := e.Base[c]
				for f := range features {
					sum += got[f*labels+c]
				}
				if math.Abs(sum-full[c]) > 1e-11 || math.Abs(e.Base[c]-none[c]) > 1e-11 {
					t.Fatalf("label %d: the sum is %v, want %v; the base value is %v, want %v", c, sum, full[c], e.Base[c], none[c])
				}
			}
		}
	})
}

// TestDeepTree: the values of a deep tree sum to its output. A rule with too few nodes would be wrong.
func TestDeepTree(t *testing.T) {
	const depth = 40
	tree := new(forest.Tree)
	tree.Reset(1)
	node := 0
	for level := range depth {
		tree.SetSamples(node, depth+1-level)
		tree.Split(node, uint32(level), 0.5, 1)
		_, left, _ := tree.Test(node)
		tree.SetSamples(int(left), 1)
		tree.Leaf(int(left))[0] = float32(level)
		node = int(left) + 1
	}
	tree.SetSamples(node, 1)
	tree.Leaf(node)[0] = 100
	a := &forest.Additive{Features: depth, Labels: 1, Trees: []*forest.Tree{tree}, Start: []float64{0}, Factor: 1}
	e, err := newExplainer(a)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, depth)
	for i := range x {
		x[i] = 1
	}
	values := make([]float64, depth)
	e.NewLane().Explain(values, &dataset.Rows{N: 1, Features: depth, X: x}, 0)
	sum := e.Base[0]
	for _, v := range values {
		sum += v
	}
	if math.Abs(sum-100) > 1e-9 {
		t.Errorf("the sum is %v, want 100", sum)
	}
}

// TestRule: a rule with n nodes integrates powers up to 2n - 1 exactly.
func TestRule(t *testing.T) {
	for n := 1; n <= 32; n++ {
		r := newRule(n)
		for power := range 2 * n {
			sum := 0.0
			for i, at := range r.at {
				sum += r.weight[i] * math.Pow(at, float64(power))
			}
			if want := 1 / float64(power+1); math.Abs(sum-want) > 1e-14 {
				t.Errorf("%d nodes: the integral of t^%d is %v, want %v", n, power, sum, want)
			}
		}
	}
}

// TestSparseRow: sparse and dense samples have the same values.
func TestSparseRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const features = 4
		a := drawAdditive(t, features, 2, 4)
		e, err := newExplainer(a)
		if err != nil {
			t.Fatal(err)
		}
		dense := &dataset.Rows{N: 1, Features: features}
		sparse := &dataset.Rows{N: 1, Features: features, Sparse: true, Start: []uint32{0, 0}}
		for f := range features {
			v := float32(rapid.IntRange(-2, 2).Draw(t, "x"))
			if dense.X = append(dense.X, v); v != 0 {
				sparse.X, sparse.Index = append(sparse.X, v), append(sparse.Index, uint32(f))
				sparse.Start[1]++
			}
		}
		for f, v := range dense.X {
			if got := value(sparse, 0, uint32(f)); got != v {
				t.Fatalf("feature %d is %v, want %v", f, got, v)
			}
		}
		one, other := make([]float64, 2*features), make([]float64, 2*features)
		lane := e.NewLane()
		lane.Explain(one, dense, 0)
		lane.Explain(other, sparse, 0)
		if fmt.Sprint(one) != fmt.Sprint(other) {
			t.Fatalf("%v, %v", one, other)
		}
	})
}

// TestCovers: a tree whose numbers of samples do not add up is refused.
func TestCovers(t *testing.T) {
	tree := new(forest.Tree)
	tree.Reset(1)
	tree.Split(0, 0, 0, 1)
	tree.SetSamples(0, 5)
	for child := 1; child <= 2; child++ {
		tree.SetSamples(child, 2)
		tree.Leaf(child)
	}
	a := &forest.Additive{Features: 1, Labels: 1, Trees: []*forest.Tree{tree}, Start: []float64{0}, Factor: 1}
	if _, err := newExplainer(a); !errors.Is(err, forest.ErrCovers) {
		t.Errorf("%v, want ErrCovers", err)
	}
	tree.SetSamples(1, 3)
	if _, err := newExplainer(a); err != nil {
		t.Error(err)
	}
	tree.SetSamples(2, 0)
	tree.SetSamples(0, 3)
	if _, err := newExplainer(a); !errors.Is(err, forest.ErrCovers) {
		t.Errorf("%v, want ErrCovers", err)
	}
}
