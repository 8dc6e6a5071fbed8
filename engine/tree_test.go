package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// slowSum is the twin of Tree: it recurses over the pinned tree on dense values.
func slowSum(leaves [][]float32) []float32 {
	if len(leaves) == 1 {
		return leaves[0]
	}
	half := 1
	for half*2 < len(leaves) {
		half *= 2
	}
	left, right := slowSum(leaves[:half]), slowSum(leaves[half:])
	sum := make([]float32, len(left))
	for i := range sum {
		sum[i] = left[i] + right[i]
	}
	return sum
}

const testRows, testWidth = 7, 3

// drawUnits draws the partials of a round: some rows absent, magnitudes far
// apart so that another order of summation shows.
func drawTasks(t *rapid.T, units int) [][]float32 {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	leaves := make([][]float32, units)
	for u := range leaves {
		leaves[u] = make([]float32, testRows*testWidth)
		for row := range testRows {
			if rng.IntN(3) == 0 {
				continue
			}
			for j := range testWidth {
				leaves[u][row*testWidth+j] = float32(math.Ldexp(rng.Float64()-0.5, rng.IntN(60)-30))
			}
		}
	}
	return leaves
}

// fill writes a task's values into p as a dense and as a row-sparse partial.
func fill(p *round.Partial, values []float32) {
	copy(p.F32, values)
	for i, v := range values {
		p.F64[i] = float64(v)
	}
	for row := range testRows {
		part := values[row*testWidth : (row+1)*testWidth]
		if part[0] != 0 {
			p.Index = append(p.Index, uint32(row))
			p.Values = append(p.Values, part...)
		}
	}
}

var testShape = round.Shape{F64: testRows * testWidth, F32: testRows * testWidth, Rows: testRows, Width: testWidth}

func denseRows(p *round.Partial) []float32 {
	dense := make([]float32, testRows*testWidth)
	for i, row := range p.Index {
		copy(dense[int(row)*testWidth:], p.Values[i*testWidth:(i+1)*testWidth])
	}
	return dense
}

func TestTreeAddsAlongThePinnedTreeWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 33).Draw(t, "units")
		leaves := drawTasks(t, units)
		want := slowSum(leaves)
		var tree Tree
		tree.Reset(units, testShape)
		for _, u := range rapid.Permutation(seq(units)).Draw(t, "order") {
			p := tree.Partial()
			fill(p, leaves[u])
			if used, err := tree.Put(0, u, p); err != nil || !used {
				t.Fatalf("unit %d: used %v, error %v", u, used, err)
			}
		}
		checkRoot(t, &tree, want)
	})
}

// TestTreeDropsLentMemory: partials of lent memory give the same sums, and none of their memory is in what the
// tree gives out for the next round. Each message is given back once, and not while a sum reads it.
func TestTreeDropsLentMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 33).Draw(t, "units")
		shape := testShape
		if rapid.Bool().Draw(t, "dense") {
			shape.Rows, shape.Width = 0, 0
		}
		leaves := drawTasks(t, units)
		var tree Tree
		lent, free := make(map[*float32]bool), make(map[*byte]bool)
		tree.Free = func(message []byte) {
			if free[&message[0]] || len(free) > len(lent) {
				t.Fatal("memory is given back twice")
			}
			free[&message[0]] = true
			clear(num.Float32s(message))
		}
		for range 3 {
			tree.Reset(units, shape)
			if len(free) != len(lent) {
				t.Fatalf("%d of %d messages were given back", len(free), len(lent))
			}
			for _, u := range rapid.Permutation(seq(units)).Draw(t, "order") {
				p := tree.Partial()
				if rapid.Bool().Draw(t, "lent") {
					tree.Release(p)
					p = &round.Partial{}
					p.Reset(shape)
					p.Lent, p.Message = true, num.Bytes32(p.F32)
				} else if lent[&p.F32[0]] {
					t.Fatal("lent memory comes back")
				}
				fill(p, leaves[u])
				if shape.Rows == 0 {
					p.Index, p.Values, p.Width = nil, nil, 0
				}
				if p.Lent {
					lent[&p.F32[0]] = true
				}
				if used, err := tree.Put(0, u, p); err != nil || !used {
					t.Fatalf("unit %d: used %v, error %v", u, used, err)
				}
			}
			if got := tree.Root().F32; !slices.Equal(got, slowSum(leaves)) {
				t.Fatalf("the sum is %v, want %v", got, slowSum(leaves))
			}
		}
	})
}

