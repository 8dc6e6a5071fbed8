package rows

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

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
