package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Roles is a set of Role bits.
type Roles uint8

// The roles that a row can have in a job. Each row has exactly one, but see Held for the validation rows of a dataset.
const (
	Train Roles = 1 << iota
	Validation
	Test
	// Outside rows are seen by no round: the test rows of the outer fold, in an inner one, and the rows that
	// Split.TrainFraction leaves out.
	Outside
	// AllRows chooses every row that is not outside.
	AllRows = Train | Validation | Test
	// Labelled chooses training and validation rows. Unlike Train|Validation, it also chooses the validation rows of the
	// dataset: see Data.Select.
	Labelled = Train | Validation | 1<<4
)

// Bounds of splits.
const (
	MaxFolds  = 1 << 16 // folds
	MaxSplits = 1 << 10 // splits with test rows of their own in one file
)

// Split says which rows of a dataset a job trains on, validates on and tests on. A row's
// role is a function of its original row number, so every worker computes the same roles.
// At most one of TestFraction and Folds decides the test rows; Inner cuts the others again.
type Split struct {
	Seed uint64 `json:"seed"`
	// TestFraction of the rows, rounded down but at least one, are test rows.
	TestFraction float64 `json:"test_fraction,omitempty"`
	// Folds > 0 divides the rows into Folds folds; those of Fold are test rows.
	Folds int `json:"folds,omitempty"`
	Fold  int `json:"fold,omitempty"`
	// Assigned is the digest of a blob that holds each row's fold as a
	// little-endian uint16, by original row number; empty: a seeded permutation.
	Assigned string `json:"assigned,omitempty"`
	// Overlap says that Assigned has Folds splits whose test rows may be the same: for
	// each row, as many uint16 as have a bit for each split. Bit k mod 16 of number k / 16
	// is 1 where split k tests the row.
	Overlap bool `json:"overlap,omitempty"`
	// TrainFraction > 0 keeps this fraction of the rows that are not test rows, rounded down but at least one; the
	// others are outside. The rows of a fraction are also rows of each greater fraction.
	TrainFraction float64 `json:"train_fraction,omitempty"`
	// Inner > 0 divides the rows that are not test rows into Inner folds. Those of
	// InnerFold are test rows then, and the test rows of the outer split are outside.
	Inner     int `json:"inner,omitempty"`
	InnerFold int `json:"inner_fold,omitempty"`
	// InnerWhole makes inner folds of whole folds of Assigned, whose rows belong together:
	// of persons, for example.
	InnerWhole bool `json:"inner_whole,omitempty"`
	// Groups is the digest of a blob with the group of each row, like Assigned. Validation rows are whole groups then.
	// InnerGroups is true if inner folds are, too.
	Groups      string `json:"groups,omitempty"`
	InnerGroups bool   `json:"inner_groups,omitempty"`
	// ValidationFraction of the rows that are not test rows validate, rounded
	// down but at least ValidationMin (and at most half of them). See Draw for whole groups.
	ValidationFraction float64 `json:"validation_fraction,omitempty"`
	ValidationMin      int     `json:"validation_min,omitempty"`
	// Mask hides degrees of the training and validation rows from the training.
	Mask Mask `json:"mask,omitzero"`
	// Held makes the validation rows of another job test rows.
	Held Held `json:"held,omitzero"`
	// ValidationFrom > 0 is the first of the validation rows of the dataset (Manifest.Validation). Everything else of a
	// split is about the rows before it, and none of these validates. ValidationFraction then says only whether the job
	// validates.
	ValidationFrom int `json:"validation_from,omitempty"`
}

// Held are the validation rows of a job that another job, with the same split but for Held and its own validation,
// tests. The test rows of the first job are outside. The validation rows of a dataset are then both: validation and
// test rows.
type Held struct {
	// Fraction and Min are ValidationFraction and ValidationMin of the first job; without a fraction, there is none.
	Fraction float64 `json:"fraction"`
	Min      int     `json:"min,omitempty"`
	// Train is the greatest number of other rows that are kept; the seed draws them, and the rest are outside. 0: all.
	Train int `json:"train,omitempty"`
}

