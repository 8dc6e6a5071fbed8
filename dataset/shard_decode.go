package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// DecodeShard reads an encoded shard and returns its rows and their names (nil
// if the shard has none). The rows may share the memory of b, which must not change
// while they are in use; the names are copies. All indices in the result are within its
// slices. Errors wrap ErrFormat.
func DecodeShard(b []byte) (*Rows, []string, error) {
	l, err := parseShardHeader(b)
	if err != nil {
		return nil, nil, err
	}
	r := &Rows{
		N: l.rows, Features: l.features, Labels: l.labels, Sparse: l.sparse,
		Row: viewU32(b, l.row), D: viewF32(b, l.d), X: viewF32(b, l.x),
	}
	if l.sparse {
		r.Index, r.Start = viewU32(b, l.index), viewU32(b, l.start)
	}
	if l.exact {
		r.Value = viewF64(b, l.value)
	}
	if l.intervals {
		r.Interval = viewF64(b, l.interval)
	}
	if err := r.Check(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	if err := checkPadding(b, l); err != nil {
		return nil, nil, err
	}
	names, err := l.decodeNames(b)
	if names != nil {
		r.NameEnds, r.NameText = viewU32(b, l.ends), b[l.text.from:l.text.to]
	}
	return r, names, err
}

// Check returns an error if the lengths and indices of r's slices contradict each other.
func (r *Rows) Check() error {
	values := r.N * r.Features
	if r.Sparse {
		values = len(r.Index)
	}
	if len(r.Row) != r.N || len(r.D) != r.N*r.Labels || len(r.X) != values {
		return fmt.Errorf("dataset: the block is damaged: %d samples do not fit %d row numbers, %d label probabilities and %d values",
			r.N, len(r.Row), len(r.D), len(r.X))
	}
	if err := r.checkNumbers(); err != nil {
		return err
	}
	if r.Sparse {
		return r.checkSparse()
	}
	return nil
}

// checkNumbers checks the exact numbers and the intervals of rows.
func (r *Rows) checkNumbers() error {
	if r.Value != nil && len(r.Value) != r.N || r.Interval != nil && len(r.Interval) != 2*r.N {
		return fmt.Errorf("dataset: the block is damaged: %d samples do not fit %d exact numbers and %d interval ends", r.N, len(r.Value), len(r.Interval))
	}
	for i, v := range r.Value {
		if v-v != 0 {
			return fmt.Errorf("dataset: the block is damaged: the exact number of sample %d is %v, which is not possible", i, v)
		}
	}
	for i := 0; i < len(r.Interval); i += 2 {
		if low, high := r.Interval[i], r.Interval[i+1]; !(low <= high) || low-low != 0 || high-high != 0 {
			return fmt.Errorf("dataset: the block is damaged: the interval of sample %d is %v to %v, which is not possible", i/2, low, high)
		}
	}
	return nil
}

func (r *Rows) checkSparse() error {
	if len(r.Start) != r.N+1 || r.Start[0] != 0 || int(r.Start[r.N]) != len(r.X) {
		return fmt.Errorf("dataset: the sparse block is damaged: its row starts do not span its %d values", len(r.X))
	}
	for i := range r.N {
		from, to := r.Start[i], r.Start[i+1]
		if from > to || int(to) > len(r.Index) {
			return fmt.Errorf("dataset: the sparse block is damaged: sample %d spans values %d to %d of %d", i, from, to, len(r.X))
		}
		if !ascending(r.Index[from:to], uint32(r.Features)) {
			return fmt.Errorf("dataset: the sparse block is damaged: the columns of sample %d do not ascend below %d", i, r.Features)
		}
	}
	return nil
}

func ascending(columns []uint32, limit uint32) bool {
	next := uint32(0)
	for _, c := range columns {
		if c < next || c >= limit {
			return false
		}
		next = c + 1
	}
	return true
}

func (l *shardLayout) decodeNames(b []byte) ([]string, error) {
	if !l.names {
		return nil, nil
	}
	names, text, from := make([]string, l.rows), b[l.text.from:l.text.to], uint32(0)
	for i, to := range viewU32(b, l.ends) {
		if to < from || int(to) > len(text) {
			return nil, fmt.Errorf("dataset: the shard is damaged: its row names overlap: %w", ErrFormat)
		}
		names[i], from = string(text[from:to]), to
	}
	if int(from) != len(text) {
		return nil, fmt.Errorf("dataset: the shard is damaged: its row names have %d bytes, but use %d: %w", len(text), from, ErrFormat)
	}
	return names, nil
}

// checkPadding refuses padding other than zeros: equal rows then have equal bytes.
func checkPadding(b []byte, l *shardLayout) error {
	for _, s := range []section{l.row, l.d, l.x, l.index, l.start, l.ends, l.text, l.value, l.interval} {
		for _, v := range b[s.to:min(len(b), (s.to+7)&^7)] {
			if v != 0 && s.to != 0 {
				return fmt.Errorf("dataset: the shard is damaged: its padding is not zero: %w", ErrFormat)
			}
		}
	}
	return nil
}

// viewU32 returns a section as numbers: in place if byte order and alignment allow, else a
// copy.
func viewU32(b []byte, s section) []uint32 {
	b = b[s.from:s.to]
	if inPlace(b) {
		return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	}
	v := make([]uint32, len(b)/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

// viewF32 is viewU32 for float32.
func viewF32(b []byte, s section) []float32 {
	b = b[s.from:s.to]
	if inPlace(b) {
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// viewF64 is viewU32 for float64; a section of none is not nil.
func viewF64(b []byte, s section) []float64 {
	b = b[s.from:s.to]
	if inPlace(b) && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0 {
		return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
	}
	v := make([]float64, len(b)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func inPlace(b []byte) bool {
	return littleEndian && len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 == 0
}
