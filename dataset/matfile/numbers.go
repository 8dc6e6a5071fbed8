package matfile

import (
	"fmt"
	"math"
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
		return nil, fmt.Errorf("%d bytes of type %d: %w", t.size, t.kind, ErrFormat)
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
	if int64(len(dst)) > n.left {
		return fmt.Errorf("%d more values were asked of %d: %w", len(dst), n.left, ErrFormat)
	}
	for len(dst) > 0 {
		k := min(len(dst), len(n.buf)/int(n.each))
		b := n.buf[:k*int(n.each)]
		if n.small != nil {
			copy(b, n.small)
			n.small = n.small[len(b):]
		} else if err := n.s.full(b); err != nil {
			return err
		}
		n.decode(dst[:k], b)
		dst = dst[k:]
		if n.left -= int64(k); n.left == 0 {
			return n.end()
		}
	}
	return nil
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
