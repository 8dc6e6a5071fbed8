package matfile

import (
	"fmt"
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/internal/units"
)

// numbers is an element of numbers, read piece by piece.
type numbers struct {
	s     *stream
	kind  uint32
	size  int64  // of the element, in bytes
	left  int64  // values still to come
	small []byte // what is left of a small element
	each  int64  // bytes of a value
	buf   [1 << 12]byte
}

func openNumbers(s *stream) (*numbers, error) {
	t, err := s.tag()
	if err != nil {
		return nil, err
	}
	n := &numbers{s: s, kind: t.kind, size: t.size, small: t.small, each: width(t.kind)}
	if n.each == 0 || t.size%n.each != 0 {
		return nil, fmt.Errorf("the file is damaged: %d bytes are not a whole number of values of data type %d: %w", t.size, t.kind, ErrFormat)
	}
	n.left = t.size / n.each
	if n.left == 0 {
		return n, n.end()
	}
	return n, nil
}

func width(kind uint32) int64 {
	switch kind {
	case miINT8, miUINT8:
		return 1
	case miINT16, miUINT16:
		return 2
	case miINT32, miUINT32, miSINGLE:
		return 4
	case miDOUBLE, miINT64, miUINT64:
		return 8
	}
	return 0
}

// read reads the next len(dst) values.
func (n *numbers) read(dst []float64) error {
	for len(dst) > 0 {
		b, err := n.next(len(dst))
		if err != nil {
			return err
		}
		k := len(b) / int(n.each)
		n.decode(dst[:k], b)
		dst = dst[k:]
	}
	return nil
}

// next returns the bytes of some of the next most values, at least one; they are valid until the next call.
func (n *numbers) next(most int) (b []byte, err error) {
	if int64(most) > n.left {
		return nil, fmt.Errorf("the array ends too early: %d more values are needed, %d are left: %w", most, n.left, ErrFormat)
	}
	k := min(most, len(n.buf)/int(n.each))
	b = n.buf[:k*int(n.each)]
	if n.small != nil {
		copy(b, n.small)
		n.small = n.small[len(b):]
	} else if err := n.s.full(b); err != nil {
		return nil, err
	}
	if n.left -= int64(k); n.left == 0 {
		err = n.end()
	}
	return b, err
}

// text reads the next value as a text; bits is the size of the floats of the array's class, 64 if they are none.
func (n *numbers) text(bits int) (string, error) {
	b, err := n.next(1)
	if err != nil {
		return "", err
	}
	switch n.kind {
	case miINT64:
		return strconv.FormatInt(int64(n.s.order.Uint64(b)), 10), nil
	case miUINT64:
		return strconv.FormatUint(n.s.order.Uint64(b), 10), nil
	}
	var v [1]float64 // exact for all other types
	n.decode(v[:], b)
	text, exact := units.FloatText(v[0], bits)
	if !exact {
		return "", fmt.Errorf("%s as a float of %d bits: %w", text, bits, ErrInexact)
	}
	return text, nil
}

// end passes over the padding and, where the array ends too, checks it.
func (n *numbers) end() error {
	if n.small == nil {
		if err := n.s.pad(n.size); err != nil {
			return err
		}
	}
	return n.s.close()
}

func (n *numbers) decode(dst []float64, b []byte) {
	order := n.s.order
	for i := range dst {
		switch n.kind {
		case miINT8:
			dst[i] = float64(int8(b[i]))
		case miUINT8:
			dst[i] = float64(b[i])
		case miINT16:
			dst[i] = float64(int16(order.Uint16(b[2*i:])))
		case miUINT16:
			dst[i] = float64(order.Uint16(b[2*i:]))
		case miINT32:
			dst[i] = float64(int32(order.Uint32(b[4*i:])))
		case miUINT32:
			dst[i] = float64(order.Uint32(b[4*i:]))
		case miSINGLE:
			dst[i] = float64(math.Float32frombits(order.Uint32(b[4*i:])))
		case miINT64:
			dst[i] = float64(int64(order.Uint64(b[8*i:])))
		case miUINT64:
			dst[i] = float64(order.Uint64(b[8*i:]))
		default:
			dst[i] = math.Float64frombits(order.Uint64(b[8*i:]))
		}
	}
}

// readAll reads every value; memory grows as they come.
func readAll[T any](n *numbers, convert func(float64) T) ([]T, error) {
	var all []T
	var piece [512]float64
	for n.left > 0 {
		k := min(n.left, int64(len(piece)))
		if err := n.read(piece[:k]); err != nil {
			return nil, err
		}
		for _, v := range piece[:k] {
			all = append(all, convert(v))
		}
	}
	return all, nil
}
