package matfile

import (
	"fmt"
	"math"
)

// Class is an array's type (table 1-3 of the format's description).
type Class uint8

// The classes that can be read.
const (
	Cell   Class = 1
	Char   Class = 4
	Sparse Class = 5
	Double Class = 6
	Single Class = 7
	Uint64 Class = 15 // the last of the numeric classes
)

// String names the class as MATLAB does.
func (c Class) String() string {
	names := []string{
		Cell: "cell", 2: "struct", 3: "object", Char: "char", Sparse: "sparse double", Double: "double", Single: "single",
		8: "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32", 14: "int64", Uint64: "uint64",
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
	// all others are 1.
	Rows, Columns int

	s       *stream
	complex bool
	dims    []int32
	values  *numbers // once reading has begun
}

// readArray reads the head of an array.
func readArray(s *stream) (*Array, error) {
	flags, err := s.ints(2)
	if err != nil {
		return nil, err
	}
	if len(flags) != 2 {
		return nil, fmt.Errorf("array flags of %d words: %w", len(flags), ErrFormat)
	}
	a := &Array{Class: Class(flags[0] & 0xff), complex: flags[0]&flagComplex != 0, s: s}
	if a.Class == 0 || a.Class > Uint64 { // function handles and opaque objects have other heads
		return a, nil
	}
	if a.dims, err = s.ints(maxDims); err != nil {
		return nil, err
	}
	kind, name, err := s.bytes(maxName)
	if err != nil {
		return nil, err
	}
	if kind != miINT8 && kind != miUTF8 {
		return nil, fmt.Errorf("an array's name of type %d: %w", kind, ErrFormat)
	}
	a.Name = string(name)
	return a, a.shape()
}

func (a *Array) shape() error {
	if len(a.dims) < 2 {
		return fmt.Errorf("%q has %d dimensions: %w", a.Name, len(a.dims), ErrFormat)
	}
	for _, d := range a.dims {
		if d < 0 {
			return fmt.Errorf("%q has a dimension of %d: %w", a.Name, d, ErrFormat)
		}
	}
	a.Rows, a.Columns = int(a.dims[0]), int(a.dims[1])
	return nil
}

func (a *Array) flat() bool {
	for _, d := range a.dims[2:] {
		if d != 1 {
			return false
		}
	}
	return true
}

// Numeric reports whether Read will do; Sparse arrays are not Numeric.
func (a *Array) Numeric() bool { return a.Class >= Double && a.Class <= Uint64 }

func (a *Array) readable() error {
	switch {
	case len(a.dims) < 2 || !a.flat():
		return fmt.Errorf("%q does not have two dimensions: %w", a.Name, ErrKind)
	case a.complex:
		return fmt.Errorf("%q holds complex numbers: %w", a.Name, ErrKind)
	}
	return nil
}

// Read reads the next len(dst) values of a Numeric array, column by column. An
// array has Rows×Columns of them; once these are read, the checksum of a
// compressed array has been checked.
func (a *Array) Read(dst []float64) error {
	if a.values == nil {
		if err := a.begin(); err != nil {
			return err
		}
	}
	if err := a.values.read(dst); err != nil {
		return fmt.Errorf("%q: %w", a.Name, err)
	}
	return nil
}

// ReadText reads the next value of a Numeric array, as Read does, as a text: a whole number has all its digits, any other
// number as few as tell it from others of its class. Floats that several whole numbers round to are an error
// that wraps ErrInexact.
func (a *Array) ReadText() (text string, err error) {
	if a.values == nil {
		if err := a.begin(); err != nil {
			return "", err
		}
	}
	bits := 64
	if a.Class == Single {
		bits = 32
	}
	if text, err = a.values.text(bits); err != nil {
		return "", fmt.Errorf("%q: %w", a.Name, err)
	}
	return text, nil
}

func (a *Array) begin() error {
	if err := a.readable(); err != nil {
		return err
	}
	if !a.Numeric() {
		return fmt.Errorf("%q is not numeric (class %d): %w", a.Name, a.Class, ErrKind)
	}
	n, err := openNumbers(a.s)
	if err != nil {
		return fmt.Errorf("%q: %w", a.Name, err)
	}
	if n.left != int64(a.Rows)*int64(a.Columns) {
		return fmt.Errorf("%q holds %d values, %d x %d are expected: %w", a.Name, n.left, a.Rows, a.Columns, ErrFormat)
	}
	a.values = n
	return nil
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
		return nil, fmt.Errorf("%q is not sparse (class %d): %w", a.Name, a.Class, ErrKind)
	}
	m, err := a.readSparse(limit)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", a.Name, err)
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
			return nil, fmt.Errorf("indices of type %d: %w", n.kind, ErrFormat)
		}
		if i == 0 && n.left > int64(limit) {
			return nil, fmt.Errorf("a sparse matrix of %d non-zero values: %w", n.left, ErrSize)
		}
		if i == 1 && n.left != int64(a.Columns)+1 {
			return nil, fmt.Errorf("a sparse matrix of %d columns with %d column starts: %w", a.Columns, n.left, ErrFormat)
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
	if n.left > int64(limit) {
		return nil, fmt.Errorf("a sparse matrix of %d non-zero values: %w", n.left, ErrSize)
	}
	values, err := readAll(n, func(v float64) float64 { return v })
	return &SparseMatrix{parts[0], parts[1], values}, err
}

func (m *SparseMatrix) check(a *Array) error {
	wrong := func(what string) error { return fmt.Errorf("%q: %s: %w", a.Name, what, ErrFormat) }
	if len(m.Start) != a.Columns+1 || m.Start[0] != 0 {
		return wrong("the column starts of a sparse matrix are wrong")
	}
	n := int(m.Start[a.Columns])
	for j := range a.Columns {
		if m.Start[j] > m.Start[j+1] {
			return wrong("the column starts of a sparse matrix descend")
		}
	}
	if n < 0 || n > len(m.Row) || n > len(m.Values) {
		return wrong("a sparse matrix lacks values")
	}
	m.Row, m.Values = m.Row[:n], m.Values[:n]
	for j := range a.Columns {
		last := int32(-1)
		for _, i := range m.Row[m.Start[j]:m.Start[j+1]] {
			if i <= last || int(i) >= a.Rows {
				return wrong("the rows of a sparse matrix do not ascend")
			}
			last = i
		}
	}
	return nil
}
