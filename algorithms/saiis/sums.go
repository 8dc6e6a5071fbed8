package saiis

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// evaluated views what an evaluation sums beside the rows and their losses (values each): with
// e_i = exp(δ sgn(x) x#_i), the sums of p |x| e over the rows with x > 0 and over those with
// x < 0, and of p |x| x# e over all: the derivative of above - below.
type evaluated struct{ above, below, slope []float64 }

// sums returns the number of values of an evaluated.
func (z *sizes) sums() int { return 3 * z.values() }

func (z *sizes) evaluated(v []float64) evaluated {
	n := z.values()
	return evaluated{v[:n:n], v[n : 2*n : 2*n], v[2*n : 3*n]}
}

// known views what does not change with the weights: Σ d x (values) and Σ |x| (inputs) over the
// training rows, and the greatest x# of each unit (units). A sum of partials is one of the whole:
// the units write to places of their own.
type known struct{ expected, absolute, greatest []float64 }

func (z *sizes) knownSums() int { return z.values() + z.inputs() + z.units }

func (z *sizes) known(v []float64) known {
	n, q := z.values(), z.inputs()
	return known{v[:n:n], v[n : n+q : n+q], v[n+q : n+q+z.units]}
}

// knownBytes is the memory of a known.
func (z *sizes) knownBytes() int64 { return 8*int64(z.knownSums()) + 4 }

// maxExponent bounds |δ| x#.
const maxExponent = 30

// limit returns the bound of |δ|: maxExponent over the greatest x#; 0 where all features are 0.
func (k *known) limit() float64 {
	most := 0.0
	for _, x := range k.greatest {
		most = max(most, x)
	}
	if most == 0 {
		return 0
	}
	return maxExponent / most
}

// newton returns by how much the δ of a weight is changed to come near the root of
// h = above - below - expected, and 0 where |h| is at most tolerance.
//
// Were x# equal in all rows, h would be above·eˢ - below·e⁻ˢ - expected after a change by s/x#.
// The root of this is exact then; else, with the mean x# = slope / (above + below), the change is
// that of Newton's method near the root, and far from it does not go beyond the root by much, as
// the one of a straight line does.
func newton(above, below, slope, expected, tolerance float64) float64 {
	if h := above - below - expected; h <= tolerance && h >= -tolerance {
		return 0
	}
	root := math.Sqrt(float64(expected*expected) + float64(4*float64(above*below)))
	var s float64
	if expected > 0 {
		s = logRatio(expected+root, 2*above)
	} else {
		s = logRatio(2*below, root-expected)
	}
	if slope == 0 {
		return s // infinite: predictions are 0 in all rows with the feature
	}
	return s * ((above + below) / slope)
}

// logRatio returns ln(a/b) of numbers that are not negative: ±Inf where one is 0.
func logRatio(a, b float64) float64 {
	switch {
	case a == 0:
		return math.Inf(-1)
	case b == 0:
		return math.Inf(1)
	}
	return num.Log(a / b)
}

// sizes are the numbers that shape a fit.
type sizes struct {
	features, labels, units int
	bias                    bool
}

// inputs returns the number of inputs: the features, and a 1 with a bias.
func (z *sizes) inputs() int {
	if z.bias {
		return z.features + 1
	}
	return z.features
}

// values returns the number of weights.
func (z *sizes) values() int { return z.inputs() * z.labels }

func sizesOf(c *Config, m *dataset.Manifest) sizes {
	return sizes{features: m.Features, labels: m.Labels, units: len(m.Shards), bias: c.Bias}
}

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
