package scaling

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of rounds (Round.Op). All are float64 sums over the training rows.
const (
	opSums     uint8 = iota + 200 // sums of features
	opSquares                     // squared deviations from the means
	opExtremes                    // least and greatest values
)

// The values that rounds carry (Var.ID).
const (
	varValues  uint16 = iota + 0xfe00 // shifts, then scales (float64)
	varMeans                          // means of features (float64)
	varColumns                        // range [from, to) of columns (float64); version: from
)

// Scratch is the working memory of one lane.
type Scratch struct{ counts []uint32 }

// zero returns n counts of 0.
func (s *Scratch) zero(n int) []uint32 {
	s.counts = slices.Grow(s.counts[:0], n)[:n]
	clear(s.counts)
	return s.counts
}

// Run computes a unit of a round of Fit's into dst; it reports false, and does nothing, where
// the round is another's.
func Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, s *Scratch) bool {
	switch u.Op {
	case opSums:
		sums(dst, u, d)
	case opSquares:
		squares(dst, u, d, num.Float64s(v.Get(varMeans)), s)
	case opExtremes:
		extremes(dst, u, d, num.Float64s(v.Get(varColumns)), s)
	default:
		return false
	}
	return true
}

// sums adds up the unit's rows: F64 holds the number of rows and Σ x_i.
func sums(dst *round.Partial, u *round.Task, d *dataset.Data) {
	total := dst.F64[1:]
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		dst.F64[0]++
		if rows.Sparse {
			columns, values := rows.NonZeros(pos)
			for i, c := range columns {
				total[c] += float64(values[i])
			}
			continue
		}
		for i, v := range rows.Dense(pos) {
			total[i] += float64(v)
		}
	}
}

// squares adds up squared deviations: F64 holds the number of rows and
// Σ (x_i - mean_i)². A sparse column's zeros add (zeros)·mean_i² at the end.
func squares(dst *round.Partial, u *round.Task, d *dataset.Data, mean []float64, s *Scratch) {
	total, present := dst.F64[1:], s.zero(len(mean))
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		dst.F64[0]++
		if !rows.Sparse {
			for i, v := range rows.Dense(pos) {
				total[i] += square(float64(v) - mean[i])
			}
			continue
		}
		columns, values := rows.NonZeros(pos)
		for i, c := range columns {
			total[c] += square(float64(values[i]) - mean[c])
			present[c]++
		}
	}
	if d.Manifest.Sparse {
		for c, n := range present {
			total[c] += float64((dst.F64[0] - float64(n)) * square(mean[c]))
		}
	}
}

func square(x float64) float64 { return float64(x * x) }

// extremes finds the least and the greatest value of the columns [from, to). These
// are no sums, so each unit writes to its own slots and leaves the others zero:
// F64 holds a number of rows for each unit, then for each unit a (least, greatest)
// pair for each column.
func extremes(dst *round.Partial, u *round.Task, d *dataset.Data, columns []float64, s *Scratch) {
	from, to := int(columns[0]), int(columns[1])
	refs := u.Rows(d)
	dst.F64[u.ID] = float64(len(refs))
	if len(refs) == 0 {
		return
	}
	n := to - from
	slots := dst.F64[u.Of+2*n*u.ID:][:2*n]
	for i := range n {
		slots[2*i], slots[2*i+1] = math.Inf(1), math.Inf(-1)
	}
	if d.Manifest.Sparse {
		sparseExtremes(slots, refs, d, from, s)
		return
	}
	for _, ref := range refs {
		x := d.Shard(int(ref.Shard)).Dense(int(ref.Pos))
		for i, v := range x[from:to] {
			widen(slots, i, v)
		}
	}
}

// sparseExtremes widens the pairs of the columns from first on; a column with
// fewer non-zeros than rows has a zero.
func sparseExtremes(slots []float64, refs []dataset.RowRef, d *dataset.Data, first int, s *Scratch) {
	n := len(slots) / 2
	present := s.zero(n)
	for _, ref := range refs {
		columns, values := d.Shard(int(ref.Shard)).NonZeros(int(ref.Pos))
		for k, c := range columns {
			if i := int(c) - first; i >= 0 && i < n {
				widen(slots, i, values[k])
				present[i]++
			}
		}
	}
	for i, count := range present {
		if int(count) < len(refs) {
			widen(slots, i, 0)
		}
	}
}

func widen(slots []float64, i int, v float32) {
	slots[2*i], slots[2*i+1] = min(slots[2*i], float64(v)), max(slots[2*i+1], float64(v))
}
