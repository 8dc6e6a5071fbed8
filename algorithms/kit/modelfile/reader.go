package modelfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// reader reads fields of a byte slice; after the first error it returns zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) next(n int) []byte {
	if missing := n - (len(r.b) - r.at); r.err == nil && n < 0 {
		r.err = fmt.Errorf("it is damaged: the length at byte %d is not possible: %w", r.at, io.ErrUnexpectedEOF)
	} else if r.err == nil && missing > 0 {
		r.err = fmt.Errorf("it is truncated or damaged: %s missing at its end: %w", counted(missing), io.ErrUnexpectedEOF)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

// counted counts bytes, with the verb.
func counted(n int) string {
	if n == 1 {
		return "1 byte is"
	}
	return fmt.Sprintf("%d bytes are", n)
}

func (r *reader) u8() byte {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.next(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) name() string { return string(r.next(int(r.u8()))) }

func (r *reader) tensors(f *File) {
	n := r.u32()
	if r.err == nil && n > maxTensors {
		r.err = fmt.Errorf("it is damaged: it has %d tensors, at most %d are allowed", n, maxTensors)
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		f.Tensors = append(f.Tensors, r.tensor())
	}
}

func (r *reader) tensor() algorithms.Tensor {
	t := algorithms.Tensor{Name: r.name()}
	dtype, dims := r.u8(), r.u8()
	if r.err == nil && (dtype < dtypeF32 || dtype > dtypeU32 || dims > maxDims) {
		r.err = fmt.Errorf("it is damaged: tensor %q has data type %d and %d dimensions, which is not possible", t.Name, dtype, dims)
	}
	for i := byte(0); i < dims && r.err == nil; i++ {
		t.Dims = append(t.Dims, int(r.u64()))
	}
	n, ok := elements(t.Dims, len(r.b))
	if r.err == nil && !ok {
		r.err = fmt.Errorf("it is damaged: tensor %q is larger than the file: its dimensions are %v", t.Name, t.Dims)
	}
	data := r.next(n * elementSize(dtype))
	if r.err == nil {
		setData(&t, dtype, data)
	}
	return t
}

// elements returns the product of dims, and whether it is at most limit. A size of 0
// makes it 0, whatever the others are.
func elements(dims []int, limit int) (n int, ok bool) {
	n = 1
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		n = min(n, d)
	}
	if n == 0 {
		return 0, true
	}
	for _, d := range dims {
		if d > limit/n {
			return 0, false
		}
		n *= d
	}
	return n, true
}

func setData(t *algorithms.Tensor, dtype byte, data []byte) {
	switch dtype {
	case dtypeF32:
		t.F32 = make([]float32, len(data)/4)
		copy(num.Bytes32(t.F32), data)
	case dtypeF64:
		t.F64 = make([]float64, len(data)/8)
		copy(num.Bytes64(t.F64), data)
	case dtypeU32:
		t.U32 = make([]uint32, len(data)/4)
		copy(num.BytesU32(t.U32), data)
	}
}
