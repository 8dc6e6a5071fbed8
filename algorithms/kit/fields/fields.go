// Package fields writes and reads the state of a trainer by one list of its fields: the same
// calls, in the same order, write the bytes and read them. All numbers are little-endian.
//
//	func (t *trainer) State(l *fields.List) {
//		l.Byte(&t.phase)
//		l.Uint64(&t.step, &t.samples)
//		l.Float32s(t.theta)
//	}
package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// ErrState is wrapped by every error about the bytes of a state.
var ErrState = errors.New("the saved state of the job cannot be read")

// List is one pass over the fields of a state, which writes them or reads them. The first
// error ends a pass: the fields after it stay as they are, and every count is 0.
type List struct {
	b       []byte    // what is written so far and not in to, or what is left to read
	to      io.Writer // takes what is written; nil: b has all of it
	reading bool
	err     error
}

// Append appends a version byte and the fields that state lists to dst.
func Append(dst []byte, version byte, state func(*List)) ([]byte, error) {
	l := List{b: append(dst, version)}
	state(&l)
	return l.b, l.err
}

// spillAt is how many bytes wait to be written to a writer; longer fields go there as they are.
const spillAt = 64 << 10

// Write writes to w what Append would append, without memory for all of it.
func Write(w io.Writer, version byte, state func(*List)) error {
	l := List{b: append(make([]byte, 0, spillAt), version), to: w}
	state(&l)
	l.spill()
	return l.err
}

// spill writes what waits.
func (l *List) spill() {
	l.pass(l.b)
	l.b = l.b[:0]
}

// pass writes bytes behind those that are written already.
func (l *List) pass(b []byte) {
	if l.err == nil && len(b) > 0 {
		_, l.err = l.to.Write(b)
	}
}

// written follows each field that is written.
func (l *List) written() {
	if l.to != nil && len(l.b) >= spillAt {
		l.spill()
	}
}

// Read sets the fields that state lists from what Append wrote. The memory that it takes is
// bounded by the length of b and by the counts that state asks for. Fields of bytes share the
// memory of b. Errors wrap ErrState, or are those of Rest; after an error some fields are set.
func Read(b []byte, version byte, state func(*List)) error {
	l := List{b: b, reading: true}
	if head := l.take(1); head != nil && head[0] != version {
		return fmt.Errorf("%w: it has format %d, but this version reads format %d", ErrState, head[0], version)
	}
	state(&l)
	l.Check(len(l.b) == 0, "%d bytes follow after its end", len(l.b))
	return l.err
}

// Reading reports whether the pass reads, and has found no error so far.
func (l *List) Reading() bool { return l.reading && l.err == nil }

// Check refuses a state that is being read unless ok; the format says what is wrong. It does
// nothing while a state is written.
func (l *List) Check(ok bool, format string, args ...any) {
	if l.reading && l.err == nil && !ok {
		l.err = fmt.Errorf("%w: %w", ErrState, fmt.Errorf(format, args...))
	}
}

// take returns the next n bytes, or nil after an error.
func (l *List) take(n int) []byte {
	l.Check(len(l.b) >= n, "it is truncated")
	if l.err != nil {
		return nil
	}
	head := l.b[:n:n]
	l.b = l.b[n:]
	return head
}

// fixed writes v, or fills it.
func (l *List) fixed(v []byte) {
	if l.reading {
		copy(v, l.take(len(v)))
		return
	}
	if l.to != nil && len(v) >= spillAt {
		l.spill()
		l.pass(v)
		return
	}
	l.b = append(l.b, v...)
	l.written()
}

// Byte lists single bytes.
func (l *List) Byte(v ...*byte) {
	for _, p := range v {
		b := [1]byte{*p}
		l.fixed(b[:])
		*p = b[0]
	}
}

// Bool lists flags, a byte of 0 or 1 each.
func (l *List) Bool(v ...*bool) {
	for _, p := range v {
		var b byte
		if *p {
			b = 1
		}
		l.Byte(&b)
		l.Check(b <= 1, "a flag is %d, want 0 or 1", b)
		*p = b == 1
	}
}

