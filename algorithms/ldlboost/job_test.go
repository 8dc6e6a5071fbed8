package ldlboost

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

var tenth = dataset.Split{Seed: 1, TestFraction: 0.1}

// goldenSets are settings with the digest of their model.
var goldenSets = []struct {
	set  param.Values
	want string
}{
	{param.Values{"rounds": int64(8), "bins": int64(6)},
		"97718ac6e936ee1102009735f8e176de2b2f39ff439d559fcea8d3a69b022012"},
	{param.Values{"rounds": int64(8), "hessian": "bound", "refit": false, "bins": int64(255)},
		"81d1fda8db66201792989bafdb5052929e651b1f931deeb04cd5d9a942279359"},
	{param.Values{"rounds": int64(8), "grow": "leaf", "row_fraction": 0.7, "feature_fraction": 0.5, "bins": int64(4)},
		"dd40bfc6f2bff4bf544031c084ff99adf46eb49edc9d27d66da342b4fbf712db"},
	{param.Values{"rounds": int64(6), "preset": "paper", "leaf_rows": int64(3), "l2": 0.0, "min_gain": 0.1,
		"bins": int64(255)},
		"33539d4c0071c0c770850da010d0fb007e03aee688fddc0df1ff7a26d2d6aa36"},
}

// TestGoldenDigests pins the bits of small models. They do not depend on lanes, shards, tasks or storage.
func TestGoldenDigests(t *testing.T) {
	p := makeProblem(3, 400, 12, 4)
	for _, c := range goldenSets {
		for _, lanes := range []int{1, 2, 3, 4} {
			d := p.data(1<<(lanes-1), lanes%2 == 0, tenth)
			j := jobOf(t, d.Manifest, c.set, tenth)
			d = p.data(1<<(lanes-1), lanes%2 == 0, j.Split)
			if got := digest(t, train(t, j, d, lanes)); got != c.want {
				t.Errorf("%v, %d lanes: digest %s, want %s", c.set, lanes, got, c.want)
			}
		}
	}
}

// TestWorkers: one, two and five workers, each with a kernel of its own that sees some tasks of each round, others
// every time, make the same model, also where a worker dies and forgets everything, or the leader does.
func TestWorkers(t *testing.T) {
	p := makeProblem(4, 300, 9, 3)
	testWorkers(t, p)
	p.weigh(4)
	testWorkers(t, p)
}

func testWorkers(t *testing.T, p *problem) {
	t.Helper()
	j := jobOf(t, p.data(16, true, tenth).Manifest, param.Values{"rounds": int64(6), "row_fraction": 0.8}, tenth)
	want := digest(t, train(t, j, p.data(1, false, j.Split), 1))
	one, two := train(t, j, p.data(16, true, j.Split), 1), train(t, j, p.data(16, true, j.Split), 2)
	if got, loss := digest(t, one), one.Progress().Loss; got != want || loss != two.Progress().Loss { // one partial
		t.Errorf("one lane: digest %s, want %s; loss %v, want %v", got, want, loss, two.Progress().Loss)
	}
	for _, workers := range []int{1, 2, 5} {
		d := p.data(16, true, j.Split)
		most := 0
		tr := contract.Apart(t, New(), j, d, workers, func(r *round.Round) {
			if r.Kind == "histogram" {
				most = max(most, r.Tasks)
			}
		})
		if got := digest(t, tr); got != want || most < 8 {
			t.Errorf("%d workers, %d tasks: digest %s, want %s", workers, most, got, want)
		}
	}
}

