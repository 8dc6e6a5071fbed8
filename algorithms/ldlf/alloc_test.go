package ldlf

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestAllocations: in steady state neither the kernel's Run nor the trainer's Next
// and Fold allocates, in any phase of training.
func TestAllocations(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeProblem(4, 300, 7, 3, 0.5)
	for name, c := range variants() {
		for _, sparse := range []bool{false, true} {
			j := jobOf(c, 3)
			m, d := p.data(4, sparse, j.Split)
			tr, k := start(t, j, m)
			s := k.NewScratch()
			seen := [gradient.PhaseChoice + 1]bool{}
			for range 60 {
				if tr.Phase == gradient.PhaseDone {
					break
				}
				allocs := allocationsOfRound(t, tr, k, d, s)
				if seen[tr.Phase] && allocs > 0 {
					t.Errorf("%s (sparse %v): %v allocations in a round before phase %d", name, sparse, allocs, tr.Phase)
				}
				seen[tr.Phase] = tr.Step > 10 // every buffer has its size
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
	sum.Reset(r.Reduce().Shape)
	part.Reset(r.Reduce().Shape)
	for id := range r.Tasks { // once to size every buffer, and for the sum
		part.Reset(r.Reduce().Shape)
		u := r.Task(id)
		if err := k.Run(&part, u, d, r.Vars, nil, s); err != nil {
			t.Fatal(err)
		}
		add(&sum, &part, r.Reduce().Shape)
	}
	allocs := testing.AllocsPerRun(1, func() {
		for id := range r.Tasks {
			part.Reset(r.Reduce().Shape)
			if err := k.Run(&part, r.Task(id), d, r.Vars, nil, s); err != nil {
				t.Fatal(err)
			}
		}
	})
	before := snapshot(tr)
	f32, f64 := vectorsOf(tr)
	allocs += testing.AllocsPerRun(1, func() {
		before.putBack(tr, f32, f64)
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

// copied is a copy of a trainer's state.
type copied struct {
	trainer   trainer
	descent   gradient.Descent
	fit       scaling.Fit
	optimizer gradient.Optimizer
	stopping  gradient.Stopping
	vectors   []gradient.Vector
	float32s  [][]float32
	float64s  [][]float64
}

func snapshot(tr *trainer) *copied {
	c := &copied{trainer: *tr, descent: *tr.Descent, fit: *tr.Fit, optimizer: *tr.Optimizer, stopping: *tr.Stopping,
		vectors: slices.Clone(tr.Vectors)}
	f32, f64 := vectorsOf(tr)
	for _, v := range f32 {
		c.float32s = append(c.float32s, slices.Clone(v))
	}
	for _, v := range f64 {
		c.float64s = append(c.float64s, slices.Clone(v))
	}
	return c
}

// vectorsOf lists the vectors of a trainer's state.
func vectorsOf(tr *trainer) (f32 [][]float32, f64 [][]float64) {
	f32 = append(f32, tr.Optimizer.First, tr.Optimizer.Second)
	for _, vectors := range [][]gradient.Vector{tr.Vectors, tr.Stopping.Best.Vectors, tr.Stopping.Reference.Vectors} {
		for _, v := range vectors {
			f32 = append(f32, v.Data)
		}
	}
	x := tr.Fit.Values()
	return f32, append(f64, x.Shift, x.Scale)
}

func (c *copied) putBack(tr *trainer, f32 [][]float32, f64 [][]float64) {
	*tr, *tr.Descent, *tr.Fit, *tr.Optimizer, *tr.Stopping = c.trainer, c.descent, c.fit, c.optimizer, c.stopping
	copy(tr.Vectors, c.vectors)
	for i, v := range c.float32s {
		copy(f32[i], v)
	}
	for i, v := range c.float64s {
		copy(f64[i], v)
	}
}
