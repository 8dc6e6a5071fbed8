package predictions

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/wire"
)

// A blob, little-endian:
//
//	magic "COPPRED1"
//	labels u32, flags u32 (1 folds, 2 names of rows, 4 names of labels, 8 classes, 16 a scale, 32 numbers), rows u64
//	row numbers in the file u32 x rows
//	folds u16 x rows                   with flag 1
//	true degrees f32 x rows x labels
//	predicted degrees f32 x rows x labels; with flag 32 a number f32 x rows
//	what true numbers are u8 (1 value, 2 mode, 3 expected), low i32 with flag 16
//	true numbers f64 x rows            with flag 16
//	names of rows                      with flag 2
//	names of labels                    with flag 4
//
// Names are a length (u32) and that many bytes each.
const (
	magic  = "COPPRED1"
	header = len(magic) + 4 + 4 + 8

	withFolds      = 1
	withNames      = 2
	withLabelNames = 4
	ofClasses      = 8
	ofScale        = 16
	ofNumbers      = 32
	allFlags       = 63
)

// Encode returns the one encoding of a set.
func (s *Set) Encode() []byte {
	flags := uint32(0)
	for bit, there := range map[uint32]bool{
		withFolds: len(s.Fold) > 0, withNames: len(s.Names) > 0, withLabelNames: len(s.LabelNames) > 0,
		ofClasses: s.Type.Classes, ofScale: s.Type.Scale != nil, ofNumbers: s.Number,
	} {
		if there {
			flags |= bit
		}
	}
	le := binary.LittleEndian
	b := append(make([]byte, 0, header+len(s.Row)*int(RowBytes(s.Labels))), magic...)
	b = le.AppendUint32(b, uint32(s.Labels))
	b = le.AppendUint32(b, flags)
	b = le.AppendUint64(b, uint64(len(s.Row)))
	for _, r := range s.Row {
		b = le.AppendUint32(b, r)
	}
	for _, f := range s.Fold {
		b = le.AppendUint16(b, f)
	}
	for _, values := range [][]float32{s.Truth, s.Predicted} {
		for _, v := range values {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	return appendTexts(appendTexts(s.appendScale(b), s.Names), s.LabelNames)
}

// truths are the kinds of true numbers, by their number in a blob from 1.
var truths = []dataset.Truth{dataset.TrueValue, dataset.TrueMode, dataset.TrueExpected}

// appendScale appends what a set has of a scale.
func (s *Set) appendScale(b []byte) []byte {
	scale := s.Type.Scale
	if scale == nil {
		return b
	}
	b = append(b, byte(1+slices.Index(truths, scale.True)))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(scale.Low)))
	for _, v := range s.True {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func appendTexts(b []byte, texts []string) []byte {
	for _, s := range texts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// Decode reads what Encode wrote. It allocates memory for the bytes that b has, not for what
// a count claims. Errors wrap ErrFormat.
func Decode(b []byte) (*Set, error) {
	if len(b) < header || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: the bytes do not begin with the header of predictions", ErrFormat)
	}
	r := wire.NewReader(b[len(magic):])
	labels, flags, rows := int(r.U32("number of labels")), r.U32("flags"), r.U64("number of samples")
	if rows == 0 && flags&(withFolds|withNames) != 0 {
		return nil, fmt.Errorf("%w: there are folds or names, but no samples", ErrFormat)
	}
	if labels < 1 || flags > allFlags || rows > uint64(r.Len())/4 {
		return nil, fmt.Errorf("%w: the numbers of samples or labels are not possible: %d samples, %d labels", ErrFormat, rows, labels)
	}
	s, n := &Set{Labels: labels}, int(rows)
	s.Row = values(r, "row numbers", n, 4, binary.LittleEndian.Uint32)
	if flags&withFolds != 0 {
		s.Fold = values(r, "folds", n, 2, binary.LittleEndian.Uint16)
	}
	s.Type.Classes, s.Number = flags&ofClasses != 0, flags&ofNumbers != 0
	if widest := max(labels, s.Width()); n > 0 && widest > r.Len()/4/n { // so that no product overflows
		r.Failf("true degrees: %d samples do not fit", n)
		n = 0
	}
	s.Truth, s.Predicted = values(r, "true degrees", n*labels, 4, float32At), values(r, "predicted degrees", n*s.Width(), 4, float32At)
	if flags&ofScale != 0 {
		kind, low := int(r.U8("kind of true numbers")), int32(r.U32("first number"))
		if kind < 1 || kind > len(truths) {
			r.Failf("kind of true numbers: %d", kind)
		} else {
			s.Type.Scale = &dataset.Scale{Low: int(low), True: truths[kind-1]}
		}
		s.True = values(r, "true numbers", n, 8, float64At)
	}
	if flags&withNames != 0 {
		s.Names = texts(r, "names of samples", n)
	}
	if flags&withLabelNames != 0 {
		s.LabelNames = texts(r, "names of labels", labels)
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: the length does not match the numbers of samples and labels: %w", ErrFormat, err)
	}
	return s, nil
}

func float32At(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
func float64At(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// values reads n values of so many bytes each.
func values[T any](r *wire.Reader, field string, n, size int, at func([]byte) T) []T {
	if n > r.Len()/size {
		r.Failf("%s: %d values are missing", field, n-r.Len()/size)
		return nil
	}
	b := r.Take(field, uint64(n*size))
	out := make([]T, len(b)/size)
	for i := range out {
		out[i] = at(b[i*size:])
	}
	return out
}

// texts reads n texts.
func texts(r *wire.Reader, field string, n int) []string {
	if n > r.Len()/4 {
		r.Failf("%s: %d texts do not fit", field, n)
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, string(r.Take(field, uint64(r.U32(field)))))
	}
	return out
}
