package wire

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// record has a field of each kind.
type record struct {
	number  uint64
	count   int
	text    string
	bytes   []byte
	list    []uint32
	fixed   [3]byte
	there   bool
	mapping map[string]int
}

func (r *record) fields(c *Coder) {
	Numbers(c, "number", &r.number)
	Number(c, "count", &r.count, 9)
	c.Text("text", &r.text)
	Bytes(c, "bytes", &r.bytes, 4)
	List(c, "list", &r.list, 3, func(v *uint32) { Number(c, "element", v, math.MaxUint32) })
	c.Fixed("fixed", r.fixed[:])
	r.there = c.Flag("there", r.there)
	c.JSON("mapping", &r.mapping)
}

func encode(r *record) []byte {
	c := Appender(nil)
	r.fields(c)
	return c.Appended()
}

func full() *record {
	return &record{number: 1 << 63, count: 9, text: "text", bytes: []byte{1, 2, 3, 4},
		list: []uint32{5, 6, math.MaxUint32}, fixed: [3]byte{7, 8, 9}, there: true, mapping: map[string]int{"a": 1}}
}

// TestLastFlag: a last flag is the byte 1 if it is set, and no byte if it is not. Other bytes are refused.
func TestLastFlag(t *testing.T) {
	for _, set := range []bool{false, true} {
		c := Appender([]byte{7})
		if c.LastFlag("flag", set) != set || (len(c.Appended()) == 2) != set {
			t.Errorf("%v is written as % x", set, c.Appended())
		}
		read := Decoder(c.Appended()[1:])
		if read.LastFlag("flag", false) != set || read.End() != nil {
			t.Errorf("%v: %v", set, read.End())
		}
	}
	for _, b := range [][]byte{{0}, {2}, {1, 0}} {
		if c := Decoder(b); c.LastFlag("flag", false) && c.End() == nil || c.End() == nil {
			t.Errorf("% x is read", b)
		}
	}
}

// TestRest: fields at the end of a record are there if a coder that appends says so, or if bytes are left to read.
func TestRest(t *testing.T) {
	if c := Appender([]byte{1}); c.Rest(false) || !c.Rest(true) {
		t.Error("a coder that appends does not say what it is told")
	}
	c := Decoder([]byte{1})
	if !c.Rest(false) || !c.Flag("flag", false) || c.Rest(true) {
		t.Error("a coder that reads does not say whether bytes are left")
	}
	if c = Decoder([]byte{1}); true {
		c.Failf("damaged")
	}
	if c.Rest(true) {
		t.Error("a coder that failed has more fields")
	}
}

// TestCoder: a record is read as it was written, shares no memory with its bytes, and is refused if any byte is
// missing.
func TestCoder(t *testing.T) {
	for _, want := range []*record{new(record), full()} {
		b := encode(want)
		c, got := Decoder(b), new(record)
		if got.fields(c); c.End() != nil {
			t.Fatal(c.End())
		}
		clear(b)
		if b = encode(want); !bytes.Equal(encode(got), b) || (got.bytes == nil) != (len(want.bytes) == 0) {
			t.Errorf("%+v is read as %+v", want, got)
		}
		for n := range b {
			c := Decoder(b[:n])
			if new(record).fields(c); c.End() == nil {
				t.Errorf("%d of %d bytes are read", n, len(b))
			}
		}
		if c := Decoder(append(b, 0)); true {
			if new(record).fields(c); c.End() == nil || c.End().Error() != "1 bytes follow the end" {
				t.Errorf("with a byte more: %v", c.End())
			}
		}
	}
}

// TestBounds: a value above its bound is an error that names the field, and the first error stays.
func TestBounds(t *testing.T) {
	for want, change := range map[string]func(*record){
		"count: want at most 9, got 10":      func(r *record) { r.count = 10 },
		"bytes: want at most 4 bytes, got 5": func(r *record) { r.bytes = make([]byte, 5) },
		"list: want at most 3, got 4":        func(r *record) { r.list = make([]uint32, 4) },
	} {
		r := full()
		change(r)
		c := Decoder(encode(r))
		got := new(record)
		if got.fields(c); c.End() == nil || c.End().Error() != want || !c.Failed() {
			t.Errorf("%v, want %s", c.End(), want)
		}
		if got.there || got.mapping != nil {
			t.Errorf("after %s more is read: %+v", want, got)
		}
	}
	b := encode(full())
	b[slices.Index(b, 9)+0] = 9 // count, unchanged
	flag := bytes.Index(b, []byte{7, 8, 9}) + 3
	b[flag] = 2
	c := Decoder(b)
	if new(record).fields(c); c.End() == nil || c.End().Error() != "there: want a flag of 0 or 1, got 2" {
		t.Error(c.End())
	}
}

// TestReader: fields come in order, and after an error nothing but zeros.
func TestReader(t *testing.T) {
	r := NewReader([]byte{1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0xac, 2, 2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 9})
	if a, b, c, d := r.U8("a"), r.U32("b"), r.U64("c"), r.Uvarint("d"); a != 1 || b != 2 || c != 3 || d != 300 {
		t.Error(a, b, c, d)
	}
	if text := r.Bytes("text"); string(text) != "ab" || cap(text) != 2 || r.Len() != 1 || r.Err() != nil {
		t.Errorf("%q, then %d bytes, %v", text, r.Len(), r.Err())
	}
	if r.U32("late") != 0 || r.Err() == nil || r.Err().Error() != "late: 4 bytes are needed, but only 1 are left" {
		t.Error(r.Err())
	}
	if r.U8("") != 0 || r.U64("") != 0 || r.Uvarint("") != 0 || r.Bytes("") != nil || r.Len() != 0 ||
		!strings.HasPrefix(r.End().Error(), "late") {
		t.Error(r.End())
	}
	if r := NewReader(bytes.Repeat([]byte{0xff}, 11)); r.Uvarint("long") != 0 || r.Err() == nil {
		t.Error(r.Err())
	}
}

// FuzzCoder: bytes are a record that is encoded to the same bytes but for its JSON, or refused. Claims cost no memory.
func FuzzCoder(f *testing.F) {
	f.Add(encode(new(record)))
	f.Add(encode(full()))
	f.Add(bytes.Repeat([]byte{0x7f}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, r := Decoder(b), new(record)
		allocs.AtMost(t, 64*len(b)+64<<10, "a record", func() { r.fields(c) })
		if c.End() != nil {
			return
		}
		r.mapping = nil
		if again := encode(r); !bytes.HasPrefix(b, again[:len(again)-len("null")-8]) {
			t.Fatalf("%x is encoded as %x", b, again)
		}
	})
}