// TestFlush: the sums of more rows than 32 bits hold are exact. All derivatives have their greatest size.
func TestFlush(t *testing.T) {
	const rows, labels = 200_000, 3
	cfg := &Config{Hessian: hessianDiagonal, FeatureFraction: 1, Bins: 2}
	b := new(binning.Bins)
	b.Add(binning.Column{Feature: 0, Cuts: []float32{0.5}})
	b.Add(binning.Column{Feature: 1, Cuts: []float32{0.5}, Sparse: true})
	l := newLayout(cfg, b, labels, false, num.Key{}, 0)
	one := []int32{1, -1 << 15, 1 << 15, -1 << 15, 1 << 15, 1 << 15, 0}
	p := &part{codes: binning.Codes{Dense: make([]uint8, rows), Start: make([]uint32, rows+1)},
		words: make([]int64, rows*l.stride)}
	all := make([]uint32, rows)
	for i := range all {
		all[i] = uint32(i)
		p.codes.Dense[i] = uint8(i % 2)
		if i%2 == 1 {
			p.codes.Listed = append(p.codes.Listed, 3)
		}
		p.codes.Start[i+1] = uint32(len(p.codes.Listed))
		pack(p.words[i*l.stride:(i+1)*l.stride], one)
	}
	a := new(adder)
	k := &job{cfg: cfg, labels: labels}
	got64 := make([]float64, l.size())
	dst := sums{wide: got64}
	a.prepare(k, b, num.Key{}, 0)
	a.addNode(dst, all, p, l)
	a.add(dst, all, p, b, l)
	l.complete(dst.at(l.first[1]*l.width, 2*l.width), got64[:l.width], &b.Columns[1])
	for bin := range l.bins {
		n := rows / 2.0
		if bin == 0 {
			n = rows
		}
		for i, x := range one {
			if got := got64[bin*l.width+i]; got != n*float64(x) {
				t.Errorf("place %d: sum %d is %v, want %v", bin, i, got, n*float64(x))
			}
		}
	}
}

// TestBothTypes: where roots have too many rows for int32 sums, and their children do not, memory that was used for the
// other type changes nothing.
func TestBothTypes(t *testing.T) {
	p := makeProblem(7, mostNarrow+5000, 2, 2)
	j := jobOf(t, p.data(2, false, dataset.Split{}).Manifest, param.Values{"rounds": int64(3), "max_depth": int64(3),
		"validation_fraction": 0.0}, dataset.Split{})
	d := p.data(2, false, dataset.Split{})
	wide, narrow := 0, 0
	tr := contract.Apart(t, New(), j, d, 1, func(r *round.Round) { // in new memory
		if r.Kind == "histogram" && r.Reduce().Shape.I32 > 0 {
			narrow++
		} else if r.Kind == "histogram" {
			wide++
		}
	})
	if got, want := digest(t, train(t, j, d, 1)), digest(t, tr); got != want || wide < 3 || narrow < 3 {
		t.Errorf("digest %s, want %s, after %d float64 and %d int32 rounds", got, want, wide, narrow)
	}
}

