// Package npy reads and writes arrays in NumPy's .npy format, versions 1 to 3, as
// they also stand in .npz archives. It streams: memory grows with what a file
// really holds, never with what it claims.
//
// The format is that of NumPy's NEP 1.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Errors of this package; compare with errors.Is.
var (
	// ErrFormat says that the bytes are not an array in .npy format.
	ErrFormat = errors.New("this is not a valid .npy array")
	// ErrTruncated says that an array ends too early.
	ErrTruncated = errors.New("the array is truncated")
	// ErrType says that an array's elements are not of a type that can be read as
	// asked.
	ErrType = errors.New("unsupported type of array elements")
	// ErrInexact says that an array has floats so large that several whole numbers are one of them.
	ErrInexact = errors.New("several whole numbers may be rounded to this float")
)

// TypeError is an ErrType of elements that are never read.
type TypeError struct {
	Type  string // as NumPy calls it, such as "object"
	Shape []int
	// Numbers and Texts are what makes numbers, or texts, of an array x in NumPy; empty: nothing is known to.
	Numbers, Texts string
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%v: %s", ErrType, e.Type)
}

// Unwrap returns ErrType.
func (e *TypeError) Unwrap() error { return ErrType }

// otherType describes the type of a header that is not read.
func otherType(descr string) *TypeError {
	e := &TypeError{Type: fmt.Sprintf("%.20q", descr)}
	switch name := strings.TrimLeft(descr, "<>|="); {
	case strings.HasPrefix(descr, "(") || descr == "":
		e.Type, e.Numbers = "structured, with several fields", "numpy.lib.recfunctions.structured_to_unstructured(x)"
		e.Texts = "x['FIELD'].astype(str)"
	case strings.HasSuffix(name, "O"):
		e.Type = "object (Python objects, which NumPy pickles)"
		e.Numbers, e.Texts = "x.astype(float)", "x.astype(str)"
	case strings.HasPrefix(name, "f"), strings.HasPrefix(name, "i"), strings.HasPrefix(name, "u"):
		e.Type, e.Numbers = fmt.Sprintf("%.20s", descr), "x.astype(float)"
	case strings.HasPrefix(name, "M8"), strings.HasPrefix(name, "m8"):
		e.Texts = "x.astype(str)"
	}
	return e
}

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16
	maxDims   = 32
	maxText   = 1 << 16 // characters of a string
)

// Header describes an array.
type Header struct {
	Kind    byte // 'b', 'i', 'u', 'f', 'U' or 'S', as NumPy writes them
	Size    int  // bytes of an element; of 'U', four for each character
	Order   binary.ByteOrder
	Fortran bool // elements come column by column
	Shape   []int
	Bytes   int64 // of the header: where the first element is
}

// Dims returns the shape as rows and columns: an array of one dimension is one
// column. ok is false for other shapes.
func (h *Header) Dims() (rows, columns int, ok bool) {
	switch len(h.Shape) {
	case 1:
		return h.Shape[0], 1, true
	case 2:
		return h.Shape[0], h.Shape[1], true
	}
	return 0, 0, false
}

// Elements returns the number of elements; ok is false if it exceeds an int64.
func (h *Header) Elements() (n int64, ok bool) {
	n = 1
	for _, side := range h.Shape {
		if side == 0 {
			return 0, true
		}
		if n > math.MaxInt64/int64(side) {
			return 0, false
		}
		n *= int64(side)
	}
	return n, true
}

// Type describes the elements, such as float32 or string.
func (h *Header) Type() string {
	switch h.Kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*h.Size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*h.Size)
	case 'f':
		return fmt.Sprintf("float%d", 8*h.Size)
	}
	return "string"
}

// readHeader reads up to the first element.
func readHeader(r io.Reader) (*Header, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, ErrFormat
		}
		return nil, err
	}
	if string(head[:6]) != magic || head[6] < 1 || head[6] > 3 {
		return nil, ErrFormat
	}
	length := make([]byte, 2)
	if head[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return nil, truncated(err)
	}
	size := uint32(binary.LittleEndian.Uint16(length))
	if head[6] > 1 {
		size = binary.LittleEndian.Uint32(length)
	}
	if size > maxHeader {
		return nil, fmt.Errorf("the header has %d bytes, which is too long: %w", size, ErrFormat)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, truncated(err)
	}
	return parseHeader(string(text))
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}

// parseHeader parses the Python dictionary of a header:
// {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
func parseHeader(text string) (*Header, error) {
	h := &Header{}
	descr, ok1 := value(text, "descr")
	if strings.HasPrefix(descr, "(") { // the names of fields could be any of the other keys
		return nil, otherType(descr)
	}
	order, ok2 := value(text, "fortran_order")
	shape, ok3 := value(text, "shape")
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("the header must have the keys descr, fortran_order and shape: %w", ErrFormat)
	}
	switch order {
	case "True":
		h.Fortran = true
	case "False":
	default:
		return nil, fmt.Errorf("the header has the fortran_order %q, want True or False: %w", order, ErrFormat)
	}
	for _, word := range strings.Split(shape, ",") {
		word = strings.TrimSuffix(strings.TrimSpace(word), "L")
		if word == "" {
			continue
		}
		n, err := strconv.ParseUint(word, 10, 40)
		if err != nil || len(h.Shape) == maxDims {
			return nil, fmt.Errorf("the header has the invalid shape (%.40s): %w", shape, ErrFormat)
		}
		h.Shape = append(h.Shape, int(n))
	}
	err := h.parseType(descr)
	if other := (*TypeError)(nil); errors.As(err, &other) {
		other.Shape = h.Shape
	}
	return h, err
}

// value returns the text of a key's value.
func value(text, key string) (string, bool) {
	_, rest, ok := strings.Cut(text, "'"+key+"'")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), ":")
	rest = strings.TrimLeft(rest, " ")
	if !ok || rest == "" {
		return "", false
	}
	end, skip := ",}", 0
	switch rest[0] {
	case '\'':
		end, skip = "'", 1
	case '(':
		end, skip = ")", 1
	case '[':
		end, skip = "]", 1
	}
	stop := strings.IndexAny(rest[skip:], end)
	if stop < 0 {
		return "", false
	}
	return strings.TrimSpace(rest[skip : skip+stop]), true
}

// parseType reads a type such as <f4, |b1 or >U12.
func (h *Header) parseType(descr string) error {
	if len(descr) < 3 {
		return otherType(descr)
	}
	switch descr[0] {
	case '<', '|':
		h.Order = binary.LittleEndian
	case '>':
		h.Order = binary.BigEndian
	default:
		return otherType(descr)
	}
	size, err := strconv.ParseUint(descr[2:], 10, 24)
	if err != nil {
		return otherType(descr)
	}
	h.Kind, h.Size = descr[1], int(size)
	if size > maxText {
		return fmt.Errorf("%w: strings of %d characters; at most %d characters are allowed", ErrType, size, maxText)
	}
	if h.Kind == 'U' {
		h.Size *= 4
	}
	if !strings.Contains("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8", descr[1:]) && h.Kind != 'U' && h.Kind != 'S' {
		return otherType(descr)
	}
	return nil
}