// later are rows that are copied when they are needed.
type later struct{ values []float32 }

func (l later) Compute(dst []float32, from int) { copy(dst, l.values[from*testWidth:][:len(dst)]) }

// TestTreePutUnit holds sums of up to 16 tasks at once to the pinned tree, of rows that are
// there and rows that are computed later.
func TestTreePutTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 50).Draw(t, "units")
		leaves := drawTasks(t, units)
		want := slowSum(leaves)
		var tree Tree
		for range 2 { // the second time with the memory of the first
			tree.Reset(units, testShape)
			for _, u := range rapid.Permutation(seq(units)).Draw(t, "order") {
				p := tree.Partial()
				fill(p, leaves[u])
				if units > 1 && rapid.Bool().Draw(t, "later") {
					p.Later, p.Values = later{p.Values}, nil
				}
				if err := tree.PutTask(u, p); err != nil {
					t.Fatalf("unit %d: %v", u, err)
				}
			}
			checkRoot(t, &tree, want)
		}
	})
}

// TestTreeTakesInnerNodes splits the tasks among workers that send inner nodes,
// and repeats some messages: each node is filled once.
func TestTreeTakesInnerNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := 1 << rapid.IntRange(0, 5).Draw(t, "log2 units")
		leaves := drawTasks(t, units)
		owners := rapid.SliceOfN(rapid.IntRange(0, 2), units, units).Draw(t, "owners")
		var leader Tree
		leader.Reset(units, testShape)
		for _, worker := range []int{2, 0, 1, 0} { // worker 0 says all twice
			var own Tree
			own.Reset(units, testShape)
			for u := range units {
				if owners[u] == worker {
					p := own.Partial()
					fill(p, leaves[u])
					own.Put(0, u, p)
				}
			}
			own.Nodes(func(level, i int, p *round.Partial) {
				q := leader.Partial()
				q.F64 = append(q.F64[:0], p.F64...)
				q.F32 = append(q.F32[:0], p.F32...)
				q.Index = append(q.Index, p.Index...)
				q.Values = append(q.Values, p.Values...)
				if _, err := leader.Put(level, i, q); err != nil {
					t.Fatal(err)
				}
			})
		}
		checkRoot(t, &leader, slowSum(leaves))
	})
}

