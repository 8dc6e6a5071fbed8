package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// scaling maps a feature x_i to (x_i - shift_i)·scale_i. The zero value maps
// nothing. Values are float64, so that a column far from zero keeps its digits. What is
// called for each row takes a pointer: a copy by vectors waits for the stores of its words.
type scaling struct {
	shift, scale []float64 // features each
}

// newScaling views a vector of all shifts followed by all scales.
func newScaling(v []float64) scaling {
	n := len(v) / 2
	if n == 0 {
		return scaling{}
	}
	return scaling{shift: v[:n:n], scale: v[n:]}
}

func (x *scaling) none() bool { return x.scale == nil }

// dense sets dst to the scaled features of a dense row.
func (x *scaling) dense(dst, row []float32) {
	num.Standardise(dst, row, x.shift, x.scale)
}

// nonZeros sets dst to x_i·scale_i of a sparse row's non-zeros: what is left of
// (x_i - shift_i)·scale_i once the constant part, which every row shares, is
// taken out.
func (x *scaling) nonZeros(dst, values []float32, columns []uint32) {
	for i, c := range columns {
		dst[i] = float32(float64(values[i]) * x.scale[c])
	}
}
