package learner

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
)

// Tensors is one pass over the tensors of a model, which lists them or reads them: the same
// calls, in the same order, do both. The first error ends a pass; the calls after it set
// nothing.
type Tensors struct {
	all     []algorithms.Tensor // listed so far, or left to read
	reading bool
	err     error
}

// ListTensors returns the tensors that model lists.
func ListTensors(model func(*Tensors)) []algorithms.Tensor {
	var l Tensors
	model(&l)
	return l.all
}

// ReadTensors sets what model lists to the values of tensors, whose memory is kept. Another
// name, type, shape or number of tensors is an error.
func ReadTensors(tensors []algorithms.Tensor, model func(*Tensors)) error {
	l := Tensors{all: tensors, reading: true}
	model(&l)
	l.Check(len(l.all) == 0, "the model has %d tensors, %d more than expected", len(tensors), len(l.all))
	return l.err
}

// Reading reports whether the pass reads, and has found no error so far.
func (l *Tensors) Reading() bool { return l.reading && l.err == nil }

// Check refuses tensors that are being read unless ok; the format says what is wrong.
func (l *Tensors) Check(ok bool, format string, args ...any) {
	if l.reading && l.err == nil && !ok {
		l.err = fmt.Errorf(format, args...)
	}
}

// Number is a whole number of a model's settings, with its bounds.
type Number struct {
	v           *int
	least, most int
}

// Within is a number from least to most.
func Within(v *int, least, most int) Number { return Number{v, least, most} }

// Left returns the tensors that are left to read. Their names and shapes are a file's.
func (l *Tensors) Left() []algorithms.Tensor { return l.all }

// Settings lists the tensor "settings", the first of every model: the version of its format,
// then numbers, all as uint32. It reports whether the numbers are set.
func (l *Tensors) Settings(format uint32, numbers ...Number) bool {
	values := []uint32{format}
	for _, n := range numbers {
		values = append(values, uint32(*n.v))
	}
	l.U32("settings", &values, len(values))
	l.Check(values[0] == format, "the model has format %d, but this version reads format %d", values[0], format)
	for i, n := range numbers {
		v := int64(values[1+i])
		l.Check(v >= int64(n.least) && v <= int64(n.most), "the settings %v are out of range", values)
		if l.Reading() {
			*n.v = int(v)
		}
	}
	return l.err == nil
}

// U32 lists a tensor of uint32, row-major.
func (l *Tensors) U32(name string, v *[]uint32, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]uint32 { return &t.U32 })
}

// F32 lists a tensor of float32, row-major.
func (l *Tensors) F32(name string, v *[]float32, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]float32 { return &t.F32 })
}

// F64 lists a tensor of float64, row-major.
func (l *Tensors) F64(name string, v *[]float64, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]float64 { return &t.F64 })
}

func list[T any](l *Tensors, name string, v *[]T, dims []int, values func(*algorithms.Tensor) *[]T) {
	if !l.reading {
		t := algorithms.Tensor{Name: name, Dims: dims}
		*values(&t) = *v
		l.all = append(l.all, t)
		return
	}
	l.Check(len(l.all) > 0, "the tensor %q is missing", name)
	if l.err != nil {
		return
	}
	t := &l.all[0]
	l.all = l.all[1:]
	l.Check(t.Name == name && slices.Equal(t.Dims, dims), "found tensor %q of shape %v, want %q of shape %v", t.Name, t.Dims, name, dims)
	n, have := 1, len(*values(t))
	for _, d := range dims {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			n = -1 // the number is too great
			break
		}
		n *= d
	}
	l.Check(have == n && len(t.F32)+len(t.F64)+len(t.U32) == n, "tensor %q must have %d values", name, n)
	if l.err == nil {
		*v = *values(t)
	}
}
