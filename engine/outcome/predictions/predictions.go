// Package predictions encodes the predictions of a job's held-out rows: the true and
// the predicted label distribution of each row, in one blob.
package predictions

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
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
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(cmp.Compare(row(a), row(b)), cmp.Compare(fold(a), fold(b))) })
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
// then has neither folds nor names.
func alike(a, b *Set) bool {
	return a.Labels == b.Labels && a.Number == b.Number && a.Type.Same(&b.Type) && slices.Equal(a.LabelNames, b.LabelNames) &&
		(len(b.Row) == 0 || (len(a.Fold) > 0) == (len(b.Fold) > 0) && (len(a.Names) > 0) == (len(b.Names) > 0))
}
