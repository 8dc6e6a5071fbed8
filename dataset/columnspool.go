package dataset

import (
	"bufio"
	"encoding/binary"
	"math"
	"os"
)

// columnSpool stores a matrix that comes column by column: in memory if it is small, else in
// a temporary file.
type columnSpool[T float32 | float64] struct {
	rows, columns int
	memory        []T // all values, or those that wait for the file
	file          *os.File
	out           *bufio.Writer
}

func newColumnSpool[T float32 | float64](rows, columns int) *columnSpool[T] {
	return &columnSpool[T]{rows: rows, columns: columns}
}

// elementBytes is the size of a T.
func elementBytes[T float32 | float64]() int {
	var one [1]T
	return len(nativeBytes(one[:]))
}

// add appends values.
func (s *columnSpool[T]) add(values []float64) error {
	for _, v := range values {
		s.memory = append(s.memory, T(v))
	}
	return s.flushIfLarge()
}

// zeros appends n zeros.
func (s *columnSpool[T]) zeros(n int) error {
	for n > 0 {
		k := min(n, tablePiece)
		s.memory = append(s.memory, make([]T, k)...)
		if err := s.flushIfLarge(); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// flushIfLarge changes to a temporary file once the values exceed smallSpool, and writes
// the buffered values to it.
func (s *columnSpool[T]) flushIfLarge() (err error) {
	if s.file == nil {
		if len(s.memory)*elementBytes[T]() <= smallSpool {
			return nil
		}
		size := int64(s.rows) * int64(s.columns) * int64(elementBytes[T]())
		if s.file, err = tempFile(size); err != nil {
			return err
		}
		s.out = bufio.NewWriterSize(s.file, 1<<18)
	}
	_, err = s.out.Write(nativeBytes(s.memory))
	if s.memory = s.memory[:0]; cap(s.memory) > 2*tablePiece {
		s.memory = nil
	}
	return err
}

// end returns the matrix: its values row by row, or a file of them.
func (s *columnSpool[T]) end() ([]T, *columnFile, error) {
	if s.file == nil {
		if s.rows > 1 && s.columns > 1 {
			return transpose(s.memory, s.rows, s.columns), nil, nil
		}
		return s.memory, nil, nil
	}
	if err := s.out.Flush(); err != nil {
		return nil, nil, err
	}
	f := &columnFile{in: s.file, rows: s.rows, columns: s.columns, size: elementBytes[T](), decode: native64}
	if f.size == 4 {
		f.decode = native32
	}
	return nil, f, nil
}

func native32(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
	}
}

func native64(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.NativeEndian.Uint64(b[8*i:]))
	}
}
