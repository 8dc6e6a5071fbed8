package read

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// tablePiece is how many values are read at a time: memory grows with the values that a
// file has, not with the number that its header claims.
const tablePiece = 1 << 12

// checkSize refuses shapes that no dataset has. Call it before memory is allocated.
func checkSize(name string, rows, columns, limit int) error {
	if rows < 1 || columns < 1 || rows > dataset.MaxRows || columns > limit {
		return fmt.Errorf("%s is %d x %d, want at most %d rows and %d columns: %w",
			name, rows, columns, uint32(math.MaxUint32), limit, dataset.ErrFormat)
	}
	return nil
}

const (
	// columnWindow is how many bytes of rows, as float64, are read of columns at a time.
	columnWindow = 32 << 20
	// columnPiece bounds the columns that are read side by side, in bytes.
	columnPiece = 4 << 20
	// smallSpool is what stays in memory in place of a temporary file, in bytes.
	smallSpool = 16 << 20
)

// columnFile is a matrix that is stored column by column, with random access.
type columnFile struct {
	in            io.ReaderAt
	base          int64 // where the first element is
	rows, columns int
	size          int // bytes of an element
	decode        func(dst []float64, b []byte)
}

// columnReader reads the rows of a columnFile in order, a window of them at a time.
type columnReader struct {
	*columnFile
	window   []float64 // row by row
	from, to int       // its rows
	at       int       // the next row
	raw      []byte
	piece    []float64 // columns side by side
}

// begin returns a reader at the first row of f, or nil if f is nil.
func (f *columnFile) begin() *columnReader {
	if f == nil {
		return nil
	}
	return &columnReader{columnFile: f}
}

// next returns the next row, which is valid until the next call.
func (r *columnReader) next() ([]float64, error) {
	if r.at == r.to {
		if err := r.readWindow(); err != nil {
			return nil, err
		}
	}
	i := (r.at - r.from) * r.columns
	r.at++
	return r.window[i : i+r.columns : i+r.columns], nil
}

// readWindow reads the next window.
func (r *columnReader) readWindow() error {
	n := min(max(1, columnWindow/8/r.columns), r.rows-r.to)
	r.from, r.to = r.to, r.to+n
	size := n * r.columns
	r.window = slices.Grow(r.window[:0], size)[:size]
	together := min(max(1, columnPiece/8/n), 16, r.columns)
	r.piece, r.raw = slices.Grow(r.piece[:0], together*n)[:together*n], slices.Grow(r.raw[:0], n*r.size)[:n*r.size]
	for from := 0; from < r.columns; from += together {
		if err := r.readColumns(from, min(together, r.columns-from), n); err != nil {
			return err
		}
	}
	return nil
}

// readColumns reads n rows of so many columns, from column from on, into the window.
func (r *columnReader) readColumns(from, columns, n int) error {
	for c := range columns {
		at := r.base + (int64(from+c)*int64(r.rows)+int64(r.from))*int64(r.size)
		if k, err := r.in.ReadAt(r.raw, at); k < len(r.raw) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		r.decode(r.piece[c*n:(c+1)*n], r.raw)
	}
	for i := range n {
		row := r.window[i*r.columns+from : i*r.columns+from+columns]
		for c := range row {
			row[c] = r.piece[c*n+i]
		}
	}
	return nil
}

// rowCountError is the error for features and another array with a different number of rows. If one of them may be
// transposed, it says how that is undone.
func rowCountError(features, other sides, transpose string) error {
	advice := ""
	if features.columns == other.rows || other.columns > 1 && other.columns == features.rows || features.columns == other.columns && other.columns > max(features.rows, other.rows) {
		advice = fmt.Sprintf("; %q (%d x %d) or %q (%d x %d) seems to be transposed: %s",
			features.name, features.rows, features.columns, other.name, other.rows, other.columns, transpose)
	}
	return dataset.Errorf(dataset.ErrRowCount, "the numbers of rows must be equal, but %q has %s and %q has %d%s",
		features.name, dataset.Counted(features.rows, "row"), other.name, other.rows, advice)
}

// sides are the name and the shape of an array that has a row for each row of the data.
type sides struct {
	name          string
	rows, columns int
}
