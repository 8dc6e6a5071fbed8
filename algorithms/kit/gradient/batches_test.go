package gradient

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestDraw holds the mini-batches against design section 8.3, written out: at
// position step·b_u + i of its walk a unit takes permutation (pass, u) of its rows.
func TestDraw(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		p := Batches{num.NewKey(rapid.Uint64().Draw(t, "seed"), "test/batch"), rapid.IntRange(1, 300).Draw(t, "batch")}
		of := 1 << rapid.IntRange(0, 4).Draw(t, "units")
		u := round.Task{ID: rapid.IntRange(0, of-1).Draw(t, "unit"), Of: of}
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		share := (u.ID+1)*p.Size/of - u.ID*p.Size/of
		for step := range uint64(20) {
			var want []uint32
			for i := range uint64(share) {
				if n == 0 {
					break
				}
				at := step*uint64(share) + i
				perm := num.NewPermutation(p.Key, at/uint64(n), uint32(u.ID), uint64(n))
				want = append(want, uint32(perm.At(at%uint64(n))))
			}
			if got := p.Draw(nil, &u, n, step); !slices.Equal(got, want) {
				t.Fatalf("step %d: drew %v, want %v", step, got, want)
			}
		}
	})
}

// TestDrawPasses: every row comes once before any comes again.
func TestDrawPasses(t *testing.T) {
	p := Batches{num.NewKey(1, "test/batch"), 12}
	u := round.Task{Of: 1}
	const n = 30
	var walk []uint32
	for step := range uint64(20) {
		walk = p.Draw(walk, &u, n, step)
	}
	for from := 0; from+n <= len(walk); from += n {
		pass := slices.Clone(walk[from : from+n])
		slices.Sort(pass)
		for i, row := range pass {
			if int(row) != i {
				t.Fatalf("pass %d draws %v", from/n, pass)
			}
		}
	}
	if slices.Equal(walk[:n], walk[n:2*n]) {
		t.Error("two passes have the same order")
	}
}

// TestWindowCounts holds the counts of whole and cut passes against the draws.
func TestWindowCounts(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		p := Batches{num.NewKey(rapid.Uint64().Draw(t, "seed"), "test/batch"), rapid.IntRange(1, 90).Draw(t, "batch")}
		of := 1 << rapid.IntRange(0, 3).Draw(t, "units")
		from := rapid.Uint64Range(0, 50).Draw(t, "from")
		u := round.Task{ID: rapid.IntRange(0, of-1).Draw(t, "unit"), Of: of,
			Steps: [2]uint64{from, from + rapid.Uint64Range(0, 9).Draw(t, "steps")}}
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		drawn := struct{ Sampler }{p} // which counts nothing by itself
		var got, want Window
		got.Count(p, &u, n)
		want.Count(drawn, &u, n)
		if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Weights, want.Weights) {
			t.Fatalf("rows %v weigh %v, want %v and %v", got.Rows, got.Weights, want.Rows, want.Weights)
		}
	})
}

// TestWindow: distinct rows, ascending, with their counts.
func TestWindow(t *testing.T) {
	p := Batches{num.NewKey(1, "test/batch"), 7}
	u := round.Task{Of: 1, Steps: [2]uint64{3, 9}}
	counts := map[uint32]float32{}
	for step := u.Steps[0]; step < u.Steps[1]; step++ {
		for _, row := range p.Draw(nil, &u, 25, step) {
			counts[row]++
		}
	}
	var w Window
	w.Count(p, &u, 25)
	if !slices.IsSorted(w.Rows) || len(w.Rows) != len(counts) {
		t.Fatalf("%d rows %v, want %d ascending", len(w.Rows), w.Rows, len(counts))
	}
	for i, row := range w.Rows {
		if w.Weights[i] != counts[row] {
			t.Errorf("row %d counts %v, want %v", row, w.Weights[i], counts[row])
		}
	}
}
