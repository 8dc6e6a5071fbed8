package read

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/units"
)

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
	rows, columns, _ := r.Dims()
	values := int64(rows) * int64(columns) // below 2^56, see checkSize
	var in io.ReaderAt
	if values > math.MaxInt64/16 {
		err = npy.ErrTruncated
	} else {
		var size int64
		in, size, err = a.random()
		switch want := r.Bytes + values*int64(r.Size); {
		case err != nil:
		case size < want:
			err = npy.ErrTruncated
		case size > want:
			err = fmt.Errorf("more bytes follow the end of the array: %w", npy.ErrFormat)
		}
	}
	if err != nil {
		r.Close()
		return nil, arrayError(a.name, err)
	}
	f := &columnFile{in: in, base: r.Bytes, rows: rows, columns: columns, size: r.Size, decode: r.Decode}
	m.columns = f.begin()
	return m, nil
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

// textColumn reads an array of one text or number for each row if check has no error for their number.
func (a *array) textColumn(check func(n int) error) (*textColumn, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, err := r.Column()
	if err != nil {
		return nil, arrayError(a.name, err)
	}
	if err := check(rows); err != nil {
		return nil, err
	}
	var all textColumn
	for i := range rows {
		text, err := r.text()
		if err == nil {
			err = all.add(text)
		}
		if err != nil {
			return nil, fmt.Errorf("row %d (counted from 0): %w", i, err)
		}
	}
	return &all, nil
}

// column reads an array of one number for each row if check has no error for their number; memory follows the
// bytes that are there.
func (a *array) column(check func(n int) error) (all []float64, err error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, columns, ok := r.Dims()
	if !ok || columns != 1 || rows > dataset.MaxRows {
		return nil, fmt.Errorf("%q: want one number for each sample: %w", a.name, dataset.ErrFormat)
	}
	if err := check(rows); err != nil {
		return nil, err
	}
	var piece [tablePiece]float64
	for left := rows; left > 0; {
		k := min(left, tablePiece)
		if err := r.read(piece[:k]); err != nil {
			return nil, err
		}
		all, left = append(all, piece[:k]...), left-k
	}
	return all, nil
}

// readIntegers reads all elements of a short array of whole numbers.
func (a *array) readIntegers(dst []float64) error {
	n, err := a.elements(true)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("%q has %s values, want %d: %w", a.name, units.Count(n), len(dst), dataset.ErrFormat)
	}
	r, err := a.begin()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.read(dst); err != nil {
		return err
	}
	return arrayError(a.name, r.End())
}

// elements returns the number of elements of an array of one dimension. Its elements must be numbers, and integers if
// whole.
func (a *array) elements(whole bool) (int, error) {
	h, err := a.header()
	if err != nil {
		return 0, err
	}
	text, integer := h.Kind == 'U' || h.Kind == 'S', h.Kind == 'i' || h.Kind == 'u'
	switch {
	case len(h.Shape) != 1:
		return 0, fmt.Errorf("%q has %d dimensions, want one: %w", a.name, len(h.Shape), dataset.ErrFormat)
	case whole && !integer:
		return 0, fmt.Errorf("%q has elements of type %s, want integers: %w", a.name, h.Type(), dataset.ErrFormat)
	case text:
		return 0, fmt.Errorf("%q holds texts, want numbers: %w", a.name, dataset.ErrFormat)
	}
	return h.Shape[0], nil
}

// array is one array of a .npz or .npy file, which can be opened many times.
type array struct {
	name string // for messages
	open func() (in io.ReadCloser, size int64, err error)
	// random opens the bytes for random access, and returns their number.
	random func() (in io.ReaderAt, size int64, err error)
	seeks  io.ReaderAt // what random gave, and how many bytes
	size   int64
	most   int64 // bytes that it may unpack to; 0: it is not packed
	wanted contents
	head   *npy.Header // of elements without a header of their own
	texts  []string    // the elements, if they are texts in memory
}

