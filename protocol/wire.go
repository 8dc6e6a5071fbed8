package protocol

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/num"
)

var le = binary.LittleEndian

// header begins a message.
func header(dst []byte, k Kind) []byte { return append(dst, Version, byte(k)) }

func appendText(dst []byte, s string) []byte {
	dst = le.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

func appendBytes(dst, b []byte) []byte {
	dst = le.AppendUint64(dst, uint64(len(b)))
	return append(dst, b...)
}

// reader takes fields off a message; after the first error it yields zeros.
type reader struct {
	b   []byte
	err error
}

// read begins to read a message of kind k.
func read(b []byte, k Kind) reader {
	got, err := KindOf(b)
	if err == nil && got != k {
		err = fmt.Errorf("%w: it has kind %d, want kind %d", ErrMessage, got, k)
	}
	if err != nil {
		return reader{err: err}
	}
	return reader{b: b[2:]}
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
	}
}

func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)) {
		r.fail("%d bytes are needed, but only %d are left", n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// count reads a u32 that may be at most limit.
func (r *reader) count(limit uint32) int {
	n := r.u32()
	if r.err == nil && n > limit {
		r.fail("want a count of at most %[2]d, got %[1]d", n, limit)
		return 0
	}
	return int(n)
}

func (r *reader) text(limit uint32) string { return string(r.take(uint64(r.count(limit)))) }

// again is text for a field that mostly holds what it held before, which then
// costs no allocation.
func (r *reader) again(was string, limit uint32) string {
	if b := r.take(uint64(r.count(limit))); string(b) != was {
		return string(b)
	}
	return was
}

func (r *reader) bytes() []byte { return r.take(r.u64()) }

// end checks that nothing follows and returns the first error.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes follow the end of the message", len(r.b))
	}
	return r.err
}

// flag reads a byte that is 0 or 1.
func (r *reader) flag() bool {
	b := r.u8()
	if b > 1 {
		r.fail("want a flag of 0 or 1, got %d", b)
	}
	return b == 1
}

// The copies below go byte by byte into dst's memory, so that numbers that are
// not aligned in the message, as most are, cost no allocation.

func floats64(dst []float64, b []byte) []float64 {
	dst = resized(dst, len(b)/8)
	copy(num.Bytes64(dst), b)
	return dst
}

func floats32(dst []float32, b []byte) []float32 {
	dst = resized(dst, len(b)/4)
	copy(num.Bytes32(dst), b)
	return dst
}

func uints32(dst []uint32, b []byte) []uint32 {
	dst = resized(dst, len(b)/4)
	copy(num.BytesU32(dst), b)
	return dst
}

func resized[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// appendRefs writes the versions of values that a message names.
func appendRefs(dst []byte, refs []Ref) []byte {
	if len(refs) > MaxVars {
		panic(fmt.Sprintf("protocol: want at most %[2]d values in a round, got %[1]d", len(refs), MaxVars))
	}
	dst = append(dst, byte(len(refs)))
	for _, ref := range refs {
		dst = le.AppendUint16(dst, ref.ID)
		dst = le.AppendUint64(dst, ref.Version)
	}
	return dst
}

// refs reads what appendRefs wrote into dst's memory.
func (r *reader) refs(dst []Ref) []Ref {
	dst = dst[:0]
	n := r.u8()
	if n > MaxVars {
		r.fail("want at most %[2]d values in a round, got %[1]d", n, MaxVars)
	}
	for ; n > 0 && r.err == nil; n-- {
		dst = append(dst, Ref{r.u16(), r.u64()})
	}
	return dst
}

// appendJSON writes a message whose body is JSON.
func appendJSON(dst []byte, k Kind, body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("protocol: a message does not marshal: %v", err))
	}
	return append(header(dst, k), b...)
}

// readJSON reads a message whose body is JSON.
func readJSON(b []byte, k Kind, body any) error {
	r := read(b, k)
	if r.err == nil && len(r.b) > MaxJSON {
		r.fail("the JSON has %d bytes, want at most %d", len(r.b), MaxJSON)
	}
	if r.err != nil {
		return r.err
	}
	if err := json.Unmarshal(r.b, body); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}