// TestNarrow: int32 sums are exact for as many rows as mostNarrow says, all derivatives of their greatest size. Of one
// row more, a sum is outside of int32, and the trainer does not ask for int32 sums then.
func TestNarrow(t *testing.T) {
	const labels = 2
	cfg := &Config{Hessian: hessianDiagonal, FeatureFraction: 1, Bins: 2, Depth: 3, Leaves: 8, LeafRows: 1}
	b := new(binning.Bins)
	b.Add(binning.Column{Feature: 0, Cuts: []float32{0.5}})
	k := &job{cfg: cfg, labels: labels}
	for rows, want := range map[int]bool{mostNarrow: true, mostNarrow + 1: false} {
		a := new(adder)
		l := a.prepare(k, b, num.Key{}, 0)
		p := &part{codes: binning.Codes{Dense: make([]uint8, rows)}, words: make([]int64, rows*l.stride)}
		var all []uint32
		for i := range rows {
			all = append(all, uint32(i))
			pack(p.words[i*l.stride:][:(l.width+1)/2], []int32{1, 1 << 15, -1 << 15, 1 << 15, 1 << 15})
		}
		narrow, wide := make([]int32, l.size()), make([]float64, l.size())
		tree, half := engine.Tree{}, len(all)/2
		tree.Reset(2, round.Shape{I32: len(narrow)}) // two tasks
		for i, some := range [][]uint32{all[:half], all[half:]} {
			task := tree.Partial()
			a.add(sums{narrow: task.I32}, some, p, b, l)
			if err := tree.PutTask(i, task); err != nil {
				t.Fatal(err)
			}
		}
		a.add(sums{wide: wide}, all, p, b, l)
		exact := true
		for i, x := range tree.Root().I32 {
			exact = exact && float64(x) == wide[i]
		}
		if exact != want {
			t.Errorf("%d rows: int32 sums are exact: %v, want %v", rows, exact, want)
		}
		// As a root, and as the smaller child of a node whose rows are all in one bin.
		g := growth{cfg: cfg, rows: rows, search: newSearch(cfg, labels, false)}
		g.begin(b, l)
		if got := g.ask(new(request)); got != want {
			t.Errorf("%d rows: int32 sums of the root: %v, want %v", rows, got, want)
		}
		sum := make([]float64, l.width)
		sum[0] = float64(rows)
		hist := wide[l.width:]
		g.splits = []division{{}}
		g.nodes = []node{{sum: sum, hist: sums{wide: hist}}, {depth: 1, sum: sum}, {depth: 1, sum: sum}}
		if got := g.ask(new(request)); got != want {
			t.Errorf("%d rows: int32 sums of a child: %v, want %v", rows, got, want)
		}
		if hist[0] = mostNarrow; !g.ask(new(request)) {
			t.Errorf("%d rows: all bins have few rows, but their sums are not int32", rows)
		}
		hist[0], hist[l.width] = mostNarrow+1, 1
		if b.Columns[0].Sparse = true; !g.ask(new(request)) {
			t.Errorf("%d rows: only the zero bin has many rows, which no worker sums, but sums are not int32", rows)
		}
		if b.Columns[0].Zero = 1; g.ask(new(request)) != want {
			t.Errorf("%d rows: int32 sums of a bin with many rows", rows)
		}
		b.Columns[0].Sparse, b.Columns[0].Zero, hist[0] = false, 0, mostNarrow
		if l.weighted = true; g.ask(new(request)) {
			t.Error("int32 sums of rows with weights")
		}
	}
}

// TestPack: words of sums give both sums back.
func TestPack(t *testing.T) {
	l, block := &layout{width: 3, stride: 4}, make([]int64, 4)
	want := make([]float64, 3)
	s := num.NewStream(num.NewKey(1, "pack"), 0, 0)
	for range 1000 {
		numbers := []int32{1, int32(s.Uint64n(65_536)) - 32_768, int32(s.Uint64n(65_536)) - 32_768}
		words := make([]int64, 4)
		pack(words[:2], numbers)
		addWords(block, words)
		for i, x := range numbers {
			want[i] += float64(x)
		}
		wide, narrow := make([]float64, 3), make([]int32, 3)
		l.flush(sums{wide: wide}, slices.Clone(block))
		l.flush(sums{narrow: narrow}, slices.Clone(block))
		for i, x := range want {
			if wide[i] != x || float64(narrow[i]) != x {
				t.Fatalf("sums %v and %v, want %v", wide, narrow, want)
			}
		}
	}
}

