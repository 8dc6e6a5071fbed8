package dataset

import (
	"fmt"
	"math"
	"slices"
)

// Rows is a block of N rows: features (float32, dense or sparse) and label
// distributions. The slices may alias a memory-mapped file: never write to them.
type Rows struct {
	N        int // rows
	Features int // columns of X
	Labels   int // columns of D; 0 where the rows carry no labels

	// Sparse rows use compressed sparse row storage; explicit zeros are not kept.
	Sparse bool
	// X holds N×Features values, row-major, or, when Sparse, only the non-zeros.
	X []float32
	// Index holds the column of each value of a sparse block, ascending in a row.
	Index []uint32
	// Start holds N+1 offsets into X and Index of a sparse block.
	Start []uint32

	// D holds N×Labels label degrees, row-major; each row sums to one. With Incomplete, some are MissingDegree and the
	// others of their row sum to at most one.
	D []float32
	// Incomplete says that degrees may be missing.
	Incomplete bool
	// Row holds the original number of each row (from 0): in the dataset, see
	// Manifest.FileRow, or, in what Blocks gives, in the file.
	Row []uint32

	// Value holds the exact number of each row on the scale of the labels, and Interval
	// two for each row: the least and the greatest number that it may have. Both are nil
	// where rows have none. See Scale.Number and Scale.Interval.
	Value    []float64
	Interval []float64

	// Weight holds the weight of each row in losses, from 0 to MaxWeight; nil: each is 1. See WeightOf.
	Weight []float64

	// NameText holds the names of rows, one after the other, and NameEnds where each
	// ends; both are nil where rows have none.
	NameEnds []uint32
	NameText []byte
}

// MaxWeight bounds the weight of a row, so that sums of weights are finite.
const MaxWeight = 1e12

// ValidWeight reports whether a row can have this weight.
func ValidWeight(w float64) bool { return w >= 0 && w <= MaxWeight }

// WeightOf returns the weight of row i.
func (r *Rows) WeightOf(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}

// Named tells whether rows have names.
func (r *Rows) Named() bool { return r.NameEnds != nil }

// Name returns a copy of the name of row i of a block whose rows have names.
func (r *Rows) Name(i int) string {
	from := uint32(0)
	if i > 0 {
		from = r.NameEnds[i-1]
	}
	return string(r.NameText[from:r.NameEnds[i]])
}

// SetNames gives rows their names; nil: none.
func (r *Rows) SetNames(names []string) {
	for _, name := range names {
		r.NameText = append(r.NameText, name...)
		r.NameEnds = append(r.NameEnds, uint32(len(r.NameText)))
	}
}

// Dense returns the features of row i of a dense block.
func (r *Rows) Dense(i int) []float32 {
	return r.X[i*r.Features : (i+1)*r.Features : (i+1)*r.Features]
}

// NonZeros returns the columns and values of row i of a sparse block.
func (r *Rows) NonZeros(i int) (columns []uint32, values []float32) {
	from, to := r.Start[i], r.Start[i+1]
	return r.Index[from:to:to], r.X[from:to:to]
}

// Label returns the label distribution of row i.
func (r *Rows) Label(i int) []float32 {
	return r.D[i*r.Labels : (i+1)*r.Labels : (i+1)*r.Labels]
}

// Check returns an error if the lengths and indices of r's slices contradict each other.
func (r *Rows) Check() error {
	values := r.N * r.Features
	if r.Sparse {
		values = len(r.Index)
	}
	if len(r.Row) != r.N || len(r.D) != r.N*r.Labels || len(r.X) != values {
		return fmt.Errorf("dataset: the block is damaged: %d samples do not fit %d row numbers, %d label probabilities and "+
			"%d values",
			r.N, len(r.Row), len(r.D), len(r.X))
	}
	if r.Value != nil && len(r.Value) != r.N || r.Interval != nil && len(r.Interval) != 2*r.N {
		return fmt.Errorf("dataset: the block is damaged: %d samples do not fit %d exact numbers and %d interval ends", r.N,
			len(r.Value), len(r.Interval))
	}
	if r.Weight != nil && len(r.Weight) != r.N {
		return fmt.Errorf("dataset: the block is damaged: %d samples do not fit %d weights", r.N, len(r.Weight))
	}
	for i, w := range r.Weight {
		if !ValidWeight(w) {
			return fmt.Errorf("dataset: the block is damaged: the weight of sample %d is %v, which is not possible", i, w)
		}
	}
	for i, v := range r.Value {
		if v-v != 0 {
			return fmt.Errorf("dataset: the block is damaged: the exact number of sample %d is %v, which is not possible", i, v)
		}
	}
	for i := 0; i < len(r.Interval); i += 2 {
		if low, high := r.Interval[i], r.Interval[i+1]; !(low <= high) || low-low != 0 || high-high != 0 {
			return fmt.Errorf("dataset: the block is damaged: the interval of sample %d is %v to %v, which is not possible",
				i/2, low, high)
		}
	}
	if err := r.checkDegrees(); err != nil {
		return err
	}
	if r.Sparse {
		return r.checkSparse()
	}
	return nil
}