// Uint64 lists whole numbers of 8 bytes each.
func (l *List) Uint64(v ...*uint64) {
	for _, p := range v {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], *p)
		l.fixed(b[:])
		*p = binary.LittleEndian.Uint64(b[:])
	}
}

// Float64 lists numbers of 8 bytes each.
func (l *List) Float64(v ...*float64) {
	for _, p := range v {
		bits := math.Float64bits(*p)
		l.Uint64(&bits)
		*p = math.Float64frombits(bits)
	}
}

// Float32s lists vectors of lengths that the job decides; the lengths are not written.
func (l *List) Float32s(v ...[]float32) {
	for _, x := range v {
		l.fixed(num.Bytes32(x))
	}
}

// Float64s is Float32s for float64.
func (l *List) Float64s(v ...[]float64) {
	for _, x := range v {
		l.fixed(num.Bytes64(x))
	}
}

// Count lists, in 4 bytes, how many of something there are: none, or the number want that the
// job decides. It returns the number: have while a state is written.
func (l *List) Count(have, want int) int {
	n := binary.LittleEndian.AppendUint32(nil, uint32(have))
	l.fixed(n)
	if !l.reading {
		return have
	}
	have = int(binary.LittleEndian.Uint32(n))
	l.Check(have == 0 || have == want, "the saved state has %d values, want %d", have, want)
	if l.err != nil {
		return 0
	}
	return have
}

// Known lists a vector that is nil until its n values are known: their Count, then the values.
func (l *List) Known(v *[]float64, n int) {
	n = l.Count(len(*v), n)
	if !l.reading {
		l.Float64s(*v)
		return
	}
	if b := l.take(8 * n); len(b) > 0 {
		*v = slices.Clone(num.Float64s(b))
	} else {
		*v = nil
	}
}

// Bytes lists bytes of any length: the length in 8 bytes, then the bytes. Read bytes share the
// memory of the state; no bytes are nil.
func (l *List) Bytes(v *[]byte) {
	l.Part(len(*v), func(dst []byte) []byte { return append(dst, *v...) }, func(b []byte) error {
		*v = b
		return nil
	})
}

// Part lists what has an encoding of its own: the size of the encoding in 8 bytes, then what
// encode appends. decode reads it and may keep b, which is nil if the size is 0. An error of
// decode is about the state.
func (l *List) Part(size int, encode func(dst []byte) []byte, decode func(b []byte) error) {
	n := uint64(size)
	l.Uint64(&n)
	if !l.reading {
		l.b = encode(l.b)
		l.written()
		return
	}
	l.Check(n <= uint64(len(l.b)), "it is truncated")
	if l.err != nil {
		return
	}
	b := l.take(int(n))
	if n == 0 {
		b = nil
	}
	if err := decode(b); err != nil {
		l.Check(false, "%w", err)
	}
}

// Grow makes room for n bytes that follow while a state is appended.
func (l *List) Grow(n int) {
	if !l.reading && l.to == nil {
		l.b = slices.Grow(l.b, n)
	}
}

// Tail reports whether fields follow: have while a state is written, else whether bytes are
// left. Nothing may be listed after the fields of a tail.
func (l *List) Tail(have bool) bool {
	if l.reading {
		return l.err == nil && len(l.b) > 0
	}
	return have
}

// Stater is what has a state of its own.
type Stater interface {
	AppendState(dst []byte) ([]byte, error)
}

// StateWriter is a Stater that writes its state without memory for all of it.
type StateWriter interface {
	WriteState(w io.Writer) error
}

// Rest lists the last field, the state of another; its length is not written. read may
// keep b, and its errors are passed on as they are.
func (l *List) Rest(of Stater, read func(b []byte) error) {
	if l.err != nil {
		return
	}
	if l.reading {
		l.err = read(l.take(len(l.b)))
		return
	}
	if w, ok := of.(StateWriter); ok && l.to != nil {
		l.spill()
		if l.err == nil {
			l.err = w.WriteState(l.to)
		}
		return
	}
	l.b, l.err = of.AppendState(l.b)
}