// Assign returns the role of every original row number for a split without Groups. assigned is the decoded
// blob that Split.Assigned names, or nil.
func (s Split) Assign(rows int, assigned []uint16) ([]Roles, error) {
	return s.AssignGrouped(rows, assigned, nil)
}

// AssignGrouped is Assign for any split. groups is the decoded blob that Split.Groups names, or nil.
func (s Split) AssignGrouped(rows int, assigned, groups []uint16) ([]Roles, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Groups == "" {
		groups = nil
	} else if n := s.Divided(rows); len(groups) != n {
		return nil, fmt.Errorf("dataset: the split has the groups of %d samples, but the dataset has %d", len(groups), n)
	}
	if s.ValidationFrom >= rows {
		return nil, fmt.Errorf("dataset: the validation samples begin with sample %d (counted from 0), but the dataset has "+
			"%d samples", s.ValidationFrom, rows)
	}
	all := make([]Roles, rows)
	roles := all[:s.Divided(rows)]
	for i := range roles {
		roles[i] = Train
	}
	if err := s.assignTest(roles, assigned); err != nil {
		return nil, err
	}
	s.keepTrain(roles)
	if s.Inner > 0 {
		if err := s.assignInner(roles, assigned, groups); err != nil {
			return nil, err
		}
	}
	own := Validation // the role of the dataset's validation rows
	if s.Held.Fraction > 0 {
		own |= Test
		for i, r := range roles {
			if r == Test {
				roles[i] = Outside
			}
		}
		s.validate(roles, groups, s.Held.Fraction, s.Held.Min, Test)
		rest := trained(roles)
		p := num.NewPermutation(num.NewKey(s.Seed, "split/held"), 0, 0, uint64(len(rest)))
		for i := s.Held.Train; s.Held.Train > 0 && i < len(rest); i++ {
			roles[rest[p.At(uint64(i))]] = Outside
		}
	}
	s.validate(roles, groups, s.ValidationFraction, s.ValidationMin, Validation)
	for i := len(roles); i < rows; i++ {
		all[i] = own
	}
	return all, nil
}

// Divided is the number of rows that the split divides, of so many rows of the dataset: all but its validation rows.
func (s Split) Divided(rows int) int {
	if s.ValidationFrom > 0 {
		return s.ValidationFrom
	}
	return rows
}

// trained lists the rows that have the role Train.
func trained(roles []Roles) (rows []int) {
	for i, r := range roles {
		if r == Train {
			rows = append(rows, i)
		}
	}
	return rows
}

// validate gives a fraction of the training rows another role: the validation rows of a job. It does nothing if the
// dataset has validation rows.
func (s Split) validate(roles []Roles, groups []uint16, fraction float64, least int, role Roles) {
	if fraction <= 0 || s.ValidationFrom > 0 {
		return
	}
	rest := trained(roles)
	n := max(least, int(math.Floor(fraction*float64(len(rest)))))
	for _, row := range Draw(num.NewKey(s.Seed, "split/validation"), 0, rest, groups, n) {
		roles[row] = role
	}
}

// Tests reports for each row that the split divides whether it is a test row of a job that has no parent job: neither
// groups nor validation rows decide this.
func (s Split) Tests(rows int, assigned []uint16) ([]bool, error) {
	s.Groups, s.ValidationFraction, s.ValidationMin = "", 0, 0
	roles, err := s.Assign(rows, assigned)
	if err != nil {
		return nil, err
	}
	tests := make([]bool, s.Divided(rows))
	for i := range tests {
		tests[i] = roles[i] == Test
	}
	return tests, nil
}

