package forest

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// TestNotes: a sample has the notes of its rows, tree after tree, and none where the
// family has none.
func TestNotes(t *testing.T) {
	p := makeProblem(5, 60, 3, 2, 1)
	d := p.data(4, false, dataset.Split{})
	f := families["two"]
	for _, note := range []func([]float32) float64{nil, func(label []float32) float64 {
		return 3*float64(label[0]) - float64(label[1])
	}} {
		f.RowValue = note
		k := newKernel(f, smallConfig(), 1, d)
		tab, err := k.trainingTable(round.Task{Of: 1, Op: OpGrow, Roles: dataset.Train}, d)
		if err != nil {
			t.Fatal(err)
		}
		g := k.newGrower()
		for tree := range uint32(3) {
			if _, err := g.grow(t.Context(), tab, tree); err != nil {
				t.Fatal(err)
			}
			if note == nil {
				if len(g.sample.RowValues) != 0 {
					t.Errorf("%d notes without a Note", len(g.sample.RowValues))
				}
				continue
			}
			if len(g.sample.RowValues) != len(g.sample.Weight) {
				t.Fatalf("%d notes of %d rows", len(g.sample.RowValues), len(g.sample.Weight))
			}
			for row, got := range g.sample.RowValues {
				if want := note(g.sample.Label(uint32(row))); got != want {
					t.Fatalf("tree %d: the note of row %d is %v, want %v", tree, row, got, want)
				}
			}
		}
	}
}
