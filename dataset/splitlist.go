package dataset

import (
	"fmt"
	"math/bits"
	"slices"
)

// SplitList is what a split file says: Split.Assigned, Folds and Overlap.
type SplitList struct {
	Assigned []uint16 // by row; if Overlap is true, SplitWords(Folds) for each row
	Folds    int
	Overlap  bool
}

// Disjoint returns the list as folds if it is Overlap but each row is a test row of exactly one split, and otherwise
// the list.
func (s *SplitList) Disjoint() *SplitList {
	if !s.Overlap {
		return s
	}
	words := SplitWords(s.Folds)
	folds := make([]uint16, len(s.Assigned)/words)
	for row := range folds {
		tests := 0
		for i, word := range s.Assigned[row*words : (row+1)*words] {
			if word != 0 {
				tests += bits.OnesCount16(word)
				folds[row] = uint16(16*i + bits.TrailingZeros16(word))
			}
		}
		if tests != 1 {
			return s
		}
	}
	return &SplitList{Assigned: folds, Folds: s.Folds}
}

// DecodeSplits reads a list that EncodeFolds wrote: the folds of so many rows or, if overlap is true, splits.
func DecodeSplits(b []byte, folds int, overlap bool, rows int) (*SplitList, error) {
	if folds < 1 {
		return nil, Errorf(ErrFormat, "want at least one fold, got %d", folds)
	}
	list, err := Split{Folds: folds, Overlap: overlap, Assigned: "given"}.Decode(b, rows)
	if err != nil {
		return nil, err
	}
	s := &SplitList{Assigned: list, Folds: folds, Overlap: overlap}
	if overlap {
		return s, s.Check(nil, rows)
	}
	has := make([]bool, folds)
	for _, fold := range list {
		has[fold] = true
	}
	if fold := slices.Index(has, false); fold >= 0 {
		return nil, Errorf(ErrFormat, "fold %d has no samples", fold)
	}
	return s, nil
}

// Check returns an error if a split tests no row, or all of them; names may be nil.
func (s *SplitList) Check(names []string, rows int) error {
	words := SplitWords(s.Folds)
	for k := range s.Folds {
		tests := 0
		for row := range rows {
			tests += int(s.Assigned[row*words+k/16] >> (k % 16) & 1)
		}
		what := fmt.Sprintf("split %d", k)
		if names != nil {
			what = fmt.Sprintf("split %q", names[k])
		}
		switch tests {
		case 0:
			return Errorf(ErrFormat, "%s has no test samples", what)
		case rows:
			return Errorf(ErrFormat, "%s tests every sample, so no samples are left for training", what)
		}
	}
	return nil
}
