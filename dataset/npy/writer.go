package npy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Writer writes an array in C order, element by element.
type Writer[T float32 | float64 | int64] struct {
	out *bufio.Writer
	buf []byte
}

// NewWriter writes the header of an array of the given shape.
func NewWriter[T float32 | float64 | int64](w io.Writer, shape ...int) (*Writer[T], error) {
	descr := "<f4"
	switch any(*new(T)).(type) {
	case float64:
		descr = "<f8"
	case int64:
		descr = "<i8"
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
