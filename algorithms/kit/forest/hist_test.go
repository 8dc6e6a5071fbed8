package forest

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// oneHot is a variant whose classes are the labels of the highest degree, and whose leaves have their shares.
var oneHot = Variant{
	Name: "counted", Auto: small, Classes: func(labels int) int { return max(2, labels) },
	NewLabeller: func(uint64) Labeller { return new(oneHotLabeller) },
	Counted:     &CountedParts{Class: greatest, Leaf: sharesOf},
	OfTargets:   new(TargetParts),
}

func greatest(label []float32) uint32 { return uint32(slices.Index(label, slices.Max(label))) }

func sharesOf(dst []float32, counts []uint32, copies int) (loss float64) {
	for c := range dst {
		dst[c] = float32(float64(counts[c]) / float64(copies))
		loss += float64(counts[c]) * float64(counts[c]) / 3
	}
	return loss
}

type oneHotLabeller struct{ argmaxLabeller }

// Leaf implements Labeller.
func (oneHotLabeller) Leaf(dst []float32, s *BootstrapSample, n *Node) float64 {
	counts := make([]uint32, s.Width)
	for _, row := range n.Rows {
		counts[greatest(s.Label(row))] += s.Weight[row]
	}
	return sharesOf(dst, counts, n.Copies)
}

// countedProblem is a small dataset in float32, dense, row-major.
type countedProblem struct {
	rows, features, labels int
	x, d                   []float32
}

func (p *countedProblem) row(i int) []float32   { return p.x[i*p.features : (i+1)*p.features] }
func (p *countedProblem) label(i int) []float32 { return p.d[i*p.labels : (i+1)*p.labels] }

// makeCountedProblem draws columns of two values, of a few values, some negative, mostly zeros, of values that differ
// in their last bits, and constant ones. Values of a column are at most 200.
func makeCountedProblem(seed uint64, rows, features, labels int) *countedProblem {
	p := &countedProblem{rows: rows, features: features, labels: labels, x: make([]float32, rows*features),
		d: make([]float32, rows*labels)}
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	for i := range rows {
		for j := range p.row(i) {
			p.row(i)[j] = [...]func() float32{
				func() float32 { return float32(s.Uint64n(2)) },
				func() float32 { return float32(s.Uint64n(150)) - 70 },
				func() float32 { return float32(max(5, s.Uint64n(9)) - 5) },
				func() float32 { return 1 + float32(s.Uint64n(50))*0x1p-23 },
				func() float32 { return 3 },
				func() float32 { return -float32(max(4, s.Uint64n(7))-4) / 3 },
			}[j%6]()
		}
		for c := range p.label(i) {
			p.label(i)[c] = float32(s.Uint64n(3)) + 0.5
			if p.row(i)[c%features] > 1 {
				p.label(i)[c] += 2
			}
		}
	}
	return p
}

// data cuts the problem into shards of different sizes.
func (p *countedProblem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	return contract.Dense{Rows: p.rows, Features: p.features, Labels: p.labels, X: p.x, D: p.d,
		Shard: func(row, n int) int { return (row*row + row/3) % n }}.Data(shards, sparse, split)
}

// testedLimits are limits under which small jobs have many rounds of each kind.
var testedLimits = growthLimits{trees: 3, numbers: 9000, bytes: 4000, work: 40_000, held: 9000, small: 0}

// limited is the algorithm of oneHot with testedLimits.
type limited struct{ algorithms.Algorithm }

var counted = limited{oneHot.New()}

// NewTrainer implements algorithms.Algorithm.
func (a limited) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	limits := usualLimits
	defer func() { usualLimits = limits }()
	usualLimits = testedLimits
	return a.Algorithm.NewTrainer(j, m, state)
}

func countedJob(t contract.Test, set param.Values, m *dataset.Manifest, split dataset.Split) *round.Job {
	t.Helper()
	j := contract.Job(t, counted, set, m, split)
	j.Seed = 1 // of the slow twin
	return j
}

