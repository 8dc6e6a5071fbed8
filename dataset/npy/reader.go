package npy

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// Reader reads the elements of an array in the order of the file.
type Reader struct {
	Header
	in  io.Reader
	buf [1 << 13]byte
}

// NewReader reads the header of an array. r should be buffered or in memory.
func NewReader(r io.Reader) (*Reader, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return &Reader{Header: *h, in: r}, nil
}

// ReadFloats reads the next len(dst) elements of a numeric array.
func (r *Reader) ReadFloats(dst []float64) error {
	if r.Kind == 'U' || r.Kind == 'S' {
		return fmt.Errorf("strings, numbers are expected: %w", ErrType)
	}
	for len(dst) > 0 {
		k := min(len(dst), len(r.buf)/r.Size)
		b := r.buf[:k*r.Size]
		if _, err := io.ReadFull(r.in, b); err != nil {
			return truncated(err)
		}
		r.decode(dst[:k], b)
		dst = dst[k:]
	}
	return nil
}

func (r *Reader) decode(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = r.number(b[i*r.Size:])
	}
}

func (r *Reader) number(b []byte) float64 {
	switch r.Size {
	case 1:
		if r.Kind == 'i' {
			return float64(int8(b[0]))
		}
		return float64(b[0])
	case 2:
		v := r.Order.Uint16(b)
		switch r.Kind {
		case 'i':
			return float64(int16(v))
		case 'f':
			return half(v)
		}
		return float64(v)
	case 4:
		return r.number32(r.Order.Uint32(b))
	}
	return r.number64(r.Order.Uint64(b))
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

func (r *Reader) number32(v uint32) float64 {
	switch r.Kind {
	case 'i':
		return float64(int32(v))
	case 'u':
		return float64(v)
	}
	return float64(math.Float32frombits(v))
}

func (r *Reader) number64(v uint64) float64 {
	switch r.Kind {
	case 'i':
		return float64(int64(v))
	case 'u':
		return float64(v)
	}
	return math.Float64frombits(v)
}

// End reports bytes after the last element.
func (r *Reader) End() error {
	var b [1]byte
	switch _, err := io.ReadFull(r.in, b[:]); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("bytes after the last element: %w", ErrFormat)
	default:
		return truncated(err)
	}
}

// ReadStrings reads all of an array of one dimension of strings ('U' or 'S').
func (r *Reader) ReadStrings() ([]string, error) {
	if r.Kind != 'U' && r.Kind != 'S' {
		return nil, fmt.Errorf("elements of kind %q, strings are expected: %w", r.Kind, ErrType)
	}
	if len(r.Shape) != 1 {
		return nil, fmt.Errorf("%d dimensions, one is expected: %w", len(r.Shape), ErrFormat)
	}
	if r.Size == 0 && r.Shape[0] > maxHeader { // elements without bytes: do not believe their number
		return nil, fmt.Errorf("%d empty strings: %w", r.Shape[0], ErrFormat)
	}
	var all []string
	var b bytes.Buffer
	for range r.Shape[0] {
		b.Reset()
		if _, err := io.CopyN(&b, r.in, int64(r.Size)); err != nil {
			return nil, truncated(err)
		}
		all = append(all, r.text(b.Bytes()))
	}
	return all, nil
}

func (r *Reader) text(b []byte) string {
	if r.Kind == 'S' {
		return string(bytes.TrimRight(b, "\x00"))
	}
	runes := make([]rune, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		runes = append(runes, rune(r.Order.Uint32(b)))
	}
	for len(runes) > 0 && runes[len(runes)-1] == 0 {
		runes = runes[:len(runes)-1]
	}
	return string(runes)
}
