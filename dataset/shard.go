package dataset

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"
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
	// The degrees of a shard with this flag may be missing.
	flagIncomplete = 1 << 4
	// A shard of rows with weights has a section for them.
	flagWeights = 1 << 5
	flagAll     = flagSparse | flagNames | flagValues | flagIntervals | flagIncomplete | flagWeights
)

// shardLayout is the header of an encoded shard and where its sections begin.
type shardLayout struct {
	flags                  uint32
	rows, features, labels int
	values                 int // length of X
	nameBytes              int

	row, d, x, index, start, ends, text section
	value, interval, weight             section
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
	if l.flags&flagSparse != 0 {
		l.index = next(4 * l.values)
		l.start = next(4 * (l.rows + 1))
	}
	if l.flags&flagNames != 0 {
		l.ends = next(4 * l.rows)
		l.text = next(l.nameBytes)
	}
	if l.flags&flagValues != 0 {
		l.value = next(8 * l.rows)
	}
	if l.flags&flagIntervals != 0 {
		l.interval = next(16 * l.rows)
	}
	if l.flags&flagWeights != 0 {
		l.weight = next(8 * l.rows)
	}
	l.size = at
}

// EncodeShard returns the one encoding of a block of rows (FORMAT.md). names
// holds a name for each row, or is nil. It panics if r is not well-formed.
func EncodeShard(r *Rows, names []string) []byte {
	if err := r.Check(); err != nil {
		panic(err)
	}
	if names != nil && len(names) != r.N {
		panic(fmt.Sprintf("dataset: %d names for %d rows", len(names), r.N))
	}
	l := &shardLayout{rows: r.N, features: r.Features, labels: r.Labels, values: len(r.X)}
	if r.Sparse {
		l.flags |= flagSparse
	}
	if names != nil {
		l.flags |= flagNames
	}
	if r.Value != nil {
		l.flags |= flagValues
	}
	if r.Interval != nil {
		l.flags |= flagIntervals
	}
	if r.Incomplete {
		l.flags |= flagIncomplete
	}
	if r.Weight != nil {
		l.flags |= flagWeights
	}
	for _, name := range names {
		l.nameBytes += len(name)
	}
	if l.nameBytes > MaxRows {
		panic("dataset: the row names of a shard exceed 4 GiB")
	}
	l.place()
	b := make([]byte, l.size)
	head := append(b[:0], shardMagic...)
	for _, v := range []uint32{shardVersion, l.flags, uint32(l.rows), uint32(l.features), uint32(l.labels), 0} {
		head = binary.LittleEndian.AppendUint32(head, v)
	}
	for _, v := range []uint64{uint64(l.values), uint64(l.nameBytes), uint64(l.size), 0} {
		head = binary.LittleEndian.AppendUint64(head, v)
	}
	put(b, l.row, r.Row)
	put(b, l.d, r.D)
	put(b, l.x, r.X)
	if r.Sparse {
		put(b, l.index, r.Index)
		put(b, l.start, r.Start)
	}
	put(b, l.value, r.Value)
	put(b, l.interval, r.Interval)
	put(b, l.weight, r.Weight)
	ends, text, at := b[l.ends.from:l.ends.to], b[l.text.from:l.text.to], 0
	for i, name := range names {
		at += copy(text[at:], name)
		binary.LittleEndian.PutUint32(ends[4*i:], uint32(at))
	}
	return b
}

// OpenShardFile maps an encoded shard into memory. The rows are valid until
// close is called, and only while nobody shortens the file: a cache replaces
// files, it never rewrites them. An error names the file.
func OpenShardFile(path string) (r *Rows, close func() error, err error) {
	b, release, err := mapFile(path, shardHeader)
	if err != nil {
		return nil, nil, err
	}
	r, err = DecodeShard(b)
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, release, nil
}

// DecodeShard reads an encoded shard. The rows may share the memory of b, which must not change
// while they are in use. All indices in the result are within its slices. Errors wrap ErrFormat.
func DecodeShard(b []byte) (*Rows, error) {
	l, err := parseShardHeader(b)
	if err != nil {
		return nil, err
	}
	r := &Rows{
		N: l.rows, Features: l.features, Labels: l.labels, Sparse: l.flags&flagSparse != 0,
		Incomplete: l.flags&flagIncomplete != 0,
		Row:        view[uint32](b, l.row), D: view[float32](b, l.d), X: view[float32](b, l.x),
	}
	if r.Sparse {
		r.Index, r.Start = view[uint32](b, l.index), view[uint32](b, l.start)
	}
	if l.flags&flagValues != 0 {
		r.Value = view[float64](b, l.value)
	}
	if l.flags&flagIntervals != 0 {
		r.Interval = view[float64](b, l.interval)
	}
	if l.flags&flagWeights != 0 {
		r.Weight = view[float64](b, l.weight)
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	// Padding is zeros, so that equal rows have equal bytes.
	for _, s := range []section{l.row, l.d, l.x, l.index, l.start, l.ends, l.text, l.value, l.interval, l.weight} {
		for _, v := range b[s.to:min(len(b), (s.to+7)&^7)] {
			if v != 0 && s.to != 0 {
				return nil, fmt.Errorf("dataset: the shard is damaged: its padding is not zero: %w", ErrFormat)
			}
		}
	}
	if l.flags&flagNames == 0 {
		return r, nil
	}
	r.NameEnds, r.NameText = view[uint32](b, l.ends), b[l.text.from:l.text.to]
	end := uint32(0)
	for _, next := range r.NameEnds {
		if next < end || int(next) > len(r.NameText) {
			return nil, fmt.Errorf("dataset: the shard is damaged: its row names overlap: %w", ErrFormat)
		}
		end = next
	}
	if int(end) != len(r.NameText) {
		return nil, fmt.Errorf("dataset: the shard is damaged: its row names have %d bytes, but use %d: %w", len(r.NameText),
			end, ErrFormat)
	}
	return r, nil
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
		return nil, fmt.Errorf("dataset: the shard has format %d, but this version reads format %d: %w", v,
			shardVersion, ErrFormat)
	}
	l := &shardLayout{flags: u32(12), rows: int(u32(16)), features: int(u32(20)), labels: int(u32(24))}
	values, nameBytes := u64(32), u64(40)
	ok := l.flags&^flagAll == 0 && u32(28) == 0 && u64(56) == 0 &&
		l.rows <= MaxRows && l.features >= 1 && l.features <= MaxFeatures && l.labels <= MaxLabels &&
		nameBytes <= MaxRows && (l.flags&flagNames != 0 || nameBytes == 0)
	if l.flags&flagSparse != 0 {
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

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// number is a number as shards store it.
type number interface{ uint32 | float32 | float64 }

// NativeBytes returns the bytes of v in the order of this machine, in place.
func NativeBytes[T number](v []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(one)))
}

// put writes values to a section of b, little-endian.
func put[T number](b []byte, s section, values []T) {
	copy(b[s.from:s.to], NativeBytes(values))
	if !littleEndian {
		swap[T](b[s.from:s.to])
	}
}

// view returns a section of b as numbers, not nil: in place if byte order and alignment allow, else a copy.
func view[T number](b []byte, s section) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	b = b[s.from:s.to]
	if littleEndian && len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
	}
	v := make([]T, len(b)/size)
	copied := NativeBytes(v)
	if copy(copied, b); !littleEndian {
		swap[T](copied)
	}
	return v
}

// swap reverses the order of the bytes of each number.
func swap[T number](b []byte) {
	var one T
	for size := int(unsafe.Sizeof(one)); len(b) > 0; b = b[size:] {
		slices.Reverse(b[:size])
	}
}
