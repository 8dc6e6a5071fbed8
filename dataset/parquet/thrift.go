package parquet

import (
	"encoding/binary"
	"math"
)

// The types of the compact protocol of Thrift.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxDepth bounds how deep structs may be in structs.
const maxDepth = 16

// thriftReader reads values of the compact protocol of Thrift. After an error it reads zeros. It allocates nothing.
type thriftReader struct {
	b     []byte
	at    int
	depth int
	err   error
}

func (r *thriftReader) fail() {
	if r.err == nil {
		r.err = errDamaged("the metadata ends early or is no metadata")
	}
	r.at = len(r.b)
}

func (r *thriftReader) byte() byte {
	if r.at >= len(r.b) {
		r.fail()
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.at += n
	return v
}

// int reads an integer of any width.
func (r *thriftReader) int() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// int32 reads an integer that must fit in 32 bits.
func (r *thriftReader) int32() int32 {
	v := r.int()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

// bytes reads a text. It is a part of the input.
func (r *thriftReader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)-r.at) {
		r.fail()
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// fields calls f with the number and the type of each field of a struct. f reads the value, or calls skip.
func (r *thriftReader) fields(f func(id int16, kind byte)) {
	if r.depth++; r.depth > maxDepth {
		r.fail()
	}
	for id := int16(0); r.err == nil; {
		head := r.byte()
		if head == 0 {
			break
		}
		if delta := int16(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int16(r.int())
		}
		f(id, head&15)
	}
	r.depth--
}

// list calls f once for each item of a list of items of one type. An item has at least one byte.
func (r *thriftReader) list(kind byte, f func()) {
	head := r.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if n > uint64(len(r.b)-r.at) || n > 0 && head&15 != kind {
		r.fail()
		return
	}
	for range n {
		if r.err != nil {
			return
		}
		f()
	}
}

// skip passes over a value.
func (r *thriftReader) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble, thriftUUID:
		n := 8
		if kind == thriftUUID {
			n = 16
		}
		if r.at += n; r.at > len(r.b) {
			r.fail()
		}
	case thriftBinary:
		r.bytes()
	case thriftList, thriftSet:
		r.skipItems()
	case thriftMap:
		r.skipMap()
	case thriftStruct:
		r.fields(func(_ int16, kind byte) { r.skip(kind) })
	default:
		r.fail()
	}
}

// skipItems passes over a list. Bools in it have a byte each.
func (r *thriftReader) skipItems() {
	if r.depth++; r.depth > maxDepth || r.at >= len(r.b) {
		r.fail()
		return
	}
	kind := r.b[r.at] & 15
	r.list(kind, func() {
		if kind == thriftTrue || kind == thriftFalse {
			r.byte()
		} else {
			r.skip(kind)
		}
	})
	r.depth--
}

// skipMap passes over a map.
func (r *thriftReader) skipMap() {
	n := r.uvarint()
	if n == 0 {
		return
	}
	kinds := r.byte()
	if r.depth++; r.depth > maxDepth || n > uint64(len(r.b)-r.at) {
		r.fail()
		return
	}
	for range n {
		if r.skip(kinds >> 4); r.err != nil {
			return
		}
		r.skip(kinds & 15)
	}
	r.depth--
}

// thriftWriter appends values in the compact protocol of Thrift.
type thriftWriter struct {
	b    []byte
	last []int16 // the number of the last field of each open struct
}

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }

func (w *thriftWriter) end() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

// field begins a field of the open struct. The numbers of fields must ascend by at most 15.
func (w *thriftWriter) field(id int16, kind byte) {
	top := &w.last[len(w.last)-1]
	w.b = append(w.b, byte(id-*top)<<4|kind)
	*top = id
}

func (w *thriftWriter) varint(v int64) {
	w.b = binary.AppendUvarint(w.b, uint64(v<<1)^uint64(v>>63))
}

func (w *thriftWriter) int32(id int16, v int32) {
	w.field(id, thriftI32)
	w.varint(int64(v))
}

func (w *thriftWriter) int64(id int16, v int64) {
	w.field(id, thriftI64)
	w.varint(v)
}

func (w *thriftWriter) text(id int16, s string) {
	w.field(id, thriftBinary)
	w.string(s)
}

func (w *thriftWriter) string(s string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(s)))
	w.b = append(w.b, s...)
}

// list begins a list of n items, which follow.
func (w *thriftWriter) list(id int16, kind byte, n int) {
	w.field(id, thriftList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|kind)
		return
	}
	w.b = append(w.b, 15<<4|kind)
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

// object writes a struct as a field.
func (w *thriftWriter) object(id int16, fields func()) {
	w.field(id, thriftStruct)
	w.begin()
	fields()
	w.end()
}
