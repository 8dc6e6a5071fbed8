// Package folds divides the rows of a dataset into folds: by Coppice's own permutation, as
// scikit-learn does, by groups, or as a file says. All of it is a function of its arguments.
package folds

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/coppice-ldl/coppice/dataset"
	"gonum.org/v1/gonum/mathext/prng"
)

// The ways to divide rows.
const (
	Seeded      = "seeded"       // as the folds of a job are: dataset.Split with a seed
	ScikitLearn = "scikit-learn" // as KFold(k, shuffle=True, random_state=seed): see KFold
	Groups      = "groups"       // each group is a fold: leave-one-group-out
	File        = "file"         // as a split file says: see dataset.SplitFile
)

// ErrFolds is what errors of Check and Divide wrap.
var ErrFolds = errors.New("these samples cannot be divided into these folds")

// Scheme says how rows are divided. Folds, Seed and Repeats are of the first two ways alone:
// groups and files say all by themselves.
type Scheme struct {
	Way   string
	Folds int
	Seed  uint64
	// Repeats is how often the rows are divided; repeat r, from 0, has the seed Seed + r.
	Repeats int
}

// Rows is what a scheme must know of a dataset.
type Rows struct {
	Count  int
	Groups []uint16           // the group of each row, counted from 0; nil: there are none
	File   *dataset.SplitList // of Count rows; nil: there is no file
}

// Check returns an error, which wraps ErrFolds, if the scheme divides no rows at all.
func (s *Scheme) Check() error {
	switch s.Way {
	case Seeded, ScikitLearn:
	case Groups, File:
		if s.Folds != 0 || s.Seed != 0 || s.Repeats > 1 {
			return fmt.Errorf("folds of the kind %s take no number, seed or repeats: %w", s.Way, ErrFolds)
		}
		return nil
	default:
		return fmt.Errorf("unknown kind of folds %q: want %s, %s, %s or %s: %w", s.Way, Seeded, ScikitLearn, Groups,
			File, ErrFolds)
	}
	switch {
	case s.Folds < 2 || s.Folds > dataset.MaxFolds:
		return fmt.Errorf("want 2 to %[2]d folds, got %[1]d: %[3]w", s.Folds, dataset.MaxFolds, ErrFolds)
	case s.Repeats < 1:
		return fmt.Errorf("want at least 1 repeat, got %d: %w", s.Repeats, ErrFolds)
	case s.lastSeed() < s.Seed:
		return fmt.Errorf("each repeat takes the next seed: with seed %d and %d repeats, the last seed exceeds %d: %w",
			s.Seed, s.Repeats, uint64(math.MaxUint64), ErrFolds)
	case s.Way == ScikitLearn && s.lastSeed() > math.MaxUint32:
		return fmt.Errorf("the last repeat needs seed %d, but the largest seed of scikit-learn is %d: %w", s.lastSeed(),
			uint32(math.MaxUint32), ErrFolds)
	}
	return nil
}

func (s *Scheme) lastSeed() uint64 { return s.Seed + uint64(s.Repeats) - 1 }

// Fits returns an error, which wraps ErrFolds, if a scheme of the first two ways cannot divide so many rows. It takes
// no time.
func (s *Scheme) Fits(rows int) error {
	if err := s.Check(); err != nil {
		return err
	}
	return enough(rows, s.Folds)
}

// Divide returns the folds of one repeat, counted from 0. Errors wrap ErrFolds.
func (s *Scheme) Divide(rows *Rows, repeat int) (*dataset.SplitList, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if repeat < 0 || repeat >= max(1, s.Repeats) {
		return nil, fmt.Errorf("there is no repeat %d, counted from 0: the number of repeats is %d: %w", repeat,
			max(1, s.Repeats), ErrFolds)
	}
	seed := s.Seed + uint64(repeat)
	switch s.Way {
	case Groups:
		return byGroup(rows)
	case File:
		if rows.File == nil {
			return nil, fmt.Errorf("the folds come from a split file, but none is given: %w", ErrFolds)
		}
		split := dataset.Split{Folds: rows.File.Folds, Overlap: rows.File.Overlap, Assigned: File}
		if want := split.AssignedLength(rows.Count); len(rows.File.Assigned) != want {
			return nil, fmt.Errorf("the split file lists %d values, but the dataset of %[3]d samples needs %[2]d: %[4]w",
				len(rows.File.Assigned), want, rows.Count, ErrFolds)
		}
		return rows.File, nil
	case ScikitLearn:
		folds, err := KFold(rows.Count, s.Folds, uint32(seed))
		return &dataset.SplitList{Assigned: folds, Folds: s.Folds}, err
	}
	if err := enough(rows.Count, s.Folds); err != nil {
		return nil, err
	}
	return &dataset.SplitList{Assigned: dataset.Split{Seed: seed, Folds: s.Folds}.Divide(rows.Count), Folds: s.Folds}, nil
}

