package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/num"
)

// drawEntries draws entries of distinct rows, with flags of any kind.
func drawEntries(t *rapid.T, rows int) []uint32 {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "entries"), "test"), 0, 0)
	often := rapid.Uint64Range(1, 9).Draw(t, "a new value in")
	var list []uint32
	for row := range uint32(rows) {
		e := row | uint32(s.Uint64n(2))*Positive
		if s.Uint64n(often) == 0 {
			e |= NewValue
		}
		list = append(list, e)
	}
	for i := range list {
		j := int(s.Uint64n(uint64(len(list))))
		list[i], list[j] = list[j], list[i]
	}
	return list[:rapid.IntRange(0, rows).Draw(t, "in the node")]
}

// drawSides draws the side of each row, mostly one of the two where share is extreme.
func drawSides(t *rapid.T, rows int) []uint8 {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "sides"), "test"), 0, 0)
	share := rapid.SampledFrom([]float64{0, 0.02, 0.5, 0.98, 1}).Draw(t, "on the right")
	side := make([]uint8, rows, rows+SideSlack)
	for i := range side {
		if s.Float64() < share {
			side[i] = 1
		}
	}
	return side
}

// slowKeep is the twin of keep and of one side of Partition.
func slowKeep(entries []uint32, in func(row uint32) bool) (kept []uint32) {
	isNew := false
	for _, e := range entries {
		isNew = isNew || e&NewValue != 0
		if !in(e & RowMask) {
			continue
		}
		e &^= NewValue
		if isNew {
			e |= NewValue
		}
		kept, isNew = append(kept, e), false
	}
	return kept
}

func checkDivision(t *rapid.T) {
	rows := rapid.IntRange(1, 90).Draw(t, "rows")
	entries, side := drawEntries(t, rows), drawSides(t, rows)
	const guard = 77
	framed := func() (all, part []uint32) {
		all = append(append([]uint32{guard}, entries...), guard)
		return all, all[1 : len(all)-1 : len(all)-1]
	}
	var want [2][]uint32
	for b := range want {
		want[b] = slowKeep(entries, func(row uint32) bool { return side[row] == uint8(b) })
	}
	all, part := framed()
	n := Partition(part, make([]uint32, rows+VectorSlack), side)
	if !slices.Equal(part[:n], want[0]) || !slices.Equal(part[n:], want[1]) {
		t.Fatalf("partition: %x | %x, want %x | %x", part[:n], part[n:], want[0], want[1])
	}
	if all[0] != guard || all[len(all)-1] != guard {
		t.Fatal("partition wrote outside its entries")
	}
	for b := range want {
		all, part := framed()
		if n := FilterSide(part, side, uint8(b)); !slices.Equal(part[:n], want[b]) {
			t.Fatalf("keep side %d: %x, want %x", b, part[:n], want[b])
		}
		if all[0] != guard || all[len(all)-1] != guard {
			t.Fatal("keep wrote outside its entries")
		}
	}
}

// TestDivision holds Partition and keep against the twin, for all lengths and shares.
func TestDivision(t *testing.T) { rapid.Check(t, checkDivision) }

// checkRankedDivision holds markRanks and partitionRanked against slowKeep.
func checkRankedDivision(t *rapid.T) {
	rows := rapid.IntRange(1, 150).Draw(t, "rows")
	entries, side := drawEntries(t, rows), drawSides(t, rows)
	zeroLeft := rapid.Bool().Draw(t, "zeros go left")
	stored := rapid.SliceOfN(rapid.Bool(), rows, rows).Draw(t, "stored, if the row is on the side of zeros")
	var sides, want [2][]uint32 // rows of the split's column; entries
	number := make([]uint32, rows)
	var n [2]uint32
	for row, b := range side {
		number[row] = n[b]
		n[b]++
		if stored[row] || zeroLeft != (b == 0) {
			sides[b] = append(sides[b], uint32(row))
		}
	}
	for b := range want {
		for _, e := range slowKeep(entries, func(row uint32) bool { return side[row] == uint8(b) }) {
			want[b] = append(want[b], number[e&RowMask]|e&^RowMask)
		}
	}
	ranks := slices.Repeat([]uint64{math.MaxUint64}, rows/rankedRows+1) // of another node
	markRanks(ranks, slices.Concat(sides[0], sides[1]), len(sides[0]), zeroLeft)
	left := partitionRanked(entries, make([]uint32, rows+VectorSlack), ranks)
	if !slices.Equal(entries[:left], want[0]) || !slices.Equal(entries[left:], want[1]) {
		t.Fatalf("%x | %x, want %x | %x", entries[:left], entries[left:], want[0], want[1])
	}
}

