package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// slow is the twin of grower: it grows a tree as Algorithm 1 is printed, on lists
// of drawn rows with their copies, sorting every feature anew at every node and
// counting the classes of both sides anew for every threshold.
type slow struct {
	p       *problem
	c       Config
	f       Variant
	seed    uint64
	tree    uint32
	rows    []int // the training rows
	xlogx   []int64
	sample  BootstrapSample
	number  map[int]uint32 // a training row's number in the sample
	counted uint64
	visited []slowVisit // each threshold that was counted
}

type slowVisit struct {
	feature   int
	threshold float64
}

type slowNode struct {
	samples     int
	feature     int // -1: a leaf
	threshold   float64
	gain        float64
	left, right *slowNode
	leaf        []float32
}

func (s *slow) grow(l Labeller) *slowNode {
	stream := num.NewStream(num.NewKey(s.seed, s.f.Name+"/bootstrap"), 0, s.tree)
	var drawn []int
	for range int(math.Floor(s.c.SamplingRatio * float64(len(s.rows)))) {
		drawn = append(drawn, s.rows[stream.Uint64n(uint64(len(s.rows)))])
	}
	slices.Sort(drawn)
	s.xlogx = xlogx(len(drawn))
	s.sample = BootstrapSample{Tree: s.tree, Width: s.p.labels}
	s.number = map[int]uint32{}
	for _, row := range drawn {
		if _, ok := s.number[row]; !ok {
			s.number[row] = uint32(len(s.sample.Weight))
			s.sample.Weight = append(s.sample.Weight, 0)
			s.sample.Class = append(s.sample.Class, 0)
			s.sample.Labels = append(s.sample.Labels, s.p.label(row)...)
		}
		s.sample.Weight[s.number[row]]++
	}
	l.Begin(&s.sample)
	return s.node(l, drawn, 0, 1)
}

func (s *slow) node(l Labeller, rows []int, depth int, path uint64) *slowNode {
	view := &Node{Copies: len(rows), Path: path}
	for _, row := range rows {
		view.Rows = append(view.Rows, s.number[row])
	}
	view.Rows = slices.Compact(view.Rows)
	n := &slowNode{samples: len(rows), feature: -1, leaf: make([]float32, s.p.labels)}
	if len(rows) >= s.c.MinSamples && depth < s.c.MaxDepth && l.Classify(&s.sample, view) {
		s.split(n, rows, path)
	}
	if n.feature < 0 {
		l.Leaf(n.leaf, &s.sample, view)
		return n
	}
	var left, right []int
	for _, row := range rows {
		if float64(s.p.row(row)[n.feature]) < n.threshold {
			left = append(left, row)
		} else {
			right = append(right, row)
		}
	}
	n.left, n.right = s.node(l, left, depth+1, 2*path), s.node(l, right, depth+1, 2*path+1)
	return n
}

