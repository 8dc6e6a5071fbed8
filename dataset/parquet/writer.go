package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
)

// WriteColumn is a column to write: Int, Float, Double or Text. Texts that are empty are written as missing.
type WriteColumn struct {
	Name string
	Kind Kind
}

// Writer writes a file of a table, a row group at a time.
type Writer struct {
	out     io.Writer
	columns []WriteColumn
	at      int64
	rows    int
	held    int      // bytes of the row group
	buffers [][]byte // of each column
	levels  [][]bool // of each column of texts: true if there is one
	groups  []writtenGroup
	err     error
}

type writtenGroup struct {
	rows   int
	chunks []writtenChunk
}

type writtenChunk struct{ from, packed, unpacked int64 }

// Bounds of a row group.
const (
	groupRows  = 1 << 17
	groupBytes = 64 << 20
)

// NewWriter begins a file.
func NewWriter(out io.Writer, columns []WriteColumn) *Writer {
	w := &Writer{out: out, columns: columns, buffers: make([][]byte, len(columns)), levels: make([][]bool, len(columns))}
	w.write([]byte(magic))
	return w
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.at += int64(len(b))
	}
}

// Int adds a value to a column of integers. Each column gets one value, then Row ends the row.
func (w *Writer) Int(column int, v int64) {
	w.buffers[column] = binary.LittleEndian.AppendUint64(w.buffers[column], uint64(v))
	w.held += 8
}

// Number adds a value to a column of Float or Double. NaN stays NaN, which other programs read as missing.
func (w *Writer) Number(column int, v float64) {
	if w.columns[column].Kind == Float {
		w.buffers[column] = binary.LittleEndian.AppendUint32(w.buffers[column], math.Float32bits(float32(v)))
	} else {
		w.buffers[column] = binary.LittleEndian.AppendUint64(w.buffers[column], math.Float64bits(v))
	}
	w.held += 8
}

// Text adds a value to a column of texts.
func (w *Writer) Text(column int, s string) {
	if w.levels[column] = append(w.levels[column], s != ""); s != "" {
		w.buffers[column] = binary.LittleEndian.AppendUint32(w.buffers[column], uint32(len(s)))
		w.buffers[column] = append(w.buffers[column], s...)
	}
	w.held += 5 + len(s)
}

// Row ends a row.
func (w *Writer) Row() error {
	if w.rows++; w.rows == groupRows || w.held >= groupBytes {
		w.flush()
	}
	return w.err
}

// flush writes a row group.
func (w *Writer) flush() {
	g := writtenGroup{rows: w.rows}
	for i := range w.columns {
		page := w.buffers[i]
		if w.columns[i].Kind == Text {
			page = append(levelBytes(w.levels[i]), page...)
		}
		packed := snappy.Encode(nil, page)
		h := thriftWriter{}
		h.begin()
		h.int32(1, 0)
		h.int32(2, int32(len(page)))
		h.int32(3, int32(len(packed)))
		h.object(5, func() {
			h.int32(1, int32(w.rows))
			h.int32(2, encodingPlain)
			h.int32(3, encodingRLE)
			h.int32(4, encodingRLE)
		})
		h.end()
		c := writtenChunk{from: w.at, packed: int64(len(h.b) + len(packed)), unpacked: int64(len(h.b) + len(page))}
		w.write(h.b)
		w.write(packed)
		g.chunks = append(g.chunks, c)
		w.buffers[i], w.levels[i] = w.buffers[i][:0], w.levels[i][:0]
	}
	w.groups, w.rows, w.held = append(w.groups, g), 0, 0
}

// levelBytes writes which values there are, with the length before.
func levelBytes(there []bool) []byte {
	b := make([]byte, 4, 5+len(there)/8)
	b = binary.AppendUvarint(b, uint64((len(there)+7)/8)<<1|1)
	from := len(b)
	b = append(b, make([]byte, (len(there)+7)/8)...)
	for i, yes := range there {
		if yes {
			b[from+i/8] |= 1 << (i % 8)
		}
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// Close writes what is left and the metadata. It does not close what is written to.
func (w *Writer) Close() error {
	if w.rows > 0 {
		w.flush()
	}
	t, rows := thriftWriter{}, int64(0)
	for _, g := range w.groups {
		rows += int64(g.rows)
	}
	t.begin()
	t.int32(1, 2)
	t.list(2, thriftStruct, len(w.columns)+1)
	t.begin()
	t.text(4, "schema")
	t.int32(5, int32(len(w.columns)))
	t.end()
	for _, c := range w.columns {
		stored, optional := c.stored()
		t.begin()
		t.int32(1, int32(stored))
		t.int32(3, optional)
		t.text(4, c.Name)
		if c.Kind == Text {
			t.int32(6, 0)
			t.object(10, func() { t.object(logicalString, func() {}) })
		}
		t.end()
	}
	t.int64(3, rows)
	t.list(4, thriftStruct, len(w.groups))
	for _, g := range w.groups {
		w.describe(&t, &g)
	}
	t.text(6, "coppice")
	t.end()
	if len(t.b) > math.MaxInt32 {
		return fmt.Errorf("the metadata has %d bytes, which no Parquet file can have", len(t.b))
	}
	w.write(t.b)
	w.write(binary.LittleEndian.AppendUint32(nil, uint32(len(t.b))))
	w.write([]byte(magic))
	return w.err
}

func (c *WriteColumn) stored() (kind physical, repetition int32) {
	switch c.Kind {
	case Int:
		return physicalInt64, 0
	case Float:
		return physicalFloat, 0
	case Double:
		return physicalReal, 0
	}
	return physicalBytes, 1
}

// describe writes the metadata of a row group.
func (w *Writer) describe(t *thriftWriter, g *writtenGroup) {
	all := int64(0)
	t.begin()
	t.list(1, thriftStruct, len(g.chunks))
	for i, c := range g.chunks {
		stored, _ := w.columns[i].stored()
		all += c.unpacked
		t.begin()
		t.int64(2, c.from)
		t.object(3, func() {
			t.int32(1, int32(stored))
			t.list(2, thriftI32, 2)
			t.varint(encodingPlain)
			t.varint(encodingRLE)
			t.list(3, thriftBinary, 1)
			t.string(w.columns[i].Name)
			t.int32(4, codecSnappy)
			t.int64(5, int64(g.rows))
			t.int64(6, c.unpacked)
			t.int64(7, c.packed)
			t.int64(9, c.from)
		})
		t.end()
	}
	t.int64(2, all)
	t.int64(3, int64(g.rows))
	t.end()
}
