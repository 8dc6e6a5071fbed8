package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestOrderedBits: bits ascend with the values, and both zeros are one.
func TestOrderedBits(t *testing.T) {
	v := []float32{-math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 1, 2,
		math.MaxFloat32}
	for i := 1; i < len(v); i++ {
		if orderedBits(v[i-1]) >= orderedBits(v[i]) || clamp(v[i-1]) >= clamp(v[i]) {
			t.Errorf("%v is not below %v", v[i-1], v[i])
		}
	}
	negative := float32(math.Copysign(0, -1))
	if orderedBits(negative) != zeroBits || orderedBits(0) != zeroBits || clamp(negative) != zeroBits {
		t.Error("zeros have other bits")
	}
	if clamp(float32(math.NaN())) >= leafLimit || clamp(math.Float32frombits(0x7fffffff)) >= leafLimit {
		t.Error("NaN passes a leaf")
	}
}

// TestSortKeys: counting and comparing give the same order, whatever the number.
func TestSortKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, minRadixKeys - 1, minRadixKeys, 1000, 5000, minSplitKeys}).Draw(t, "n")
		distinct := rapid.SampledFrom([]uint64{1, 2, 100, 1 << 20}).Draw(t, "distinct")
		s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "test"), 0, 0)
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = makeKey(float32(s.Uint64n(distinct))-float32(distinct/2), uint32(i))
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		for range 2 {
			if got, _ := sortKeys(keys, make([]uint64, n)); !slices.Equal(got, want) {
				t.Fatal("keys are not sorted")
			}
		}
	})
}

// TestColumnBlocks: columns that do not fit one block of keys are sorted as well.
func TestColumnBlocks(t *testing.T) {
	c := smallConfig()
	for _, share := range []float64{0.8, 0.65, 0.3} { // dense columns, both kinds, sparse columns
		p := makeProblem(1, 600, 7, 2, share)
		for _, sparse := range []bool{false, true} {
			d := p.data(4, sparse, dataset.Split{})
			tab, err := newTable(&c, d, d.Select(0, 4, dataset.Train))
			if err != nil {
				t.Fatal(err)
			}
			for budget := range 3 {
				var parts columns
				parts.sort(tab, tab.allRows(), &sorter{budget: budget*700 + 1})
				if !slices.Equal(parts.entries, tab.columns.entries) {
					t.Errorf("share %v, sparse %v: a budget of %d keys gives other entries", share, sparse, budget*700)
				}
			}
		}
	}
}

// TestWideColumns holds the columns of more features than are transposed at a time against sorted values.
func TestWideColumns(t *testing.T) {
	p := makeProblem(2, 150, 2*tile+9, 2, 0.7)
	for _, sparse := range []bool{false, true} {
		d := p.data(4, sparse, dataset.Split{})
		tab, err := NewTable(d, d.Select(0, 4, dataset.Train))
		if err != nil {
			t.Fatal(err)
		}
		for c := range p.features {
			var want []uint64
			for i := range p.n {
				if x := p.row(i)[c]; x != 0 || !tab.sparse[c] {
					want = append(want, makeKey(x, uint32(i)))
				}
			}
			slices.Sort(want)
			entries := make([]uint32, len(want))
			writeEntries(entries, want)
			if !slices.Equal(tab.Column(c), entries) {
				t.Fatalf("sparse %v: column %d has other entries", sparse, c)
			}
		}
	}
}

// TestXLogX holds the table against package math.
func TestXLogX(t *testing.T) {
	for n, x := range xlogx(5000) {
		want := 0.0
		if n > 0 {
			want = float64(n) * math.Log(float64(n)) * nat
		}
		if math.Abs(float64(x)-want) > 1 {
			t.Fatalf("xlogx(%d) is %d, want %.1f", n, x, want)
		}
	}
	if most := maxDraws * math.Log(maxDraws) * nat; most >= 1<<62 {
		t.Errorf("xlogx(maxDraws) is %.3g, sums of it overflow", most)
	}
}
