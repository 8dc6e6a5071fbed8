package forest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
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

// data cuts the countedProblem into shards of different sizes, in dense or sparse storage.
func (p *countedProblem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: p.rows, Features: p.features, Labels: p.labels,
		Sparse: sparse, Shards: make([]dataset.ShardRef, shards)}
	for _, x := range p.x {
		if x != 0 {
			m.NonZeros++
		}
	}
	roles, err := split.Assign(p.rows, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(m, roles)
	for i := range shards {
		r := &dataset.Rows{Features: p.features, Labels: p.labels, Sparse: sparse}
		if sparse {
			r.Start = []uint32{0}
		}
		for row := p.rows - 1; row >= 0; row-- {
			if (row*row+row/3)%shards != i {
				continue
			}
			r.N++
			r.Row = append(r.Row, uint32(row))
			r.D = append(r.D, p.label(row)...)
			if !sparse {
				r.X = append(r.X, p.row(row)...)
				continue
			}
			for j, v := range p.row(row) {
				if v != 0 {
					r.X, r.Index = append(r.X, v), append(r.Index, uint32(j))
				}
			}
			r.Start = append(r.Start, uint32(len(r.X)))
		}
		d.SetShard(i, r)
	}
	return d
}

func countedJob(t fataler, m *dataset.Manifest, set param.Values, split dataset.Split) *round.Job {
	t.Helper()
	r, err := oneHot.New().Resolve(set, m)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &round.Job{Algorithm: "counted", Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params,
		Split: split}
}

func countedKernelOf(t fataler, j *round.Job, d *dataset.Data) round.Kernel {
	t.Helper()
	k, err := oneHot.New().NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return k
}

// testedLimits are limits under which small jobs have many rounds of each kind.
var testedLimits = growthLimits{trees: 3, numbers: 9000, bytes: 4000, work: 40_000, held: 9000, small: 0}

func countedTrainerOf(t fataler, j *round.Job, m *dataset.Manifest, state []byte) algorithms.Trainer {
	t.Helper()
	limits := usualLimits
	defer func() { usualLimits = limits }()
	usualLimits = testedLimits
	tr, err := oneHot.New().NewTrainer(j, m, state)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return tr
}

// growCounted trains on some lanes and returns the trainer.
func growCounted(t fataler, j *round.Job, d *dataset.Data, lanes int) algorithms.Trainer {
	t.Helper()
	tr := countedTrainerOf(t, j, d.Manifest, nil)
	none := func(uint64, round.Trainer) error { return nil }
	x := engine.NewLocal(countedKernelOf(t, j, d), d, lanes, nil)
	if err := engine.Drive(context.Background(), tr, 0, x, none); err != nil {
		t.Fatalf("%v", err)
	}
	return tr
}

func countedTensors(t fataler, tr algorithms.Trainer) []algorithms.Tensor {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m.Tensors()
}

