package matfile

import (
	"bytes"
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
func (a *Array) Strings() ([]string, error) {
	if err := a.readable(); err != nil {
		return nil, err
	}
	switch a.Class {
	case Cell:
		return a.cells()
	case Char:
		return a.lines()
	}
	return nil, fmt.Errorf("%q is not text (class %d): %w", a.Name, a.Class, ErrKind)
}

func (a *Array) cells() ([]string, error) {
	n := int64(a.Rows) * int64(a.Columns)
	if n > maxStrings {
		return nil, fmt.Errorf("%q has %d cells: %w", a.Name, n, ErrKind)
	}
	var all []string
	for i := range n {
		cell, err := a.cell(i)
		if err != nil {
			return nil, err
		}
		all = append(all, cell)
	}
	return all, a.s.close()
}

// cell reads one cell, which is an array of its own.
func (a *Array) cell(i int64) (string, error) {
	t, err := a.s.tag()
	if err != nil {
		return "", err
	}
	if t.kind != miMATRIX || t.size > a.s.left {
		return "", fmt.Errorf("cell %d of %q is no array: %w", i, a.Name, ErrFormat)
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
	if c.Class != Char || c.Rows > 1 || len(c.dims) < 2 {
		return "", fmt.Errorf("cell %d of %q is not one string: %w", i, a.Name, ErrKind)
	}
	lines, err := c.lines()
	if err != nil {
		return "", err
	}
	if inner.left != 0 {
		return "", fmt.Errorf("cell %d of %q is longer than its string: %w", i, a.Name, ErrFormat)
	}
	return strings.Join(lines, ""), nil
}

// lines reads a character array, which is stored by columns.
func (a *Array) lines() ([]string, error) {
	kind, b, err := a.s.bytes(maxText)
	if err != nil {
		return nil, err
	}
	at, n := characters(a.s, kind, b)
	if int64(n) != int64(a.Rows)*int64(a.Columns) {
		return nil, fmt.Errorf("%q holds %d characters of type %d for %d x %d: %w",
			a.Name, n, kind, a.Rows, a.Columns, ErrFormat)
	}
	if a.Columns == 0 { // rows without characters need no bytes: do not believe their number
		return nil, a.s.close()
	}
	lines, line := make([]string, a.Rows), make([]rune, a.Columns)
	for i := range lines {
		for j := range line {
			line[j] = at(j*a.Rows + i)
		}
		lines[i] = strings.TrimRight(string(line), " \x00")
	}
	return lines, a.s.close()
}

// characters returns the number of characters of b, and a function that returns one of them; -1: b is
// of no kind of text. Only text with characters of several elements is copied.
func characters(s *stream, kind uint32, b []byte) (at func(int) rune, n int) {
	var text []rune
	switch kind {
	case miINT8, miUINT8:
		return func(i int) rune { return rune(b[i]) }, len(b)
	case miUTF8:
		if bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
			return func(i int) rune { return rune(b[i]) }, len(b)
		}
		text = []rune(string(b))
	case miUINT16, miUTF16:
		unit := func(i int) rune { return rune(s.order.Uint16(b[2*i:])) }
		n, pairs := len(b)/2, false
		for i := range n {
			pairs = pairs || utf16.IsSurrogate(unit(i))
		}
		if !pairs {
			return unit, n
		}
		units := make([]uint16, n)
		for i := range units {
			units[i] = uint16(unit(i))
		}
		text = utf16.Decode(units)
	default:
		if len(b) > 0 {
			return nil, -1
		}
	}
	return func(i int) rune { return text[i] }, len(text)
}