// TestExactTrees: if each value has a bin, trees by histograms are exact trees, bit for bit, if all rows are in each
// tree: nodes, thresholds, gains, leaves, loss and gain evaluations.
func TestExactTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := makeCountedProblem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(30, 400).Draw(t, "rows"),
			rapid.IntRange(1, 13).Draw(t, "features"), rapid.IntRange(2, 6).Draw(t, "labels"))
		set := param.Values{"trees": int64(rapid.IntRange(1, 11).Draw(t, "trees")), "bootstrap": false,
			"min_samples": int64(rapid.IntRange(2, 20).Draw(t, "min samples")),
			"max_depth":   int64(rapid.IntRange(1, 12).Draw(t, "depth")),
			"features":    rapid.SampledFrom([]string{"all", "sqrt", "0.5"}).Draw(t, "features"),
			"step":        rapid.SampledFrom([]string{"exhaustive", "adaptive"}).Draw(t, "step")}
		testedLimits.small = rapid.SampledFrom([]int64{0, 1, 4}).Draw(t, "small")
		testedLimits.held = rapid.SampledFrom([]int{0, 9000}).Draw(t, "held")
		split := dataset.Split{Seed: 3, TestFraction: 0.1}
		exact := p.data(2, false, split)
		want := contract.Train(t, counted, countedJob(t, set, exact.Manifest, split), exact, 1, nil)
		set["split"], set["bins"] = "histogram", int64(256)
		d := p.data(rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"), rapid.Bool().Draw(t, "sparse"), split)
		got := contract.Train(t, counted, countedJob(t, set, d.Manifest, split), d,
			rapid.IntRange(1, 2).Draw(t, "lanes"), nil)
		if contract.Digest(t, counted, got) != contract.Digest(t, counted, want) {
			a, errA := got.Model()
			b, errB := want.Model()
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			for i, x := range a.Tensors() {
				t.Logf("%s: %v, want %v", x.Name, x, b.Tensors()[i])
			}
			t.Fatal("the trees differ")
		}
		if a, b := got.Counters()["gain_evaluations"], want.Counters()["gain_evaluations"]; a != b {
			t.Fatalf("%d gain evaluations, want %d", a, b)
		}
		if a, b := got.Progress().Loss, want.Progress().Loss; a != b {
			t.Fatalf("the loss is %v, want %v", a, b)
		}
	})
}

// TestCountedWorkers: one, two and five workers, each with a kernel of its own that sees some tasks of each round, make
// the same forest, also where a worker dies and forgets everything, or the leader does, in the middle of a tree; so do
// dense and sparse shards of any number.
func TestCountedWorkers(t *testing.T) {
	p := makeCountedProblem(4, 700, 11, 4)
	testedLimits.small, testedLimits.held = 1, 9000
	split := dataset.Split{Seed: 1, TestFraction: 0.1}
	for _, set := range []param.Values{
		{"trees": int64(11), "min_samples": int64(5), "split": "histogram", "bins": int64(20)},
		{"trees": int64(9), "min_samples": int64(2), "split": "histogram", "features": "sqrt"},
	} {
		j := countedJob(t, set, p.data(16, true, split).Manifest, split)
		want := contract.Digest(t, counted, contract.Train(t, counted, j, p.data(1, false, split), 1, nil))
		for _, workers := range []int{1, 2, 5} {
			most, kinds := 0, make(map[string]int)
			got := contract.Digest(t, counted, contract.Apart(t, counted, j, p.data(16, workers == 2, split), workers,
				func(r *round.Round) {
					if kinds[r.Kind]++; r.Kind != "bins" {
						most = max(most, r.Tasks)
					}
				}))
			if kinds["bins"] != 1 || kinds["histogram"] < 9 || kinds["samples"] < 9 {
				t.Errorf("the rounds are %v: one of the others is missing", kinds)
			}
			if got != want || most < 8 {
				t.Errorf("%v, %d workers, %d tasks: digest %s, want %s", set, workers, most, got, want)
			}
		}
	}
}