// storedArray is an array whose elements were copied, without a header.
func storedArray(name string, h npy.Header, elements io.ReaderAt) *array {
	n, _ := h.Elements()
	size := n * int64(h.Size)
	return &array{
		name: name, head: &h,
		open: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(io.NewSectionReader(elements, 0, size)), size, nil
		},
		random: func() (io.ReaderAt, int64, error) { return elements, size, nil },
	}
}

// numbersArray is an array of numbers in memory; kind is that of a Header.
func numbersArray[T uint32 | float64](name string, kind byte, values []T, shape ...int) *array {
	b := dataset.NativeBytes(values)
	h := npy.Header{Kind: kind, Size: binary.Size(*new(T)), Order: binary.NativeEndian, Shape: shape}
	return storedArray(name, h, bytes.NewReader(b))
}

// typeError adds to an error about the type of the elements what makes others of them.
func (a *array) typeError(err error) error {
	other := (*npy.TypeError)(nil)
	if !errors.As(err, &other) {
		return err
	}
	var ways []string
	if a.wanted != asTexts && other.Numbers != "" {
		ways = append(ways, other.Numbers+" converts it to numbers")
	}
	if a.wanted != asNumbers && other.Texts != "" {
		ways = append(ways, other.Texts+" converts it to texts")
	}
	if len(ways) == 0 {
		ways = []string{"save numbers as float64 and texts as str"}
	}
	return dataset.Errorf(other, "array elements of type %s cannot be read; in NumPy, for an array x, %s", other.Type,
		strings.Join(ways, " and "))
}

// header reads just the array's header.
func (a *array) header() (*npy.Header, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return &r.Header, nil
}

// begin opens the array at its first element, which has all the elements that its header says.
func (a *array) begin() (*openArray, error) {
	if a.texts != nil {
		h := npy.Header{Kind: 'U', Size: 4, Shape: []int{len(a.texts)}}
		return &openArray{Reader: npy.NewReaderOf(h, nil), Closer: io.NopCloser(nil), name: a.name, texts: a.texts}, nil
	}
	in, size, err := a.open()
	if err != nil {
		return nil, err
	}
	var r *npy.Reader
	if b := bufio.NewReaderSize(in, 1<<16); a.head != nil {
		r = npy.NewReaderOf(*a.head, b)
	} else {
		r, err = npy.NewReader(b)
	}
	if err == nil {
		err = a.checkSize(&r.Header, size)
	}
	if err != nil {
		in.Close()
		return nil, arrayError(a.name, a.typeError(err))
	}
	return &openArray{Reader: r, Closer: in, name: a.name, texts: nil}, nil
}

// checkSize compares the bytes of an array with its bound and with its header.
func (a *array) checkSize(h *npy.Header, size int64) error {
	if a.most > 0 && (size < 0 || size > a.most) {
		return expansionError("the array", unpackedAdvice)
	}
	if want, ok := h.Elements(); !ok || int64(h.Size) > 0 && want > (size-h.Bytes)/int64(h.Size) {
		return fmt.Errorf("an array of shape %v with %d bytes for each element does not fit in the %d bytes of the file: %w",
			h.Shape, h.Size, max(0, size-h.Bytes), npy.ErrTruncated)
	}
	return nil
}

// contents is what an array is read as, for messages.
type contents uint8

type openArray struct {
	*npy.Reader
	io.Closer
	name  string
	texts []string // those that text returns next, if they are in memory
}

// text reads the next element of an array of strings.
func (r *openArray) text() (string, error) {
	if len(r.texts) > 0 {
		s := r.texts[0]
		r.texts = r.texts[1:]
		return s, nil
	}
	s, err := r.ReadText()
	if err = arrayError(r.name, err); errors.Is(err, npy.ErrInexact) {
		err = dataset.Errorf(dataset.ErrAmbiguous, "%w; write whole numbers (int64 or uint64) or texts", err)
	}
	return s, err
}

