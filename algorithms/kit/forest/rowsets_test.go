package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// sparseRow is a row's values that are stored.
type sparseRow struct {
	columns []uint32
	values  []float32
}

// drawSparse draws rows of values on the grid and at its ends.
func drawSparse(s *num.Stream, rows, features int) (all []sparseRow) {
	ends := []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
		math.MaxFloat32,
		-math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for range rows {
		var r sparseRow
		for c := range uint32(features) {
			if s.Uint64n(3) == 0 {
				continue
			}
			v := float32(gridValue(s))
			if s.Uint64n(8) == 0 {
				v = ends[s.Uint64n(uint64(len(ends)))]
			}
			r.columns, r.values = append(r.columns, c), append(r.values, v)
		}
		all = append(all, r)
	}
	return all
}

// dense returns the row's values as walks read them.
func (r *sparseRow) dense(w *walker) []uint32 {
	x := make([]uint32, w.width)
	for i := range x {
		x[i] = zeroBits
	}
	for i, c := range r.columns {
		if at := w.compact[c]; at != unused {
			x[at] = clamp(r.values[i])
		}
	}
	return x
}

// checkSets takes rows down trees as sets, by the kernels that run here and by the portable ones,
// and walks each row alone.
func checkSets(t fataler, s *num.Stream, trees []*Tree, rows, features int) {
	m := newModel(trees, features, trees[0].Labels)
	f, w, all := m.sets(), m.walker(), drawSparse(s, rows, features)
	here, portable := f.newScratch(), f.newScratch()
	for i, r := range all {
		f.noteRow(here.answers, i, r.columns, r.values)
		f.noteRowGo(portable.answers, i, r.columns, r.values)
	}
	if !slices.Equal(here.answers, portable.answers) {
		t.Fatalf("the notes of %d rows differ", rows)
	}
	here.complete(f)
	portable.complete(f)
	used := (rows + setRows - 1) / setRows
	for i, tree := range trees {
		made := &f.trees[i]
		divideSets(&here.space, used, here.answers, made.borders)
		divideSetsGo(&portable.space, used, portable.answers, made.borders)
		for h := range used {
			var leaves, again [setRows]uint32
			numberLeaves(&leaves, here.space.planes[h][:made.planes], made.leaf)
			numberLeavesGo(&again, portable.space.planes[h][:made.planes], made.leaf)
			if leaves != again {
				t.Fatalf("tree %d, half %d: leaves %v, portable %v", i, h, leaves, again)
			}
			for j, r := range all[h*setRows : min(rows, (h+1)*setRows)] {
				if want := w.descend(tree, r.dense(w)); leaves[j] != want {
					t.Fatalf("tree %d: row %d (%v) reaches leaf %d, want %d", i, h*setRows+j, r, leaves[j], want)
				}
			}
		}
	}
}

func checkRowSets(t *rapid.T) {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	features := rapid.SampledFrom([]int{1, 2, 7, 40}).Draw(t, "features")
	rows := rapid.SampledFrom([]int{1, 63, 64, 65, setRows - 1, setRows, setRows + 1, blockRows}).Draw(t, "rows")
	var trees []*Tree
	for range rapid.IntRange(1, 4).Draw(t, "trees") {
		trees = append(trees, randomTree(s, features, 1, rapid.IntRange(0, 12).Draw(t, "depth")))
	}
	checkSets(t, s, trees, rows, features)
}

// TestRowSets: rows that go down trees as sets reach the leaves that each reaches alone.
func TestRowSets(t *testing.T) { rapid.Check(t, checkRowSets) }

func FuzzRowSets(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRowSets)) }

// TestRowSetsOfLargeTrees: a tree of more leaves than a byte counts, and the deepest that can be.
func TestRowSetsOfLargeTrees(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	const features = 30
	for _, side := range []int{0, 1} {
		full, deep := new(Tree), new(Tree)
		full.Reset(1)
		growFull(full, s, 0, 10, features)
		deep.Reset(1)
		at := 0
		for range maxDepth {
			deep.Split(at, uint32(s.Uint64n(features)), gridValue(s), 0)
			deep.Leaf(int(deep.left[at]) + 1 - side)
			at = int(deep.left[at]) + side
		}
		deep.Leaf(at)
		checkSets(t, s, []*Tree{full, deep}, blockRows, features)
	}
}

// growFull grows all leaves of a depth below a node.
func growFull(t *Tree, s *num.Stream, at, depth, features int) {
	if depth == 0 {
		t.Leaf(at)
		return
	}
	t.Split(at, uint32(s.Uint64n(uint64(features))), gridValue(s), 0)
	left := int(t.left[at])
	growFull(t, s, left, depth-1, features)
	growFull(t, s, left+1, depth-1, features)
}

// TestDivides: which blocks of rows go down trees as sets.
func TestDivides(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	const features = 20
	large, small := new(Tree), new(Tree)
	large.Reset(1)
	growFull(large, s, 0, 10, features)
	small.Reset(1)
	growFull(small, s, 0, 2, features)
	p := makeProblem(1, 600, features, 1, 0.1)
	few := makeProblem(1, 600, features, 1, 0)
	for name, c := range map[string]struct {
		p            *problem
		sparse       bool
		tree         *Tree
		trees, rows  int
		first, later bool
	}{
		"sparse rows":                 {p: p, sparse: true, tree: small, trees: 20, rows: 64, first: true, later: true},
		"dense rows":                  {p: p, tree: small, trees: 20, rows: 64},
		"few rows":                    {p: p, sparse: true, tree: small, trees: 20, rows: 63},
		"more values than trees":      {p: p, sparse: true, tree: small, trees: 1, rows: 64},
		"large trees":                 {p: few, sparse: true, tree: large, trees: 3, rows: 512, later: true},
		"large trees and fewer rows":  {p: few, sparse: true, tree: large, trees: 3, rows: 127},
		"large trees and enough rows": {p: few, sparse: true, tree: large, trees: 3, rows: 128, later: true},
		"very many large trees":       {p: few, sparse: true, tree: large, trees: mostSplits/1023 + 1, rows: 512},
	} {
		d := c.p.data(1, c.sparse, dataset.Split{})
		m := newModel(slices.Repeat([]*Tree{c.tree}, c.trees), features, 1)
		refs := d.Select(0, 1, dataset.AllRows)[:c.rows]
		shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
		if got := m.divides(refs, shard); got != c.first {
			t.Errorf("%s: first %v, want %v", name, got, c.first)
		}
		for range 50 {
			m.divides(refs, shard)
		}
		if got := m.divides(refs, shard); got != c.later {
			t.Errorf("%s: later %v, want %v", name, got, c.later)
		}
	}
}
