package forest

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestSmallSplits: smallNodes finds the split of a node, and the gain evaluations, that the counts of all bins give: in
// nodes of few rows and of many, of few classes and of many, with dense and sparse columns.
func TestSmallSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := makeCountedProblem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 500).Draw(t, "rows"),
			rapid.IntRange(1, 13).Draw(t, "features"), rapid.SampledFrom([]int{1, 2, 5, 40}).Draw(t, "labels"))
		c := &Config{MaxDepth: maxDepth, MinSamples: 2, SamplingRatio: 1, Bootstrap: rapid.Bool().Draw(t, "bootstrap"),
			Features: rapid.SampledFrom([]string{"all", "sqrt", "0.5"}).Draw(t, "features tried"),
			Step:     rapid.SampledFrom([]string{stepExhaustive, stepAdaptive}).Draw(t, "step"), Alpha: 0.25, Beta: 8,
			Bins: rapid.SampledFrom([]int{3, 64, 256}).Draw(t, "bins"), Trees: 1, Split: splitHistogram}
		d := p.data(1, rapid.Bool().Draw(t, "sparse"), dataset.Split{})
		refs := d.Select(0, 1, dataset.Train)
		k := newCountedKernel(oneHot, c, d.Manifest, 1)
		e := newEdges(p.features)
		if err := binning.Make([][]byte{binning.AppendValues(nil, k.binKey, refs, d, nil)}, p.features, c.Bins,
			e.add); err != nil {
			t.Fatal(err)
		}
		part := &countedPart{}
		part.read(k, round.Task{Of: 1, Roles: dataset.Train}, d, e)
		draws := newCountedTree(k.poisson, 0, part.numbers)
		counter := newRowCounter(newLayouts(c, e, k.classes, k.features))
		l := counter.layouts.layoutOf(0, 1)
		counts := make([]float64, counter.layouts.numbersOf(l))
		counter.add(counts, draws.rows, &part.countedRows, draws.copies, l)
		counter.layouts.complete(counts, l)

		g := &growth{cfg: c, classes: k.classes, layouts: newLayouts(c, e, k.classes, k.features),
			search: newCountedSearch(c), limits: usualLimits}
		g.begin(0, 1)
		root := &g.trees[0]
		for class, n := range counts[:k.classes] {
			root.counts[class] = uint32(n)
			root.nodes[0].copies += uint32(n)
		}
		g.search.knows(int(root.nodes[0].copies))
		want, ok := g.search.find(root.counts, counts, l, e)
		best, evaluations := countedSplit{}, g.search.evaluations
		if ok {
			best = *want
		}
		g.search.evaluations = 0
		s := newSmallNodes(g)
		if err := s.begin(&ask{}, [][]byte{part.appendRows(nil, draws.rows, draws.copies, e.Dense)}); err != nil {
			t.Fatal(err)
		}
		rows := make([]uint32, len(draws.rows))
		for i := range rows {
			rows[i] = uint32(i)
		}
		got := s.find(root, 0, rows)
		if got != ok || root.evaluations != evaluations {
			t.Fatalf("a split: %v, %d evaluations; the counts give %v, %d", got, root.evaluations, ok, evaluations)
		}
		if a := &g.search.best; ok && (a.column != best.column || a.lower != best.lower || a.upper != best.upper ||
			a.total != best.total) {
			t.Fatalf("split %+v, the counts give %+v", *a, best)
		}
	})
}

