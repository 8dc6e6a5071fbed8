package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

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
	r.window = sized(r.window, n*r.columns)
	together := min(max(1, columnPiece/8/n), 16, r.columns)
	r.piece, r.raw = sized(r.piece, together*n), sized(r.raw, n*r.size)
	for from := 0; from < r.columns; from += together {
		if err := r.readColumns(from, min(together, r.columns-from), n); err != nil {
			return err
		}
	}
	return nil
}

// readColumns reads n rows of so many columns, the first of which is from, into the window.
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

// spoolMemory is spool into memory.
func spoolMemory(in io.Reader, size int64) (io.ReaderAt, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(in, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("the array is damaged: it has %d bytes, want %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	return bytes.NewReader(b.Bytes()), err
}
