package matfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// Class is an array's type (table 1-3 of the format's description).
type Class uint8

// The classes. Struct and those after it hold other arrays or objects, which are not read.
const (
	Cell     Class = 1
	Struct   Class = 2
	Object   Class = 3 // of a class of MATLAB 5 to 7
	Char     Class = 4
	Sparse   Class = 5
	Double   Class = 6
	Single   Class = 7
	Uint64   Class = 15 // the last of the numeric classes
	Function Class = 16
	Opaque   Class = 17 // an object of another class, such as a table
)

// String names the class as MATLAB does.
func (c Class) String() string {
	names := []string{
		Cell: "cell", Struct: "struct", Object: "object", Char: "char", Sparse: "sparse double", Double: "double",
		Single: "single",
		8:      "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32", 14: "int64", Uint64: "uint64",
		Function: "function_handle", Opaque: "object",
	}
	if int(c) < len(names) && names[c] != "" {
		return names[c]
	}
	return "unknown"
}

const (
	flagComplex = 0x0800
	maxName     = 1 << 10 // bytes of an array's name
	maxDims     = 32
)

// Array is an array of a MAT-file: its head, and its values on demand.
type Array struct {
	Name  string
	Class Class
	// Rows and Columns are its dimensions; more than two are only readable where
	// all others are 1. An Opaque array has none.
	Rows, Columns int
	// Of names the class of an Object or an Opaque array, such as "table".
	Of string
	// Fields are the names of the fields of a Struct or an Object, at most maxFields of them.
	Fields []string

	s       *stream
	complex bool
	dims    []int32
}

// readArray reads the head of an array.
func readArray(s *stream) (*Array, error) {
	flags, err := s.ints(2)
	if err != nil {
		return nil, err
	}
	if len(flags) != 2 {
		return nil, fmt.Errorf("the file is damaged: an array has %d words of flags, want 2: %w", len(flags), ErrFormat)
	}
	a := &Array{Class: Class(flags[0] & 0xff), complex: flags[0]&flagComplex != 0, s: s}
	if a.Class == 0 || a.Class > Opaque {
		return a, nil
	}
	if a.Class == Opaque {
		return a, a.described(a.opaque())
	}
	if a.dims, err = s.ints(maxDims); err != nil {
		return nil, err
	}
	if a.Name, err = s.name(); err != nil {
		return nil, err
	}
	if len(a.dims) < 2 {
		return a, fmt.Errorf("the file is damaged: array %q has %d dimensions, which is not possible: %w", a.Name,
			len(a.dims), ErrFormat)
	}
	for _, d := range a.dims {
		if d < 0 {
			return a, fmt.Errorf("the file is damaged: array %q has a dimension of %d, which is not possible: %w", a.Name,
				d, ErrFormat)
		}
	}
	a.Rows, a.Columns = int(a.dims[0]), int(a.dims[1])
	if a.Class != Struct && a.Class != Object {
		return a, nil
	}
	return a, a.described(a.fields())
}

// described returns the error of reading what only describes an array whose values are not read: those of
// the format do not count.
func (a *Array) described(err error) error {
	if err == nil || errors.Is(err, ErrFormat) {
		return nil
	}
	return fmt.Errorf("array %q: %w", a.Name, err)
}

// name reads the name of an array or of a class.
func (s *stream) name() (string, error) {
	kind, name, err := s.bytes(maxName)
	if err != nil {
		return "", err
	}
	if kind != miINT8 && kind != miUTF8 {
		return "", fmt.Errorf("the file is damaged: the name of an array has the data type %d, want text: %w",
			kind, ErrFormat)
	}
	return string(name), nil
}

// opaque reads the head of an object that is no array: its name, the system that it is of ("MCOS" or "java"), and its
// class.
func (a *Array) opaque() (err error) {
	if a.Name, err = a.s.name(); err != nil {
		return err
	}
	if _, err = a.s.name(); err == nil {
		a.Of, err = a.s.name()
	}
	return err
}

// maxFields bounds the names of fields that are kept.
const maxFields = 20

