package predictions

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
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

// scale reads what appendScale wrote of so many rows.
func (r *reader) scale(s *Set, rows int) {
	kind, low := r.next(1)[0], int32(r.u32())
	if kind < 1 || int(kind) > len(truths) || !r.fits(rows, 8) {
		r.short = true
		return
	}
	s.Type.Scale = &dataset.Scale{Low: int(low), True: truths[kind-1]}
	for range rows {
		s.True = append(s.True, math.Float64frombits(binary.LittleEndian.Uint64(r.next(8))))
	}
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
	r := &reader{b: b[len(magic):]}
	labels, flags := int(r.u32()), r.u32()
	rows := binary.LittleEndian.Uint64(r.next(8))
	if rows == 0 && flags&(withFolds|withNames) != 0 {
		return nil, fmt.Errorf("%w: there are folds or names, but no samples", ErrFormat)
	}
	if labels < 1 || flags > allFlags || rows > uint64(len(r.b))/4 {
		return nil, fmt.Errorf("%w: the numbers of samples or labels are not possible: %d samples, %d labels", ErrFormat, rows, labels)
	}
	s, n := &Set{Labels: labels}, int(rows)
	s.Row = r.numbers(n)
	if flags&withFolds != 0 {
		s.Fold = r.folds(n)
	}
	s.Type.Classes, s.Number = flags&ofClasses != 0, flags&ofNumbers != 0
	s.Truth, s.Predicted = r.floats(n, labels), r.floats(n, s.Width())
	if flags&ofScale != 0 {
		r.scale(s, n)
	}
	if flags&withNames != 0 {
		s.Names = r.texts(n)
	}
	if flags&withLabelNames != 0 {
		s.LabelNames = r.texts(labels)
	}
	if r.short || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: the length does not match the numbers of samples and labels", ErrFormat)
	}
	return s, nil
}

// reader reads fields of b; after the first field that is cut short, all are.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) next(n int) []byte {
	if r.short || n > len(r.b) {
		r.short = true
		return make([]byte, min(n, 8))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.next(4)) }

// fits reports whether b still has n values of so many bytes.
func (r *reader) fits(n, size int) bool {
	r.short = r.short || n > len(r.b)/size
	return !r.short
}

func (r *reader) numbers(n int) []uint32 {
	if !r.fits(n, 4) {
		return nil
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.u32()
	}
	return out
}

func (r *reader) folds(n int) []uint16 {
	if !r.fits(n, 2) {
		return nil
	}
	out := make([]uint16, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(r.next(2))
	}
	return out
}

func (r *reader) floats(rows, labels int) []float32 {
	if rows > 0 && labels > len(r.b)/4/rows {
		r.short = true
	}
	if !r.fits(rows*labels, 4) {
		return nil
	}
	out := make([]float32, rows*labels)
	for i := range out {
		out[i] = math.Float32frombits(r.u32())
	}
	return out
}

func (r *reader) texts(n int) []string {
	if !r.fits(n, 4) {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		length := r.u32()
		if uint64(length) > uint64(len(r.b)) {
			r.short = true
			return nil
		}
		out = append(out, string(r.next(int(length))))
	}
	return out
}
