package rows

import (
	"bytes"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// Field lists, in a training state, the rows that Join returned; nil: there are none yet.
func Field(l *fields.List, r **dataset.Rows, m *dataset.Manifest, w *Wanted) {
	var b []byte
	if !l.Reading() && *r != nil {
		b = dataset.EncodeShard(*r, nil)
	}
	l.Part(len(b), func(dst []byte) []byte { return append(dst, b...) }, func(b []byte) error {
		*r = nil
		if len(b) == 0 {
			return nil
		}
		kept, err := Decode(bytes.Clone(b), m, w)
		*r = kept
		return err
	})
}

// Sizes are the numbers of kept rows in a model's settings.
type Sizes struct {
	Rows, Features, Labels int
	Sparse, NonZeros       int // Sparse: 0 or 1; NonZeros: of sparse rows
}

// SizesOf returns the numbers of kept rows.
func SizesOf(r *dataset.Rows) Sizes {
	z := Sizes{Rows: r.N, Features: r.Features, Labels: r.Labels}
	if r.Sparse {
		z.Sparse, z.NonZeros = 1, len(r.X)
	}
	return z
}

// Numbers lists the numbers for learner.Tensors.Settings.
func (z *Sizes) Numbers() []learner.Number {
	return []learner.Number{
		learner.Within(&z.Rows, 1, dataset.MaxRows), learner.Within(&z.Features, 1, dataset.MaxFeatures),
		learner.Within(&z.Labels, 0, dataset.MaxLabels), learner.Within(&z.Sparse, 0, 1), learner.Within(&z.NonZeros, 0, dataset.MaxRows),
	}
}

// Tensors lists what a model has of kept rows: row numbers, features as they are stored, and the
// label distributions where there are any.
func Tensors(l *learner.Tensors, z *Sizes, r *dataset.Rows) {
	l.U32("rows.number", &r.Row, z.Rows)
	if z.Sparse == 1 {
		l.U32("rows.start", &r.Start, z.Rows+1)
		l.U32("rows.column", &r.Index, z.NonZeros)
		l.F32("rows.feature", &r.X, z.NonZeros)
	} else {
		l.Check(z.NonZeros == 0, "dense samples must have 0 stored non-zero values, got %d", z.NonZeros)
		l.F32("rows.feature", &r.X, z.Rows, z.Features)
	}
	if z.Labels > 0 {
		l.F32("rows.label", &r.D, z.Rows, z.Labels)
	}
	if !l.Reading() {
		return
	}
	r.N, r.Features, r.Labels, r.Sparse = z.Rows, z.Features, z.Labels, z.Sparse == 1
	err := r.Check()
	if err == nil {
		err = check(r, dataset.MaxRows+1)
	}
	l.Check(err == nil, "%w", err)
}

// Bytes estimates the memory of kept rows of a dataset: of their encoded form in a state, and
// of their tensors. It is at least what they take.
func Bytes(m *dataset.Manifest, w *Wanted) (encoded, tensors int64) {
	n := int64(m.Rows)
	if w.Most > 0 {
		n = min(n, int64(w.Most))
	}
	tensors = 4 * n
	if m.Sparse {
		tensors += 8*min(m.NonZeros, n*int64(m.Features)) + 4*(n+1)
	} else {
		tensors += 4 * n * int64(m.Features)
	}
	if w.Labels {
		tensors += 4 * n * int64(m.Labels)
	}
	const head = 8 + 64 + 5*8 // size, header, padding
	return tensors + head, tensors
}

// mostScale is greater than the scale of any column: features are float32.
const mostScale = 1e60

// CheckScale refuses factors of features under which distances might not be finite.
func CheckScale(scale []float64) error {
	for i, x := range scale {
		if !(x > 0 && x <= mostScale) {
			return fmt.Errorf("%w: the scaling factor of feature %d is %v", ErrRows, i, x)
		}
	}
	return nil
}
