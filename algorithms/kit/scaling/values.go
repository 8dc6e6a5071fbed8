package scaling

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The kinds of scaling, as settings name them.
const (
	None     = "none"
	Standard = "standard"
	MinMax   = "minmax"
)

// Kinds lists the kinds in the order of their numbers in model files.
var Kinds = []string{None, Standard, MinMax}

// denseShare is the share of non-zero entries from which Rule standardises: mostly binary
// features are harmed by it.
const denseShare = 0.2

// Rule returns the kind of scaling for a dataset where a spec names none and the preset is auto.
func Rule(m *dataset.Manifest) string {
	if m.Density() >= denseShare {
		return Standard
	}
	return None
}

// Values map a feature x_i to (x_i - Shift_i)·Scale_i. The zero value maps nothing. Values are
// float64, so that a column far from zero keeps its digits. What is called for each row takes
// a pointer: a copy by vectors waits for the stores of its words.
type Values struct {
	Shift, Scale []float64 // features each
}

// Of views a vector of all shifts followed by all scales; an empty one maps nothing.
func Of(v []float64) Values {
	n := len(v) / 2
	if n == 0 {
		return Values{}
	}
	return Values{Shift: v[:n:n], Scale: v[n:]}
}

// Find returns the values that a round carries; without scaling the round has none.
func Find(v round.Vars) Values {
	for i := range v {
		if v[i].ID == varValues {
			return Of(num.Float64s(v[i].Data))
		}
	}
	return Values{}
}

// None reports whether x maps nothing.
func (x *Values) None() bool { return x.Scale == nil }

// Dense sets dst to the scaled features of a dense row.
func (x *Values) Dense(dst, row []float32) {
	num.Standardise(dst, row, x.Shift, x.Scale)
}

// NonZeros sets dst to x_i·Scale_i of a sparse row's non-zeros: what is left of
// (x_i - Shift_i)·Scale_i once the constant part, which every row shares, is
// taken out.
func (x *Values) NonZeros(dst, values []float32, columns []uint32) {
	for i, c := range columns {
		dst[i] = float32(float64(values[i]) * x.Scale[c])
	}
}

// Tensors lists what a model has of x: nothing with kind None, else shifts and scales,
// features each.
func (x *Values) Tensors(l *learner.Tensors, kind string, features int) {
	if kind != None {
		l.F64("scaling.shift", &x.Shift, features)
		l.F64("scaling.scale", &x.Scale, features)
	}
}
