package npy

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Element is the type of the elements that a Writer writes.
type Element interface {
	float32 | float64 | int64 | uint32
}

// Writer writes an array in C order, element by element.
type Writer[T Element] struct {
	out *bufio.Writer
	buf []byte
}

// NewWriter writes the header of an array of the given shape.
func NewWriter[T Element](w io.Writer, shape ...int) (*Writer[T], error) {
	descr := "<f4"
	switch any(*new(T)).(type) {
	case float64:
		descr = "<f8"
	case int64:
		descr = "<i8"
	case uint32:
		descr = "<u4"
	}
	out := bufio.NewWriterSize(w, 1<<16)
	return &Writer[T]{out: out}, writeHeader(out, descr, shape)
}

// Write writes the next elements.
func (w *Writer[T]) Write(values []T) error {
	for _, v := range values {
		switch v := any(v).(type) {
		case float32:
			w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], math.Float32bits(v))
		case float64:
			w.buf = binary.LittleEndian.AppendUint64(w.buf[:0], math.Float64bits(v))
		case int64:
			w.buf = binary.LittleEndian.AppendUint64(w.buf[:0], uint64(v))
		case uint32:
			w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], v)
		}
		if _, err := w.out.Write(w.buf); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes out what is buffered; call it after the last element.
func (w *Writer[T]) Flush() error { return w.out.Flush() }

// WriteStrings writes an array of strings, as NumPy's fixed-width Unicode. each
// calls its argument for every string in turn, the same ones each time: it runs
// twice, first to find the longest.
func WriteStrings(w io.Writer, n int, each func(func(string) error) error) error {
	width := 1
	err := each(func(s string) error {
		width = max(width, utf8.RuneCountInString(s))
		return nil
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	if err := writeHeader(out, fmt.Sprintf("<U%d", width), []int{n}); err != nil {
		return err
	}
	err = each(func(s string) error { return writeString(out, s, width) })
	if err != nil {
		return err
	}
	return out.Flush()
}

func writeString(out *bufio.Writer, s string, width int) error {
	var b [4]byte
	for _, r := range s {
		binary.LittleEndian.PutUint32(b[:], uint32(r))
		if _, err := out.Write(b[:]); err != nil {
			return err
		}
		width--
	}
	clear(b[:])
	for ; width > 0; width-- {
		if _, err := out.Write(b[:]); err != nil {
			return err
		}
	}
	return nil
}

// writeHeader writes a header of version 1, padded so that the elements begin at
// a multiple of 64 bytes.
func writeHeader(w io.Writer, descr string, shape []int) error {
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = fmt.Sprint(n)
	}
	tuple := strings.Join(dims, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, tuple)
	const before = len(magic) + 4 // magic, version, length
	pad := -(before + len(text) + 1) & 63
	text += strings.Repeat(" ", pad) + "\n"
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(text)))
	_, err := w.Write(append(head, text...))
	return err
}

// Archive writes a .npz file: arrays with names, one after the other.
type Archive struct {
	zip    *zip.Writer
	method uint16
}

// NewArchive begins an archive.
func NewArchive(w io.Writer) *Archive { return &Archive{zip.NewWriter(w), zip.Deflate} }

// PackLess makes the arrays that follow at least an eighth of what they unpack to.
func (a *Archive) PackLess() {
	a.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.HuffmanOnly)
	})
}

// Store makes the arrays that follow uncompressed.
func (a *Archive) Store() { a.method = zip.Store }

// create begins an array.
func (a *Archive) create(name string) (io.Writer, error) {
	return a.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: a.method})
}

// Floats begins a float32 array; flush it before the next array.
func (a *Archive) Floats(name string, shape ...int) (*Writer[float32], error) {
	return numbers[float32](a, name, shape)
}

// Doubles begins a float64 array; flush it before the next array.
func (a *Archive) Doubles(name string, shape ...int) (*Writer[float64], error) {
	return numbers[float64](a, name, shape)
}

// Ints begins an int64 array; flush it before the next array.
func (a *Archive) Ints(name string, shape ...int) (*Writer[int64], error) {
	return numbers[int64](a, name, shape)
}

// Uints begins a uint32 array; flush it before the next array.
func (a *Archive) Uints(name string, shape ...int) (*Writer[uint32], error) {
	return numbers[uint32](a, name, shape)
}

func numbers[T Element](a *Archive, name string, shape []int) (*Writer[T], error) {
	w, err := a.create(name)
	if err != nil {
		return nil, err
	}
	return NewWriter[T](w, shape...)
}

// Strings writes an array of strings; see WriteStrings.
func (a *Archive) Strings(name string, n int, each func(func(string) error) error) error {
	w, err := a.create(name)
	if err != nil {
		return err
	}
	return WriteStrings(w, n, each)
}

// List writes an array of strings.
func (a *Archive) List(name string, list []string) error {
	return a.Strings(name, len(list), func(f func(string) error) error {
		for _, s := range list {
			if err := f(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close ends the archive; w stays open.
func (a *Archive) Close() error { return a.zip.Close() }