// byGroup makes a fold of each group.
func byGroup(rows *Rows) (*dataset.SplitList, error) {
	if len(rows.Groups) != rows.Count || rows.Count == 0 {
		return nil, fmt.Errorf("the dataset has %d samples, but groups for %d samples: %w", rows.Count,
			len(rows.Groups), ErrFolds)
	}
	used := make([]bool, 1<<16)
	folds := 0
	for _, g := range rows.Groups {
		used[g] = true
		folds = max(folds, int(g)+1)
	}
	for g, rowsOfIt := range used[:folds] {
		if !rowsOfIt {
			return nil, fmt.Errorf("group %d, counted from 0, of %d groups has no samples: %w", g, folds, ErrFolds)
		}
	}
	if folds < 2 {
		return nil, fmt.Errorf("all samples are in one group, so no samples are left to train on: %w", ErrFolds)
	}
	return &dataset.SplitList{Assigned: rows.Groups, Folds: folds}, nil
}

// enough returns an error if there are fewer rows than folds.
func enough(rows, k int) error {
	if k < 2 || k > dataset.MaxFolds || rows < k {
		return fmt.Errorf("want 2 to %[3]d folds for %[2]d samples, so that each fold has a sample; got %[1]d folds: %[4]w",
			k, rows, min(rows, dataset.MaxFolds), ErrFolds)
	}
	return nil
}

// Joined makes one list of splits that overlap of the folds of several lists, which a list of
// folds by number cannot have. There are at most dataset.MaxSplits of them.
func Joined(lists []*dataset.SplitList, rows int) *dataset.SplitList {
	all := &dataset.SplitList{Overlap: true}
	for _, l := range lists {
		all.Folds += l.Folds
	}
	words := dataset.Split{Folds: all.Folds, Overlap: true}.AssignedLength(1)
	all.Assigned = make([]uint16, rows*words)
	from := 0
	for _, l := range lists {
		for row, fold := range l.Assigned {
			at := from + int(fold)
			all.Assigned[row*words+at/16] |= 1 << (at % 16)
		}
		from += l.Folds
	}
	return all
}

// KFold returns the fold of each row, counted from 0, as scikit-learn's KFold(k, shuffle=True, random_state=seed) has
// it, row for row. The Mersenne Twister (Matsumoto and Nishimura 1998) with the seed of init_genrand shuffles the
// numbers 0 to rows - 1, the last place first. The result is cut into k parts. The first rows mod k parts have one
// number more. The error wraps ErrFolds: fewer than 2 folds, or more folds than rows.
func KFold(rows, k int, seed uint32) ([]uint16, error) {
	if err := enough(rows, k); err != nil {
		return nil, err
	}
	order := shuffled(rows, seed)
	folds, at := make([]uint16, rows), 0
	for fold := range k {
		size := rows / k
		if fold < rows%k {
			size++
		}
		for _, row := range order[at : at+size] {
			folds[row] = uint16(fold)
		}
		at += size
	}
	return folds, nil
}

// shuffled returns 0 to n - 1 in the order of NumPy's RandomState(seed).shuffle.
func shuffled(n int, seed uint32) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	source := prng.NewMT19937()
	source.Seed(uint64(seed))
	for i := uint32(n - 1); i > 0; i-- {
		// j is from 0 to i: words are cut to as many bits as i has, until one fits.
		mask := uint32(1)<<bits.Len32(i) - 1
		j := source.Uint32() & mask
		for j > i {
			j = source.Uint32() & mask
		}
		order[i], order[j] = order[j], order[i]
	}
	return order
}
