// Package predictions encodes the predictions of a job's held-out rows: the true and
// the predicted label distribution of each row, in one blob.
package predictions

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/wire"
)

// ErrFormat is wrapped by every error about bytes that Encode did not write.
var ErrFormat = errors.New("predictions: the file is damaged or has another format")

// Set is predictions of rows, by row number once Merge has made it.
type Set struct {
	Labels     int
	LabelNames []string // empty, or Labels long
	Type       dataset.LabelType
	Number     bool // a number is predicted of each row

	Row       []uint32  // numbers in the file; of a task, in the dataset
	Fold      []uint16  // that the row was held out in; empty: the job has no folds
	Truth     []float32 // rows x Labels, row-major
	Predicted []float32 // the same, or a number for each row
	True      []float64 // the true numbers of rows, of labels that are a scale; else empty
	Weight    []float64 // of rows; empty: they have none
	Names     []string  // of rows; empty: they have none
}

// RowBytes returns the bytes of a row with so many labels in a blob, without its name.
func RowBytes(labels int) int64 { return 6 + 8*int64(labels) }

// HeadBytes bounds the bytes of a blob without rows and names.
const HeadBytes = 32

// Only returns the set's rows at these places, in their order.
func (s *Set) Only(places []int) *Set {
	some := &Set{Labels: s.Labels, LabelNames: s.LabelNames, Type: s.Type, Number: s.Number}
	for _, at := range places {
		some.addFrom(s, at)
	}
	return some
}

// addFrom appends a row of another set of the same kind, with all that is known of it.
func (s *Set) addFrom(of *Set, at int) {
	s.Add(of.Row[at], of.TruthOf(at), of.PredictedOf(at))
	if len(of.Fold) > 0 {
		s.Fold = append(s.Fold, of.Fold[at])
	}
	if len(of.True) > 0 {
		s.True = append(s.True, of.True[at])
	}
	if len(of.Weight) > 0 {
		s.Weight = append(s.Weight, of.Weight[at])
	}
	if len(of.Names) > 0 {
		s.Names = append(s.Names, of.Names[at])
	}
}

// Add appends a row without fold; the slices are copied.
func (s *Set) Add(row uint32, truth, predicted []float32) {
	s.Row = append(s.Row, row)
	s.Truth = append(s.Truth, truth...)
	s.Predicted = append(s.Predicted, predicted...)
}

// Width is how many values are predicted of a row.
func (s *Set) Width() int {
	if s.Number {
		return 1
	}
	return s.Labels
}

// TruthOf returns the true distribution of the set's row i, PredictedOf what is predicted.
func (s *Set) TruthOf(i int) []float32     { return s.Truth[i*s.Labels : (i+1)*s.Labels] }
func (s *Set) PredictedOf(i int) []float32 { return s.Predicted[i*s.Width() : (i+1)*s.Width()] }

// SetFold sets the fold in which all rows were held out.
func (s *Set) SetFold(fold int) {
	s.Fold = make([]uint16, len(s.Row))
	for i := range s.Fold {
		s.Fold[i] = uint16(fold)
	}
}

// Merge merges sets and sorts the rows by number, then by fold. The sets must have the same
// labels, and all or none of them folds and names. A row in two sets of one fold is an error.
func Merge(sets []*Set) (*Set, error) {
	type place struct{ set, at int }
	var order []place
	for i, s := range sets {
		if len(s.Row) > 0 && !alike(s, sets[0]) {
			return nil, fmt.Errorf("%w: the sets to merge have different labels", ErrFormat)
		}
		for j := range s.Row {
			order = append(order, place{i, j})
		}
	}
	row := func(p place) uint32 { return sets[p.set].Row[p.at] }
	fold := func(p place) int {
		if f := sets[p.set].Fold; len(f) > 0 {
			return int(f[p.at])
		}
		return 0
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(row(a), row(b)), cmp.Compare(fold(a), fold(b)))
	})
	all := &Set{}
	if len(sets) > 0 {
		all.Labels, all.LabelNames, all.Type, all.Number = sets[0].Labels, sets[0].LabelNames, sets[0].Type, sets[0].Number
	}
	for i, p := range order {
		if i > 0 && row(order[i-1]) == row(p) && fold(order[i-1]) == fold(p) {
			return nil, fmt.Errorf("%w: sample %d is listed twice", ErrFormat, row(p))
		}
		all.addFrom(sets[p.set], p.at)
	}
	return all, nil
}

// alike reports whether sets have the same labels and fields. The first set may be empty and
// then has neither folds nor weights nor names.
func alike(a, b *Set) bool {
	return a.Labels == b.Labels && a.Number == b.Number && a.Type.Same(&b.Type) &&
		slices.Equal(a.LabelNames, b.LabelNames) &&
		(len(b.Row) == 0 || (len(a.Fold) > 0) == (len(b.Fold) > 0) && (len(a.Weight) > 0) == (len(b.Weight) > 0) &&
			(len(a.Names) > 0) == (len(b.Names) > 0))
}