func (s Split) assignTest(roles []Roles, assigned []uint16) error {
	n := len(roles)
	if s.Assigned != "" {
		if len(assigned) != s.AssignedLength(n) {
			return fmt.Errorf("dataset: the split lists %d samples, but the dataset has %d",
				len(assigned)*n/max(1, s.AssignedLength(n)), n)
		}
		if s.Overlap {
			words := SplitWords(s.Folds)
			for i := range roles {
				if assigned[i*words+s.Fold/16]>>(s.Fold%16)&1 != 0 {
					roles[i] = Test
				}
			}
			return nil
		}
		for i, f := range assigned {
			if int(f) == s.Fold {
				roles[i] = Test
			}
		}
		return nil
	}
	from, to := 0, 0
	switch {
	case s.Folds > 0:
		from, to = s.Fold*n/s.Folds, (s.Fold+1)*n/s.Folds
	case s.TestFraction > 0:
		to = min(n, max(1, int(math.Floor(s.TestFraction*float64(n)))))
	}
	p := num.NewPermutation(num.NewKey(s.Seed, "split/test"), 0, 0, uint64(n))
	for i := from; i < to; i++ {
		roles[p.At(uint64(i))] = Test
	}
	return nil
}

// keepTrain has rows outside if the job trains on a fraction of the rows that are not test rows.
func (s Split) keepTrain(roles []Roles) {
	if s.TrainFraction <= 0 {
		return
	}
	rest := trained(roles)
	n := uint64(len(rest))
	p := num.NewPermutation(num.NewKey(s.Seed, "split/train"), 0, 0, n)
	for i := max(1, uint64(s.TrainFraction*float64(n))); i < n; i++ {
		roles[rest[p.At(i)]] = Outside
	}
}

// Divide returns the fold of each row that the split divides if the seed decides the folds.
func (s Split) Divide(rows int) []uint16 {
	rows = s.Divided(rows)
	list := make([]uint16, rows)
	p := num.NewPermutation(num.NewKey(s.Seed, "split/test"), 0, 0, uint64(rows))
	for fold := range s.Folds {
		for i := fold * rows / s.Folds; i < (fold+1)*rows/s.Folds; i++ {
			list[p.At(uint64(i))] = uint16(fold)
		}
	}
	return list
}

// assignInner divides the rows that are not test rows.
func (s Split) assignInner(roles []Roles, assigned, groups []uint16) error {
	var rest []int
	for i, r := range roles {
		switch r {
		case Test:
			roles[i] = Outside
		case Train:
			rest = append(rest, i)
		}
	}
	key := num.NewKey(s.Seed, "split/inner")
	switch {
	case s.InnerGroups:
		tested, err := innerGroups(key, rest, groups, s.InnerFold, s.Inner)
		for _, row := range tested {
			roles[row] = Test
		}
		return err
	case !s.InnerWhole:
		n := len(rest)
		p := num.NewPermutation(key, 0, 0, uint64(n))
		for i := s.InnerFold * n / s.Inner; i < (s.InnerFold+1)*n/s.Inner; i++ {
			roles[rest[p.At(uint64(i))]] = Test
		}
		return nil
	}
	n := s.Folds - 1
	p, tested := num.NewPermutation(key, 0, 0, uint64(n)), make(map[int]bool)
	for i := s.InnerFold * n / s.Inner; i < (s.InnerFold+1)*n/s.Inner; i++ {
		fold := int(p.At(uint64(i)))
		if fold >= s.Fold {
			fold++ // that of the outer test rows
		}
		tested[fold] = true
	}
	for _, row := range rest {
		if tested[int(assigned[row])] {
			roles[row] = Test
		}
	}
	return nil
}

// AssignedLength is the length of the list that Assigned names, of a dataset with so many rows.
func (s Split) AssignedLength(rows int) int {
	if rows = s.Divided(rows); s.Overlap {
		return rows * SplitWords(s.Folds)
	}
	return rows
}

