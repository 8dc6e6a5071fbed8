// Package npy reads and writes arrays in NumPy's .npy format, versions 1 to 3, as
// they also stand in .npz archives. It streams: memory grows with what a file
// really holds, never with what it claims.
//
// The format is that of NumPy's NEP 1.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/internal/units"
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

// Reader reads the elements of an array in the order of the file.
type Reader struct {
	Header
	in   io.Reader
	buf  [1 << 13]byte
	last bytes.Buffer // string read
}

// NewReader reads the header of an array. r should be buffered or in memory.
func NewReader(r io.Reader) (*Reader, error) {
	c := &counting{in: r}
	h, err := readHeader(c)
	if err != nil {
		return nil, err
	}
	h.Bytes = c.n
	return &Reader{Header: *h, in: r}, nil
}

// NewReaderOf returns a reader of the elements that a header describes, without the header.
func NewReaderOf(h Header, elements io.Reader) *Reader { return &Reader{Header: h, in: elements} }

// counting counts the bytes that are read.
type counting struct {
	in io.Reader
	n  int64
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadFloats reads the next len(dst) elements of a numeric array.
func (r *Reader) ReadFloats(dst []float64) error {
	if r.Kind == 'U' || r.Kind == 'S' {
		return fmt.Errorf("the array has strings, want numbers: %w", ErrType)
	}
	for len(dst) > 0 {
		k := min(len(dst), len(r.buf)/r.Size)
		b := r.buf[:k*r.Size]
		if _, err := io.ReadFull(r.in, b); err != nil {
			return truncated(err)
		}
		r.Decode(dst[:k], b)
		dst = dst[k:]
	}
	return nil
}

// Decode turns the bytes of len(dst) elements of a numeric array into numbers.
func (h *Header) Decode(dst []float64, b []byte) {
	order := h.Order
	switch h.Kind {
	case 'f':
		h.floats(dst, b)
	case 'i':
		for i := range dst {
			switch h.Size {
			case 1:
				dst[i] = float64(int8(b[i]))
			case 2:
				dst[i] = float64(int16(order.Uint16(b[2*i:])))
			case 4:
				dst[i] = float64(int32(order.Uint32(b[4*i:])))
			default:
				dst[i] = float64(int64(order.Uint64(b[8*i:])))
			}
		}
	default:
		for i := range dst {
			switch h.Size {
			case 1:
				dst[i] = float64(b[i])
			case 2:
				dst[i] = float64(order.Uint16(b[2*i:]))
			case 4:
				dst[i] = float64(order.Uint32(b[4*i:]))
			default:
				dst[i] = float64(order.Uint64(b[8*i:]))
			}
		}
	}
}

// floats is Decode of floats; most files are little-endian.
func (h *Header) floats(dst []float64, b []byte) {
	little := h.Order == binary.ByteOrder(binary.LittleEndian)
	switch {
	case h.Size == 2:
		for i := range dst {
			dst[i] = half(h.Order.Uint16(b[2*i:]))
		}
	case h.Size == 4 && little:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i : 4*i+4])))
		}
	case h.Size == 4:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(h.Order.Uint32(b[4*i:])))
		}
	case little:
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i : 8*i+8]))
		}
	default:
		for i := range dst {
			dst[i] = math.Float64frombits(h.Order.Uint64(b[8*i:]))
		}
	}
}

// half returns the value of a float of 16 bits: a sign, 5 bits of exponent, 10 of
// fraction.
func half(v uint16) float64 {
	exponent, fraction := int(v>>10&31), float64(v&1023)
	x := math.Ldexp(fraction, -24)
	switch {
	case exponent == 31 && fraction == 0:
		x = math.Inf(1)
	case exponent == 31:
		x = math.NaN()
	case exponent > 0:
		x = math.Ldexp(1024+fraction, exponent-25)
	}
	if v>>15 == 1 {
		return -x
	}
	return x
}

// End reports bytes after the last element.
func (r *Reader) End() error {
	var b [1]byte
	switch _, err := io.ReadFull(r.in, b[:]); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("the array is longer than its header says: %w", ErrFormat)
	default:
		return truncated(err)
	}
}

