// Package mattest makes MAT-files for tests.
package mattest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// File collects arrays; the zero value is an empty little-endian file.
type File struct {
	Big      bool // big-endian
	Compress bool // compress the arrays that are added from now on
	body     []byte
}

func (f *File) order() binary.AppendByteOrder {
	if f.Big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Bytes returns the file.
func (f *File) Bytes() []byte {
	head := make([]byte, 124, 128+len(f.body))
	copy(head, "MATLAB 5.0 MAT-file, made for a test")
	head = f.order().AppendUint16(head, 0x0100)
	mark := "IM"
	if f.Big {
		mark = "MI"
	}
	return append(append(head, mark...), f.body...)
}

// Add appends a top-level matrix element with the given inside.
func (f *File) Add(inside []byte) {
	e := f.Element(14, inside)
	if !f.Compress {
		f.body = append(f.body, e...)
		return
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(e)
	z.Close()
	f.body = f.order().AppendUint32(f.body, 15)
	f.body = f.order().AppendUint32(f.body, uint32(b.Len()))
	f.body = append(f.body, b.Bytes()...)
}

// Element returns an element, small where it fits.
func (f *File) Element(kind uint32, data []byte) []byte {
	if n := len(data); n > 0 && n <= 4 {
		e := f.order().AppendUint32(nil, uint32(n)<<16|kind)
		return append(append(e, data...), make([]byte, 4-n)...)
	}
	e := f.order().AppendUint32(nil, kind)
	e = f.order().AppendUint32(e, uint32(len(data)))
	return append(append(e, data...), make([]byte, -len(data)&7)...)
}

// Head returns the beginning of an array: flags, dimensions and name.
func (f *File) Head(class uint32, name string, dims ...int32) []byte {
	flags := f.order().AppendUint32(nil, class)
	flags = f.order().AppendUint32(flags, 0)
	e := append(f.Element(6, flags), f.Ints(dims...)...)
	return append(e, f.Element(1, []byte(name))...)
}

// Ints returns an element of 32-bit integers.
func (f *File) Ints(values ...int32) []byte {
	var b []byte
	for _, v := range values {
		b = f.order().AppendUint32(b, uint32(v))
	}
	return f.Element(5, b)
}

// Doubles returns an element of doubles.
func (f *File) Doubles(values ...float64) []byte {
	var b []byte
	for _, v := range values {
		b = f.order().AppendUint64(b, math.Float64bits(v))
	}
	return f.Element(9, b)
}

// AddDoubles appends a matrix of doubles; values come column by column.
func (f *File) AddDoubles(name string, rows, columns int32, values ...float64) {
	f.Add(append(f.Head(6, name, rows, columns), f.Doubles(values...)...))
}

// AddBytes appends a matrix of doubles stored as unsigned bytes, as MATLAB does
// with small whole numbers.
func (f *File) AddBytes(name string, rows, columns int32, values ...byte) {
	f.Add(append(f.Head(6, name, rows, columns), f.Element(2, values)...))
}

// AddWhole appends a matrix of int64, or of uint64; values come column by column.
func (f *File) AddWhole(name string, signed bool, rows, columns int32, values ...uint64) {
	class, kind := uint32(15), uint32(13)
	if signed {
		class, kind = 14, 12
	}
	var b []byte
	for _, v := range values {
		b = f.order().AppendUint64(b, v)
	}
	f.Add(append(f.Head(class, name, rows, columns), f.Element(kind, b)...))
}

// AddSingles appends a matrix of singles; values come column by column.
func (f *File) AddSingles(name string, rows, columns int32, values ...float32) {
	var b []byte
	for _, v := range values {
		b = f.order().AppendUint32(b, math.Float32bits(v))
	}
	f.Add(append(f.Head(7, name, rows, columns), f.Element(7, b)...))
}

// AddSparse appends a sparse matrix.
func (f *File) AddSparse(name string, rows, columns int32, row, start []int32, values []float64) {
	e := f.Head(5, name, rows, columns)
	e = append(append(e, f.Ints(row...)...), f.Ints(start...)...)
	f.Add(append(e, f.Doubles(values...)...))
}

// AddCells appends a row of strings.
func (f *File) AddCells(name string, cells ...string) {
	e := f.Head(1, name, 1, int32(len(cells)))
	for _, s := range cells {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = f.order().AppendUint16(b, u)
		}
		inside := append(f.Head(4, "", 1, int32(len(b)/2)), f.Element(17, b)...)
		e = append(e, f.Element(14, inside)...)
	}
	f.Add(e)
}
