package dataset

import (
	"encoding/binary"
	"fmt"
)

// EncodeShard returns the one encoding of a block of rows (FORMAT.md). names
// holds a name for each row, or is nil. It panics where r is not well-formed.
func EncodeShard(r *Rows, names []string) []byte {
	if err := r.Check(); err != nil {
		panic(err)
	}
	if names != nil && len(names) != r.N {
		panic(fmt.Sprintf("dataset: %d names for %d rows", len(names), r.N))
	}
	l := &shardLayout{
		sparse: r.Sparse, names: names != nil, exact: r.Value != nil, intervals: r.Interval != nil,
		rows: r.N, features: r.Features, labels: r.Labels, values: len(r.X),
	}
	for _, name := range names {
		l.nameBytes += len(name)
	}
	if l.nameBytes > MaxRows {
		panic("dataset: the row names of a shard exceed 4 GiB")
	}
	l.place()
	b := make([]byte, l.size)
	l.appendHeader(b[:0])
	putU32(b[l.row.from:], r.Row)
	putF32(b[l.d.from:], r.D)
	putF32(b[l.x.from:], r.X)
	if r.Sparse {
		putU32(b[l.index.from:], r.Index)
		putU32(b[l.start.from:], r.Start)
	}
	putF64(b[l.value.from:l.value.to], r.Value)
	putF64(b[l.interval.from:l.interval.to], r.Interval)
	if names != nil {
		putNames(b[l.ends.from:], b[l.text.from:], names)
	}
	return b
}

func putNames(ends, text []byte, names []string) {
	at := 0
	for i, name := range names {
		at += copy(text[at:], name)
		binary.LittleEndian.PutUint32(ends[4*i:], uint32(at))
	}
}
