package dataset

import (
	"encoding/binary"
	"fmt"
)

// The encoded shard: see FORMAT.md.
const (
	shardMagic   = "COPSHARD"
	shardVersion = 1
	shardHeader  = 64

	flagSparse = 1 << 0
	flagNames  = 1 << 1
	// A shard of rows with exact numbers, or intervals, has a section for each. Shards
	// without them are as they were before there were any.
	flagValues    = 1 << 2
	flagIntervals = 1 << 3
	flagAll       = flagSparse | flagNames | flagValues | flagIntervals
)

// shardLayout is the header of an encoded shard and where its sections begin.
type shardLayout struct {
	sparse, names          bool
	exact, intervals       bool
	rows, features, labels int
	values                 int // length of X
	nameBytes              int

	row, d, x, index, start, ends, text section
	value, interval                     section
	size                                int
}

// section is a part of an encoded shard, in bytes from its beginning.
type section struct{ from, to int }

// place computes the sections from the numbers of the header. These are bounded, so no sum
// overflows.
func (l *shardLayout) place() {
	at := shardHeader
	next := func(bytes int) section {
		s := section{at, at + bytes}
		at = (s.to + 7) &^ 7
		return s
	}
	l.row = next(4 * l.rows)
	l.d = next(4 * l.rows * l.labels)
	l.x = next(4 * l.values)
	if l.sparse {
		l.index = next(4 * l.values)
		l.start = next(4 * (l.rows + 1))
	}
	if l.names {
		l.ends = next(4 * l.rows)
		l.text = next(l.nameBytes)
	}
	if l.exact {
		l.value = next(8 * l.rows)
	}
	if l.intervals {
		l.interval = next(16 * l.rows)
	}
	l.size = at
}

func (l *shardLayout) appendHeader(b []byte) []byte {
	flags := uint32(0)
	for _, f := range []struct {
		bit uint32
		set bool
	}{{flagSparse, l.sparse}, {flagNames, l.names}, {flagValues, l.exact}, {flagIntervals, l.intervals}} {
		if f.set {
			flags |= f.bit
		}
	}
	b = append(b, shardMagic...)
	for _, v := range []uint32{shardVersion, flags, uint32(l.rows), uint32(l.features), uint32(l.labels), 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{uint64(l.values), uint64(l.nameBytes), uint64(l.size), 0} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// parseShardHeader reads and checks the header of b, and that b is as long as
// the header says.
func parseShardHeader(b []byte) (*shardLayout, error) {
	if len(b) < shardHeader || string(b[:8]) != shardMagic {
		return nil, fmt.Errorf("dataset: the file is not a shard: %w", ErrFormat)
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if v := u32(8); v != shardVersion {
		return nil, fmt.Errorf("dataset: the shard has format %d, but this version reads format %d: %w", v, shardVersion, ErrFormat)
	}
	flags := u32(12)
	l := &shardLayout{
		sparse: flags&flagSparse != 0, names: flags&flagNames != 0,
		exact: flags&flagValues != 0, intervals: flags&flagIntervals != 0,
		rows: int(u32(16)), features: int(u32(20)), labels: int(u32(24)),
	}
	values, nameBytes := u64(32), u64(40)
	ok := flags&^flagAll == 0 && u32(28) == 0 && u64(56) == 0 &&
		l.rows <= MaxRows && l.features >= 1 && l.features <= MaxFeatures && l.labels <= MaxLabels &&
		nameBytes <= MaxRows && (l.names || nameBytes == 0)
	if l.sparse {
		ok = ok && values <= MaxRows
	} else {
		ok = ok && values == uint64(l.rows)*uint64(l.features)
	}
	if !ok {
		return nil, fmt.Errorf("dataset: the shard is damaged: its header is wrong: %w", ErrFormat)
	}
	l.values, l.nameBytes = int(values), int(nameBytes)
	l.place()
	if u64(48) != uint64(l.size) || len(b) != l.size {
		return nil, fmt.Errorf("dataset: the shard is damaged: it has %d bytes, want %d: %w", len(b), l.size, ErrFormat)
	}
	return l, nil
}