// fields reads the class of an Object, and the names of the fields, each of so many bytes.
func (a *Array) fields() (err error) {
	if a.Class == Object {
		if a.Of, err = a.s.name(); err != nil {
			return err
		}
	}
	width, err := a.s.ints(1)
	if err != nil {
		return err
	}
	kind, names, err := a.s.bytes(maxText)
	if err != nil {
		return err
	}
	if len(width) != 1 || width[0] < 1 || width[0] > maxName || kind != miINT8 && kind != miUTF8 {
		return fmt.Errorf("the file is damaged: the field names of a struct have length %v and data type %d: %w", width,
			kind, ErrFormat)
	}
	for n := int(width[0]); len(names) >= n && len(a.Fields) < maxFields; names = names[n:] {
		name, _, _ := bytes.Cut(names[:n], []byte{0})
		a.Fields = append(a.Fields, string(name))
	}
	return nil
}

// Complex reports whether the array holds complex numbers.
func (a *Array) Complex() bool { return a.complex }

// Flat reports whether the array has two dimensions, but for others that are 1.
func (a *Array) Flat() bool {
	for _, d := range a.dims[min(2, len(a.dims)):] {
		if d != 1 {
			return false
		}
	}
	return true
}

// Kind describes what the array is in words, such as "single", "complex double", "table" or "struct with the fields x,
// y".
func (a *Array) Kind() string {
	switch {
	case a.Of != "":
		return a.Of
	case a.Class == Struct:
		names := strings.Join(a.Fields, ", ")
		switch len(a.Fields) {
		case 0:
			return "struct without fields"
		case 1:
			return "struct with the field " + names
		case maxFields:
			names += ", ..."
		}
		return "struct with the fields " + names
	case a.complex:
		return "complex " + a.Class.String()
	}
	return a.Class.String()
}

// Dims lists the dimensions; an Opaque array has none.
func (a *Array) Dims() (dims []int) {
	for _, d := range a.dims {
		dims = append(dims, int(d))
	}
	return dims
}

// Numeric reports whether the array has Numbers; Sparse arrays are not Numeric.
func (a *Array) Numeric() bool { return a.Class >= Double && a.Class <= Uint64 }

func (a *Array) readable() error {
	switch {
	case len(a.dims) < 2:
		return a.kindError("want an array")
	case !a.Flat():
		return fmt.Errorf("array %q has %d dimensions, want two: %w", a.Name, len(a.dims), ErrKind)
	case a.complex:
		return a.kindError("want real numbers")
	}
	return nil
}

// kindError says that the array is not of the kind that is expected.
func (a *Array) kindError(expected string) error {
	return fmt.Errorf("variable %q has class %s, %s: %w", a.Name, a.Kind(), expected, ErrKind)
}

// Numbers returns the values of a Numeric array column by column: their bytes, and what describes them. After the last
// byte the reader says whether the checksum of a compressed array is right.
func (a *Array) Numbers() (npy.Header, io.Reader, error) {
	if err := a.readable(); err != nil {
		return npy.Header{}, nil, err
	}
	if !a.Numeric() {
		return npy.Header{}, nil, a.kindError("want numbers")
	}
	n, err := openNumbers(a.s)
	if err != nil {
		return npy.Header{}, nil, fmt.Errorf("array %q: %w", a.Name, err)
	}
	if n.count() != int64(a.Rows)*int64(a.Columns) {
		return npy.Header{}, nil, fmt.Errorf("the file is damaged: array %q has %d values, want %d x %d: %w", a.Name,
			n.count(), a.Rows, a.Columns, ErrFormat)
	}
	n.Fortran, n.Shape = true, []int{a.Rows, a.Columns}
	return n.Header, n, nil
}

// SparseMatrix holds the non-zeros of a matrix by columns: those of column j are
// at Start[j] to Start[j+1]-1, at ascending rows.
type SparseMatrix struct {
	Row    []int32
	Start  []int32
	Values []float64
}

// ReadSparse reads a Sparse array of at most limit non-zeros; of more, the error is
// ErrSize.
func (a *Array) ReadSparse(limit int) (*SparseMatrix, error) {
	if err := a.readable(); err != nil {
		return nil, err
	}
	if a.Class != Sparse {
		return nil, a.kindError("want a sparse matrix")
	}
	m, err := a.readSparse(limit)
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", a.Name, err)
	}
	return m, m.check(a)
}

