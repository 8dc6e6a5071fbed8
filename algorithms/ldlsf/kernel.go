package ldlsf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// opProducts sums the products of features and labels, weighted.
const opProducts uint8 = 1

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct{ features, labels int }

// scratch is the working memory of a lane.
type scratch struct {
	unit    round.Task
	scaling scaling.Scratch
	row     []float64 // features+1: scaled features, and a 1
	degrees []float64 // labels
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{row: make([]float64, k.features+1), degrees: make([]float64, k.labels)}
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
	if u.Op != opProducts {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	scale, columns := scaling.Find(v), simplex.Columns{Features: k.features, Bias: true}
	for _, ref := range s.unit.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		columns.Read(s.row, rows, pos, &scale)
		maxent.Degrees(s.degrees, rows.Label(pos))
		k.add(dst.F64, s.row, s.degrees, rows.WeightOf(pos))
	}
	return nil
}

// add adds the products of a row, times its weight, to sums, as productsOf reads them.
func (k *kernel) add(sums, row, degrees []float64, weight float64) {
	gram, outer := simplex.Triangle(len(row)), len(row)*len(degrees)
	simplex.AddGram(sums[:gram], row, weight)
	simplex.AddOuter(sums[gram:][:outer], row, degrees, weight)
	simplex.AddGram(sums[gram+outer:], degrees, weight)
}