// TestUnlistedBins: foldRows refuses listed bins that no worker lists.
func TestUnlistedBins(t *testing.T) {
	c := &Config{MaxDepth: 4, MinSamples: 2, SamplingRatio: 1, Features: "all", Step: stepExhaustive, Bins: 4, Trees: 1,
		Split: splitHistogram}
	gaps := []binning.Gap{{Lower: 1, Upper: 2}, {Lower: 2, Upper: 3}}
	for _, first := range []bool{false, true} { // true if the first column is sparse
		e := newEdges(3)
		e.add(0, first, gaps) // bins 0 to 2
		e.add(1, !first, gaps)
		e.add(2, true, gaps)
		sparse, dense := uint32(3), uint32(0)
		if first {
			sparse, dense = 0, 3
		}
		for name, row := range map[string]struct {
			listed []uint32
			good   bool
		}{
			"no bin":     {nil, true},
			"two bins":   {[]uint32{sparse + 1, 8}, true},
			"dense":      {[]uint32{dense + 1}, false},
			"zero":       {[]uint32{sparse}, false},
			"same":       {[]uint32{sparse + 1, sparse + 2}, false},
			"repeated":   {[]uint32{8, 8}, false},
			"descending": {[]uint32{8, sparse + 1}, false},
			"none":       {[]uint32{9}, false},
			"great":      {[]uint32{1<<32 - 1}, false},
		} {
			g := &growth{cfg: c, classes: 2, layouts: newLayouts(c, e, 2, num.Key{}), search: newCountedSearch(c),
				limits: usualLimits}
			g.begin(0, 1)
			root := &g.trees[0]
			root.nodes[0].copies, root.counts = 4, []uint32{2, 2}
			g.search.knows(4)
			g.open, g.small = nil, []ask{{}}
			var r countedRows
			r.codes.Start = []uint32{0}
			for i := range 4 {
				r.class, r.codes.Dense = append(r.class, uint32(i%2)), append(r.codes.Dense, uint8(i%2))
				r.codes.Listed = append(r.codes.Listed, row.listed...)
				r.codes.Start = append(r.codes.Start, uint32(len(r.codes.Listed)))
			}
			b := r.appendRows(nil, []uint32{0, 1, 2, 3}, []uint8{1, 1, 1, 1}, e.Dense)
			if err := g.foldRows([][]byte{b}); (err == nil) != row.good || err != nil && !errors.Is(err, binning.ErrBins) {
				t.Errorf("first column sparse: %v: %s: error %v", first, name, err)
			} else if err == nil && len(root.nodes) != 3 {
				t.Errorf("%s: the tree has %d nodes", name, len(root.nodes))
			}
		}
	}
}

// TestWorkOfClasses: a node of few samples is not small if its nodes below pass too many classes.
func TestWorkOfClasses(t *testing.T) {
	c := &Config{MaxDepth: 4, MinSamples: 2, SamplingRatio: 1, Features: "all", Step: stepExhaustive, Bins: 4, Trees: 1}
	for classes, want := range map[int]bool{10: true, 500: false} {
		e := newEdges(1)
		e.add(0, false, []binning.Gap{{Lower: 1, Upper: 2}})
		limits := usualLimits
		limits.small = 1 << 30
		g := &growth{cfg: c, classes: classes, layouts: newLayouts(c, e, classes, num.Key{}), limits: limits, rowSize: 1,
			rowWork: 1}
		g.begin(0, 1)
		g.trees[0].nodes[0].copies = uint32(limits.work / 1000)
		if got := g.isSmall(ask{}); got != want {
			t.Errorf("%d classes: a small node: %v, want %v", classes, got, want)
		}
	}
}

// TestRoundLimits: the samples of a round, and the leader's work on them, are within the limits.
func TestRoundLimits(t *testing.T) {
	p := makeCountedProblem(12, 900, 20, 6)
	d := p.data(4, false, dataset.Split{})
	testedLimits.small, testedLimits.held = 4, 9000
	limits := testedLimits
	defer func() { testedLimits = limits }()
	testedLimits.bytes = 1 << 20
	set := param.Values{"trees": int64(9), "min_samples": int64(2), "split": "histogram", "bins": int64(8)}
	for _, features := range []string{"all", "0.3"} {
		set["features"] = features
		j := countedJob(t, set, d.Manifest, dataset.Split{})
		begun, k := contract.Begin(t, counted, j, d.Manifest)
		tr := begun.(*countedTrainer)
		rounds, several := 0, 0
		contract.Follow(t, tr, func(r *round.Round) *round.Result {
			if r.Kind == "samples" {
				asks, _ := tr.growth.next()
				work := 0
				for _, a := range asks {
					n := &tr.growth.trees[a.tree].nodes[a.node]
					columns := len(tr.edges.Columns) * tr.cfg.tried(p.features) / p.features
					work += int(n.copies) * (columns*(tr.cfg.MaxDepth-bits.Len64(n.path)+1) + 2*tr.growth.classes)
				}
				if rounds++; len(asks) > 1 {
					several++
				}
				if work > int(testedLimits.work) {
					t.Errorf("features %s: a round of %d nodes is the work of %d operations, at most %d are allowed", features,
						len(asks), work, testedLimits.work)
				}
			}
			return contract.Compute(t, r, d, contract.By(k))
		}, nil)
		if rounds < 5 || several < 3 {
			t.Errorf("features %s: %d rounds, %d of several nodes", features, rounds, several)
		}
	}
}

