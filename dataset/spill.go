package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spillMemory bounds the bytes that wait in all spill buffers of an import.
const spillMemory = 32 << 20

// spill sorts stored rows into one temporary file for each shard. A file is open
// only while a buffer is written out, so any number of shards will do. Its
// records never leave this machine: position, number, count of values, length of
// the name, then columns, values, labels, numbers on a scale and name.
type spill struct {
	m         *Manifest
	dir       string
	limit     int // bytes at which a buffer is written to its file
	keptBytes int // capacity that a buffer keeps after a write, at most
	buffered  int // bytes in all buffers
	buffers   [][]byte
	row       storedRow // the last one read
	record    []byte
}

func newSpill(m *Manifest, dir string) *spill {
	share := spillMemory / len(m.Shards)
	return &spill{
		m: m, dir: dir, buffers: make([][]byte, len(m.Shards)),
		limit: max(1<<12, min(1<<18, share)), keptBytes: min(1<<19, 2*share),
	}
}

func (s *spill) path(shard int) string { return filepath.Join(s.dir, fmt.Sprintf("spill-%d", shard)) }

func (s *spill) add(shard int, r *storedRow) error {
	b := s.buffers[shard]
	before := len(b)
	for _, v := range []uint32{r.position, r.number, uint32(len(r.values)), uint32(len(r.name))} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	b = append(b, nativeBytes(r.columns)...)
	b = append(b, nativeBytes(r.values)...)
	b = append(b, nativeBytes(r.labels)...)
	b = append(b, nativeBytes(r.numbers)...)
	b = append(b, r.name...)
	s.buffers[shard] = b
	s.buffered += len(b) - before
	switch {
	case len(b) >= s.limit:
		return s.flush(shard)
	case s.buffered >= spillMemory: // many shards, and little for each
		return s.flushAll()
	}
	return nil
}

// flush writes a buffer to its file. It frees a buffer that long rows made large.
func (s *spill) flush(shard int) error {
	b := s.buffers[shard]
	if len(b) == 0 {
		return nil
	}
	f, err := os.OpenFile(s.path(shard), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	s.buffered -= len(b)
	if s.buffers[shard] = b[:0]; cap(b) > s.keptBytes {
		s.buffers[shard] = nil
	}
	return errors.Join(err, f.Close())
}

// flushAll writes every buffer out.
func (s *spill) flushAll() error {
	for i := range s.buffers {
		if err := s.flush(i); err != nil {
			return err
		}
	}
	return nil
}

// end writes every buffer to its file and frees the buffers.
func (s *spill) end() error {
	err := s.flushAll()
	s.buffers = nil
	return err
}

// build reads the rows of a shard back and removes its file.
func (s *spill) build(shard int) (*Rows, []string, error) {
	f, err := os.Open(s.path(shard))
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	b, in := newBuilder(s.m, shard), bufio.NewReaderSize(f, 1<<18)
	for {
		err := s.read(in)
		if errors.Is(err, io.EOF) {
			return b.finish()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		b.add(&s.row)
	}
}

// read reads the next record into s.row, which is valid until the next call.
func (s *spill) read(in io.Reader) error {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	u32 := func(i int) uint32 { return binary.NativeEndian.Uint32(head[4*i:]) }
	r, values, name := &s.row, int(u32(2)), int(u32(3))
	columns := 0
	if s.m.Sparse {
		columns = values
	}
	r.position, r.number = u32(0), u32(1)
	r.columns, r.values, r.labels = sized(r.columns, columns), sized(r.values, values), sized(r.labels, s.m.Labels)
	r.numbers = sized(r.numbers, s.m.numberCount())
	s.record = sized(s.record, name)
	for _, b := range [][]byte{nativeBytes(r.columns), nativeBytes(r.values), nativeBytes(r.labels), nativeBytes(r.numbers), s.record} {
		if _, err := io.ReadFull(in, b); err != nil {
			return io.ErrUnexpectedEOF
		}
	}
	r.name = string(s.record)
	return nil
}

// sized returns a slice of n elements, in the memory of v where that is enough.
func sized[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}