// A blob, little-endian:
//
//	magic "COPPRED1"
//	labels u32, flags u32 (1 folds, 2 names of rows, 4 names of labels, 8 classes, 16 a scale, 32 numbers,
//	64 true degrees may be missing: NaN, 128 targets in bounds, 256 weights), rows u64
//	row numbers in the file u32 x rows
//	folds u16 x rows                   with flag 1
//	true degrees f32 x rows x labels
//	predicted degrees f32 x rows x labels; with flag 32 a number f32 x rows
//	what true numbers are u8 (1 value, 2 mode, 3 expected), low i32 with flag 16
//	true numbers f64 x rows            with flag 16
//	weights f64 x rows                 with flag 256
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
	ofIncomplete   = 64
	ofTargets      = 128
	withWeights    = 256
	allFlags       = 511
)

// Encode returns the one encoding of a set.
func (s *Set) Encode() []byte {
	flags := uint32(0)
	for bit, there := range map[uint32]bool{
		withFolds: len(s.Fold) > 0, withNames: len(s.Names) > 0, withLabelNames: len(s.LabelNames) > 0,
		ofClasses: s.Type.Classes, ofScale: s.Type.Scale != nil, ofNumbers: s.Number,
		ofIncomplete: s.Type.Incomplete,
		ofTargets:    s.Type.Bounds != nil, withWeights: len(s.Weight) > 0,
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
	for _, values := range []any{s.Row, s.Fold, s.Truth, s.Predicted} {
		b = appendValues(b, values)
	}
	if scale := s.Type.Scale; scale != nil {
		b = append(b, byte(1+slices.Index(truths, scale.True)))
		b = appendValues(le.AppendUint32(b, uint32(int32(scale.Low))), s.True)
	}
	return appendTexts(appendTexts(appendValues(b, s.Weight), s.Names), s.LabelNames)
}

// truths are the kinds of true numbers, by their number in a blob from 1.
var truths = []dataset.Truth{dataset.TrueValue, dataset.TrueMode, dataset.TrueExpected}

// appendValues appends a slice of numbers.
func appendValues(b []byte, values any) []byte {
	b, err := binary.Append(b, binary.LittleEndian, values)
	if err != nil {
		panic(err) // only for a type without a fixed size
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
	if rows == 0 && flags&(withFolds|withWeights|withNames) != 0 {
		return nil, fmt.Errorf("%w: there are folds, weights or names, but no samples", ErrFormat)
	}
	if labels < 1 || flags > allFlags || rows > uint64(r.Len())/4 {
		return nil, fmt.Errorf("%w: the numbers of samples or labels are not possible: %d samples, %d labels", ErrFormat,
			rows, labels)
	}
	s, n := &Set{Labels: labels}, int(rows)
	s.Row = values[uint32](r, "row numbers", n)
	if flags&withFolds != 0 {
		s.Fold = values[uint16](r, "folds", n)
	}
	s.Type.Classes, s.Number = flags&ofClasses != 0, flags&ofNumbers != 0
	s.Type.Incomplete = flags&ofIncomplete != 0
	if flags&ofTargets != 0 {
		s.Type.Bounds = new(dataset.Bounds)
	}
	if widest := max(labels, s.Width()); n > 0 && widest > r.Len()/4/n { // so that no product overflows
		r.Failf("true degrees: %d samples do not fit", n)
		n = 0
	}
	s.Truth = values[float32](r, "true degrees", n*labels)
	s.Predicted = values[float32](r, "predicted degrees", n*s.Width())
	if flags&ofScale != 0 {
		kind, low := int(r.U8("kind of true numbers")), int32(r.U32("first number"))
		if kind < 1 || kind > len(truths) {
			r.Failf("kind of true numbers: %d", kind)
		} else {
			s.Type.Scale = &dataset.Scale{Low: int(low), True: truths[kind-1]}
		}
		s.True = values[float64](r, "true numbers", n)
	}
	if flags&withWeights != 0 {
		s.Weight = values[float64](r, "weights", n)
		for _, w := range s.Weight {
			if !dataset.ValidWeight(w) {
				r.Failf("weights: a sample has the weight %v", w)
			}
		}
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

// values reads n numbers.
func values[T uint16 | uint32 | float32 | float64](r *wire.Reader, field string, n int) []T {
	size := binary.Size(T(0))
	if n > r.Len()/size {
		r.Failf("%s: %d values are missing", field, n-r.Len()/size)
		return nil
	}
	out := make([]T, n)
	binary.Decode(r.Take(field, uint64(n*size)), binary.LittleEndian, out) // as many bytes as the slice has
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
