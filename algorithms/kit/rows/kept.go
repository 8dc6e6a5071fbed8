// Package rows is for algorithms whose models keep training rows: neighbours, and kernels
// with all rows or some landmarks.
//
// A round collects the rows as they are stored, sparse ones sparse (Collect, Join). Kept is the
// part of a trainer's state and of a model that they are. Distances are squared Euclidean
// distances between any row and the kept ones: the same bits for dense and sparse rows, any
// number of lanes, and vectors or plain code. Neighbours find the nearest kept rows by the
// same distances, but compute few of them.
package rows

import (
	"bytes"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Field lists, in a training state, the rows that Join returned; nil: there are none yet.
func Field(l *fields.List, r **dataset.Rows, m *dataset.Manifest, w *Wanted) {
	var b []byte
	if !l.Reading() && *r != nil {
		b = dataset.EncodeShard(*r, nil)
	}
	l.Part(len(b), func(dst []byte) []byte { return append(dst, b...) }, func(b []byte) error {
		*r = nil
		if len(b) == 0 {
			return nil
		}
		kept, err := Decode(bytes.Clone(b), m, w)
		*r = kept
		return err
	})
}

// Sizes are the numbers of kept rows in a model's settings.
type Sizes struct {
	Rows, Features, Labels int
	Sparse, NonZeros       int // Sparse: 0 or 1; NonZeros: of sparse rows
}

// SizesOf returns the numbers of kept rows.
func SizesOf(r *dataset.Rows) Sizes {
	z := Sizes{Rows: r.N, Features: r.Features, Labels: r.Labels}
	if r.Sparse {
		z.Sparse, z.NonZeros = 1, len(r.X)
	}
	return z
}

// Numbers lists the numbers for learner.Tensors.Settings.
func (z *Sizes) Numbers() []learner.Number {
	return []learner.Number{
		learner.Within(&z.Rows, 1, dataset.MaxRows), learner.Within(&z.Features, 1, dataset.MaxFeatures),
		learner.Within(&z.Labels, 0, dataset.MaxLabels), learner.Within(&z.Sparse, 0, 1), learner.Within(&z.NonZeros, 0,
			dataset.MaxRows),
	}
}

// Tensors lists what a model has of kept rows: row numbers, features as they are stored, and the
// label distributions where there are any.
func Tensors(l *learner.Tensors, z *Sizes, r *dataset.Rows) {
	l.U32("rows.number", &r.Row, z.Rows)
	if z.Sparse == 1 {
		l.U32("rows.start", &r.Start, z.Rows+1)
		l.U32("rows.column", &r.Index, z.NonZeros)
		l.F32("rows.feature", &r.X, z.NonZeros)
	} else {
		l.Check(z.NonZeros == 0, "dense samples must have 0 stored non-zero values, got %d", z.NonZeros)
		l.F32("rows.feature", &r.X, z.Rows, z.Features)
	}
	if z.Labels > 0 {
		l.F32("rows.label", &r.D, z.Rows, z.Labels)
	}
	if !l.Reading() {
		return
	}
	r.N, r.Features, r.Labels, r.Sparse = z.Rows, z.Features, z.Labels, z.Sparse == 1
	err := r.Check()
	if err == nil {
		err = check(r, dataset.MaxRows+1)
	}
	l.Check(err == nil, "%w", err)
}

// Bytes estimates the memory of kept rows of a dataset: of their encoded form in a state, and
// of their tensors. It is at least what they take.
func Bytes(m *dataset.Manifest, w *Wanted) (encoded, tensors int64) {
	n := int64(m.Rows)
	if w.Most > 0 {
		n = min(n, int64(w.Most))
	}
	tensors = 4 * n
	if m.Sparse {
		tensors += 8*min(m.NonZeros, n*int64(m.Features)) + 4*(n+1)
	} else {
		tensors += 4 * n * int64(m.Features)
	}
	if w.Labels {
		tensors += 4 * n * int64(m.Labels)
	}
	const head = 8 + 64 + 5*8 // size, header, padding
	return tensors + head, tensors
}

// mostScale is greater than the scale of any column: features are float32.
const mostScale = 1e60

// CheckScale refuses factors of features under which distances might not be finite.
func CheckScale(scale []float64) error {
	for i, x := range scale {
		if !(x > 0 && x <= mostScale) {
			return fmt.Errorf("%w: the scaling factor of feature %d is %v", ErrRows, i, x)
		}
	}
	return nil
}

// fillColumns turns sparse rows into columns.
func (d *Distances) fillColumns(r *dataset.Rows) {
	counts := make([]int, d.features)
	for _, c := range r.Index {
		counts[c]++
	}
	at, total := make([]int, d.features), 0
	for c, n := range counts {
		if n > 0 {
			d.columns, d.start = append(d.columns, uint32(c)), append(d.start, total)
		}
		at[c] = total
		total += n
	}
	d.start = append(d.start, total)
	d.whole = make([][]float64, len(d.columns))
	d.row, d.value = make([]uint32, total), make([]float64, total)
	for i := range r.N {
		columns, values := r.NonZeros(i)
		for k, c := range columns {
			d.row[at[c]], d.value[at[c]] = uint32(i), scaled(d.scale, int(c), values[k])
			at[c]++
		}
	}
	for k := range d.columns {
		if from, to := d.start[k], d.start[k+1]; wholeShare*(to-from) >= d.n {
			d.whole[k] = make([]float64, d.n)
			for i, r := range d.row[from:to] {
				d.whole[k][r] = d.value[from+i]
			}
		}
	}
}

// wholeShare: a column with a value in one row of so many, or more, has its zeros too.
const wholeShare = 8

// longest returns the greatest number of rows of a column without its zeros.
func (d *Distances) longest() (n int) {
	for i := range d.columns {
		if d.whole[i] == nil {
			n = max(n, d.start[i+1]-d.start[i])
		}
	}
	return n
}

// listNonZeros sets the scratch to the non-zeros of a row.
func (d *Distances) listNonZeros(s *Scratch, r *dataset.Rows, pos int) {
	s.columns, s.values = s.columns[:0], s.values[:0]
	if r.Sparse {
		columns, values := r.NonZeros(pos)
		for i, c := range columns {
			s.columns, s.values = append(s.columns, c), append(s.values, scaled(d.scale, int(c), values[i]))
		}
		return
	}
	for c, v := range r.Dense(pos) {
		if v != 0 {
			s.columns, s.values = append(s.columns, uint32(c)), append(s.values, scaled(d.scale, c, v))
		}
	}
}

// toSparse adds column after column, of those in which the row or a kept row is not zero.
func (d *Distances) toSparse(dst []float64, r *dataset.Rows, pos int, s *Scratch) {
	d.listNonZeros(s, r, pos)
	clear(dst)
	k := 0
	for i, x := range s.values {
		c := s.columns[i]
		for ; k < len(d.columns) && d.columns[k] < c; k++ {
			d.addSquares(dst, k)
		}
		if k < len(d.columns) && d.columns[k] == c {
			d.addDifferences(dst, k, x, s)
			k++
			continue
		}
		num.AddConstant(dst, float64(x*x))
	}
	for ; k < len(d.columns); k++ {
		d.addSquares(dst, k)
	}
}

// addSquares adds a column in which the row is zero.
func (d *Distances) addSquares(dst []float64, k int) {
	if whole := d.whole[k]; whole != nil {
		num.AddSquares(dst, whole, 0)
		return
	}
	from, to := d.start[k], d.start[k+1]
	value := d.value[from:to]
	for i, r := range d.row[from:to] {
		y := value[i]
		dst[r] += float64(y * y)
	}
}

// addDifferences adds a column in which the row is x.
func (d *Distances) addDifferences(dst []float64, k int, x float64, s *Scratch) {
	if whole := d.whole[k]; whole != nil {
		num.AddSquares(dst, whole, x)
		return
	}
	from, to := d.start[k], d.start[k+1]
	value, sums := d.value[from:to], s.sums[:to-from]
	for i, r := range d.row[from:to] {
		t := x - value[i]
		sums[i] = dst[r] + float64(t*t)
	}
	num.AddConstant(dst, float64(x*x))
	for i, r := range d.row[from:to] {
		dst[r] = sums[i]
	}
}
