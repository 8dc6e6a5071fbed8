package saiis

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// inputs are those of one row that are not 0: scaled features, and the 1 of a bias.
type inputs struct {
	scale scaling.Values
	bias  bool

	columns []uint32 // ascending
	x       []float64
	sum     float64 // x#: Σ |x|
}

// begin readies inputs for the rows of a round.
func (in *inputs) begin(scale scaling.Values, bias bool) { in.scale, in.bias = scale, bias }

// read sets the inputs to those of a row.
func (in *inputs) read(rows *dataset.Rows, pos int) {
	in.columns, in.x, in.sum = in.columns[:0], in.x[:0], 0
	if rows.Sparse {
		in.sparse(rows.NonZeros(pos))
	} else {
		for column, v := range rows.Dense(pos) {
			in.feature(column, v)
		}
	}
	if in.bias {
		in.add(rows.Features, 1)
	}
}

// sparse adds the features of a sparse row; those that the row lacks are not 0 any more once they are
// shifted.
func (in *inputs) sparse(columns []uint32, values []float32) {
	next := 0
	for i, column := range columns {
		for ; !in.scale.None() && next < int(column); next++ {
			in.feature(next, 0)
		}
		in.feature(int(column), values[i])
		next = int(column) + 1
	}
	for ; next < len(in.scale.Shift); next++ {
		in.feature(next, 0)
	}
}

// feature adds a feature as the row has it.
func (in *inputs) feature(column int, v float32) {
	x := float64(v)
	if !in.scale.None() {
		x = (x - in.scale.Shift[column]) * in.scale.Scale[column]
	}
	in.add(column, x)
}

func (in *inputs) add(column int, x float64) {
	if x == 0 {
		return
	}
	in.columns, in.x = append(in.columns, uint32(column)), append(in.x, x)
	in.sum += math.Abs(x)
}
