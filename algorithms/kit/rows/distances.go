package rows

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Distances compute squared Euclidean distances Σ_c (s_c·x_c - s_c·y_c)² between any row x and
// kept rows y, in float64: products with the scales s, differences, squares and sums are rounded
// one by one, over ascending columns c. A column that is zero in both rows adds 0, so dense and
// sparse rows have the same bits. A shift of the features would change no distance. Distances
// are safe for concurrent use.
type Distances struct {
	n, features int
	scale       []float64 // nil: none
	sparse      bool

	panels []float64 // dense: num.SquaresRows rows after one another, column after column

	columns []uint32 // sparse: those that are not zero in all rows, ascending
	start   []int    // of each of them in row and value, and the end
	row     []uint32
	value   []float64   // scaled
	whole   [][]float64 // of each: all rows, zeros included; nil: few are not zero
}

// queries is how many rows a Scratch of dense rows holds.
const queries = 8

// Scratch is the working memory of one caller of To.
type Scratch struct {
	x       []float64 // features, of some dense rows
	columns []uint32  // of the non-zeros of a row
	values  []float64
	sums    []float64 // of a column's rows; of a panel
}

// NewDistances returns the distances to r. scale has a factor for each feature; nil: none.
func NewDistances(r *dataset.Rows, scale []float64) *Distances {
	d := &Distances{n: r.N, features: r.Features, scale: scale, sparse: r.Sparse}
	if r.Sparse {
		d.fillColumns(r)
	} else {
		d.fillPanels(r)
	}
	return d
}

// Rows returns the number of kept rows.
func (d *Distances) Rows() int { return d.n }

// NewScratch makes the working memory of one caller.
func (d *Distances) NewScratch() *Scratch {
	s := &Scratch{columns: make([]uint32, 0, d.features), values: make([]float64, 0, d.features)}
	if d.sparse {
		s.sums = make([]float64, d.longest())
	} else {
		s.x, s.sums = make([]float64, queries*d.features), make([]float64, num.SquaresRows)
	}
	return s
}

// scaled returns s_c·x.
func scaled(scale []float64, c int, x float32) float64 {
	if scale == nil {
		return float64(x)
	}
	return float64(x) * scale[c]
}

// To sets dst (len(refs)×Rows) to the squared distances between the rows of refs and the kept
// ones. It allocates nothing.
func (d *Distances) To(dst []float64, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, s *Scratch) {
	if d.sparse {
		for i, ref := range refs {
			d.toSparse(dst[i*d.n:(i+1)*d.n], shard(ref.Shard), int(ref.Pos), s)
		}
		return
	}
	for len(refs) > 0 {
		n := min(queries, len(refs))
		for i, ref := range refs[:n] {
			expand(s.x[i*d.features:(i+1)*d.features], shard(ref.Shard), int(ref.Pos), d.scale)
		}
		d.toDense(dst, n, s)
		dst, refs = dst[n*d.n:], refs[n:]
	}
}

// expand sets x to the scaled features of a row.
func expand(x []float64, r *dataset.Rows, pos int, scale []float64) {
	if !r.Sparse {
		for c, v := range r.Dense(pos) {
			x[c] = scaled(scale, c, v)
		}
		return
	}
	clear(x)
	columns, values := r.NonZeros(pos)
	for i, c := range columns {
		x[c] = scaled(scale, int(c), values[i])
	}
}

// fillPanels copies dense rows. The last panel ends with rows of zeros.
func (d *Distances) fillPanels(r *dataset.Rows) {
	size := num.SquaresRows * d.features
	d.panels = make([]float64, (r.N+num.SquaresRows-1)/num.SquaresRows*size)
	for i := range r.N {
		panel := d.panels[i/num.SquaresRows*size:][:size]
		for c, v := range r.Dense(i) {
			panel[c*num.SquaresRows+i%num.SquaresRows] = scaled(d.scale, c, v)
		}
	}
}

// toDense sets the distances of the first rows of s.x.
func (d *Distances) toDense(dst []float64, rows int, s *Scratch) {
	size := num.SquaresRows * d.features
	for from := 0; from < d.n; from += num.SquaresRows {
		panel := d.panels[from/num.SquaresRows*size:][:size]
		for i := range rows {
			num.Squares(s.sums, panel, s.x[i*d.features:(i+1)*d.features])
			copy(dst[i*d.n+from:(i+1)*d.n], s.sums)
		}
	}
}

// Gaussian replaces each squared distance d by exp(-d/width).
func Gaussian(v []float64, width float64) {
	for i, d := range v {
		v[i] = num.Exp(-d / width)
	}
}