// Texts returns how many strings an array of one dimension of them ('U' or 'S') holds.
func (r *Reader) Texts() (int, error) {
	if r.Kind != 'U' && r.Kind != 'S' {
		return 0, fmt.Errorf("%w: %s, want texts; in NumPy, x.astype(str) converts an array x to texts", ErrType, r.Type())
	}
	if len(r.Shape) != 1 {
		return 0, fmt.Errorf("the array has %d dimensions, want one; in NumPy, x.ravel() flattens an array x: %w",
			len(r.Shape), ErrFormat)
	}
	if r.Size == 0 && r.Shape[0] > maxHeader { // elements without bytes: do not believe their number
		return 0, fmt.Errorf("the header says %d strings of length 0, which is not possible: %w", r.Shape[0], ErrFormat)
	}
	return r.Shape[0], nil
}

// Column returns how many elements an array has that is one column, of strings or numbers.
func (r *Reader) Column() (int, error) {
	if r.Kind == 'U' || r.Kind == 'S' {
		return r.Texts()
	}
	rows, columns, ok := r.Dims()
	if !ok || columns != 1 {
		return 0, fmt.Errorf("the array has the shape %v, want one column: %w", r.Shape, ErrFormat)
	}
	return rows, nil
}

// ReadText reads the next element of an array for which Texts or Column has no error, as a text: a whole number has all
// its digits, any other number as few as tell it from others of its type. Floats that several whole numbers round to
// are an error that wraps ErrInexact.
func (r *Reader) ReadText() (string, error) {
	if r.Kind != 'U' && r.Kind != 'S' {
		return r.readNumber()
	}
	r.last.Reset()
	if _, err := io.CopyN(&r.last, r.in, int64(r.Size)); err != nil {
		return "", truncated(err)
	}
	text, ok := r.text(r.last.Bytes())
	if !ok {
		if r.Kind == 'S' {
			return "", fmt.Errorf("%w: the bytes %.40q are not UTF-8; in NumPy, numpy.char.decode(x, 'latin-1') decodes an "+
				"array x as Latin-1", ErrType, r.last.Bytes())
		}
		return "", fmt.Errorf("%w: the text %q is not Unicode", ErrType, text)
	}
	return text, nil
}

// readNumber reads the next number as a text.
func (r *Reader) readNumber() (string, error) {
	b := r.buf[:r.Size]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return "", truncated(err)
	}
	if r.Size == 8 && r.Kind == 'i' {
		return strconv.FormatInt(int64(r.Order.Uint64(b)), 10), nil
	}
	if r.Size == 8 && r.Kind == 'u' {
		return strconv.FormatUint(r.Order.Uint64(b), 10), nil
	}
	var v [1]float64 // exact for all other types
	r.Decode(v[:], b)
	bits := 64
	if r.Kind == 'f' {
		bits = 8 * r.Size
	}
	text, exact := units.FloatText(v[0], bits)
	if !exact {
		return "", fmt.Errorf("%s as a float of %d bits: %w", text, bits, ErrInexact)
	}
	return text, nil
}

// ReadStrings reads all of an array of one dimension of strings ('U' or 'S').
func (r *Reader) ReadStrings() ([]string, error) {
	n, err := r.Texts()
	if err != nil {
		return nil, err
	}
	var all []string
	for range n {
		text, err := r.ReadText()
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// text returns the text of an element; ok is false if it is not Unicode.
func (r *Reader) text(b []byte) (text string, ok bool) {
	if r.Kind == 'S' {
		b = bytes.TrimRight(b, "\x00")
		return string(b), utf8.Valid(b)
	}
	ok = true
	runes := make([]rune, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		c := r.Order.Uint32(b)
		ok = ok && c <= unicode.MaxRune && utf8.ValidRune(rune(c))
		runes = append(runes, rune(c))
	}
	for len(runes) > 0 && runes[len(runes)-1] == 0 {
		runes = runes[:len(runes)-1]
	}
	return string(runes), ok
}