func countedDigest(t fataler, tr algorithms.Trainer) string {
	t.Helper()
	return modelfile.Digest("counted", countedTensors(t, tr))
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
		want := growCounted(t, countedJob(t, exact.Manifest, set, split), exact, 1)
		set["split"], set["bins"] = "histogram", int64(256)
		d := p.data(rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"), rapid.Bool().Draw(t, "sparse"), split)
		got := growCounted(t, countedJob(t, d.Manifest, set, split), d, rapid.IntRange(1, 2).Draw(t, "lanes"))
		if countedDigest(t, got) != countedDigest(t, want) {
			a, b := countedTensors(t, got), countedTensors(t, want)
			for i := range a {
				t.Logf("%s: %v, want %v", a[i].Name, a[i], b[i])
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
		j := countedJob(t, p.data(16, true, split).Manifest, set, split)
		want := countedDigest(t, growCounted(t, j, p.data(1, false, split), 1))
		for _, workers := range []int{1, 2, 5} {
			got, most := growDistributed(t, j, p.data(16, workers == 2, split), workers)
			if got != want || most < 8 {
				t.Errorf("%v, %d workers, %d tasks: countedDigest %s, want %s", set, workers, most, got, want)
			}
		}
	}
}

// growDistributed trains with some workers, and returns the digest of the model and the greatest number of
// tasks of a round of trees.
func growDistributed(t *testing.T, j *round.Job, d *dataset.Data, workers int) (string, int) {
	t.Helper()
	tr := countedTrainerOf(t, j, d.Manifest, nil)
	kernels := make([]round.Kernel, workers)
	for i := range kernels {
		kernels[i] = countedKernelOf(t, j, d)
	}
	most, kinds := 0, make(map[string]int)
	for n := 0; ; n++ {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			if kinds["bins"] != 1 || kinds["histogram"] < 9 || kinds["samples"] < 9 {
				t.Errorf("the rounds are %v: one of the others is missing", kinds)
			}
			return countedDigest(t, tr), most
		}
		if kinds[r.Kind]++; r.Kind != "bins" {
			most = max(most, r.Tasks)
		}
		if n%3 == 1 {
			kernels[n%workers] = countedKernelOf(t, j, d)
		}
		if n%2 == 1 {
			state, err := tr.AppendState(nil)
			if err != nil {
				t.Fatal(err)
			}
			tr = countedTrainerOf(t, j, d.Manifest, state)
			if r, err = tr.Next(); err != nil {
				t.Fatal(err)
			}
		}
		res := countedResult(t, r, d, func(task int) round.Kernel { return kernels[(task*3+n)%workers] })
		if err := tr.Fold(res); err != nil {
			t.Fatal(err)
		}
	}
}

// countedResult computes a round, each task with the kernel of(task).
func countedResult(t testing.TB, r *round.Round, d *dataset.Data, of func(task int) round.Kernel) *round.Result {
	t.Helper()
	var tree engine.Tree
	if how := r.Reduce(); how != nil {
		tree.Reset(r.Tasks, how.Shape)
	}
	res := new(round.Result)
	for id := range r.Tasks {
		k := of(id)
		if r.Gather() != nil {
			part, err := engine.RunGather(t.Context(), k, r.Task(id), d, r.Vars, nil, k.NewScratch())
			if err != nil {
				t.Fatal(err)
			}
			res.Gathered = append(res.Gathered, part)
			continue
		}
		p := tree.Partial()
		if err := engine.RunTask(p, k, r.Task(id), d, r.Vars, engine.NewDerivedCache(0), k.NewScratch()); err != nil {
			t.Fatal(err)
		}
		if err := tree.PutTask(id, p); err != nil {
			t.Fatal(err)
		}
	}
	if r.Reduce() != nil {
		res.Sum = tree.Root()
	}
	return res
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
	j := countedJob(t, p.data(2, false, dataset.Split{}).Manifest, param.Values{"trees": int64(1), "split": "histogram"},
		dataset.Split{})
	d := p.data(2, false, dataset.Split{})
	tr := countedTrainerOf(t, j, d.Manifest, nil)
	k := countedKernelOf(t, j, d)
	for range 2 {
		r, err := tr.Next()
		if err == nil {
			err = tr.Fold(countedResult(t, r, d, func(int) round.Kernel { return k }))
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
		var tree engine.Tree
		tree.Reset(r.Tasks, r.Reduce().Shape)
		err := engine.RunTask(tree.Partial(), k, r.Task(0), d, vars, engine.NewDerivedCache(0), k.NewScratch())
		if !errors.Is(err, errNodes) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	countedResult(t, r, d, func(int) round.Kernel { return k })
}

// TestDamagedRows: what tasks tell of the rows of a node is checked.
func TestDamagedRows(t *testing.T) {
	p := makeCountedProblem(8, 90, 9, 3)
	testedLimits.small = 1 << 20
	set := param.Values{"trees": int64(1), "split": "histogram", "min_samples": int64(2)}
	d := p.data(2, true, dataset.Split{})
	j := countedJob(t, d.Manifest, set, dataset.Split{})
	tr := countedTrainerOf(t, j, d.Manifest, nil)
	k := countedKernelOf(t, j, d)
	r, err := tr.Next()
	for ; err == nil && r.Kind != "samples"; r, err = tr.Next() {
		if err := tr.Fold(countedResult(t, r, d, func(int) round.Kernel { return k })); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	good := countedResult(t, r, d, func(int) round.Kernel { return k }).Gathered
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
		other := countedTrainerOf(t, j, d.Manifest, state)
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
	j := countedJob(t, d.Manifest, set, dataset.Split{})
	k := countedKernelOf(t, j, d)
	tr, err := oneHot.New().NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := tr.Next()
		if err == nil {
			err = tr.Fold(countedResult(t, r, d, func(int) round.Kernel { return k }))
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
