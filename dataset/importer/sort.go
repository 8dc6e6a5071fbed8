package importer

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/coppice-ldl/coppice/dataset"
)

// storedRow is a row in the form that its dataset stores.
type storedRow struct {
	position uint32 // in the import order
	number   uint32 // in the dataset
	columns  []uint32
	values   []float32
	labels   []float32
	numbers  []float64 // the exact number, the interval and the weight, where the dataset has them
	name     string
}

// spillMemory bounds the bytes that wait in all spill buffers of an import.
const spillMemory = 32 << 20

// spill sorts stored rows into one temporary file for each shard. A file is open
// only while a buffer is written out, so any number of shards will do. Its
// records never leave this machine: position, number, count of values, length of
// the name, then columns, values, labels, numbers on a scale and name.
type spill struct {
	m         *dataset.Manifest
	paths     []string // by shard
	limit     int      // bytes at which a buffer is written to its file
	keptBytes int      // capacity that a buffer keeps after a write, at most
	buffered  int      // bytes in all buffers
	buffers   [][]byte
}

func newSpill(m *dataset.Manifest, dir string) *spill {
	n := len(m.Shards)
	share := spillMemory / n
	s := &spill{m: m, buffers: make([][]byte, n), limit: max(1<<12, min(1<<18, share)), keptBytes: min(1<<19, 2*share)}
	for i := range n {
		s.paths = append(s.paths, filepath.Join(dir, fmt.Sprintf("spill-%d", i)))
	}
	return s
}

func (s *spill) add(shard int, r *storedRow) error {
	b := s.buffers[shard]
	before := len(b)
	for _, v := range []uint32{r.position, r.number, uint32(len(r.values)), uint32(len(r.name))} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	b = append(b, dataset.NativeBytes(r.columns)...)
	b = append(b, dataset.NativeBytes(r.values)...)
	b = append(b, dataset.NativeBytes(r.labels)...)
	b = append(b, dataset.NativeBytes(r.numbers)...)
	b = append(b, r.name...)
	s.buffers[shard] = b
	s.buffered += len(b) - before
	switch {
	case len(b) >= s.limit:
		return s.flush(shard, shard+1)
	case s.buffered >= spillMemory: // many shards, and little for each
		return s.flush(0, len(s.buffers))
	}
	return nil
}