func (r *openArray) read(dst []float64) error { return arrayError(r.name, r.ReadFloats(dst)) }

// unpackedAdvice says how to write arrays that take more bytes than a packed file may have.
const unpackedAdvice = "write the file with numpy.savez, which does not compress, or write mostly-zero data as .libsvm"

func arrayError(name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, npy.ErrType) {
		return dataset.Errorf(dataset.ErrFormat, "%q: %w", name, err)
	}
	known := errors.Is(err, npy.ErrFormat) || errors.Is(err, npy.ErrTruncated)
	if known || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) {
		return fmt.Errorf("%q: %w: %w", name, err, dataset.ErrFormat)
	}
	return fmt.Errorf("%q: %w", name, err)
}

// matrixReader reads the rows of an array of numbers in order.
type matrixReader struct {
	*openArray
	width   int
	row     []float64
	columns *columnReader // of an array in Fortran order; nil for others
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

// spool copies in, which must have size bytes, to memory or, if it is large, to a temporary
// file.
func spool(in io.Reader, size int64) (io.ReaderAt, error) {
	var b bytes.Buffer
	var f *os.File
	out := io.Writer(&b)
	if size > smallSpool {
		var err error
		if f, err = tempFile(size); err != nil {
			return nil, err
		}
		out = f
	}
	n, err := io.Copy(out, io.LimitReader(in, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("the array is damaged: it has %d bytes, want %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	switch {
	case f == nil:
		return bytes.NewReader(b.Bytes()), err
	case err != nil:
		f.Close()
		return nil, err
	}
	return f, nil
}

func shapeOf(name string, h *npy.Header, limit int) (rows, columns int, err error) {
	rows, columns, ok := h.Dims()
	if !ok {
		return 0, 0,
			fmt.Errorf("array %q has %d dimensions, want two; only the features of images may have three or four: %w", name,
				len(h.Shape), dataset.ErrFormat)
	}
	if h.Kind == 'U' || h.Kind == 'S' {
		return 0, 0, dataset.Errorf(dataset.ErrFormat, "array %q holds texts, want numbers; in NumPy, x.astype(float) "+
			"converts an array x", name)
	}
	return rows, columns, checkSize(name, rows, columns, limit)
}

// readStrings reads an array of strings into memory if check has no error for their number.
func readStrings(a *array, check func(n int) error) ([]string, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n, err := r.Texts()
	if err != nil {
		return nil, arrayError(a.name, err)
	}
	if err := check(n); err != nil || a.texts != nil {
		return a.texts, err
	}
	all, err := r.ReadStrings()
	return all, arrayError(a.name, err)
}

const (
	asNumbers contents = iota
	asTexts
	asEither
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
	wide := features.columns == other.rows || other.columns > 1 && other.columns == features.rows
	both := features.columns == other.columns && other.columns > max(features.rows, other.rows)
	if wide || both {
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

// textColumn has a text for each row, in two bytes a row.
type textColumn struct {
	rows  []uint16
	texts []string
	at    map[string]uint16
}

// add appends the text of a row.
func (c *textColumn) add(text string) error {
	i, ok := c.at[text]
	if !ok {
		if len(c.texts) == maxTexts {
			return fmt.Errorf("a column of texts has more than %s different values: %w", units.Count(maxTexts),
				dataset.ErrFormat)
		}
		if c.at == nil {
			c.at = map[string]uint16{}
		}
		text = strings.Clone(text)
		i = uint16(len(c.texts))
		c.texts, c.at[text] = append(c.texts, text), i
	}
	c.rows = append(c.rows, i)
	return nil
}

// text returns the text of a row.
func (c *textColumn) text(row int) string { return c.texts[c.rows[row]] }

// maxTexts bounds the different texts of a textColumn: there are at most as many classes, or groups.
const maxTexts = 1 << 16