// TestRoundsOfSomeFeatures: where nodes try few features, a round begins more trees, since their counts are few.
func TestRoundsOfSomeFeatures(t *testing.T) {
	p := makeCountedProblem(13, 500, 60, 4)
	d := p.data(2, false, dataset.Split{})
	for features, want := range map[string]int{"all": 1, "sqrt": 3} {
		set := param.Values{"trees": int64(7), "min_samples": int64(2), "split": "histogram", "features": features}
		j := countedJob(t, set, d.Manifest, dataset.Split{})
		begun, k := contract.Begin(t, counted, j, d.Manifest)
		tr := begun.(*countedTrainer)
		r, err := tr.Next()
		if err == nil {
			err = tr.Fold(contract.Compute(t, r, d, contract.By(k)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if asks, numbers := tr.growth.next(); len(asks) != want || numbers == 0 {
			t.Errorf("features %s: a round asks for %d roots, want %d", features, len(asks), want)
		}
	}
}

// TestTooFewTrainingRows: a forest by histograms refuses training rows that are too few for a split as an exact forest
// does, also if only the workers know the folds.
func TestTooFewTrainingRows(t *testing.T) {
	p := makeCountedProblem(14, 200, 5, 3)
	split := dataset.Split{Seed: 1, TestFraction: 0.9}
	d := p.data(3, false, split)
	listed := dataset.Split{Seed: 1, Folds: 2, Assigned: "0123"}
	for _, set := range []param.Values{
		{"trees": int64(3), "min_samples": int64(18)},
		{"trees": int64(3), "min_samples": int64(21), "bootstrap": false},
		{"trees": int64(3), "min_samples": int64(16)},
	} {
		var errs [2]error
		for i, word := range []string{"exact", "histogram"} {
			set["split"] = word
			j := countedJob(t, set, d.Manifest, listed)
			tr, k := contract.Begin(t, counted, j, d.Manifest)
			errs[i] = engine.Drive(t.Context(), tr, 0, engine.NewLocal(k, d, 1, nil),
				func(uint64, round.Trainer) error { return nil })
		}
		exact, got := errs[0], errs[1]
		if set["min_samples"] == int64(16) {
			if exact != nil || got != nil {
				t.Errorf("%v: errors %v and %v", set, exact, got)
			}
			continue
		}
		if wrong := (*param.Error)(nil); !errors.As(got, &wrong) || wrong.Name != "min_samples" || exact == nil ||
			!strings.HasSuffix(exact.Error(), got.Error()) {
			t.Errorf("%v: error %v, exact trees have %v", set, got, exact)
		}
	}
}

// TestTooManyBins: a trainer refuses a state with more bins than the data can have, and a kernel such a request: counts
// of nodes are as long as the bins.
func TestTooManyBins(t *testing.T) {
	p := makeCountedProblem(15, 300, 8, 3)
	d := p.data(2, false, dataset.Split{})
	set := param.Values{"trees": int64(2), "min_samples": int64(4), "split": "histogram", "bins": int64(256)}
	j := countedJob(t, set, d.Manifest, dataset.Split{})
	tr, k := contract.Begin(t, counted, j, d.Manifest)
	r, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	first := contract.Compute(t, r, d, contract.By(k))
	told := &round.Result{Gathered: append([][]byte(nil), first.Gathered...)}
	if err := tr.Fold(first); err != nil {
		t.Fatal(err)
	}
	state, err := tr.AppendState(nil)
	if err == nil {
		r, err = tr.Next()
	}
	if err != nil {
		t.Fatal(err)
	}
	few, thin := *d.Manifest, *d.Manifest
	few.Rows = 20
	thin.NonZeros = 40
	for name, m := range map[string]*dataset.Manifest{"rows": &few, "non-zeros": &thin} {
		other := *j
		other.Dataset = m.Digest()
		if _, err := oneHot.New().NewTrainer(&other, m, state); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: a trainer of the state has error %v", name, err)
		}
		tr, kernel := contract.Begin(t, counted, &other, m)
		if err := tr.Fold(told); !errors.Is(err, binning.ErrBins) {
			t.Errorf("%s: values of tasks: error %v", name, err)
		}
		less := dataset.NewData(m, make([]dataset.Roles, p.rows))
		if err := contract.Refused(r, r.Vars, less, kernel); !errors.Is(err, binning.ErrBins) {
			t.Errorf("%s: a kernel has error %v", name, err)
		}
	}
	if _, err := oneHot.New().NewTrainer(j, d.Manifest, state); err != nil {
		t.Error(err)
	}
	one, gaps := newEdges(p.features), make([]binning.Gap, few.Rows+1)
	for i := range gaps {
		gaps[i] = binning.Gap{Lower: float32(i), Upper: float32(i + 1)}
	}
	one.add(2, false, gaps)
	if _, err := decodeEdges(one.append(nil), &few, 256); !errors.Is(err, binning.ErrBins) {
		t.Errorf("%d bins of a feature of %d rows: error %v", len(gaps)+1, few.Rows, err)
	}
}

// TestTreesAtWork: fewer trees grow at the same time if each has many nodes, and the leader's state stays bounded.
func TestTreesAtWork(t *testing.T) {
	c := smallConfig()
	c.Trees, c.MinSamples, c.MaxDepth, c.SamplingRatio = 10, 20, 40, 1
	for rows, want := range map[int]int{1000: 8, 1_000_000: 8, 5_000_000: 4, 20_000_000: 1, 2_000_000_000: 1} {
		m := &dataset.Manifest{Rows: rows, Features: 50, Labels: 10}
		if got := treesAtWork(&c, m, 10); got != want {
			t.Errorf("%d rows: %d trees are at work, want %d", rows, got, want)
		}
	}
	c.Trees = 3
	if got := treesAtWork(&c, &dataset.Manifest{Rows: 1000, Features: 50, Labels: 10}, 10); got != 3 {
		t.Errorf("%d of 3 trees are at work", got)
	}
}

// TestDamagedCounts: the counts of a node are whole numbers, each column has the copies of the node, and no node has
// more than its parent.
func TestDamagedCounts(t *testing.T) {
	const classes = 3
	p := makeCountedProblem(8, 300, 9, classes)
	testedLimits.small = 0
	set := param.Values{"trees": int64(1), "split": "histogram", "min_samples": int64(2)}
	d := p.data(2, false, dataset.Split{})
	j := countedJob(t, set, d.Manifest, dataset.Split{})
	tr, k := contract.Begin(t, counted, j, d.Manifest)
	subtracted := false
	for n := 0; n < 8 || !subtracted; n++ {
		r, err := tr.Next()
		if err != nil || r == nil {
			t.Fatalf("round %d: %v, error %v", n, r, err)
		}
		res := contract.Compute(t, r, d, contract.By(k))
		if r.Kind == "histogram" {
			asks, _ := tr.(*countedTrainer).growth.next()
			a := asks[0]
			damages := map[string]func(sums []float64){
				"negative": func(s []float64) { s[len(s)-1] = -1 },
				"halves": func(s []float64) {
					s[len(s)-1] += 0.5
					s[len(s)-1-classes] -= 0.5
				},
				"NaN":    func(s []float64) { s[len(s)-1] = math.NaN() },
				"great":  func(s []float64) { s[len(s)-1] = 1 << 40 },
				"more":   func(s []float64) { s[len(s)-1]++ },
				"copies": func(s []float64) { s[0]++ },
				"a tree": func(s []float64) {
					for k := range s {
						s[k] *= 1 << 24
					}
				},
			}
			if a.parent != nil {
				damages["more than the parent"] = func(s []float64) {
					subtracted = moveCopies(s, a.parent, tr.(*countedTrainer), a) || subtracted
				}
			}
			for name, damage := range damages {
				state, err := tr.AppendState(nil)
				if err != nil {
					t.Fatal(err)
				}
				sums := slices.Clone(res.Sum.F64)
				damage(sums)
				if slices.Equal(sums, res.Sum.F64) {
					continue
				}
				restored, err := counted.NewTrainer(j, d.Manifest, state)
				if err != nil {
					t.Fatal(err)
				}
				err = restored.Fold(&round.Result{Sum: &round.Partial{F64: sums}})
				if !errors.Is(err, errCounts) || !strings.Contains(err.Error(), "tree 0") {
					t.Errorf("round %d, %s: error %v", n, name, err)
				}
			}
		}
		if err := tr.Fold(res); err != nil {
			t.Fatal(err)
		}
	}
}

// moveCopies moves all copies of a class in a column to a bin in which the parent has fewer. It reports false if there
// is none.
func moveCopies(counts, parent []float64, t *countedTrainer, a ask) bool {
	l, classes := t.growth.layouts.layoutOf(t.growth.trees[a.tree].number, 1), t.growth.classes
	for i, at := range l.columns {
		c := &t.edges.Columns[at]
		for class := range classes {
			all := counts[class]
			for bin := range c.Bins() {
				to := (l.first[i]+bin)*classes + class
				if c.Sparse || parent[to] >= all {
					continue
				}
				for other := range c.Bins() {
					counts[(l.first[i]+other)*classes+class] = 0
				}
				counts[to] = all
				return true
			}
		}
	}
	return false
}
