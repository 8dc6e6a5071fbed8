package ldlf

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// TestDraw holds the mini-batches against design section 8.3, written out: at
// position step·b_u + i of its walk a unit takes permutation (pass, u) of its rows.
func TestDraw(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		p := permutations{num.NewKey(rapid.Uint64().Draw(t, "seed"), "ldlf/batch"), rapid.IntRange(1, 300).Draw(t, "batch")}
		of := 1 << rapid.IntRange(0, 4).Draw(t, "units")
		u := round.Unit{ID: rapid.IntRange(0, of-1).Draw(t, "unit"), Of: of}
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		share := (u.ID+1)*p.batch/of - u.ID*p.batch/of
		for step := range uint64(20) {
			var want []uint32
			for i := range uint64(share) {
				if n == 0 {
					break
				}
				at := step*uint64(share) + i
				perm := num.NewPermutation(p.key, at/uint64(n), uint32(u.ID), uint64(n))
				want = append(want, uint32(perm.At(at%uint64(n))))
			}
			if got := p.draw(nil, &u, n, step); !slices.Equal(got, want) {
				t.Fatalf("step %d: drew %v, want %v", step, got, want)
			}
		}
	})
}

// TestDrawPasses: every row comes once before any comes again.
func TestDrawPasses(t *testing.T) {
	p := permutations{num.NewKey(1, "ldlf/batch"), 12}
	u := round.Unit{Of: 1}
	const n = 30
	var walk []uint32
	for step := range uint64(20) {
		walk = p.draw(walk, &u, n, step)
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
		p := permutations{num.NewKey(rapid.Uint64().Draw(t, "seed"), "ldlf/batch"), rapid.IntRange(1, 90).Draw(t, "batch")}
		of := 1 << rapid.IntRange(0, 3).Draw(t, "units")
		from := rapid.Uint64Range(0, 50).Draw(t, "from")
		u := round.Unit{ID: rapid.IntRange(0, of-1).Draw(t, "unit"), Of: of, Steps: [2]uint64{from, from + rapid.Uint64Range(0, 9).Draw(t, "steps")}}
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		drawn := struct{ sampler }{p} // which counts nothing by itself
		rows, weights, _ := window(nil, nil, nil, p, &u, n)
		wantRows, wantWeights, _ := window(nil, nil, nil, drawn, &u, n)
		if !slices.Equal(rows, wantRows) || !slices.Equal(weights, wantWeights) {
			t.Fatalf("rows %v weigh %v, want %v and %v", rows, weights, wantRows, wantWeights)
		}
	})
}

// TestWindow: distinct rows, ascending, with their counts.
func TestWindow(t *testing.T) {
	p := permutations{num.NewKey(1, "ldlf/batch"), 7}
	u := round.Unit{Of: 1, Steps: [2]uint64{3, 9}}
	counts := map[uint32]float32{}
	for step := u.Steps[0]; step < u.Steps[1]; step++ {
		for _, row := range p.draw(nil, &u, 25, step) {
			counts[row]++
		}
	}
	rows, weights, _ := window(nil, nil, nil, p, &u, 25)
	if !slices.IsSorted(rows) || len(rows) != len(counts) {
		t.Fatalf("%d rows %v, want %d ascending", len(rows), rows, len(counts))
	}
	for i, row := range rows {
		if weights[i] != counts[row] {
			t.Errorf("row %d counts %v, want %v", row, weights[i], counts[row])
		}
	}
}
