package dataset

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// matrixReader reads the rows of an array of numbers in order.
type matrixReader struct {
	*openArray
	width   int
	row     []float64
	columns *columnReader // of an array in Fortran order; nil for others
}

// matrix begins to read the rows of an array with so many columns.
func (a *array) matrix(columns int) (*matrixReader, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	m := &matrixReader{openArray: r, width: columns}
	if !r.Fortran || columns == 1 {
		return m, nil
	}
	if m.columns, err = a.columns(&r.Header); err != nil {
		r.Close()
		return nil, arrayError(a.name, err)
	}
	return m, nil
}

// next returns the next row, which is valid until the next call. Memory grows with the
// values that were read.
func (m *matrixReader) next() ([]float64, error) {
	if m.columns != nil {
		row, err := m.columns.next()
		return row, arrayError(m.name, err)
	}
	for len(m.row) < m.width { // the first row
		from := len(m.row)
		m.row = append(m.row, make([]float64, min(m.width-from, tablePiece))...)
		if err := m.read(m.row[from:]); err != nil || len(m.row) == m.width {
			return m.row, err
		}
	}
	return m.row, m.read(m.row)
}

// columns begins to read an array in Fortran order.
func (a *array) columns(h *npy.Header) (*columnReader, error) {
	rows, columns, _ := h.Dims()
	values := int64(rows) * int64(columns) // below 2^56, see checkSize
	if values > math.MaxInt64/16 {
		return nil, npy.ErrTruncated
	}
	in, size, err := a.random()
	if err != nil {
		return nil, err
	}
	switch want := h.Bytes + values*int64(h.Size); {
	case size < want:
		return nil, npy.ErrTruncated
	case size > want:
		return nil, fmt.Errorf("more bytes follow the end of the array: %w", npy.ErrFormat)
	}
	f := &columnFile{in: in, base: h.Bytes, rows: rows, columns: columns, size: h.Size, decode: h.Decode}
	return f.begin(), nil
}

// unpack copies an entry of an archive, once, to memory or to a temporary file that allows
// random access.
func (a *array) unpack() (io.ReaderAt, int64, error) {
	if a.seeks != nil {
		return a.seeks, a.size, nil
	}
	in, size, err := a.open()
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	a.size = size
	a.seeks, err = spool(bufio.NewReaderSize(in, 1<<16), size)
	return a.seeks, size, err
}

// openSized opens a file, and returns its size.
func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