// split finds the best split of a node, or leaves it a leaf.
func (s *slow) split(n *slowNode, rows []int, path uint64) {
	whole := s.disorder(rows)
	best := whole - minGain // the sum of both sides to beat
	if best <= 0 {
		return // of one class
	}
	for _, f := range s.chosen(path) {
		values := []float64{}
		for _, row := range rows {
			values = append(values, float64(s.p.row(row)[f]))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		next := 1
		for i := 1; i < len(values); i++ {
			var left, right []int
			for _, row := range rows {
				if float64(s.p.row(row)[f]) <= values[i-1] {
					left = append(left, row)
				} else {
					right = append(right, row)
				}
			}
			if len(left) < next {
				continue
			}
			s.counted++
			s.visited = append(s.visited, slowVisit{f, (values[i-1] + values[i]) / 2})
			sum := s.disorder(left) + s.disorder(right)
			if sum < best {
				best = sum
				n.feature, n.threshold = f, (values[i-1]+values[i])/2
				n.gain = float64(whole-sum) / (1 << 31) / float64(len(rows))
			}
			if s.c.Step == stepAdaptive {
				next = len(left) + s.step(n, whole, sum, best, len(rows))
			}
		}
	}
}

// step is Eq. 5.
func (s *slow) step(n *slowNode, whole, sum, best int64, rows int) int {
	ratio := 1.0
	if n.feature >= 0 {
		ratio = float64(whole-sum) / float64(whole-best)
	}
	far := s.c.Alpha * float64(rows) / (1 + num.Exp(s.c.Beta*(ratio-0.5)))
	return max(1, int(math.Floor(far)))
}

// disorder is entropy times samples of a list of rows.
func (s *slow) disorder(rows []int) int64 {
	counts := map[uint32]int{}
	for _, row := range rows {
		counts[s.sample.Class[s.number[row]]]++
	}
	sum := s.xlogx[len(rows)]
	for _, n := range counts {
		sum -= s.xlogx[n]
	}
	return sum
}

// chosen lists the features that a node tries, ascending.
func (s *slow) chosen(path uint64) []int {
	k := s.c.tried(s.p.features)
	chosen := make([]int, k)
	if k == s.p.features {
		for i := range chosen {
			chosen[i] = i
		}
		return chosen
	}
	p := num.NewPermutation(num.NewKey(s.seed, s.f.Name+"/features"), path, s.tree, uint64(s.p.features))
	for i := range chosen {
		chosen[i] = int(p.At(uint64(i)))
	}
	slices.Sort(chosen)
	return chosen
}

// sameTree compares a tree with its twin.
func sameTree(t *rapid.T, tree *Tree, at int, n *slowNode) {
	if int(tree.samples[at]) != n.samples {
		t.Fatalf("node %d has %d samples, want %d", at, tree.samples[at], n.samples)
	}
	if n.feature < 0 {
		leaf := int(tree.left[at]) * tree.Labels
		if tree.feature[at] != leafMark || !slices.Equal(tree.leaves[leaf:leaf+tree.Labels], n.leaf) {
			t.Fatalf("node %d (feature %d) is not the leaf %v", at, tree.feature[at], n.leaf)
		}
		return
	}
	if int(tree.feature[at]) != n.feature || tree.threshold[at] != n.threshold || tree.gain[at] != n.gain {
		t.Fatalf("node %d splits feature %d at %v, gain %v; want %d, %v, %v", at,
			int32(tree.feature[at]), tree.threshold[at], tree.gain[at], n.feature, n.threshold, n.gain)
	}
	sameTree(t, tree, int(tree.left[at]), n.left)
	sameTree(t, tree, int(tree.left[at])+1, n.right)
}

// drawProblem draws a small problem with all that is awkward: ties, zeros and
// negative values, constant columns, duplicate rows, equal labels.
func drawProblem(t *rapid.T) *problem {
	p := &problem{
		n:        rapid.IntRange(4, 40).Draw(t, "rows"),
		features: rapid.SampledFrom([]int{1, 2, 3, 5, 9, 20}).Draw(t, "features"),
		labels:   rapid.IntRange(2, 4).Draw(t, "labels"),
	}
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	kinds := rapid.SliceOfN(rapid.IntRange(0, 6), p.features, p.features).Draw(t, "columns")
	prototypes := rapid.IntRange(1, 12).Draw(t, "distinct labels")
	for i := range p.n {
		if i > 0 && s.Uint64n(6) == 0 {
			p.x = append(p.x, p.row(int(s.Uint64n(uint64(i))))...)
		} else {
			for _, kind := range kinds {
				p.x = append(p.x, drawValue(s, kind))
			}
		}
		p.d = append(p.d, prototype(int(s.Uint64n(uint64(prototypes))), p.labels)...)
	}
	return p
}

func drawValue(s *num.Stream, kind int) float32 {
	switch kind {
	case 0: // constant
		return 1.5
	case 1: // binary, mostly zeros
		return float32(s.Uint64n(5) / 4)
	case 2: // few values, of both signs
		return float32(int(s.Uint64n(5)) - 2)
	case 3: // sparse, of both signs
		return float32(s.Normal()) * float32(s.Uint64n(3)/2)
	case 4: // sparse, negative
		return -float32(s.Uint64n(3)) * float32(s.Uint64n(3)/2)
	case 5: // neighbours in float32
		return math.Nextafter32(1, 2) - float32(s.Uint64n(2))*0x1p-23
	}
	return float32(s.Normal())
}

func prototype(i, labels int) []float32 {
	s := num.NewStream(num.NewKey(uint64(i), "prototype"), 0, 0)
	d, sum := make([]float32, labels), float32(0)
	for c := range d {
		d[c] = float32(s.Float64())
		sum += d[c]
	}
	for c := range d {
		d[c] /= sum
	}
	return d
}

func drawConfig(t *rapid.T) Config {
	return Config{
		Trees:         2,
		MaxDepth:      rapid.SampledFrom([]int{1, 2, 4, 60}).Draw(t, "depth"),
		SamplingRatio: rapid.SampledFrom([]float64{0.8, 1, 0.6}).Draw(t, "ratio"),
		MinSamples:    rapid.SampledFrom([]int{2, 2, 3, 5}).Draw(t, "min samples"),
		Features:      rapid.SampledFrom([]string{"all", "all", "sqrt", "0.5", "0.2", "0.1"}).Draw(t, "features"),
		Step:          rapid.SampledFrom([]string{stepExhaustive, stepAdaptive}).Draw(t, "step"),
		Alpha:         rapid.SampledFrom([]float64{0.25, 0.9}).Draw(t, "alpha"),
		Beta:          rapid.SampledFrom([]float64{8, 0, 20}).Draw(t, "beta"),
		Bootstrap:     true,
	}
}

// TestTreesEqualTheirTwins grows trees from dense and from sparse storage, with all
// kinds of settings, and holds them against the twin.
func TestTreesEqualTheirTwins(t *testing.T) {
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkTwin(t, f) })
		})
	}
}

func checkTwin(t *rapid.T, f Variant) {
	p, c := drawProblem(t), drawConfig(t)
	split := dataset.Split{Seed: 3, TestFraction: rapid.SampledFrom([]float64{0, 0.25}).Draw(t, "test fraction")}
	seed := rapid.Uint64().Draw(t, "seed")
	roles, err := split.Assign(p.n, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []int
	for i, role := range roles {
		if role == dataset.Train {
			rows = append(rows, i)
		}
	}
	if c.draws(len(rows)) < c.MinSamples {
		t.Skip("too few rows")
	}
	for _, sparse := range []bool{false, true} {
		d := p.data(rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "shards"), sparse, split)
		k := newKernel(f, c, seed, d)
		g := k.newGrower()
		tab, err := newTable(&c, d, d.Select(0, len(d.Manifest.Shards), dataset.Train))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "too large to sort beforehand") {
			tab.columns = columns{}
		}
		if rapid.Bool().Draw(t, "inner growers") {
			g.subtrees.fraction, g.subtrees.few = 2, rapid.IntRange(0, 8).Draw(t, "few rows")
		}
		for tree := range uint32(c.Trees) {
			got, err := g.grow(t.Context(), tab, tree)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.check(p.features, Degrees); err != nil {
				t.Fatal(err)
			}
			s := &slow{p: p, c: c, f: f, seed: seed, tree: tree, rows: rows}
			want := s.grow(f.NewLabeller(seed))
			sameTree(t, got, 0, want)
			if got.Evaluations != s.counted {
				t.Fatalf("%d gain evaluations, want %d", got.Evaluations, s.counted)
			}
		}
	}
}
