package ldlf

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// The scaling's rounds: sums, then squared deviations for standard scaling;
// extremes for min-max. All are float64 sums over the training rows.

// sums adds up the unit's rows: F64 holds the number of rows and Σ x_i.
func sums(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data) {
	total := dst.F64[1:]
	for _, ref := range u.Rows(d) {
		x := sampleOf(d.Shard(int(ref.Shard)), int(ref.Pos))
		dst.F64[0]++
		if x.sparse {
			for i, c := range x.columns {
				total[c] += float64(x.x[i])
			}
			continue
		}
		for i, v := range x.x {
			total[i] += float64(v)
		}
	}
}

// squares adds up squared deviations: F64 holds the number of rows and
// Σ (x_i - mean_i)². A sparse column's zeros add (zeros)·mean_i² at the end.
func squares(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data, mean []float64, s *scratch) {
	total := dst.F64[1:]
	s.counts = slices.Grow(s.counts[:0], len(mean))[:len(mean)]
	clear(s.counts)
	for _, ref := range u.Rows(d) {
		x := sampleOf(d.Shard(int(ref.Shard)), int(ref.Pos))
		dst.F64[0]++
		if !x.sparse {
			for i, v := range x.x {
				total[i] += square(float64(v) - mean[i])
			}
			continue
		}
		for i, c := range x.columns {
			total[c] += square(float64(x.x[i]) - mean[c])
			s.counts[c]++
		}
	}
	if d.Manifest.Sparse {
		for c, n := range s.counts {
			total[c] += float64((dst.F64[0] - float64(n)) * square(mean[c]))
		}
	}
}

func square(x float64) float64 { return float64(x * x) }

// extremes finds the least and the greatest value of the columns [from, to). These
// are no sums, so each unit writes to its own slots and leaves the others zero:
// F64 holds a number of rows for each unit, then for each unit a (least, greatest)
// pair for each column.
func extremes(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data, columns []float64, s *scratch) {
	from, to := int(columns[0]), int(columns[1])
	n := to - from
	refs := u.Rows(d)
	dst.F64[u.ID] = float64(len(refs))
	if len(refs) == 0 {
		return
	}
	slots := dst.F64[u.Of+2*n*u.ID:][:2*n]
	for i := range n {
		slots[2*i], slots[2*i+1] = math.Inf(1), math.Inf(-1)
	}
	s.counts = slices.Grow(s.counts[:0], n)[:n]
	clear(s.counts)
	for _, ref := range refs {
		x := sampleOf(d.Shard(int(ref.Shard)), int(ref.Pos))
		if !x.sparse {
			for i, v := range x.x[from:to] {
				widen(slots, i, float64(v))
			}
			continue
		}
		for i, c := range x.columns {
			if int(c) >= from && int(c) < to {
				widen(slots, int(c)-from, float64(x.x[i]))
				s.counts[int(c)-from]++
			}
		}
	}
	if d.Manifest.Sparse {
		for i, present := range s.counts {
			if int(present) < len(refs) {
				widen(slots, i, 0)
			}
		}
	}
}

func widen(slots []float64, i int, v float64) {
	slots[2*i], slots[2*i+1] = min(slots[2*i], v), max(slots[2*i+1], v)
}
