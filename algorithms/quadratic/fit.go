package quadratic

import (
	"errors"
	"math"

	"github.com/coppice-ldl/coppice/internal/linalg"
)

// fit is what the model has of the training rows: z_k = (x_k - Shift_k)·Scale_k, and the number
// is Constant + Σ_k z_k (Linear_k + Square_k z_k).
type fit struct {
	Ridge    float64 // that was added; 0: the columns are independent
	Constant float64
	Shift    []float64
	Scale    []float64 // 0: the feature is constant
	Linear   []float64
	Square   []float64
}

// fitValues is how many numbers a fit of so many features is.
func fitValues(features int) int { return 2 + 4*features }

// fitOf views the numbers of a fit.
func fitOf(v []float64, q int) fit {
	return fit{Ridge: v[0], Constant: v[1], Shift: v[2 : 2+q], Scale: v[2+q : 2+2*q], Linear: v[2+2*q : 2+3*q],
		Square: v[2+3*q : 2+4*q]}
}

// constantColumns counts the features that are constant.
func (f *fit) constantColumns() (n int) {
	for _, s := range f.Scale {
		if s == 0 {
			n++
		}
	}
	return n
}

// dependent is the share of a column's length, orthogonal to the columns before it, below which
// it depends on these.
const dependent = 1e-6

// flatSquare is the deviation of z² up to which it is constant: its mean is 1.
const flatSquare = 1e-9

// column is a column of the system: feature k, or its square.
type column struct {
	k      int
	square bool
	mean   float64 // of z²; that of z is 0
	scale  float64 // one over the deviation
}

// least returns the fit of the numbers y by x, features rows of len(y) values each; x is
// overwritten by z. Weights are above 0. An error is about values that are not finite.
func least(x linalg.Matrix, y, weights []float64, ridge float64) ([]float64, error) {
	q, n := x.Rows, len(y)
	v := make([]float64, fitValues(q))
	f := fitOf(v, q)
	s := newSums(weights)
	columns := s.standardise(x, &f)
	mean := s.meanOf(y)
	a, b := linalg.New(n, len(columns)), linalg.New(n, 1)
	for i := range y {
		b.Set(i, 0, s.roots[i]*(y[i]-mean))
	}
	for j, c := range columns {
		c.write(a.Part(0, n, j, j+1), x, s.roots)
	}
	w, used, err := solve(a, b, float64(ridge*s.total))
	if err != nil {
		return nil, err
	}
	if v[1] = mean; used {
		v[0] = ridge
	}
	for j, c := range columns {
		weight := w.At(j, 0) * c.scale
		if c.square {
			f.Square[c.k] = weight
			v[1] -= float64(weight * c.mean)
		} else {
			f.Linear[c.k] = weight
		}
	}
	return v, nil
}

// solve returns the least squares of a·w = b, and true if it took the ridge, which is as a sum of squares of a: it does
// not where the columns are independent.
func solve(a, b linalg.Matrix, ridge float64) (w linalg.Matrix, used bool, err error) {
	rows, columns := a.Rows, a.Columns
	if rows > columns { // centred rows have one rank less
		w, err = linalg.LeastSquares(a, b, dependent)
		if err == nil || !errors.Is(err, linalg.ErrRank) {
			return w, false, err
		}
	}
	more, right := linalg.New(rows+columns, columns), linalg.New(rows+columns, 1)
	for i := range rows {
		for j := range columns {
			more.Set(i, j, a.At(i, j))
		}
		right.Set(i, 0, b.At(i, 0))
	}
	root := math.Sqrt(ridge)
	for j := range columns {
		more.Set(rows+j, j, root)
	}
	w, err = linalg.LeastSquares(more, right, 0)
	return w, true, err
}

// sums are weighted sums over rows.
type sums struct {
	weights, roots []float64 // of each row, and their square roots
	total          float64   // of the weights
}

func newSums(weights []float64) *sums {
	s := &sums{weights: weights}
	for _, w := range weights {
		s.roots = append(s.roots, math.Sqrt(w))
		s.total += w
	}
	return s
}

// standardise replaces the rows of x by z and lists the columns that are not constant.
func (s *sums) standardise(x linalg.Matrix, f *fit) []column {
	var columns []column
	for k := range x.Rows {
		row := x.V[k*x.Columns : (k+1)*x.Columns]
		mean := s.meanOf(row)
		deviation := s.deviationOf(row, mean)
		if constant(row) || deviation == 0 {
			f.Shift[k] = mean
			continue
		}
		f.Shift[k], f.Scale[k] = mean, 1/deviation
		for i, v := range row {
			row[i] = (v - mean) * f.Scale[k]
		}
		columns = append(columns, column{k: k, scale: 1})
		if c, ok := s.squareOf(k, row); ok {
			columns = append(columns, c)
		}
	}
	return columns
}

// squareOf describes the column of z²; false: it is constant.
func (s *sums) squareOf(k int, z []float64) (column, bool) {
	squares := make([]float64, len(z))
	for i, v := range z {
		squares[i] = v * v
	}
	mean := s.meanOf(squares)
	deviation := s.deviationOf(squares, mean)
	return column{k: k, square: true, mean: mean, scale: 1 / deviation}, deviation > flatSquare
}

// write writes the column of z, times the roots of the weights, to a matrix of one column.
func (c *column) write(to, z linalg.Matrix, roots []float64) {
	for i := range to.Rows {
		v := z.At(c.k, i)
		if c.square {
			v = (float64(v*v) - c.mean) * c.scale
		}
		to.Set(i, 0, roots[i]*v)
	}
}

func constant(v []float64) bool {
	for _, x := range v {
		if x != v[0] {
			return false
		}
	}
	return true
}

func (s *sums) meanOf(v []float64) float64 {
	sum := 0.0
	for i, x := range v {
		sum += float64(s.weights[i] * x)
	}
	return sum / s.total
}

func (s *sums) deviationOf(v []float64, mean float64) float64 {
	sum := 0.0
	for i, x := range v {
		d := x - mean
		sum += float64(s.weights[i] * float64(d*d))
	}
	return math.Sqrt(sum / s.total)
}
