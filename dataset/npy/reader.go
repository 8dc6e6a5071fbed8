package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/internal/units"
)

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
		return 0, fmt.Errorf("the array has %d dimensions, want one; in NumPy, x.ravel() flattens an array x: %w", len(r.Shape), ErrFormat)
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

// ReadText reads the next element of an array for which Texts or Column has no error, as a text: a whole number has all its
// digits, any other number as few as tell it from others of its type. Floats that several whole numbers round to
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
			return "", fmt.Errorf("%w: the bytes %.40q are not UTF-8; in NumPy, numpy.char.decode(x, 'latin-1') decodes an array x as Latin-1", ErrType, r.last.Bytes())
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