// TestRefusedByHistograms: what histograms cannot learn from is refused by name.
func TestRefusedByHistograms(t *testing.T) {
	m := makeCountedProblem(1, 100, 3, 2).data(1, false, dataset.Split{}).Manifest
	m.HasWeights = true
	targets := *m
	targets.HasWeights, targets.LabelType.Bounds = false, new(dataset.Bounds)
	for name, m := range map[string]*dataset.Manifest{"weights": m, "targets": &targets} {
		_, err := oneHot.New().Resolve(param.Values{"split": "histogram"}, m)
		if wrong := (*param.Error)(nil); err == nil || !errors.As(err, &wrong) || wrong.Name != "split" {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if !slices.ContainsFunc(oneHot.New().Params(), func(p param.Param) bool { return p.Name == "split" }) {
		t.Error("the setting split is missing")
	}
}

// TestDamagedNodes: a kernel refuses requests for nodes that are none, or for other numbers than the task has.
func TestDamagedNodes(t *testing.T) {
	p := makeCountedProblem(7, 200, 5, 3)
	testedLimits.small = 0
	j := countedJob(t, param.Values{"trees": int64(1), "split": "histogram"}, p.data(2, false, dataset.Split{}).Manifest,
		dataset.Split{})
	d := p.data(2, false, dataset.Split{})
	tr, k := contract.Begin(t, counted, j, d.Manifest)
	for range 2 {
		r, err := tr.Next()
		if err == nil {
			err = tr.Fold(contract.Compute(t, r, d, contract.By(k)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := tr.Next()
	if err != nil || r.Kind != "histogram" {
		t.Fatal(r, err)
	}
	good := r.Vars[1].Data
	for name, b := range map[string][]byte{
		"none": nil, "cut": good[:len(good)-1], "no node": good[:8], "a word": good[:12],
		"another tree": num.BytesU32([]uint32{0, 1, 1, 0}), "deep": num.BytesU32([]uint32{0, 1, 0, 61}),
		"column": num.BytesU32([]uint32{0, 1, 0, 1, 99, 0}), "bin": num.BytesU32([]uint32{0, 1, 0, 1, 0, 600}),
		"two nodes": num.BytesU32([]uint32{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}),
	} {
		vars := slices.Clone(r.Vars)
		vars[1].Data = b
		if err := contract.Refused(r, vars, d, k); !errors.Is(err, errNodes) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	contract.Compute(t, r, d, contract.By(k))
}

// TestDamagedRows: what tasks tell of the rows of a node is checked.
func TestDamagedRows(t *testing.T) {
	p := makeCountedProblem(8, 90, 9, 3)
	testedLimits.small = 1 << 20
	set := param.Values{"trees": int64(1), "split": "histogram", "min_samples": int64(2)}
	d := p.data(2, true, dataset.Split{})
	j := countedJob(t, set, d.Manifest, dataset.Split{})
	tr, k := contract.Begin(t, counted, j, d.Manifest)
	r, err := tr.Next()
	for ; err == nil && r.Kind != "samples"; r, err = tr.Next() {
		if err := tr.Fold(contract.Compute(t, r, d, contract.By(k))); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	good := contract.Compute(t, r, d, contract.By(k)).Gathered
	change := func(at int, by byte) [][]byte {
		b := slices.Clone(good[0])
		b[at] += by
		return [][]byte{b, good[1]}
	}
	for name, parts := range map[string][][]byte{
		"one part": good[:1], "cut": {good[0][:len(good[0])-1], good[1]}, "class": change(4, 3), "copies": change(8, 1),
		"more": {append(slices.Clone(good[0]), 0), good[1]}, "number": change(0, 1), "list": change(11, 1),
		"bin": change(4+rowHead, 255),
	} {
		state, err := tr.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := counted.NewTrainer(j, d.Manifest, state)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Fold(&round.Result{Gathered: parts}); !errors.Is(err, errRows) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := tr.Fold(&round.Result{Gathered: good}); err != nil {
		t.Error(err)
	}
}

// TestCountedMemory holds the estimate of what a kernel keeps of samples against what rounds leave allocated.
func TestCountedMemory(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeCountedProblem(9, 20_000, 24, 3)
	d := p.data(4, false, dataset.Split{})
	set := param.Values{"trees": int64(6), "split": "histogram", "min_samples": int64(500)}
	j := countedJob(t, set, d.Manifest, dataset.Split{})
	tr, k := contract.Begin(t, oneHot.New(), j, d.Manifest)
	for range 3 {
		r, err := tr.Next()
		if err == nil {
			err = tr.Fold(contract.Compute(t, r, d, contract.By(k)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	kept := heap()
	k.(round.MemoryReleaser).ReleaseMemory()
	kept -= heap()
	c := k.(*countedKernel).cfg
	if estimate := countedKept(c, d.Manifest, k.(*countedKernel).classes); estimate < kept || estimate > 2*kept {
		t.Errorf("the estimate is %d bytes, the kernel keeps %d", estimate, kept)
	}
	if bytes, what := k.(round.Demanding).Demand(); bytes < kept || what == "" {
		t.Errorf("a task demands %d bytes for %q, and keeps %d", bytes, what, kept)
	}
	runtime.KeepAlive(tr)
	runtime.KeepAlive(d)
}
