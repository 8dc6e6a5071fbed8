package matfile

import (
	"cmp"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// numbers are the bytes of an element of numbers.
type numbers struct {
	npy.Header
	s     *stream
	kind  uint32
	size  int64  // of the element, in bytes
	left  int64  // bytes still to come
	small []byte // what is left of a small element
	ended error  // of the end of the element
}

func openNumbers(s *stream) (*numbers, error) {
	t, err := s.tag()
	if err != nil {
		return nil, err
	}
	n := &numbers{s: s, kind: t.kind, size: t.size, left: t.size, small: t.small}
	n.Order = s.order
	if n.Kind, n.Size = typeOf(t.kind); n.Size == 0 || t.size%int64(n.Size) != 0 {
		return nil, fmt.Errorf("the file is damaged: %d bytes are not a whole number of values of data type %d: %w", t.size, t.kind, ErrFormat)
	}
	if n.left == 0 {
		return n, n.end()
	}
	return n, nil
}

// typeOf returns the kind and the bytes of the numbers of a data type, as NumPy describes them; 0 bytes: it has none.
func typeOf(kind uint32) (letter byte, size int) {
	switch kind {
	case miINT8:
		return 'i', 1
	case miUINT8:
		return 'u', 1
	case miINT16:
		return 'i', 2
	case miUINT16:
		return 'u', 2
	case miINT32:
		return 'i', 4
	case miUINT32:
		return 'u', 4
	case miINT64:
		return 'i', 8
	case miUINT64:
		return 'u', 8
	case miSINGLE:
		return 'f', 4
	case miDOUBLE:
		return 'f', 8
	}
	return 0, 0
}

// count is the number of values still to come.
func (n *numbers) count() int64 { return n.left / int64(n.Size) }

// Read implements io.Reader. After the last byte it says whether the checksum of a compressed array is right.
func (n *numbers) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, cmp.Or(n.ended, io.EOF)
	}
	p = p[:min(int64(len(p)), n.left)]
	if n.small != nil {
		copy(p, n.small)
		n.small = n.small[len(p):]
	} else if err := n.s.full(p); err != nil {
		return 0, err
	}
	if n.left -= int64(len(p)); n.left == 0 {
		n.ended = n.end()
	}
	return len(p), nil
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

// readAll reads every value; memory grows as they come.
func readAll[T any](n *numbers, convert func(float64) T) ([]T, error) {
	var all []T
	var piece [512]float64
	r := npy.NewReaderOf(n.Header, n)
	for left := n.count(); left > 0; {
		k := min(left, int64(len(piece)))
		if err := r.ReadFloats(piece[:k]); err != nil {
			return nil, err
		}
		for _, v := range piece[:k] {
			all = append(all, convert(v))
		}
		left -= k
	}
	return all, r.End()
}
