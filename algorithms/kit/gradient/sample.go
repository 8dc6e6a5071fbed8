package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// Sample is one row as a feature function and a loss read it. Its slices
// alias the shard: they are valid while the shard is at hand.
type Sample struct {
	Row     uint32 // the row's number in the dataset; 0 where the shard has none
	Sparse  bool
	Columns []uint32  // of a sparse row
	X       []float32 // features, or the non-zeros of a sparse row
	D       []float32 // label degrees; nil where the shard has none
	Shard   *dataset.Rows
	Pos     int // of the row in Shard, which also has its number on a scale
}

// SampleOf returns the row of r at a position.
func SampleOf(r *dataset.Rows, pos int) (s Sample) {
	s.take(r, pos)
	return s
}

// take sets s to the row of r at a position.
func (s *Sample) take(r *dataset.Rows, pos int) {
	*s = Sample{Shard: r, Pos: pos}
	if r.Sparse {
		s.Sparse = true
		s.Columns, s.X = r.NonZeros(pos)
	} else {
		s.X = r.Dense(pos)
	}
	if r.Labels > 0 {
		s.D = r.Label(pos)
	}
	if pos < len(r.Row) {
		s.Row = r.Row[pos]
	}
}

// Gather appends the samples at positions rows of refs to dst.
func Gather(dst []Sample, rows []uint32, refs []dataset.RowRef, d *dataset.Data) []Sample {
	var shard *dataset.Rows
	of := -1
	dst = slices.Grow(dst, len(rows))
	for _, row := range rows {
		ref := refs[row]
		if int(ref.Shard) != of { // asking for one takes a lock
			of = int(ref.Shard)
			shard = d.Shard(of)
		}
		dst = dst[:len(dst)+1]
		dst[len(dst)-1].take(shard, int(ref.Pos))
	}
	return dst
}