// TestDamagedValues: what a task tells of its values is checked.
func TestDamagedValues(t *testing.T) {
	p := makeProblem(5, 60, 3, 2)
	d := p.data(2, false, tenth)
	good := appendValues(nil, num.Key{}, round.Task{Of: 1, Roles: dataset.Train}, d, 1)
	if _, err := makeBins([][]byte{good}, d.Manifest, 255); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := makeBins([][]byte{good[:n]}, d.Manifest, 255); err == nil {
			t.Fatalf("values that are cut to %d bytes are accepted", n)
		}
	}
	nan := bytes.Clone(good)
	copy(nan[8:], num.Bytes32([]float32{float32(math.NaN())}))
	for name, b := range map[string][]byte{"a NaN": nan, "a byte more": append(bytes.Clone(good), 0), "none": nil} {
		if _, err := makeBins([][]byte{b}, d.Manifest, 255); !errors.Is(err, binning.ErrBins) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestEarlierRounds: a kernel that is asked for a round before the last one, in the same tree or in another, gives the
// same sums; so does one whose memory was released.
func TestEarlierRounds(t *testing.T) {
	p := makeProblem(6, 150, 7, 3)
	set := param.Values{"rounds": int64(4), "max_depth": int64(3), "leaf_rows": int64(5), "patience": int64(9)}
	j := jobOf(t, p.data(1, false, tenth).Manifest, set, tenth)
	d := p.data(4, true, j.Split)
	tr, k := contract.Begin(t, New(), j, d.Manifest)
	var rounds []round.Round
	var sums [][]float64
	contract.Follow(t, tr, func(r *round.Round) *round.Result {
		res := contract.Compute(t, r, d, contract.By(k))
		if r.Reduce() != nil {
			kept := *r
			kept.Vars = nil
			for _, v := range r.Vars {
				v.Data = bytes.Clone(v.Data)
				kept.Vars = append(kept.Vars, v)
			}
			rounds, sums = append(rounds, kept), append(sums, slices.Clone(res.Sum.F64))
		}
		return res
	}, nil)
	s := num.NewStream(num.NewKey(1, "rounds"), 0, 0)
	for i := range 60 {
		n := s.Uint64n(uint64(len(rounds)))
		if i%10 == 9 {
			k.(round.MemoryReleaser).ReleaseMemory()
		}
		if got := contract.Compute(t, &rounds[n], d, contract.By(k)).Sum.F64; !slices.Equal(got, sums[n]) {
			t.Fatalf("round %d (%s) has other sums after later ones", n, rounds[n].Kind)
		}
	}
}

// TestMovedTasks: a kernel drops what it kept of tasks that other workers compute now, but not of tasks that come back
// soon. No sum depends on it.
func TestMovedTasks(t *testing.T) {
	p := makeProblem(6, 150, 7, 3)
	set := param.Values{"rounds": int64(30), "max_depth": int64(2), "leaf_rows": int64(5), "validation_fraction": 0.0}
	j := jobOf(t, p.data(1, false, tenth).Manifest, set, tenth)
	d := p.data(4, true, j.Split)
	want := digest(t, train(t, j, p.data(1, false, j.Split), 1))
	tr, own := contract.Begin(t, New(), j, d.Manifest)
	_, two := contract.Begin(t, New(), j, d.Manifest)
	const stays, moves, alternates = 0, 1, 2 // tasks
	one := own.(*kernel)
	kept := func(task int) *part { return one.parts[partKey{task, task + 1, dataset.Train}] }
	var first *part
	trees := 0
	contract.Follow(t, tr, func(r *round.Round) *round.Result {
		if trees = boost.Rounds(r.Vars); trees == 0 && r.Kind == "histogram" && r.Tasks != 4 {
			t.Fatalf("%d tasks", r.Tasks)
		}
		res := contract.Compute(t, r, d, func(task int) round.Kernel {
			if task == moves && trees >= 5 || task == alternates && trees%6 >= 3 {
				return two
			}
			return one
		})
		if first == nil {
			first = kept(alternates)
		}
		if has := kept(moves) != nil; r.Kind == "histogram" && (trees < 12 && !has || trees >= 14 && has) {
			t.Fatalf("before tree %d, the samples of a task that moved before tree 5 are kept: %v", trees, has)
		}
		return res
	}, nil)
	if got := digest(t, tr); got != want || trees < 29 {
		t.Errorf("after %d trees: digest %s, want %s", trees, got, want)
	}
	if kept(stays) == nil || first == nil || kept(alternates) != first {
		t.Error("what is kept of a task that is still asked for was dropped")
	}
}

// TestDamagedRequests: a kernel refuses requests that are no trees, or for other numbers than the task has.
func TestDamagedRequests(t *testing.T) {
	p := makeProblem(7, 120, 5, 2)
	j := jobOf(t, p.data(1, false, tenth).Manifest, param.Values{"rounds": int64(1), "leaf_rows": int64(5)}, tenth)
	d := p.data(2, false, j.Split)
	tr, k := contract.Begin(t, New(), j, d.Manifest)
	r, err := tr.Next()
	for ; err == nil && r.Kind != "histogram"; r, err = tr.Next() {
		if err := tr.Fold(contract.Compute(t, r, d, contract.By(k))); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Vars, func(v round.Var) bool { return v.ID == varRequest })
	good := r.Vars[at].Data
	root := []int{0}
	for name, b := range map[string][]byte{
		"none":      nil,
		"cut":       good[:len(good)-1],
		"no nodes":  good[:8],
		"two nodes": (&request{build: []int{0, 0}}).encode(nil),
		"node":      (&request{build: []int{1}}).encode(nil),
		"split":     (&request{splits: []division{{node: 1}}, build: root}).encode(nil),
		"column":    (&request{splits: []division{{column: 99}}, build: root}).encode(nil),
		"bin":       (&request{splits: []division{{bin: 255}}, build: root}).encode(nil),
	} {
		vars := slices.Clone(r.Vars)
		vars[at].Data = b
		if err := contract.Refused(r, vars, d, k); !errors.Is(err, errRequest) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	contract.Compute(t, r, d, contract.By(k))
	if err := new(request).check(new(binning.Bins), &round.Partial{I32: make([]int32, 1)}, 1, false); !errors.Is(err,
		errRequest) {
		t.Errorf("a partial without the loss: error %v", err)
	}
}

// TestGreatestDerivatives: derivatives are not greater than mostNarrow allows, though a known degree of a label may be
// a little greater than 1.
func TestGreatestDerivatives(t *testing.T) {
	got := make([]int32, 5)
	if quantise(got, []float64{0, 1}, []float32{1.0001, 0}); !slices.Equal(got, []int32{1, -1 << 15, 1 << 15, 0, 0}) {
		t.Errorf("derivatives %v", got)
	}
}

// TestGreatLosses: without l2, samples of a rare label may get scores that are far too great. The loss of a sample is
// bounded, because probabilities are at least leastProbability.
func TestGreatLosses(t *testing.T) {
	p := &problem{rows: 40_000, features: 1, labels: 2}
	for i := range p.rows {
		x, label := 0, 0
		if i < 1200 {
			x, label = 1, i%2
		}
		p.x = append(p.x, float32(x))
		p.d = append(p.d, float32(1-label), float32(label))
	}
	j := jobOf(t, p.data(1, false, dataset.Split{}).Manifest, param.Values{"rounds": int64(6), "learning_rate": 1.0,
		"l2": 0.0, "validation_fraction": 0.0, "refit": false}, dataset.Split{})
	for i, tree := range model(t, train(t, j, p.data(3, true, j.Split), 2)).(forest.Adds).Additive().Trees {
		if !(tree.Loss >= 0 && tree.Loss <= mostLoss) {
			t.Errorf("the loss before tree %d is %v", i, tree.Loss)
		}
	}
}

// TestNoRows: a tree whose drawing takes no sample is one leaf, and the model can be explained.
func TestNoRows(t *testing.T) {
	p := makeProblem(8, 60, 5, 2)
	j := jobOf(t, p.data(1, false, tenth).Manifest, param.Values{"rounds": int64(20), "row_fraction": 0.01,
		"validation_fraction": 0.0, "leaf_rows": int64(2)}, tenth)
	a := model(t, train(t, j, p.data(2, false, j.Split), 2)).(forest.Adds).Additive()
	if err := a.CheckCovers(); err != nil || !slices.ContainsFunc(a.Trees, func(t *forest.Tree) bool {
		return t.Samples(0) == 0
	}) {
		t.Errorf("%d trees: %v", len(a.Trees), err)
	}
}
