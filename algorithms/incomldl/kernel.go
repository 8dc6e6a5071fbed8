package incomldl

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rounds, and their variable.
const (
	opGram uint8 = 1 // XᵀX (a triangle) and the number of samples
	opStep uint8 = 2 // XᵀM: columns×labels

	varTarget = 1 // ρ(H - G), columns×labels
)

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	columns simplex.Columns
	labels  int
	rho     float64
}

// scratch is the working memory of a lane.
type scratch struct {
	unit    round.Task
	scaling scaling.Scratch
	row     []float64 // columns
	a, b, m []float64 // labels
	order   []int     // labels
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	vector := func() []float64 { return make([]float64, k.labels) }
	return &scratch{row: make([]float64, k.columns.Count()), a: vector(), b: vector(), m: vector(),
		order: make([]int, k.labels)}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	if scaling.Run(dst, &s.unit, d, v, &s.scaling) {
		return nil
	}
	var target []float64
	switch u.Op {
	case opGram:
	case opStep:
		target = num.Float64s(v.Get(varTarget))
	default:
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	scale := scaling.Find(v)
	for _, ref := range s.unit.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		k.columns.Read(s.row, rows, pos, &scale)
		if u.Op == opGram {
			n := len(dst.F64) - 1
			simplex.AddGram(dst.F64[:n], s.row, 1)
			dst.F64[n]++
			continue
		}
		k.step(s, rows.Label(pos), target)
		simplex.AddOuter(dst.F64, s.row, s.m, 1)
	}
	return nil
}

// step sets s.m to a sample's row of M: it minimises Σ_known (m - d)²/2 + ρ/2 ‖m - b/ρ‖², where b/ρ is x(H - G).
func (k *kernel) step(s *scratch, label []float32, target []float64) {
	simplex.Scores(s.b, s.row, target)
	for c, d := range label {
		if s.a[c] = k.rho; d == d {
			s.a[c]++
			s.b[c] += float64(d)
		}
	}
	simplex.Weighted(s.m, s.a, s.b, s.order)
}
