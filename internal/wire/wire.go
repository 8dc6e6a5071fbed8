// Package wire reads and writes little-endian fields of bytes. Readers never allocate
// memory for a length that is only claimed, and their errors name the field.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

var le = binary.LittleEndian

// Reader takes fields off bytes. After the first error it returns zeros.
type Reader struct {
	b   []byte // not read yet
	err error
}

// NewReader returns a reader of b. What it returns shares the memory of b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Failf sets the error, if there is none yet.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.b = nil
	}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes that are left.
func (r *Reader) Len() int { return len(r.b) }

// End returns the first error. It is an error if bytes are left.
func (r *Reader) End() error {
	if len(r.b) > 0 {
		r.Failf("%d bytes follow the end", len(r.b))
	}
	return r.err
}

// Take returns the next n bytes, or nil after an error.
func (r *Reader) Take(field string, n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.Failf("%s: %d bytes are needed, but only %d are left", field, n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// U8 reads a byte.
func (r *Reader) U8(field string) uint8 {
	if b := r.Take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

// U32 reads a number of four bytes.
func (r *Reader) U32(field string) uint32 {
	if b := r.Take(field, 4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

// U64 reads a number of eight bytes.
func (r *Reader) U64(field string) uint64 {
	if b := r.Take(field, 8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// Uvarint reads a number as encoding/binary writes it.
func (r *Reader) Uvarint(field string) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.Failf("%s: a number is cut short or too large", field)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Bytes reads a length of eight bytes and that many bytes.
func (r *Reader) Bytes(field string) []byte { return r.Take(field, r.U64(field)) }

// Coder reads or appends the fields of a record, so that one list of fields describes both
// directions. What it reads shares no memory with the bytes.
type Coder struct {
	from *Reader // nil if the coder appends
	to   []byte
}

// Appender returns a coder that appends fields to dst.
func Appender(dst []byte) *Coder { return &Coder{to: dst} }

// Decoder returns a coder that reads fields from b.
func Decoder(b []byte) *Coder { return &Coder{from: NewReader(b)} }

// Reads reports whether the coder reads.
func (c *Coder) Reads() bool { return c.from != nil }

// Failed reports whether something could not be read.
func (c *Coder) Failed() bool { return c.from != nil && c.from.err != nil }

// Failf sets the error of a coder that reads, if there is none yet.
func (c *Coder) Failf(format string, args ...any) {
	if c.from != nil {
		c.from.Failf(format, args...)
	}
}

// End returns the first error of a coder that reads. It is an error if bytes are left.
func (c *Coder) End() error { return c.from.End() }

// Appended returns dst with the fields.
func (c *Coder) Appended() []byte { return c.to }

// Fixed codes the bytes of b, without their length.
func (c *Coder) Fixed(field string, b []byte) {
	if c.from == nil {
		c.to = append(c.to, b...)
		return
	}
	copy(b, c.from.Take(field, uint64(len(b))))
}

// Flag codes whether an optional part follows, and returns that.
func (c *Coder) Flag(field string, there bool) bool {
	b := [1]byte{}
	if there {
		b[0] = 1
	}
	if c.Fixed(field, b[:]); b[0] > 1 {
		c.Failf("%s: want a flag of 0 or 1, got %d", field, b[0])
	}
	return b[0] == 1 && !c.Failed()
}

// LastFlag codes a flag at the end of the fields. A flag that is not set takes no byte, so bytes from before the flag
// existed are read as bytes without it.
func (c *Coder) LastFlag(field string, set bool) bool {
	if c.from == nil && !set || c.from != nil && c.from.Len() == 0 {
		return false
	}
	if !c.Flag(field, set) {
		c.Failf("%s: a flag that is not set takes no byte", field)
		return false
	}
	return true
}

// Rest reports whether more fields of a record follow: of a coder that appends, that is there. Fields that are added to
// a record come last, so that records without them are read as before.
func (c *Coder) Rest(there bool) bool {
	if c.from == nil {
		return there
	}
	return !c.Failed() && c.from.Len() > 0
}

// Text codes a text after its length.
func (c *Coder) Text(field string, v *string) {
	if c.from == nil {
		c.to = append(le.AppendUint64(c.to, uint64(len(*v))), *v...)
		return
	}
	*v = string(c.from.Bytes(field))
}

// Tail codes a text at the end of a record if it is not empty. Records without it are read as before it was added.
func (c *Coder) Tail(field string, v *string) {
	if c.Reads() && (c.Failed() || c.from.Len() == 0) || !c.Reads() && *v == "" {
		return
	}
	if c.Text(field, v); *v == "" {
		c.Failf("%s is empty", field)
	}
}

// JSON codes *v in JSON after its length.
func (c *Coder) JSON(field string, v any) {
	if c.from == nil {
		b, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("wire: %T does not marshal: %v", v, err))
		}
		c.to = append(le.AppendUint64(c.to, uint64(len(b))), b...)
		return
	}
	if b := c.from.Bytes(field); !c.Failed() {
		if err := json.Unmarshal(b, v); err != nil {
			c.Failf("%s: %v", field, err)
		}
	}
}

// Bytes codes bytes after their length. To read more than limit is an error; no bytes are
// read as nil.
func Bytes[T ~[]byte](c *Coder, field string, v *T, limit uint64) {
	if c.from == nil {
		c.to = append(le.AppendUint64(c.to, uint64(len(*v))), *v...)
		return
	}
	b := c.from.Bytes(field)
	if uint64(len(b)) > limit {
		c.Failf("%s: want at most %d bytes, got %d", field, limit, len(b))
	}
	*v = append(T(nil), b...)
}

// Number codes a number in eight bytes. To read more than limit is an error.
func Number[T ~int | ~int64 | ~uint32 | ~uint64](c *Coder, field string, v *T, limit uint64) {
	if c.from == nil {
		c.to = le.AppendUint64(c.to, uint64(*v))
		return
	}
	n := c.from.U64(field)
	if n > limit {
		c.Failf("%s: want at most %d, got %d", field, limit, n)
		n = 0
	}
	*v = T(n)
}

// Numbers codes several numbers of any value.
func Numbers[T ~int64 | ~uint64](c *Coder, field string, v ...*T) {
	for _, n := range v {
		Number(c, field, n, 1<<64-1)
	}
}

// List codes a list after the number of its elements, each by element. To read more than
// limit elements is an error.
func List[T any](c *Coder, field string, list *[]T, limit uint64, element func(*T)) {
	n := len(*list)
	Number(c, field, &n, limit)
	if c.from != nil {
		*list = nil
	}
	for i := 0; i < n && !c.Failed(); i++ {
		if c.from != nil {
			*list = append(*list, *new(T))
		}
		element(&(*list)[i])
	}
}
