package ldlsf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opProducts sums the products of features and labels.
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
	scale := scaling.Find(v)
	for _, ref := range s.unit.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		k.read(s.row, rows, pos, &scale)
		maxent.Degrees(s.degrees, rows.Label(pos))
		k.add(dst.F64, s.row, s.degrees)
	}
	return nil
}

// read sets dst to the scaled features of a row, and a 1.
func (k *kernel) read(dst []float64, rows *dataset.Rows, pos int, scale *scaling.Values) {
	if rows.Sparse {
		clear(dst)
		columns, values := rows.NonZeros(pos)
		for i, c := range columns {
			dst[c] = float64(values[i])
		}
	} else {
		for i, x := range rows.Dense(pos) {
			dst[i] = float64(x)
		}
	}
	dst[k.features] = 1
	for i, factor := range scale.Scale {
		dst[i] = (dst[i] - scale.Shift[i]) * factor
	}
}

// add adds the products of a row to sums, as productsOf reads them.
func (k *kernel) add(sums, row, degrees []float64) {
	for i, x := range row {
		if x != 0 {
			num.AddScaled64(sums[:i+1], x, row[:i+1])
		}
		sums = sums[i+1:]
	}
	for _, x := range row {
		if x != 0 {
			num.AddScaled64(sums[:k.labels], x, degrees)
		}
		sums = sums[k.labels:]
	}
	for i, x := range degrees {
		num.AddScaled64(sums[:i+1], x, degrees[:i+1])
		sums = sums[i+1:]
	}
}
