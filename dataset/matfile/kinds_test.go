package matfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
)

// units encodes text as UTF-16, in the order of a file.
func units(f *mattest.File, text string) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if f.Big {
		order = binary.BigEndian
	}
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

// TestTextAbovePlane0: dimensions count units of UTF-16, as MATLAB writes them, or characters, as SciPy does, in a cell
// and in a character matrix, whose rows end with blanks.
func TestTextAbovePlane0(t *testing.T) {
	const text = "a😀𝒳é"
	eachKind(func(f *mattest.File) {
		f.AddCells("cells", text, "", "😀")
		u16, u8 := units(f, text), []byte(text)
		scipy := append(f.Head(4, "", 1, 4), f.Element(16, u8)...)
		matlab := append(f.Head(4, "", 1, 6), f.Element(16, u8)...)
		f.Add(slices.Concat(f.Head(1, "utf8", 2, 1), f.Element(14, scipy), f.Element(14, matlab)))
		f.Add(append(f.Head(4, "line", 1, 6), f.Element(17, u16)...))
		// Two rows, "😀b" and "cd ", column by column.
		first, second := utf16.Encode([]rune("😀b")), utf16.Encode([]rune("cd "))
		var matrix []byte
		for i := range first {
			matrix = append(matrix, units(f, "x")...) // of the right order; replaced below
			matrix = append(matrix, units(f, "x")...)
			put := binary.ByteOrder(binary.LittleEndian)
			if f.Big {
				put = binary.BigEndian
			}
			put.PutUint16(matrix[4*i:], first[i])
			put.PutUint16(matrix[4*i+2:], second[i])
		}
		f.Add(append(f.Head(4, "matrix", 2, 3), f.Element(17, matrix)...))
		_, texts, err := readAll(f.Bytes())
		if err != nil {
			t.Fatalf("big %v, compressed %v: %v", f.Big, f.Compress, err)
		}
		for name, want := range map[string][]string{
			"cells": {text, "", "😀"}, "utf8": {text, text}, "line": {text}, "matrix": {"😀b", "cd"},
		} {
			if !slices.Equal(texts[name], want) {
				t.Errorf("%s: %q, want %q", name, texts[name], want)
			}
		}
	})
}

// TestNoText: halves of pairs and bytes that are not UTF-8 are refused, and errors name the variable and the cell.
func TestNoText(t *testing.T) {
	f := func(class uint32, inside func(*mattest.File) []byte) []byte {
		m := &mattest.File{}
		m.Add(append(m.Head(class, "names", 1, 2), inside(m)...))
		return m.Bytes()
	}
	cell := func(class uint32, rows, columns int32, kind uint32, data []byte) func(*mattest.File) []byte {
		return func(m *mattest.File) []byte {
			good := append(m.Head(4, "", 1, 1), m.Element(16, []byte("a"))...)
			return append(m.Element(14, good), m.Element(14, append(m.Head(class, "", rows, columns),
				m.Element(kind, data)...))...)
		}
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
		says string
	}{
		"half a pair": {f(4, func(m *mattest.File) []byte {
			return m.Element(17, []byte{0x3d, 0xd8, 'a', 0})
		}), matfile.ErrFormat, "half of a surrogate pair"},
		"half at end": {f(4, func(m *mattest.File) []byte {
			return m.Element(17, []byte{'a', 0, 0x3d, 0xd8})
		}), matfile.ErrFormat, "half of a surrogate pair"},
		"not UTF-8": {f(4, func(m *mattest.File) []byte {
			return m.Element(16, []byte("\xe9a"))
		}), matfile.ErrFormat, "not valid UTF-8"},
		"too few": {f(4, func(m *mattest.File) []byte {
			return m.Element(16, []byte("a"))
		}), matfile.ErrFormat, "1 characters"},
		"other elements": {f(4, func(m *mattest.File) []byte {
			return m.Element(9, make([]byte, 8))
		}), matfile.ErrFormat, "type 9"},
		"cell half": {f(1, cell(4, 1, 1, 17, []byte{0x3d, 0xd8})), matfile.ErrFormat, "cell 1 (counted from 0): row 0"},
		"cell number": {f(1, cell(6, 1, 1, 9, make([]byte, 8))), matfile.ErrKind,
			"cell 1 (counted from 0): the cell has class double"},
		"cell struct": {f(1, cell(2, 1, 1, 5, []byte{32, 0, 0, 0})), matfile.ErrKind,
			"cell 1 (counted from 0): the cell has class struct"},
		"cell lines": {f(1, cell(4, 2, 1, 16, []byte("ab"))), matfile.ErrKind, "2 lines of text"},
		"no cell": {f(1, func(m *mattest.File) []byte {
			return m.Doubles(1)
		}), matfile.ErrFormat, "cell 0 (counted from 0): the cell has no array"},
	} {
		_, _, err := readAll(c.b)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `"names"`) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	empty := f(1, cell(6, 0, 0, 9, nil))
	if _, texts, err := readAll(empty); err != nil || !slices.Equal(texts["names"], []string{"a", ""}) {
		t.Errorf("an empty array in a cell: %q, %v", texts["names"], err)
	}
}

// objects adds what is not read: a table, a struct, a struct array, an old object, a function.
func objects(f *mattest.File) {
	word := func(s string) []byte { return f.Element(1, []byte(s)) }
	flags := func(class int32) []byte { return f.Element(6, f.Ints(class, 0)[8:]) }
	f.Add(slices.Concat(flags(17), word("t"), word("MCOS"), word("table"),
		f.Element(14, append(f.Head(13, "", 1, 1), f.Ints(7)...))))
	fields := append([]byte("age\x00\x00\x00\x00\x00"), "labels\x00\x00"...)
	f.Add(slices.Concat(f.Head(2, "s", 1, 1), f.Ints(8), f.Element(1, fields)))
	f.Add(slices.Concat(f.Head(2, "many", 1, 30), f.Ints(8),
		f.Element(1, bytes.Repeat([]byte("a\x00\x00\x00\x00\x00\x00\x00"), 30))))
	f.Add(slices.Concat(f.Head(3, "o", 1, 1), word("inline"), f.Ints(8), f.Element(1, fields)))
	f.Add(f.Head(16, "f", 1, 1))
	f.Add(append(f.Head(6|0x0800, "z", 1, 2), f.Doubles(1, 2)...))
	f.Add(flags(99))
	f.Add(append(flags(17), f.Ints(1, 2)...)) // an opaque object with another head
	f.AddDoubles("m", 1, 1, 5)
}

// TestKinds: what is not read is described, and the arrays after it are read.
func TestKinds(t *testing.T) {
	eachKind(func(f *mattest.File) {
		objects(f)
		r, err := matfile.NewReader(bytes.NewReader(f.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			a, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.Name+": "+a.Kind())
			if _, err := a.Strings(); a.Name != "" && (!errors.Is(err, matfile.ErrKind) ||
				!strings.Contains(err.Error(), a.Kind()) && a.Name != "m") {
				t.Errorf("%s as text: %v", a.Name, err)
			}
		}
		want := []string{
			"t: table", "s: struct with the fields age, labels", "many: struct with the fields " + strings.Repeat("a, ", 20) +
				"...", "o: inline",
			"f: function_handle", "z: complex double", ": unknown", ": object", "m: double",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