// TestRankedDivision: a division that renumbers rows keeps order and flags.
func TestRankedDivision(t *testing.T) { rapid.Check(t, checkRankedDivision) }

func FuzzRankedDivision(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRankedDivision)) }

func FuzzDivision(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkDivision)) }

func checkReduce(t *rapid.T) {
	rows := rapid.IntRange(1, 90).Draw(t, "rows")
	column := drawEntries(t, rows)
	local, n := make([]uint32, rows), uint32(0)
	for i, out := range drawSides(t, rows) {
		if local[i] = absent; out == 0 {
			local[i] = n
			n++
		}
	}
	want := []uint32{5}
	for _, e := range slowKeep(column, func(row uint32) bool { return local[row] != absent }) {
		want = append(want, local[e&RowMask]|e&^RowMask)
	}
	dst := append(make([]uint32, 0, len(column)+1), 5)
	if got := selectDrawn(dst, column, local); !slices.Equal(got, want) {
		t.Fatalf("%x, want %x", got, want)
	}
}

// TestReduce holds the column of a sample against the twin.
func TestReduce(t *testing.T) { rapid.Check(t, checkReduce) }

func FuzzReduce(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkReduce)) }

// checkScan holds a scan with tables, and one without, against sums counted anew for
// each threshold.
func checkScan(t *rapid.T) {
	rows := rapid.IntRange(2, 90).Draw(t, "rows")
	entries := drawEntries(t, rows)
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "weights"), "test"), 0, 0)
	most := rapid.SampledFrom([]uint64{3, mostNarrow}).Draw(t, "copies of a row")
	packed, both := make([]uint64, rows), uint64(0)
	for i := range packed {
		packed[i] = (1 + s.Uint64n(most)) << (32 * s.Uint64n(2))
		both += packed[i]
	}
	passed := packed[rows-1] // as if its entry were before: in the list or not
	for _, e := range entries {
		if int(e&RowMask) == rows-1 {
			passed = 0
		}
	}
	n := uint32(both) + uint32(both>>32)
	search := search{xlogx: xlogx(int(n)), n: n}
	search.binary.packed, search.binary.both = packed, both
	best := search.binaryEntropy(both) - minGain
	want := scanResult{at: -1, least: best, passed: passed}
	for i, e := range entries {
		if e&NewValue != 0 {
			want.tried++
			if sum := search.binaryEntropy(want.passed) + search.binaryEntropy(both-want.passed); sum < want.least {
				want.least, want.at = sum, i
			}
		}
		want.passed += packed[e&RowMask]
	}
	tables := new(entropyTables)
	tables.prepare(1<<30, search.xlogx, uint32(both), uint32(both>>32))
	if got := scanBinary(entries, packed, tables, passed, best); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if got := scanBinaryGo(entries, packed, tables, passed, best); got != want {
		t.Fatalf("portable: %+v, want %+v", got, want)
	}
	narrow := make([]uint8, rows)
	for i, w := range packed {
		narrow[i] = uint8(w) | uint8(w>>32) | uint8(min(1, w>>32))<<classBit
	}
	if got := scanNarrow(entries, narrow, tables, passed, best); got != want {
		t.Fatalf("in bytes: %+v, want %+v", got, want)
	}
	if got := scanNarrowGo(entries, narrow, tables, passed, best); got != want {
		t.Fatalf("in bytes, portable: %+v, want %+v", got, want)
	}
	search.best, search.split.index, search.split.total = best, 0, 0
	if got := search.binarySteps(entries, passed, 1); got != want.passed || search.best != want.least ||
		int(search.split.index) != want.at+1 || int(search.evaluations) != want.tried {
		t.Fatalf("without tables: passed %x, best %d at %d after %d, want %+v", got, search.best, search.split.index,
			search.evaluations, want)
	}
}

// TestScan: tables of a node and the assembly find what counting anew finds.
func TestScan(t *testing.T) { rapid.Check(t, checkScan) }

func FuzzScan(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkScan)) }

