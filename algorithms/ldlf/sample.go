package ldlf

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// sample is one row as the feature function and the trees read it. Its slices
// alias the shard: they are valid while the shard is at hand.
type sample struct {
	sparse  bool
	columns []uint32  // of a sparse row
	x       []float32 // features, or the non-zeros of a sparse row
	d       []float32 // label degrees; nil where the shard has none
}

func sampleOf(r *dataset.Rows, pos int) (s sample) {
	s.take(r, pos)
	return s
}

// take sets s to the row of r at a position.
func (s *sample) take(r *dataset.Rows, pos int) {
	*s = sample{}
	if r.Sparse {
		s.sparse = true
		s.columns, s.x = r.NonZeros(pos)
	} else {
		s.x = r.Dense(pos)
	}
	if r.Labels > 0 {
		s.d = r.Label(pos)
	}
}

// gather appends the samples at positions rows of refs to dst.
func gather(dst []sample, rows []uint32, refs []dataset.RowRef, d *dataset.Data) []sample {
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