func checkRoot(t *rapid.T, tree *Tree, want []float32) {
	root := tree.Root()
	if root == nil {
		t.Fatal("no root though every unit is in")
	}
	if diff := cmp.Diff(want, root.F32); diff != "" {
		t.Fatalf("dense sum (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, denseRows(root)); diff != "" {
		t.Fatalf("row-sparse sum (-want +got):\n%s", diff)
	}
}

func seq(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

func TestTreeRefusesWhatDoesNotFit(t *testing.T) {
	var tree Tree
	tree.Reset(4, round.Shape{F64: 2})
	if _, err := tree.Put(0, 4, tree.Partial()); err == nil {
		t.Error("a node outside the tree was taken")
	}
	if _, err := tree.Put(3, 0, tree.Partial()); err == nil {
		t.Error("a level outside the tree was taken")
	}
	if _, err := tree.Put(0, 0, &round.Partial{F64: make([]float64, 3)}); err == nil {
		t.Error("a partial of another shape was taken")
	}
	tree.Reset(4, testShape)
	if err := tree.PutTask(4, tree.Partial()); err == nil {
		t.Error("a unit outside the tree was taken")
	}
	if err := tree.PutTask(0, &round.Partial{F64: make([]float64, 3)}); err == nil {
		t.Error("a unit's partial of another shape was taken")
	}
	tree.Reset(4, round.Shape{F64: 2})
	used, _ := tree.Put(0, 1, tree.Partial())
	again, _ := tree.Put(0, 1, tree.Partial())
	if !used || again {
		t.Errorf("first answer used %v, second used %v; want true, false", used, again)
	}
}

func TestTreeDoesNotAllocateInSteadyState(t *testing.T) {
	steadyState(t, func(tree *Tree, u int, p *round.Partial) { tree.Put(0, u, p) })
	steadyState(t, func(tree *Tree, u int, p *round.Partial) { tree.PutTask(u, p) })
}

func steadyState(t *testing.T, put func(tree *Tree, u int, p *round.Partial)) {
	var tree Tree
	round := func() {
		tree.Reset(8, testShape)
		for u := range 8 {
			p := tree.Partial()
			for row := range testRows {
				p.Index = append(p.Index, uint32(row))
				p.Values = append(p.Values, 1, 2, 3)
			}
			put(&tree, u, p)
		}
	}
	round()
	round()
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}

// TestTreeKeepsRoomForSumsApart: however many rounds there are, partials of tasks come to have no
// room for sums. Tasks have one row each, sums all of them.
func TestTreeKeepsRoomForSumsApart(t *testing.T) {
	const units = 64
	for name, put := range map[string]func(tree *Tree, u int, p *round.Partial){
		"Put":     func(tree *Tree, u int, p *round.Partial) { tree.Put(0, u, p) },
		"PutUnit": func(tree *Tree, u int, p *round.Partial) { tree.PutTask(u, p) },
	} {
		var tree Tree
		for range 3 * units {
			tree.Reset(units, round.Shape{Rows: units, Width: 32})
			for u := range units {
				p := tree.Partial()
				p.Index = append(p.Index, uint32(u))
				p.Values = append(p.Values, make([]float32, 32)...)
				put(&tree, u, p)
			}
		}
		rows := 0
		for _, p := range append(tree.spare, tree.sums...) {
			rows += cap(p.Index)
		}
		if most := 6 * units; rows > most {
			t.Errorf("%s: spare partials have room for %d rows, want at most %d", name, rows, most)
		}
	}
}

func TestCanonicalWritesNegativeZeroAsZero(t *testing.T) {
	negative := math.Copysign(0, -1)
	p := &round.Partial{F64: []float64{negative}, F32: []float32{float32(negative)}, Values: []float32{float32(negative)}}
	if err := RunTask(p, &filled{Partial: *p}, round.Task{Of: 1}, nil, nil, NewDerivedCache(0), nil); err != nil {
		t.Fatal(err)
	}
	if math.Signbit(p.F64[0]) || math.Signbit(float64(p.F32[0])) || math.Signbit(float64(p.Values[0])) {
		t.Error("-0 was kept in a partial")
	}
}

// TestTreeAddsIntegers: int32 values are summed exactly, also at the bounds of int32 and where a partial has rows.
func TestTreeAddsIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 33).Draw(t, "units")
		shape := round.Shape{F64: 1, I32: rapid.IntRange(1, 40).Draw(t, "numbers")}
		if rapid.Bool().Draw(t, "rows") {
			shape.Rows, shape.Width = testRows, testWidth
		}
		want := make([]int32, shape.I32)
		var tree Tree
		for range 2 { // what a round leaves behind changes nothing
			tree.Reset(units, shape)
			clear(want)
			for u := range units {
				p := tree.Partial()
				for i := range p.I32 {
					x := math.MaxInt32 - want[i]
					if u < units-1 {
						x = rapid.Int32Range(max(0, want[i])-math.MaxInt32, math.MaxInt32-max(0, want[i])).Draw(t, "x") / 64
					}
					p.I32[i] += x
					want[i] += x
				}
				if err := tree.PutTask(u, p); err != nil {
					t.Fatal(err)
				}
			}
			if got := tree.Root().I32; !slices.Equal(got, want) {
				t.Fatalf("sums %v, want %v", got, want)
			}
		}
	})
}