// randomTree makes a tree of any shape with thresholds on the grid of the values.
func randomTree(s *num.Stream, features, labels, depth int) *Tree {
	tree := new(Tree)
	tree.Reset(labels)
	var grow func(at, depth int)
	grow = func(at, depth int) {
		if depth == 0 || s.Uint64n(8) == 0 {
			for c := range tree.Leaf(at) {
				tree.leaves[len(tree.leaves)-labels+c] = float32(s.Float64())
			}
			return
		}
		tree.Split(at, uint32(s.Uint64n(uint64(features))), gridValue(s), 0)
		left := int(tree.left[at])
		grow(left, depth-1)
		grow(left+1, depth-1-int(s.Uint64n(uint64(depth)))/2)
	}
	grow(0, depth)
	return tree
}

func gridValue(s *num.Stream) float64 { return float64(int(s.Uint64n(9))-4) / 2 }

// checkWalk holds rows that walk in blocks, alone, and by the trees' arrays against the twin.
func checkWalk(t *rapid.T) {
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "values"), "test"), 0, 0)
	features := rapid.SampledFrom([]int{1, 2, 7, 40}).Draw(t, "features")
	labels := rapid.SampledFrom([]int{1, 3, 4, 5, 8, 17}).Draw(t, "labels")
	p := &problem{n: rapid.SampledFrom([]int{1, 7, 8, 9, 17, 64, 65, 300}).Draw(t, "rows"), features: features,
		labels: labels}
	p.x, p.d = make([]float32, p.n*features), make([]float32, p.n*labels)
	for i := range p.x {
		p.x[i] = float32(gridValue(s))
		if s.Uint64n(20) == 0 {
			p.x[i] = rapid.SampledFrom([]float32{math.MaxFloat32, -math.MaxFloat32, float32(math.Copysign(0, -1)),
				math.SmallestNonzeroFloat32}).Draw(t, "x")
		}
	}
	var trees []*Tree
	for range rapid.SampledFrom([]int{1, 7, 8, 9, 20}).Draw(t, "trees") {
		tree := randomTree(s, features, labels, rapid.IntRange(0, 9).Draw(t, "depth"))
		if err := tree.check(features, Degrees); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	m := newModel(trees, features, labels)
	checkPredictions(t, m, p)
	m.couldDivide.Store(math.MaxInt64) // sparse rows go as sets of rows
	checkPredictions(t, m, p)
	m.couldDivide.Store(0)
	m.walker().fitsSets, m.walker().fits = false, false
	checkPredictions(t, m, p)
}

func TestWalk(t *testing.T) { rapid.Check(t, checkWalk) }

func FuzzWalk(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkWalk)) }

// TestWalkKernels holds the assembly against the portable walks, leaf by leaf.
func TestWalkKernels(t *testing.T) {
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	const features, rows = 5, 3 * lanes
	var trees []*Tree
	for depth := range 2 * lanes {
		trees = append(trees, randomTree(s, features, 2, depth))
	}
	m := newModel(trees, features, 2)
	w := m.walker()
	x := make([]uint32, rows*w.width)
	for i := range x {
		x[i] = clamp(float32(gridValue(s)))
	}
	got, want := make([]uint32, rows), make([]uint32, rows)
	for i, root := range w.roots {
		walkRows(got, &w.nodes, x, w.width, root, w.depths[i])
		walkRowsGo(want, &w.nodes, x, w.width, root)
		if !slices.Equal(got, want) {
			t.Errorf("tree %d: leaves %v, want %v", i, got, want)
		}
	}
	roots := slices.Clone(w.roots)
	walkTrees(roots, &w.nodes, x)
	alone := slices.Clone(w.roots)
	walkTreesGo(alone, &w.nodes, x)
	if !slices.Equal(roots, alone) {
		t.Errorf("a row alone: leaves %v, want %v", roots, alone)
	}
	for i, tree := range trees {
		if leaf := w.descend(tree, x); leaf != roots[i] {
			t.Errorf("tree %d: leaf %d, want %d", i, roots[i], leaf)
		}
	}
	for _, labels := range []int{1, 3, 4, 7, 18} {
		sums, leaves := make([]float64, rows*labels), make([]float32, 10*labels)
		for i := range leaves {
			leaves[i] = float32(s.Float64())
		}
		for i := range got {
			got[i] = uint32(s.Uint64n(10))
		}
		again := slices.Clone(sums)
		addLeaves(sums, leaves, got, labels)
		addLeavesGo(again, leaves, got, labels)
		if !slices.Equal(sums, again) {
			t.Errorf("%d labels: sums differ", labels)
		}
	}
}