// Decode reads the blob that Assigned names. Call it for a split that Assign takes. An error that wraps
// ErrFormat says that the list is not of so many rows, or names a fold that the split does not have.
func (s Split) Decode(b []byte, rows int) ([]uint16, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	list, err := DecodeFolds(b, s.AssignedLength(rows))
	if err != nil || s.Overlap || s.Folds == 0 {
		return list, err
	}
	for row, fold := range list {
		if int(fold) >= s.Folds {
			return nil, fmt.Errorf("dataset: sample %d is in fold %d, but there are %d folds: %w", row, fold, s.Folds, ErrFormat)
		}
	}
	return list, nil
}

// Check returns an error if a share or a fold is out of range.
func (s Split) Check() error {
	if !(s.TestFraction >= 0 && s.TestFraction < 1) || !(s.ValidationFraction >= 0 && s.ValidationFraction <= 1) {
		return fmt.Errorf("dataset: a split cannot hold out the fractions %v for testing and %v for validation",
			s.TestFraction, s.ValidationFraction)
	}
	if h := s.Held; !(h.Fraction >= 0 && h.Fraction <= 1) || h.Min < 0 || h.Train < 0 {
		return fmt.Errorf("dataset: a split cannot test the validation samples %+v of another job", h)
	}
	if err := s.Mask.Check(); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	if s.ValidationFrom < 0 || s.ValidationFrom >= MaxRows {
		return fmt.Errorf("dataset: the validation samples cannot begin with sample %d", s.ValidationFrom)
	}
	if s.Folds < 0 || s.Folds > MaxFolds || s.Fold < 0 || s.Folds > 0 && s.Fold >= s.Folds {
		return fmt.Errorf("dataset: there is no fold %d; the split has %d folds", s.Fold, s.Folds)
	}
	if !(s.TrainFraction >= 0 && s.TrainFraction <= 1) {
		return fmt.Errorf("dataset: a split cannot train on the fraction %v of the samples", s.TrainFraction)
	}
	if s.Overlap && (s.Assigned == "" || s.Folds < 1 || s.Folds > MaxSplits) {
		return fmt.Errorf("dataset: the list of %d overlapping splits is missing", s.Folds)
	}
	if s.Inner == 0 && s.InnerFold == 0 && !s.InnerWhole && !s.InnerGroups {
		return nil
	}
	if s.InnerGroups && (s.Groups == "" || s.InnerWhole) {
		return errors.New("dataset: the groups of the inner folds are missing")
	}
	if s.Inner < 2 || s.Inner > MaxFolds || s.InnerFold < 0 || s.InnerFold >= s.Inner {
		return fmt.Errorf("dataset: there is no inner fold %d; the split has %d inner folds", s.InnerFold, s.Inner)
	}
	if s.InnerWhole && (s.Assigned == "" || s.Overlap || s.Folds-1 < s.Inner) {
		return fmt.Errorf("dataset: %d inner folds of whole folds are not possible with %d folds", s.Inner, s.Folds)
	}
	return nil
}

// SplitWords is how many uint16 have a bit for each of so many splits.
func SplitWords(splits int) int { return (splits + 15) / 16 }

// EncodeFolds returns the blob that Split.Assigned names: a little-endian uint16
// for each row, or, with Split.Overlap, several.
func EncodeFolds(folds []uint16) []byte {
	b := make([]byte, 0, 2*len(folds))
	for _, f := range folds {
		b = binary.LittleEndian.AppendUint16(b, f)
	}
	return b
}

// DecodeFolds reads what EncodeFolds wrote for rows rows; see Split.Decode.
func DecodeFolds(b []byte, rows int) ([]uint16, error) {
	if len(b)%2 != 0 || len(b)/2 != rows {
		return nil, fmt.Errorf("dataset: the list of folds is damaged: got %d bytes for %d samples: %w", len(b),
			rows, ErrFormat)
	}
	folds := make([]uint16, rows)
	for i := range folds {
		folds[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return folds, nil
}

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