func (r *Rows) checkSparse() error {
	if len(r.Start) != r.N+1 || r.Start[0] != 0 || int(r.Start[r.N]) != len(r.X) {
		return fmt.Errorf("dataset: the sparse block is damaged: its row starts do not span its %d values", len(r.X))
	}
	for i := range r.N {
		from, to := r.Start[i], r.Start[i+1]
		if from > to || int(to) > len(r.Index) {
			return fmt.Errorf("dataset: the sparse block is damaged: sample %d spans values %d to %d of %d", i, from,
				to, len(r.X))
		}
		next := uint32(0)
		for _, c := range r.Index[from:to] {
			if c < next || c >= uint32(r.Features) {
				return fmt.Errorf("dataset: the sparse block is damaged: the columns of sample %d do not ascend below %d", i,
					r.Features)
			}
			next = c + 1
		}
	}
	return nil
}

// filled returns r with values in the place of missing features. Sparse rows do not list those
// that become 0.
func (r *Rows) filled(values []float64) *Rows {
	if !slices.ContainsFunc(r.X, func(x float32) bool { return x != x }) {
		return r
	}
	f := *r
	if !r.Sparse {
		f.X = slices.Clone(r.X)
		for i, x := range f.X {
			if x != x {
				f.X[i] = PositiveZero(values[i%r.Features])
			}
		}
		return &f
	}
	f.X, f.Index, f.Start = make([]float32, 0, len(r.X)), make([]uint32, 0, len(r.Index)), make([]uint32, 1, len(r.Start))
	for i := range r.N {
		columns, list := r.NonZeros(i)
		for k, x := range list {
			if x != x {
				x = PositiveZero(values[columns[k]])
			}
			if x != 0 {
				f.X, f.Index = append(f.X, x), append(f.Index, columns[k])
			}
		}
		f.Start = append(f.Start, uint32(len(f.X)))
	}
	return &f
}

// PositiveZero rounds to float32 and replaces -0 by +0, as sparse storage does.
func PositiveZero(v float64) float32 {
	x := float32(v)
	if x == 0 {
		return 0
	}
	return x
}

// ObservedSlack is how far above 1 the degrees of a sample that are not missing may sum: the tolerance of complete
// labels, and the rounding of the degrees to float32.
const ObservedSlack = 2e-4

// checkDegrees returns an error if a degree of r is missing although its labels are complete, or if the degrees of
// incomplete labels are not possible.
func (r *Rows) checkDegrees() error {
	if !r.Incomplete {
		if i := slices.IndexFunc(r.D, func(d float32) bool { return d != d }); i >= 0 {
			return fmt.Errorf("dataset: the block is damaged: label %d of sample %d is missing, but the labels are complete",
				i%r.Labels, i/r.Labels)
		}
		return nil
	}
	for i := range r.N {
		sum, missing := 0.0, 0
		for c, d := range r.Label(i) {
			switch {
			case d != d && math.Float32bits(d) == math.Float32bits(MissingDegree):
				missing++
			case !(d >= 0 && d <= 1+ObservedSlack) || math.Float32bits(d) == 1<<31:
				return fmt.Errorf("dataset: the block is damaged: the degree %v of label %d of sample %d is not possible", d, c, i)
			default:
				sum += float64(d)
			}
		}
		if missing == 1 || sum > 1+ObservedSlack || missing == 0 && sum < 1-ObservedSlack {
			return fmt.Errorf("dataset: the block is damaged: %d missing degrees of sample %d do not fit the sum %v of the "+
				"others",
				missing, i, sum)
		}
	}
	return nil
}
