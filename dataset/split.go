package dataset

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Roles is a set of Role bits.
type Roles uint8

// The roles that a row can have in a job. Each row has exactly one.
const (
	Train Roles = 1 << iota
	Validation
	Test
	// AllRows chooses every row.
	AllRows = Train | Validation | Test
)

// Split says which rows of a dataset a job trains on, validates on and tests on. A row's
// role is a function of its original row number, so every worker computes the same roles.
// At most one of TestFraction and Folds decides the test rows.
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
	// ValidationFraction of the rows that are not test rows validate, rounded
	// down but at least ValidationMin (and at most half of them).
	ValidationFraction float64 `json:"validation_fraction,omitempty"`
	ValidationMin      int     `json:"validation_min,omitempty"`
}

// Assign returns the role of every original row number. assigned is the decoded
// blob that Split.Assigned names, or nil.
func (s Split) Assign(rows int, assigned []uint16) ([]Roles, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	roles := make([]Roles, rows)
	for i := range roles {
		roles[i] = Train
	}
	if err := s.assignTest(roles, assigned); err != nil {
		return nil, err
	}
	s.assignValidation(roles)
	return roles, nil
}

// check returns an error if a share or a fold is out of range.
func (s Split) check() error {
	if !(s.TestFraction >= 0 && s.TestFraction < 1) || !(s.ValidationFraction >= 0 && s.ValidationFraction <= 1) {
		return fmt.Errorf("dataset: a split holds out %v of the rows to test and %v to validate", s.TestFraction, s.ValidationFraction)
	}
	if s.Folds < 0 || s.Folds > MaxFolds || s.Fold < 0 || s.Folds > 0 && s.Fold >= s.Folds {
		return fmt.Errorf("dataset: a split has no fold %d of %d", s.Fold, s.Folds)
	}
	return nil
}

func (s Split) assignTest(roles []Roles, assigned []uint16) error {
	n := len(roles)
	if s.Assigned != "" {
		if len(assigned) != n {
			return fmt.Errorf("dataset: the split lists %d rows, the dataset has %d", len(assigned), n)
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

func (s Split) assignValidation(roles []Roles) {
	if s.ValidationFraction <= 0 {
		return
	}
	var rest []int
	for i, r := range roles {
		if r != Test {
			rest = append(rest, i)
		}
	}
	n := max(s.ValidationMin, int(math.Floor(s.ValidationFraction*float64(len(rest)))))
	n = min(n, len(rest)/2)
	p := num.NewPermutation(num.NewKey(s.Seed, "split/validation"), 0, 0, uint64(len(rest)))
	for i := range n {
		roles[rest[p.At(uint64(i))]] = Validation
	}
}
