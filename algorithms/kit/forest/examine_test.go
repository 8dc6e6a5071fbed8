package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// TestExaminedRoots compares the gains of roots with float64 twins, the visits with the visits of
// the slow twin, and the splits with the splits of trees.
func TestExaminedRoots(t *testing.T) {
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
	seed := rapid.Uint64().Draw(t, "seed")
	s := &slow{p: p, c: c, f: f, seed: seed}
	for i := range p.n {
		s.rows = append(s.rows, i)
	}
	k := newKernel(f, c, seed, d)
	n := s.grow(f.NewLabeller(seed))
	var rows []int
	for row, number := range s.number {
		rows = append(rows, slices.Repeat([]int{row}, int(s.sample.Weight[number]))...)
	}
	slices.Sort(rows)
	got, err := k.ExamineRoot(d)
	if n.feature < 0 {
		if err != ErrLeaf {
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
	if got.Split != tree || found != tree || got.Rows != len(s.number) {
		t.Fatalf("%+v, the tree has %+v", got, tree)
	}
	s.classify(f.NewLabeller(seed), rows, 1)
	s.c.Step, s.visited = stepAdaptive, nil
	twin := &slowNode{feature: -1}
	s.split(twin, rows, 1)
	if none := twin.feature < 0; (got.Visited == nil) != none || !none &&
		(*got.Visited != NodeSplit{twin.feature, twin.threshold, twin.gain}) {
		t.Fatalf("the best visited is %+v, want %+v", got.Visited, twin)
	}
	at := slices.IndexFunc(got.Features, func(f FeatureGains) bool { return f.Feature == tree.Feature })
	checkGains(t, s, rows, got.Features[at], got.Thresholds)
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
			t.Fatalf("feature %d: %+v between %v and %v, want the gain %v and %d on the left", of.Feature, at, values[i],
				values[i+1], gain, len(left))
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
