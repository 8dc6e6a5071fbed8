package ldlf

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// TestAllocations: in steady state neither the kernel's Run nor the trainer's Next
// and Fold allocates, in any phase of training.
func TestAllocations(t *testing.T) {
	p := makeProblem(4, 300, 7, 3, 0.5)
	for name, c := range variants() {
		for _, sparse := range []bool{false, true} {
			j := jobOf(c, 3)
			m, d := p.data(4, sparse, j.Split)
			tr, k := start(t, j, m)
			s := k.NewScratch()
			seen := [phases]bool{}
			for range 60 {
				if tr.phase == phaseDone {
					break
				}
				allocs := allocationsOfRound(t, tr, k, d, s)
				if seen[tr.phase] && allocs > 0 {
					t.Errorf("%s (sparse %v): %v allocations in a round after %s", name, sparse, allocs, tr.phase)
				}
				seen[tr.phase] = tr.step > 10 // every buffer has its size
			}
		}
	}
}

// allocationsOfRound runs the trainer's next round and counts what Run, Next and
// Fold allocate. AllocsPerRun calls its function twice, so both halves are put back
// to where they were.
func allocationsOfRound(t *testing.T, tr *trainer, k *kernel, d *dataset.Data, s any) float64 {
	r, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	var sum, part round.Partial
	sum.Reset(r.Shape)
	part.Reset(r.Shape)
	for id := range r.Units { // once to size every buffer, and for the sum
		part.Reset(r.Shape)
		u := r.Unit(id)
		if err := k.Run(&part, u, d, r.Vars, nil, s); err != nil {
			t.Fatal(err)
		}
		add(&sum, &part, r.Shape)
	}
	allocs := testing.AllocsPerRun(1, func() {
		for id := range r.Units {
			part.Reset(r.Shape)
			if err := k.Run(&part, r.Unit(id), d, r.Vars, nil, s); err != nil {
				t.Fatal(err)
			}
		}
	})
	before := snapshot(tr)
	allocs += testing.AllocsPerRun(1, func() {
		before.putBack(tr)
		if _, err := tr.Next(); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
			t.Fatal(err)
		}
	})
	return allocs
}

// add sums dense parts, and keeps one unit's of sparse ones: enough to fold.
func add(sum, part *round.Partial, shape round.Shape) {
	for i, v := range part.F64 {
		sum.F64[i] += v
	}
	for i, v := range part.F32 {
		sum.F32[i] += v
	}
	if shape.Rows > 0 {
		sum.Index = append(sum.Index[:0], part.Index...)
		sum.Values = append(sum.Values[:0], part.Values...)
	}
}

// kept is a copy of a trainer's state.
type copied struct {
	state
	vectors [][]float32
	input   []float64
}

// vectorsOf lists what putBack copies back.
func vectorsOf(tr *trainer) [][]float32 {
	return [][]float32{tr.theta, tr.first, tr.second, tr.q, tr.best.theta, tr.best.q}
}

func snapshot(tr *trainer) *copied {
	c := &copied{state: *tr.state, input: append([]float64{}, tr.input...)}
	for _, v := range vectorsOf(tr) {
		c.vectors = append(c.vectors, append([]float32{}, v...))
	}
	return c
}

func (c *copied) putBack(tr *trainer) {
	*tr.state = c.state
	copy(tr.input, c.input)
	for i, v := range vectorsOf(tr) {
		copy(v, c.vectors[i])
	}
}