// flush writes the buffers of shards [from, to) to their files. It frees buffers that long rows made large.
func (s *spill) flush(from, to int) error {
	for i, b := range s.buffers[from:to] {
		if len(b) == 0 {
			continue
		}
		f, err := os.OpenFile(s.paths[from+i], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		s.buffered -= len(b)
		if s.buffers[from+i] = b[:0]; cap(b) > s.keptBytes {
			s.buffers[from+i] = nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// end writes every buffer to its file and frees the buffers.
func (s *spill) end() error {
	err := s.flush(0, len(s.buffers))
	s.buffers = nil
	return err
}

// build reads the rows of a shard back and removes its file.
func (s *spill) build(shard int) (*dataset.Rows, []string, error) {
	f, err := os.Open(s.paths[shard])
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	numbers := 0
	if s.m.HasValues {
		numbers++
	}
	if s.m.HasIntervals {
		numbers += 2
	}
	if s.m.HasWeights {
		numbers++
	}
	b, in := newBuilder(s.m, shard), bufio.NewReaderSize(f, 1<<18)
	var r storedRow
	var name []byte
	head := make([]byte, 16)
	u32 := func(i int) uint32 { return binary.NativeEndian.Uint32(head[4*i:]) }
	for {
		if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) {
			return b.finish()
		} else if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		values, columns := int(u32(2)), 0
		if s.m.Sparse {
			columns = values
		}
		r.position, r.number = u32(0), u32(1)
		r.columns, r.values, r.labels = sized(r.columns, columns), sized(r.values, values), sized(r.labels, s.m.Labels)
		r.numbers, name = sized(r.numbers, numbers), sized(name, int(u32(3)))
		for _, part := range [][]byte{dataset.NativeBytes(r.columns), dataset.NativeBytes(r.values),
			dataset.NativeBytes(r.labels), dataset.NativeBytes(r.numbers), name} {
			if _, err := io.ReadFull(in, part); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", f.Name(), io.ErrUnexpectedEOF)
			}
		}
		r.name = string(name)
		b.add(&r)
	}
}

// sized returns a slice of n elements, in the memory of v where that is enough.
func sized[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// builder fills one shard; its rows come in any order.
type builder struct {
	rows  *dataset.Rows
	names []string
	from  int      // import position of the first row
	spans [][2]int // of a sparse shard: where each row's values are in X
	added int
}

func newBuilder(m *dataset.Manifest, shard int) *builder {
	from, to := dataset.ShardSpan(shard, len(m.Shards), m.Rows)
	n := to - from
	b := &builder{from: from, rows: &dataset.Rows{
		N: n, Features: m.Features, Labels: m.Labels, Sparse: m.Sparse, Incomplete: m.LabelType.Incomplete,
		D: make([]float32, n*m.Labels), Row: make([]uint32, n),
	}}
	if m.Sparse {
		b.spans = make([][2]int, n)
	} else {
		b.rows.X = make([]float32, n*m.Features)
	}
	if m.HasValues {
		b.rows.Value = make([]float64, n)
	}
	if m.HasIntervals {
		b.rows.Interval = make([]float64, 2*n)
	}
	if m.HasWeights {
		b.rows.Weight = make([]float64, n)
	}
	if m.HasRowNames {
		b.names = make([]string, n)
	}
	return b
}

func (b *builder) add(r *storedRow) {
	i := int(r.position) - b.from
	b.added++
	b.rows.Row[i] = r.number
	copy(b.rows.D[i*b.rows.Labels:], r.labels)
	numbers := r.numbers
	if b.rows.Value != nil {
		b.rows.Value[i], numbers = numbers[0], numbers[1:]
	}
	if b.rows.Interval != nil {
		numbers = numbers[copy(b.rows.Interval[2*i:2*i+2], numbers):]
	}
	if b.rows.Weight != nil {
		b.rows.Weight[i] = numbers[0]
	}
	if b.names != nil {
		b.names[i] = r.name
	}
	if !b.rows.Sparse {
		copy(b.rows.X[i*b.rows.Features:], r.values)
		return
	}
	from := len(b.rows.X)
	b.rows.X = append(b.rows.X, r.values...)
	b.rows.Index = append(b.rows.Index, r.columns...)
	b.spans[i] = [2]int{from, len(b.rows.X)}
}

// finish returns the shard. Every row must have been added. It moves the values of a sparse shard from the order of
// arrival to the order of rows.
func (b *builder) finish() (*dataset.Rows, []string, error) {
	r := b.rows
	if b.added != r.N {
		return nil, nil, fmt.Errorf("dataset: a shard got %d samples, want %d: %w", b.added, r.N, dataset.ErrChanged)
	}
	if !r.Sparse {
		return r, b.names, nil
	}
	if len(r.X) > math.MaxUint32 {
		return nil, nil, fmt.Errorf("dataset: a shard would have %d non-zero values, at most %d are possible", len(r.X),
			math.MaxUint32)
	}
	x, index := make([]float32, 0, len(r.X)), make([]uint32, 0, len(r.X))
	r.Start = make([]uint32, 1, r.N+1)
	for _, s := range b.spans {
		x = append(x, r.X[s[0]:s[1]]...)
		index = append(index, r.Index[s[0]:s[1]]...)
		r.Start = append(r.Start, uint32(len(x)))
	}
	r.X, r.Index = x, index
	return r, b.names, nil
}

// encodeShard encodes rows and returns the entry for the manifest.
func encodeShard(r *dataset.Rows, names []string) ([]byte, dataset.ShardRef) {
	b := dataset.EncodeShard(r, names)
	sum := sha256.Sum256(b)
	return b, dataset.ShardRef{Digest: hex.EncodeToString(sum[:]), Rows: r.N, Bytes: int64(len(b))}
}
