package state

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of a snapshot; whatever exceeds them is damaged.
const (
	maxCount = 1 << 24  // elements of a list
	maxField = 1 << 27  // bytes of a text or of JSON: an entry's, escaped
	maxStep  = 64 << 10 // bytes read at once before more are believed in
)

var le = binary.LittleEndian

// writer writes fields; after the first error it does nothing.
type writer struct {
	w   *bufio.Writer
	err error
}

func (w *writer) raw(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

func (w *writer) u8(v uint8) { w.raw([]byte{v}) }

func (w *writer) u64(vs ...uint64) {
	var b [8]byte
	for _, v := range vs {
		le.PutUint64(b[:], v)
		w.raw(b[:])
	}
}

func (w *writer) bytes(b []byte) {
	w.u64(uint64(len(b)))
	w.raw(b)
}

func (w *writer) text(s string) { w.bytes([]byte(s)) }

func (w *writer) json(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("state: %T does not marshal: %v", v, err))
	}
	w.bytes(b)
}

// reader reads fields; after the first error it yields zeros.
type reader struct {
	r   *bufio.Reader
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
	}
}

func (r *reader) raw(b []byte) {
	if r.err != nil {
		clear(b)
		return
	}
	if _, err := io.ReadFull(r.r, b); err != nil {
		clear(b)
		r.short(err)
	}
}

func (r *reader) short(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.fail("the snapshot ends too early")
		return
	}
	r.err = fmt.Errorf("reading a snapshot: %w", err)
}

func (r *reader) u8() uint8 {
	var b [1]byte
	r.raw(b[:])
	return b[0]
}

func (r *reader) u64() uint64 {
	var b [8]byte
	r.raw(b[:])
	return le.Uint64(b[:])
}

// count reads a number that may be at most limit.
func (r *reader) count(limit uint64) int {
	n := r.u64()
	if n > limit {
		r.fail("the snapshot has a count of %d, want at most %d", n, limit)
		return 0
	}
	return int(n)
}

// bytes reads a field of at most limit bytes, or nil.
func (r *reader) bytes(limit uint64) []byte { return r.sized(uint64(r.count(limit))) }

// sized reads n bytes. Memory grows with what is really there, not with what a
// damaged length claims.
func (r *reader) sized(n uint64) []byte {
	var b []byte
	for n > 0 && r.err == nil {
		at, step := len(b), min(n, uint64(max(maxStep, len(b))))
		b = append(b, make([]byte, step)...)
		r.raw(b[at:])
		n -= step
	}
	if r.err != nil {
		return nil
	}
	return b
}

// rawJSON reads JSON text as it is.
func (r *reader) rawJSON() json.RawMessage { return json.RawMessage(r.bytes(maxField)) }

func (r *reader) text() string { return string(r.bytes(maxField)) }

func (r *reader) json(v any) {
	b := r.bytes(maxField)
	if r.err != nil {
		return
	}
	if err := json.Unmarshal(b, v); err != nil {
		r.fail("%v", err)
	}
}

// list reads a count and that many elements.
func (r *reader) list(limit uint64, element func()) {
	for n := r.count(limit); n > 0 && r.err == nil; n-- {
		element()
	}
}