func (a *Array) readSparse(limit int) (*SparseMatrix, error) {
	var parts [2][]int32
	for i := range parts {
		n, err := openNumbers(a.s)
		if err != nil {
			return nil, err
		}
		if n.kind != miINT32 && n.kind != miUINT32 {
			return nil, fmt.Errorf("the indices of a sparse matrix have the data type %d, want 32-bit integers: %w",
				n.kind, ErrFormat)
		}
		if i == 0 && n.count() > int64(limit) {
			return nil, fmt.Errorf("a sparse matrix has %d non-zero values, which is not possible: %w", n.count(), ErrSize)
		}
		if i == 1 && n.count() != int64(a.Columns)+1 {
			return nil, fmt.Errorf("a sparse matrix of %d columns has %d column starts, want one more than columns: %w",
				a.Columns, n.count(), ErrFormat)
		}
		parts[i], err = readAll(n, func(v float64) int32 { return int32(min(max(v, -1), math.MaxInt32)) })
		if err != nil {
			return nil, err
		}
	}
	n, err := openNumbers(a.s)
	if err != nil {
		return nil, err
	}
	if n.count() > int64(limit) {
		return nil, fmt.Errorf("a sparse matrix has %d non-zero values, which is not possible: %w", n.count(), ErrSize)
	}
	values, err := readAll(n, func(v float64) float64 { return v })
	return &SparseMatrix{parts[0], parts[1], values}, err
}

func (m *SparseMatrix) check(a *Array) error {
	wrong := func(what string) error { return fmt.Errorf("array %q is damaged: %s: %w", a.Name, what, ErrFormat) }
	if len(m.Start) != a.Columns+1 || m.Start[0] != 0 {
		return wrong("the column starts of a sparse matrix are wrong")
	}
	n := int(m.Start[a.Columns])
	for j := range a.Columns {
		if m.Start[j] > m.Start[j+1] {
			return wrong("the column starts of the sparse matrix must ascend")
		}
	}
	if n < 0 || n > len(m.Row) || n > len(m.Values) {
		return wrong("values of the sparse matrix are missing")
	}
	m.Row, m.Values = m.Row[:n], m.Values[:n]
	for j := range a.Columns {
		last := int32(-1)
		for _, i := range m.Row[m.Start[j]:m.Start[j+1]] {
			if i <= last || int(i) >= a.Rows {
				return wrong("the rows of the sparse matrix must ascend")
			}
			last = i
		}
	}
	return nil
}

const (
	maxStrings = 1 << 24
	maxText    = 1 << 26 // bytes of one character array
)

// Strings reads a cell array of strings, or the rows of a character array
// without their trailing blanks.
func (a *Array) Strings() (all []string, err error) {
	if err := a.readable(); err != nil {
		return nil, err
	}
	switch a.Class {
	case Cell:
		all, err = a.cells()
	case Char:
		all, err = a.lines()
	default:
		return nil, a.kindError("want texts")
	}
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", a.Name, err)
	}
	return all, nil
}

func (a *Array) cells() ([]string, error) {
	n := int64(a.Rows) * int64(a.Columns)
	if n > maxStrings {
		return nil, fmt.Errorf("the cell array has %d cells, which is too many: %w", n, ErrKind)
	}
	var all []string
	for i := range n {
		cell, err := a.cell()
		if err != nil {
			return nil, fmt.Errorf("cell %d (counted from 0): %w", i, err)
		}
		all = append(all, cell)
	}
	return all, a.s.close()
}

