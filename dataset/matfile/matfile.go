// Package matfile reads MATLAB level 5 MAT-files ("save -v6" and "save -v7"):
// numeric and logical arrays of two dimensions, sparse matrices, character arrays
// and cell arrays of strings, compressed or not, of either byte order. It streams:
// memory grows with what a file really holds, never with what it claims.
//
// The format is that of MathWorks' "MAT-File Format", level 5.
package matfile

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// Errors of this package; compare with errors.Is.
var (
	// ErrFormat says that the bytes are not a MAT-file of level 5.
	ErrFormat = errors.New("the file is not a valid MATLAB v5 file")
	// ErrHDF5 says that the file is of MATLAB v7.3, which is HDF5.
	ErrHDF5 = errors.New("MATLAB v7.3 (HDF5) files cannot be read")
	// ErrV4 says that the file is of MATLAB v4.
	ErrV4 = errors.New("MATLAB v4 files cannot be read; save the data with -v7")
	// ErrTruncated says that the file ends too early.
	ErrTruncated = errors.New("the file is truncated")
	// ErrKind says that an array is not of a kind that can be read as asked.
	ErrKind = errors.New("unsupported kind of array")
	// ErrUnpacked says that the arrays unpack to more bytes than Reader.Unpacked.
	ErrUnpacked = errors.New("the arrays decompress to too many bytes")
	// ErrSize says that a sparse array has more non-zeros than were asked for.
	ErrSize = errors.New("the matrix is too large")
)

// Data types of elements (table 1-1 of the format's description).
const (
	miINT8       = 1
	miUINT8      = 2
	miINT16      = 3
	miUINT16     = 4
	miINT32      = 5
	miUINT32     = 6
	miSINGLE     = 7
	miDOUBLE     = 9
	miINT64      = 12
	miUINT64     = 13
	miMATRIX     = 14
	miCOMPRESSED = 15
	miUTF8       = 16
	miUTF16      = 17
)

// Reader reads a MAT-file's arrays one by one.
type Reader struct {
	// Unpacked bounds the bytes that are unpacked of all compressed arrays together; 0: no bound.
	Unpacked int64

	in       *bufio.Reader
	order    binary.ByteOrder
	rest     *io.LimitedReader // of the current top-level element
	zip      io.ReadCloser     // of compressed arrays; nil before the first
	unpacked int64             // bytes, so far
}

// unpacking reads the inside of a compressed array.
type unpacking struct{ *Reader }

// Read implements io.Reader.
func (u unpacking) Read(p []byte) (int, error) {
	n, err := u.zip.Read(p)
	if u.unpacked += int64(n); u.Unpacked > 0 && u.unpacked > u.Unpacked {
		return 0, ErrUnpacked
	}
	return n, err
}

// NewReader reads the file's header.
func NewReader(r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var head [128]byte
	n, err := io.ReadFull(in, head[:])
	if bytes.HasPrefix(head[:], []byte("\x89HDF\r\n\x1a\n")) || bytes.HasPrefix(head[:], []byte("MATLAB 7.3")) {
		return nil, ErrHDF5
	}
	if isV4(head[:n]) {
		return nil, ErrV4
	}
	if err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) && bytes.HasPrefix(head[:], []byte("MATLAB 5.0")) {
			return nil, ErrTruncated
		}
		return nil, ErrFormat
	}
	var order binary.ByteOrder
	switch string(head[126:]) {
	case "IM":
		order = binary.LittleEndian
	case "MI":
		order = binary.BigEndian
	default:
		return nil, ErrFormat
	}
	switch version := order.Uint16(head[124:]); version {
	case 0x0100:
		return &Reader{in: in, order: order}, nil
	case 0x0200:
		return nil, ErrHDF5
	default:
		return nil, fmt.Errorf("the header has the unknown version %#x: %w", version, ErrFormat)
	}
}

// isV4 tells whether a file begins with the head of a matrix of MATLAB v4: a type
// MOPT of four decimal digits (M machine, O 0, P precision, T kind), rows, columns,
// whether it is complex, and the length of its name with a zero at its end.
func isV4(head []byte) bool {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if len(head) < 20 {
			return false
		}
		kind, complex, name := order.Uint32(head), order.Uint32(head[12:]), order.Uint32(head[16:])
		digits := kind < 5000 && kind/100%10 == 0 && kind/10%10 <= 5 && kind%10 <= 2
		if digits && complex <= 1 && name >= 2 && name <= 64 && (int(19+name) >= len(head) || head[19+name] == 0) {
			return true
		}
	}
	return false
}

// Next returns the next array, whose values can be read until the next call, or
// io.EOF. What was not read of the last one is passed over.
func (r *Reader) Next() (*Array, error) {
	for {
		if err := r.skip(); err != nil {
			return nil, err
		}
		// The length of a top-level element is a multiple of 8, but for compressed
		// elements, which follow each other without padding.
		var tag [8]byte
		_, err := io.ReadFull(r.in, tag[:])
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, truncated(err)
		}
		kind, size := r.order.Uint32(tag[:]), r.order.Uint32(tag[4:])
		r.rest = &io.LimitedReader{R: r.in, N: int64(size)}
		if kind == miMATRIX || kind == miCOMPRESSED {
			a, err := r.open(kind, size)
			if a != nil || err != nil {
				return a, err
			}
		}
	}
}

// skip passes over the rest of the current element.
func (r *Reader) skip() error {
	if r.rest == nil {
		return nil
	}
	_, err := io.Copy(io.Discard, r.rest)
	if err == nil && r.rest.N > 0 {
		err = ErrTruncated
	}
	return err
}

// open starts the array of the current element; nil: an empty element.
func (r *Reader) open(kind, size uint32) (*Array, error) {
	s := &stream{in: r.rest, order: r.order, left: int64(size)}
	if kind == miCOMPRESSED {
		var err error
		if z, ok := r.zip.(zlib.Resetter); ok { // one decompressor, of 40 KiB, serves all elements
			err = z.Reset(r.rest, nil)
		} else {
			r.zip, err = zlib.NewReader(r.rest)
		}
		if err != nil {
			return nil, fmt.Errorf("a compressed array cannot be read: %w", truncated(err))
		}
		s.in, s.compressed, s.left = unpacking{r}, true, 8
		t, err := s.tag()
		if err != nil {
			return nil, err
		}
		if t.kind != miMATRIX || t.small != nil {
			return nil, fmt.Errorf("the file is damaged: a compressed element has the data type %d, want an array: %w",
				t.kind, ErrFormat)
		}
		s.left = t.size
	}
	if s.left == 0 {
		return nil, nil
	}
	return readArray(s)
}

// truncated turns an early end of the input into ErrTruncated.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	if errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

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
		return 0, nil, fmt.Errorf("the file is damaged: an element has %d bytes, want at most %d: %w", t.size,
			limit, ErrFormat)
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
		return nil, fmt.Errorf("the file is damaged: an element has the data type %d, want 32-bit integers: %w",
			kind, ErrFormat)
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
		return nil, fmt.Errorf("the file is damaged: %d bytes are not a whole number of values of data type %d: %w", t.size,
			t.kind, ErrFormat)
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
