package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// spillMemory bounds the memory that all spill buffers of an import take.
const spillMemory = 64 << 20

// spill sorts stored rows into one temporary file for each shard. A file is open
// only while a buffer is written out, so any number of shards will do. Its
// records never leave this machine: position, number, count of values, length of
// the name, then columns, values, labels and name.
type spill struct {
	m       *Manifest
	dir     string
	limit   int
	buffers [][]byte
}

func newSpill(m *Manifest, dir string) *spill {
	return &spill{
		m: m, dir: dir, buffers: make([][]byte, len(m.Shards)),
		limit: max(1<<12, min(1<<18, spillMemory/len(m.Shards))),
	}
}

func (s *spill) path(shard int) string { return filepath.Join(s.dir, fmt.Sprintf("spill-%d", shard)) }

func (s *spill) add(shard int, r *storedRow) error {
	b := s.buffers[shard]
	for _, v := range []uint32{r.position, r.number, uint32(len(r.values)), uint32(len(r.name))} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range r.columns {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, values := range [][]float32{r.values, r.labels} {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	s.buffers[shard] = append(b, r.name...)
	if len(s.buffers[shard]) >= s.limit {
		return s.flush(shard)
	}
	return nil
}

func (s *spill) flush(shard int) error {
	f, err := os.OpenFile(s.path(shard), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(s.buffers[shard])
	s.buffers[shard] = s.buffers[shard][:0]
	return errors.Join(err, f.Close())
}

// flushAll writes every buffer out and lets go of the memory.
func (s *spill) flushAll() error {
	for i := range s.buffers {
		if err := s.flush(i); err != nil {
			return err
		}
		s.buffers[i] = nil
	}
	return nil
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
		r, err := s.read(in)
		if errors.Is(err, io.EOF) {
			return b.finish()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		b.add(r)
	}
}

func (s *spill) read(in io.Reader) (*storedRow, error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	u32 := func(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	r := &storedRow{position: u32(head[:], 0), number: u32(head[:], 1)}
	values, name, columns := int(u32(head[:], 2)), int(u32(head[:], 3)), 0
	if s.m.Sparse {
		columns = values
	}
	b := make([]byte, 4*(columns+values+s.m.Labels)+name)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	for i := range columns {
		r.columns = append(r.columns, u32(b, i))
	}
	floats := make([]float32, values+s.m.Labels)
	for i := range floats {
		floats[i] = math.Float32frombits(u32(b, columns+i))
	}
	r.values, r.labels = floats[:values], floats[values:]
	r.name = string(b[len(b)-name:])
	return r, nil
}
