package matfile

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
		return nil, fmt.Errorf("the text has %d characters of data type %d, want %d x %d: %w", t.n, kind, a.Rows, a.Columns, ErrFormat)
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
				return nil, fmt.Errorf("row %d (counted from 0) is not valid UTF-16, because half of a surrogate pair is missing: %w", i, ErrFormat)
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
