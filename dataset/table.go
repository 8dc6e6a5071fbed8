package dataset

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/internal/units"
)

// table is a matrix of a file that stores columns: dense (in a temporary file if it is
// large), or compressed sparse rows if start is set.
type table struct {
	rows, columns int
	dense         []float32 // row-major
	file          *columnFile
	start         []int
	index         []uint32
	values        []float64
}

// tablePiece is how many values are read at a time: memory grows with the values that a
// file has, not with the number that its header claims.
const tablePiece = 1 << 12

// readColumns reads rows×columns values that come column by column.
func readColumns[T float32 | float64](rows, columns int, read func([]float64) error) ([]T, *columnFile, error) {
	spool := newColumnSpool[T](rows, columns)
	var piece [tablePiece]float64
	for left := rows * columns; left > 0; {
		k := min(left, tablePiece)
		if err := read(piece[:k]); err != nil {
			return nil, nil, err
		}
		if err := spool.add(piece[:k]); err != nil {
			return nil, nil, err
		}
		left -= k
	}
	return spool.end()
}

// transpose turns column-major values into row-major ones, in squares that fit
// the processor's cache.
func transpose[T any](values []T, rows, columns int) []T {
	const edge = 64
	out := make([]T, len(values))
	for r0 := 0; r0 < rows; r0 += edge {
		for c0 := 0; c0 < columns; c0 += edge {
			for r := r0; r < min(r0+edge, rows); r++ {
				for c := c0; c < min(c0+edge, columns); c++ {
					out[r*columns+c] = values[c*rows+r]
				}
			}
		}
	}
	return out
}

// checkSize refuses shapes that no dataset has. Call it before memory is allocated.
func checkSize(name string, rows, columns, limit int) error {
	if rows < 1 || columns < 1 || rows > MaxRows || columns > limit {
		return fmt.Errorf("%s is %d x %d, want at most %d rows and %d columns: %w",
			name, rows, columns, uint32(math.MaxUint32), limit, ErrFormat)
	}
	return nil
}

// emptyRowsPerValue bounds the empty rows of a sparse matrix. A short file could claim any
// number of them.
const emptyRowsPerValue = 64

// sparseTable turns a matrix by columns into one by rows.
func sparseTable(name string, rows, columns int, m *matfile.SparseMatrix) (*table, error) {
	n := len(m.Values)
	if rows > emptyRowsPerValue*(n+1<<10) {
		return nil, fmt.Errorf("%s has %d rows but only %d non-zero values, so most samples would be empty: %w", name, rows, n, ErrFormat)
	}
	if rows > 2*maxSparse {
		return nil, kindErrorf(ErrFormat, "%s is a sparse matrix of %d rows, at most %d are allowed, because it is transposed in memory; write the data as .libsvm", name, rows, 2*maxSparse)
	}
	return byRows(rows, columns, m), nil
}

// maxSparse bounds the non-zeros of a sparse matrix of MATLAB, which is converted to rows in
// memory: 24 bytes each. It may have twice as many rows, 16 bytes each.
const maxSparse = 1 << 22

// byRows turns the non-zeros by columns into those by rows.
func byRows(rows, columns int, m *matfile.SparseMatrix) *table {
	n := len(m.Values)
	t := &table{
		rows: rows, columns: columns,
		start: make([]int, rows+1), index: make([]uint32, n), values: make([]float64, n),
	}
	for _, r := range m.Row {
		t.start[r+1]++
	}
	for r := range rows {
		t.start[r+1] += t.start[r]
	}
	next := append([]int(nil), t.start[:rows]...)
	for c := range columns {
		for k := m.Start[c]; k < m.Start[c+1]; k++ {
			at := next[m.Row[k]]
			t.index[at], t.values[at] = uint32(c), m.Values[k]
			next[m.Row[k]]++
		}
	}
	return t
}

// labels returns the matrix as dense float64, row-major.
func (t *table) labels() ([]float64, error) {
	if t.start == nil {
		panic("dataset: dense labels are read as float64")
	}
	if len(t.values) < t.rows {
		return nil, fmt.Errorf("the labels have %d rows but only %d values above 0: %w", t.rows, len(t.values), ErrFormat)
	}
	if t.rows*t.columns > 2*maxSparse {
		return nil, fmt.Errorf("the labels are a sparse matrix of %d x %d, at most %d values are allowed; write the labels as a full matrix: %w", t.rows, t.columns, 2*maxSparse, ErrFormat)
	}
	dense := make([]float64, t.rows*t.columns)
	for r := range t.rows {
		for k := t.start[r]; k < t.start[r+1]; k++ {
			dense[r*t.columns+int(t.index[k])] = t.values[k]
		}
	}
	return dense, nil
}

// tableSource is a Source over matrices that were read.
type tableSource struct {
	info       Info
	features   *table
	labels     []float64 // row-major, of info.Labels columns
	labelsFile *columnFile
	texts      *textColumn // of the labels; nil: they are numbers
	classes    bool        // Row.text is wanted
	rowNames   []string
}

// Info implements Source.
func (s *tableSource) Info() Info { return s.info }

// Scan implements Source.
func (s *tableSource) Scan(f func(*Row) error) error {
	var row Row
	features, labels := s.features.file.begin(), s.labelsFile.begin()
	for i := range s.info.Rows {
		row.Number = i
		if err := s.read(&row, features, labels); err != nil {
			return fmt.Errorf("%s: row %d (counted from 0): %w", s.info.File, i, err)
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// read reads the next row; features and labels are nil where they are in memory.
func (s *tableSource) read(row *Row, features, labels *columnReader) (err error) {
	i, n := row.Number, s.info.Labels
	if features == nil {
		s.features.row(i, row)
	} else if row.Values, err = features.next(); err != nil {
		return err
	}
	if labels != nil {
		row.Labels, err = labels.next()
	} else if s.labels != nil {
		row.Labels = s.labels[i*n : (i+1)*n]
	}
	if s.texts != nil {
		row.text = s.texts.text(i)
	} else if s.classes && err == nil { // of a sparse matrix
		row.text, _ = units.FloatText(row.Labels[0], 64)
	}
	if s.rowNames != nil {
		row.Name = s.rowNames[i]
	}
	return err
}

func (t *table) row(i int, r *Row) {
	if t.start != nil {
		from, to := t.start[i], t.start[i+1]
		r.Sparse, r.Columns, r.Values = true, t.index[from:to], t.values[from:to]
		return
	}
	r.Values = r.Values[:0]
	for _, v := range t.dense[i*t.columns : (i+1)*t.columns] {
		r.Values = append(r.Values, float64(v))
	}
}
