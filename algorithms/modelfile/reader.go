package modelfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/num"
)

// reader takes fields off a byte slice; after the first error it yields zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)-r.at) {
		r.err = fmt.Errorf("at byte %d: %w", r.at, io.ErrUnexpectedEOF)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) name() string { return string(r.take(int(r.u8()))) }

func (r *reader) tensors(f *File) {
	n := r.u32()
	if r.err == nil && n > maxTensors {
		r.err = fmt.Errorf("%d tensors, at most %d are allowed", n, maxTensors)
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		f.Tensors = append(f.Tensors, r.tensor())
	}
}

func (r *reader) tensor() algorithms.Tensor {
	t := algorithms.Tensor{Name: r.name()}
	dtype, dims := r.u8(), r.u8()
	if r.err == nil && (dtype < dtypeF32 || dtype > dtypeU32 || dims > maxDims) {
		r.err = fmt.Errorf("tensor %q: data type %d with %d dimensions", t.Name, dtype, dims)
	}
	n := uint64(1)
	for i := byte(0); i < dims && r.err == nil; i++ {
		d := r.u64()
		if d > uint64(len(r.b)) || n*d > uint64(len(r.b)) {
			r.err = fmt.Errorf("tensor %q is larger than the file", t.Name)
		}
		n *= d
		t.Dims = append(t.Dims, int(d))
	}
	data := r.take(int(n) * elementSize(dtype))
	if r.err == nil {
		setData(&t, dtype, data)
	}
	return t
}

func setData(t *algorithms.Tensor, dtype byte, data []byte) {
	switch dtype {
	case dtypeF32:
		t.F32 = append([]float32{}, num.Float32s(data)...)
	case dtypeF64:
		t.F64 = append([]float64{}, num.Float64s(data)...)
	case dtypeU32:
		t.U32 = append([]uint32{}, num.Uint32s(data)...)
	}
}
