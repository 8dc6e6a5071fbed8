package read

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/dataset/npy"
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
	if rows < 1 || columns < 1 || rows > dataset.MaxRows || columns > limit {
		return fmt.Errorf("%s is %d x %d, want at most %d rows and %d columns: %w",
			name, rows, columns, uint32(math.MaxUint32), limit, dataset.ErrFormat)
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
		return nil, fmt.Errorf("%s has %d rows but only %d non-zero values, so most samples would be empty: %w", name, rows, n, dataset.ErrFormat)
	}
	if rows > 2*maxSparse {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s is a sparse matrix of %d rows, at most %d are allowed, because it is transposed in memory; write the data as .libsvm", name, rows, 2*maxSparse)
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

// labelValues returns the matrix as dense float64, row-major.
func (t *table) labelValues() ([]float64, error) {
	if t.start == nil {
		panic("dataset: dense labels are read as float64")
	}
	if len(t.values) < t.rows {
		return nil, fmt.Errorf("the labels have %d rows but only %d values above 0: %w", t.rows, len(t.values), dataset.ErrFormat)
	}
	if t.rows*t.columns > 2*maxSparse {
		return nil, fmt.Errorf("the labels are a sparse matrix of %d x %d, at most %d values are allowed; write the labels as a full matrix: %w", t.rows, t.columns, 2*maxSparse, dataset.ErrFormat)
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
	info       dataset.Info
	features   *table
	labels     []float64 // row-major, of info.Labels columns
	labelsFile *columnFile
	texts      *textColumn // of the labels; nil: they are numbers
	classes    bool        // Row.text is wanted
	rowNames   []string
}

// Info implements Source.
func (s *tableSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *tableSource) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
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
func (s *tableSource) read(row *dataset.Row, features, labels *columnReader) (err error) {
	i, n := row.Number, s.info.Labels
	if features == nil {
		s.features.fillRow(i, row)
	} else if row.Values, err = features.next(); err != nil {
		return err
	}
	if labels != nil {
		row.Labels, err = labels.next()
	} else if s.labels != nil {
		row.Labels = s.labels[i*n : (i+1)*n]
	}
	if s.texts != nil {
		row.Text = s.texts.text(i)
	} else if s.classes && err == nil { // of a sparse matrix
		row.Text, _ = units.FloatText(row.Labels[0], 64)
	}
	if s.rowNames != nil {
		row.Name = s.rowNames[i]
	}
	return err
}

func (t *table) fillRow(i int, r *dataset.Row) {
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

// columnSpool stores a matrix that comes column by column: in memory if it is small, else in
// a temporary file.
type columnSpool[T float32 | float64] struct {
	rows, columns int
	memory        []T // all values, or the values that wait for the file
	file          *os.File
	out           *bufio.Writer
}

func newColumnSpool[T float32 | float64](rows, columns int) *columnSpool[T] {
	return &columnSpool[T]{rows: rows, columns: columns}
}

// elementBytes is the size of a T.
func elementBytes[T float32 | float64]() int {
	var one [1]T
	return len(dataset.NativeBytes(one[:]))
}

// add appends values.
func (s *columnSpool[T]) add(values []float64) error {
	for _, v := range values {
		s.memory = append(s.memory, T(v))
	}
	return s.flushIfLarge()
}

// zeros appends n zeros.
func (s *columnSpool[T]) zeros(n int) error {
	for n > 0 {
		k := min(n, tablePiece)
		s.memory = append(s.memory, make([]T, k)...)
		if err := s.flushIfLarge(); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// flushIfLarge changes to a temporary file once the values exceed smallSpool, and writes
// the buffered values to it.
func (s *columnSpool[T]) flushIfLarge() (err error) {
	if s.file == nil {
		if len(s.memory)*elementBytes[T]() <= smallSpool {
			return nil
		}
		size := int64(s.rows) * int64(s.columns) * int64(elementBytes[T]())
		if s.file, err = tempFile(size); err != nil {
			return err
		}
		s.out = bufio.NewWriterSize(s.file, 1<<18)
	}
	_, err = s.out.Write(dataset.NativeBytes(s.memory))
	if s.memory = s.memory[:0]; cap(s.memory) > 2*tablePiece {
		s.memory = nil
	}
	return err
}

// end returns the matrix: its values row by row, or a file of them.
func (s *columnSpool[T]) end() ([]T, *columnFile, error) {
	if s.file == nil {
		if s.rows > 1 && s.columns > 1 {
			return transpose(s.memory, s.rows, s.columns), nil, nil
		}
		return s.memory, nil, nil
	}
	if err := s.out.Flush(); err != nil {
		return nil, nil, err
	}
	f := &columnFile{in: s.file, rows: s.rows, columns: s.columns, size: elementBytes[T](), decode: native64}
	if f.size == 4 {
		f.decode = native32
	}
	return nil, f, nil
}

func native32(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
	}
}

func native64(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.NativeEndian.Uint64(b[8*i:]))
	}
}

// sparseBuilder builds a table from the values of a dense matrix, column after column. It
// stores the non-zeros only, as long as they are few: a matrix of counts may be a hundred
// times as large as its non-zeros.
type sparseBuilder struct {
	rows, columns int
	done          int // values so far
	nonZeros      matfile.SparseMatrix
	dense         *columnSpool[float32] // every value, once the non-zeros are not few
}

// denseSlack is how many values come in before the builder considers dense storage.
const denseSlack = 1 << 16

// readTable reads a matrix of features that comes column by column.
func readTable(rows, columns int, read func([]float64) error) (*table, error) {
	t := sparseBuilder{rows: rows, columns: columns}
	var piece [tablePiece]float64
	for total := rows * columns; t.done < total; {
		k := min(total-t.done, tablePiece)
		if err := read(piece[:k]); err != nil {
			return nil, err
		}
		if err := t.add(piece[:k]); err != nil {
			return nil, err
		}
	}
	return t.table()
}

func (t *sparseBuilder) add(values []float64) error {
	// The first condition asks whether dense storage needs less memory than the non-zeros.
	if t.dense == nil && (len(t.nonZeros.Row)*dataset.SparseDivisor > t.done+denseSlack || t.rows > 2*maxSparse || len(t.nonZeros.Row) > maxSparse) {
		if err := t.makeDense(); err != nil {
			return err
		}
	}
	if t.dense != nil {
		t.done += len(values)
		return t.dense.add(values)
	}
	for _, v := range values {
		if v != 0 {
			t.startColumns(t.done / t.rows)
			t.nonZeros.Row = append(t.nonZeros.Row, int32(t.done%t.rows))
			t.nonZeros.Values = append(t.nonZeros.Values, v)
		}
		t.done++
	}
	return nil
}

// startColumns records where the columns up to number c begin.
func (t *sparseBuilder) startColumns(c int) {
	for len(t.nonZeros.Start) <= c {
		t.nonZeros.Start = append(t.nonZeros.Start, int32(len(t.nonZeros.Row)))
	}
}

// makeDense changes to dense storage.
func (t *sparseBuilder) makeDense() error {
	t.startColumns(t.columns)
	t.dense = newColumnSpool[float32](t.rows, t.columns)
	at := 0 // values so far
	for c := range t.columns {
		for k := t.nonZeros.Start[c]; k < t.nonZeros.Start[c+1]; k++ {
			next := c*t.rows + int(t.nonZeros.Row[k])
			if err := t.dense.zeros(next - at); err != nil {
				return err
			}
			if err := t.dense.add(t.nonZeros.Values[k : k+1]); err != nil {
				return err
			}
			at = next + 1
		}
	}
	t.nonZeros = matfile.SparseMatrix{}
	return t.dense.zeros(t.done - at)
}

// table returns the matrix by rows: sparse if SparseStorage says so.
func (t *sparseBuilder) table() (*table, error) {
	if t.dense == nil && !dataset.SparseStorage(t.rows, t.columns, int64(len(t.nonZeros.Row))) {
		if err := t.makeDense(); err != nil {
			return nil, err
		}
	}
	if t.dense == nil {
		t.startColumns(t.columns)
		return byRows(t.rows, t.columns, &t.nonZeros), nil
	}
	dense, file, err := t.dense.end()
	return &table{rows: t.rows, columns: t.columns, dense: dense, file: file}, err
}

// rowCountError is the error for features and another array with a different number of rows. It says which of them fits if it
// is transposed, and how that is done: numpyTranspose or matlabTranspose.
func rowCountError(features, other sides, transpose string) error {
	wide := features.columns == other.rows
	otherWide := other.columns > 1 && other.columns == features.rows
	both := features.columns == other.columns && other.columns > max(features.rows, other.rows)
	advice := ""
	switch {
	case wide && otherWide:
		advice = fmt.Sprintf("; %q or %q seems to be transposed: %s", features.name, other.name, transpose)
	case both:
		advice = fmt.Sprintf("; %q and %q seem to be transposed: %s", features.name, other.name, transpose)
	case wide:
		advice = fmt.Sprintf("; %q is %d x %d and seems to be transposed: %s", features.name, features.rows, features.columns, transpose)
	case otherWide:
		advice = fmt.Sprintf("; %q is %d x %d and seems to be transposed: %s", other.name, other.rows, other.columns, transpose)
	}
	return dataset.Errorf(dataset.ErrRowCount, "the numbers of rows must be equal, but %q has %s and %q has %d%s", features.name, dataset.Counted(features.rows, "row"), other.name, other.rows, advice)
}

// sides are the name and the shape of an array that has a row for each row of the data.
type sides struct {
	name          string
	rows, columns int
}

// Advice of rowCountError for files of NumPy and of MATLAB.
const (
	numpyTranspose  = "x.T transposes an array x in NumPy"
	matlabTranspose = "x.' transposes an array x in MATLAB"
)

// inexactError says what to do about an array of classes or groups that are floats which may stand for several numbers.
func inexactError(err error) error {
	if errors.Is(err, matfile.ErrInexact) || errors.Is(err, npy.ErrInexact) {
		return dataset.Errorf(dataset.ErrAmbiguous, "%w; write whole numbers (int64 or uint64) or texts", err)
	}
	return err
}
