package matfile

import (
	"encoding/binary"
	"fmt"
	"io"
)

// stream is the inside of one array: elements with tags, padded to 8 bytes.
type stream struct {
	in         io.Reader
	order      binary.ByteOrder
	left       int64 // bytes of the array still to come
	compressed bool
}

// tag is the head of an element. A small element carries its data in the tag.
type tag struct {
	kind  uint32
	size  int64
	small []byte
}

func (s *stream) full(b []byte) error {
	if int64(len(b)) > s.left {
		return fmt.Errorf("the file is damaged: an element is longer than its array: %w", ErrFormat)
	}
	s.left -= int64(len(b))
	if _, err := io.ReadFull(s.in, b); err != nil {
		return truncated(err)
	}
	return nil
}

func (s *stream) tag() (tag, error) {
	var b [8]byte
	if err := s.full(b[:]); err != nil {
		return tag{}, err
	}
	kind := s.order.Uint32(b[:])
	if size := kind >> 16; size != 0 {
		if size > 4 {
			return tag{}, fmt.Errorf("the file is damaged: a small element has %d bytes, want at most 4: %w", size, ErrFormat)
		}
		return tag{kind & 0xffff, int64(size), append([]byte(nil), b[4:4+size]...)}, nil
	}
	return tag{kind: kind, size: int64(s.order.Uint32(b[4:]))}, nil
}

// bytes reads an element of at most limit bytes.
func (s *stream) bytes(limit int64) (kind uint32, b []byte, err error) {
	t, err := s.tag()
	if err != nil || t.small != nil {
		return t.kind, t.small, err
	}
	if t.size > limit {
		return 0, nil, fmt.Errorf("the file is damaged: an element has %d bytes, want at most %d: %w", t.size, limit, ErrFormat)
	}
	for piece := int64(1 << 16); int64(len(b)) < t.size; piece *= 2 { // memory follows what is there
		from := len(b)
		b = append(b, make([]byte, min(piece, t.size-int64(from)))...)
		if err := s.full(b[from:]); err != nil {
			return 0, nil, err
		}
	}
	return t.kind, b, s.pad(t.size)
}

// pad passes over the padding after an element of size bytes.
func (s *stream) pad(size int64) error {
	var b [8]byte
	n := -size & 7
	if n > s.left { // the last element of some writers ends without padding
		n = s.left
	}
	return s.full(b[:n])
}

// skip passes over what is left of the array.
func (s *stream) skip() error {
	_, err := io.CopyN(io.Discard, s.in, s.left)
	s.left = 0
	return truncated(err)
}

// ints reads an element of at most limit integers of 32 bits.
func (s *stream) ints(limit int64) ([]int32, error) {
	kind, b, err := s.bytes(4 * limit)
	if err != nil {
		return nil, err
	}
	if kind != miINT32 && kind != miUINT32 || len(b)%4 != 0 {
		return nil, fmt.Errorf("the file is damaged: an element has the data type %d, want 32-bit integers: %w", kind, ErrFormat)
	}
	v := make([]int32, len(b)/4)
	for i := range v {
		v[i] = int32(s.order.Uint32(b[4*i:]))
	}
	return v, nil
}

// close checks the checksum of a compressed array that was read to its end.
func (s *stream) close() error {
	if !s.compressed || s.left != 0 {
		return nil
	}
	var b [1]byte
	switch _, err := io.ReadFull(s.in, b[:]); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("the file is damaged: a compressed array is longer than its header says: %w", ErrFormat)
	default:
		return truncated(err)
	}
}