// cell reads the next cell, which is an array of its own; one without elements, such as [], has no text.
func (a *Array) cell() (string, error) {
	t, err := a.s.tag()
	if err != nil {
		return "", err
	}
	if t.kind != miMATRIX || t.size > a.s.left {
		return "", fmt.Errorf("the cell has no array: %w", ErrFormat)
	}
	if t.size == 0 {
		return "", nil
	}
	inner := &stream{in: a.s.in, order: a.s.order, left: t.size}
	a.s.left -= t.size
	c, err := readArray(inner)
	if err != nil {
		return "", err
	}
	switch empty := len(c.dims) == 2 && (c.Rows == 0 || c.Columns == 0); {
	case empty && (c.Class == Char || c.Numeric()):
		return "", inner.skip()
	case c.Class != Char:
		return "", fmt.Errorf("the cell has class %s, want text: %w", c.Kind(), ErrKind)
	case c.Rows != 1 || !c.Flat():
		return "", fmt.Errorf("the cell has %d lines of text, want one: %w", c.Rows, ErrKind)
	}
	lines, err := c.lines()
	if err != nil {
		return "", err
	}
	if inner.left != 0 {
		return "", fmt.Errorf("the cell is longer than its text: %w", ErrFormat)
	}
	return lines[0], nil
}

// lines reads a character array, which is stored by columns.
func (a *Array) lines() ([]string, error) {
	kind, b, err := a.s.bytes(maxText)
	if err != nil {
		return nil, err
	}
	n := int64(a.Rows) * int64(a.Columns)
	t, err := a.s.characters(kind, b, n)
	if err != nil {
		return nil, err
	}
	if t.n != n {
		return nil, fmt.Errorf("the text has %d characters of data type %d, want %d x %d: %w", t.n, kind, a.Rows,
			a.Columns, ErrFormat)
	}
	if a.Columns == 0 { // rows without characters need no bytes: do not believe their number
		return nil, a.s.close()
	}
	lines, line := make([]string, a.Rows), make([]rune, 0, a.Columns)
	for i := range lines {
		line = line[:0]
		for j := range a.Columns {
			line = append(line, t.at(int64(j*a.Rows+i)))
		}
		if t.units {
			if line = joined(line); line == nil {
				return nil, fmt.Errorf("row %d (counted from 0) is not valid UTF-16, because half of a surrogate pair is "+
					"missing: %w", i, ErrFormat)
			}
		}
		lines[i] = strings.TrimRight(string(line), " \x00")
	}
	return lines, a.s.close()
}

// joined turns units of UTF-16 into characters, in place; nil: a pair is not whole.
func joined(units []rune) []rune {
	out := units[:0]
	for i := 0; i < len(units); i++ {
		c := units[i]
		if utf16.IsSurrogate(c) {
			if i++; i == len(units) {
				return nil
			}
			if c = utf16.DecodeRune(c, units[i]); c == utf8.RuneError {
				return nil
			}
		}
		out = append(out, c)
	}
	return out
}

// characters are those of a character array, in the order of the file. MATLAB counts units of UTF-16: a character
// above U+FFFF has two, which stand in neighbouring columns.
type characters struct {
	at    func(int64) rune
	n     int64
	units bool // at returns units of UTF-16, and some are halves of pairs
}

// characters returns what b has, of n characters or units.
func (s *stream) characters(kind uint32, b []byte, n int64) (t characters, err error) {
	switch kind {
	case miINT8, miUINT8:
		return characters{at: func(i int64) rune { return rune(b[i]) }, n: int64(len(b))}, nil
	case miUTF8:
		if !utf8.Valid(b) {
			return t, fmt.Errorf("the text is not valid UTF-8: %w", ErrFormat)
		}
		if utf8.RuneCount(b) == len(b) {
			return characters{at: func(i int64) rune { return rune(b[i]) }, n: int64(len(b))}, nil
		}
		text := []rune(string(b))
		if int64(len(text)) == n { // as SciPy counts
			return characters{at: func(i int64) rune { return text[i] }, n: n}, nil
		}
		units := utf16.Encode(text)
		return characters{at: func(i int64) rune { return rune(units[i]) }, n: int64(len(units)), units: true}, nil
	case miUINT16, miUTF16:
		t = characters{at: func(i int64) rune { return rune(s.order.Uint16(b[2*i:])) }, n: int64(len(b) / 2)}
		for i := range t.n {
			t.units = t.units || utf16.IsSurrogate(t.at(i))
		}
		return t, nil
	}
	if len(b) > 0 {
		return t, fmt.Errorf("the text has the unknown data type %d: %w", kind, ErrFormat)
	}
	return t, nil
}
