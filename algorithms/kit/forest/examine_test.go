package forest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// TestExaminedNodes holds the gains of nodes against float64 twins, the visits against those of
// the slow twin, and the splits against the trees'.
func TestExaminedNodes(t *testing.T) {
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkExamined(t, f) })
		})
	}
}

func checkExamined(t *rapid.T, f Variant) {
	p, c := drawProblem(t), drawConfig(t)
	if c.draws(p.n) < c.MinSamples {
		t.Skip("too few rows")
	}
	d := p.data(2, rapid.Bool().Draw(t, "sparse"), dataset.Split{})
	seed, number := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, c.Trees-1).Draw(t, "tree")
	s := &slow{p: p, c: c, f: f, seed: seed, tree: uint32(number)}
	for i := range p.n {
		s.rows = append(s.rows, i)
	}
	k := newKernel(f, c, seed, d)
	n, rows, path, order := walkDown(t, s, s.grow(f.NewLabeller(seed)))
	got, err := k.ExamineNode(t.Context(), d, NodeAt{Tree: number, Path: path, Feature: -1})
	if n.feature < 0 {
		if !errors.Is(err, ErrNode) {
			t.Fatalf("a leaf was examined, error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	tree := NodeSplit{n.feature, n.threshold, n.gain}
	found := got.Best
	if c.Step == stepAdaptive {
		found = *got.Visited // the tree's split was found so
	}
	if got.Split != tree || found != tree || got.Feature != tree.Feature || got.Samples != n.samples {
		t.Fatalf("%+v, the tree has %+v", got, tree)
	}
	s.classify(f.NewLabeller(seed), rows, order)
	s.c.Step, s.visited = stepAdaptive, nil
	twin := &slowNode{feature: -1}
	s.split(twin, rows, order)
	if none := twin.feature < 0; (got.Visited == nil) != none || !none && (*got.Visited != NodeSplit{twin.feature, twin.threshold, twin.gain}) {
		t.Fatalf("the best visited is %+v, want %+v", got.Visited, twin)
	}
	for _, of := range got.Features {
		one, err := k.ExamineNode(t.Context(), d, NodeAt{Tree: number, Path: path, Feature: of.Feature})
		if err != nil {
			t.Fatal(err)
		}
		checkGains(t, s, rows, of, one.Thresholds)
	}
}

// walkDown goes down a slow tree by drawn sides, and returns the node, its drawn rows, its path
// and the number of the path.
func walkDown(t *rapid.T, s *slow, root *slowNode) (n *slowNode, rows []int, path string, order uint64) {
	for row, number := range s.number {
		rows = append(rows, slices.Repeat([]int{row}, int(s.sample.Weight[number]))...)
	}
	slices.Sort(rows)
	n, order = root, 1
	for n.feature >= 0 && rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
		left := rapid.Bool().Draw(t, "left")
		rows = slices.DeleteFunc(rows, func(row int) bool { return (float64(s.p.row(row)[n.feature]) < n.threshold) != left })
		if left {
			n, path, order = n.left, path+"L", 2*order
		} else {
			n, path, order = n.right, path+"R", 2*order+1
		}
	}
	return n, rows, path, order
}

// classify gives the rows of a node their class labels.
func (s *slow) classify(l Labeller, rows []int, path uint64) {
	view := &Node{Copies: len(rows), Path: path}
	for _, row := range rows {
		view.Rows = append(view.Rows, s.number[row])
	}
	view.Rows = slices.Compact(view.Rows)
	l.Begin(&s.sample)
	l.Classify(&s.sample, view)
}

// checkGains compares the thresholds of a feature with gains as Eq. 2 is printed, in float64.
func checkGains(t *rapid.T, s *slow, rows []int, of FeatureGains, got []Threshold) {
	value := func(row int) float64 { return float64(s.p.row(row)[of.Feature]) }
	values := []float64{}
	for _, row := range rows {
		values = append(values, value(row))
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(got) != len(values)-1 || of.Thresholds != len(got) {
		t.Fatalf("feature %d has %d thresholds and lists %d of %d values", of.Feature, of.Thresholds, len(got), len(values))
	}
	greatest, visited := 0.0, 0
	for i, at := range got {
		var left, right []int
		for _, row := range rows {
			if value(row) <= values[i] {
				left = append(left, row)
			} else {
				right = append(right, row)
			}
		}
		n := float64(len(rows))
		gain := s.entropy(rows) - float64(len(left))/n*s.entropy(left) - float64(len(right))/n*s.entropy(right)
		between := at.Threshold > values[i] && at.Threshold <= values[i+1]
		if !between || at.Left != len(left) || math.Abs(at.Gain-gain) > 1e-8 {
			t.Fatalf("feature %d: %+v between %v and %v, want the gain %v and %d on the left", of.Feature, at, values[i], values[i+1], gain, len(left))
		}
		middle := slowVisit{of.Feature, (values[i] + values[i+1]) / 2}
		if at.Visited != slices.Contains(s.visited, middle) {
			t.Fatalf("feature %d: %+v, visits %v", of.Feature, at, s.visited)
		}
		if greatest = max(greatest, at.Gain); at.Visited {
			visited++
		}
	}
	if of.Gain != greatest || of.Visited != visited {
		t.Fatalf("%+v, listed are %v and %d visits", of, greatest, visited)
	}
}

// entropy is the Shannon entropy of the classes of rows, in nats.
func (s *slow) entropy(rows []int) float64 {
	counts := map[uint32]int{}
	for _, row := range rows {
		counts[s.sample.Class[s.number[row]]]++
	}
	sum := 0.0
	for _, n := range counts {
		share := float64(n) / float64(len(rows))
		sum -= share * math.Log(share)
	}
	return sum
}

// TestExaminedRefusals: what is no node or feature is named.
func TestExaminedRefusals(t *testing.T) {
	p := makeProblem(5, 90, 6, 3, 1)
	for i := range p.n {
		p.row(i)[5] = 2
	}
	d, c := p.data(2, false, dataset.Split{}), smallConfig()
	c.MaxDepth, c.Features = 2, "0.5"
	tried := map[int]bool{}
	for feature := range 6 {
		_, err := newKernel(families["two"], c, 1, d).ExamineNode(t.Context(), d, NodeAt{Feature: feature})
		tried[feature] = err == nil || strings.Contains(err.Error(), "only one value")
		if !tried[feature] && !strings.Contains(err.Error(), "is not tried at the root (features is 0.5)") {
			t.Errorf("feature %d: error %v", feature, err)
		}
	}
	if n := len(slices.DeleteFunc([]int{0, 1, 2, 3, 4, 5}, func(f int) bool { return !tried[f] })); n != 3 {
		t.Errorf("%d features are tried, want 3", n)
	}
	c.Features = featuresAll
	k := newKernel(families["two"], c, 1, d)
	for _, bad := range []struct {
		at   NodeAt
		want string
	}{
		{NodeAt{Tree: 3}, "tree 3 does not exist; the forest has trees 0 to 2"},
		{NodeAt{Tree: -1}, "trees 0 to 2"},
		{NodeAt{Feature: 6}, "features 0 to 5"},
		{NodeAt{Path: "LX"}, `path "LX"`},
		{NodeAt{Path: "LR"}, "node LR of tree 0 is a leaf of"},
		{NodeAt{Path: "LRL"}, "node LRL of tree 0 does not exist: node LR is a leaf"},
		{NodeAt{Feature: 5}, "feature 5 has only one value at the root"},
	} {
		if _, err := k.ExamineNode(t.Context(), d, bad.at); !errors.Is(err, ErrNode) || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: error %v, want %q", bad.at, err, bad.want)
		}
	}
}
