package dataset

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// MaxSplits bounds the number of splits with test rows of their own in one file.
const MaxSplits = 1 << 10

// SplitList is what a split file says: Split.Assigned, Folds and Overlap.
type SplitList struct {
	Assigned []uint16 // by row; with Overlap splitWords(Folds) for each row
	Folds    int
	Overlap  bool
}

// splitWords is how many uint16 have a bit for each of so many splits.
func splitWords(splits int) int { return (splits + 15) / 16 }

// SplitFile reads a CSV file (or .csv.gz) of so many rows: of folds, as FoldsFile does, or
// with the header row and a column for each split, which is 1, True or test in test rows and 0, False
// or train in others. In a column that is called train, 1 and True are training rows.
// Each split has rows of both kinds. Errors name the file, the line and the column.
func SplitFile(path string, rows int) (*SplitList, error) {
	in, closer, err := openText(path, encodingOfMark)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer closer.Close()
	s, err := readSplits(in, rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func readSplits(in io.Reader, rows int) (*SplitList, error) {
	r, header, err := newListReader(in)
	if err != nil {
		return nil, err
	}
	row, isFolds, err := listColumns(header)
	if err != nil {
		return nil, err
	}
	if isFolds {
		folds, k, err := readFoldRows(r, row, rows)
		return &SplitList{Assigned: folds, Folds: k}, err
	}
	m := maskList{row: row, names: slices.Delete(trimmed(header), row, row+1), words: splitWords(len(header) - 1), lines: make([]int, rows)}
	if err := m.begin(rows); err != nil {
		return nil, err
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return m.finish()
		}
		if err != nil {
			return nil, r.failed(err)
		}
		if err := m.add(r.line(), record); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line(), err)
		}
	}
}

type maskList struct {
	row   int // column of the numbers of rows
	names []string
	roles []splitRole // of the columns of names
	words int
	lines []int // by row: where it was listed; 0: not yet
	masks []uint16
}

func (m *maskList) begin(rows int) error {
	if n := len(m.names); n > MaxSplits {
		return kindErrorf(ErrFormat, "line 1: found %d splits, want at most %d", n, MaxSplits)
	}
	if err := distinct("splits", m.names); err != nil {
		return fmt.Errorf("line 1: %w: %w", err, ErrFormat)
	}
	for _, name := range m.names {
		m.roles = append(m.roles, roleOf(name))
	}
	if train, test := slices.Index(m.roles, trainRole), slices.Index(m.roles, testRole); train >= 0 && test >= 0 {
		return kindErrorf(ErrAmbiguous, "line 1: columns %q and %q may describe one split or two: remove one column, or rename the splits without train and test in their names", m.names[train], m.names[test])
	}
	m.masks = make([]uint16, rows*m.words)
	return nil
}

// splitRole is what 1 means in a column of a split.
type splitRole int

const (
	otherRole splitRole = iota // a test row, as the name says nothing else
	testRole                   // a test row
	trainRole                  // a training row
	doubtRole                  // the name says both or neither
)

// roleOf reads from the name of a column of a split what 1 means.
func roleOf(name string) splitRole {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	has := func(beginnings ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(word, b) })
		})
	}
	joined := " " + strings.Join(words, " ")
	test := has("test", "istest", "intest", "holdout", "heldout", "outofsample") || strings.Contains(joined, " out of sample") || strings.Contains(joined, " held out") || strings.Contains(joined, " hold out")
	train := has("train", "istrain", "intrain", "insample") || strings.Contains(joined, " in sample")
	switch {
	case train && test, slices.Contains(words, "val"), slices.Contains(words, "isval"), slices.Contains(words, "dev"), has("valid", "isvalid"):
		return doubtRole
	case train:
		return trainRole
	case test:
		return testRole
	}
	return otherRole
}

func (m *maskList) add(line int, record []string) error {
	row, err := listedRow(m.lines, line, record[m.row])
	if err != nil {
		return err
	}
	k := 0
	for i, field := range record {
		if i == m.row {
			continue
		}
		is, ok := tested(field)
		if word := strings.TrimSpace(field); ok && !strings.EqualFold(word, "train") && !strings.EqualFold(word, "test") {
			switch m.roles[k] {
			case trainRole:
				is = !is
			case doubtRole:
				return kindErrorf(ErrAmbiguous, "%q is %.20q, which may mean test or train: write test and train, or call the column test if 1 means test, and train if 1 means train", m.names[k], field)
			}
		}
		if !ok {
			return kindErrorf(ErrFormat, "%q is %.20q: want 1 for a test sample and 0 for others, or True and False, or test and train", m.names[k], field)
		}
		if is {
			m.masks[row*m.words+k/16] |= 1 << (k % 16)
		}
		k++
	}
	return nil
}

// tested reads whether a split tests a row; ok is false if the field says neither.
func tested(field string) (is, ok bool) {
	field = strings.TrimSpace(field)
	switch number, err := wholeNumber(field); {
	case err == nil:
		return number == 1, number == 0 || number == 1
	case strings.EqualFold(field, "true"), strings.EqualFold(field, "test"):
		return true, true
	case strings.EqualFold(field, "false"), strings.EqualFold(field, "train"):
		return false, true
	}
	return false, false
}

// listedRow reads the number of a row, which must not have been listed, and notes its line.
func listedRow(lines []int, line int, field string) (int, error) {
	rows := len(lines)
	row, err := wholeNumber(field)
	if err != nil || row < 0 || row >= rows {
		hint := ""
		if err == nil && row == rows {
			hint = ", because rows are numbered from 0"
		}
		return 0, kindErrorf(ErrFormat, "row %.20q: want a number from 0 to %d%s", field, rows-1, hint)
	}
	if lines[row] != 0 {
		return 0, kindErrorf(ErrFormat, "row %d is already listed in line %d", row, lines[row])
	}
	lines[row] = line
	return row, nil
}

func (m *maskList) finish() (*SplitList, error) {
	if row := slices.Index(m.lines, 0); row >= 0 {
		return nil, missingRow(row, len(m.lines))
	}
	s := &SplitList{Assigned: m.masks, Folds: len(m.names), Overlap: true}
	return s, s.check(m.names, len(m.lines))
}

func missingRow(row, rows int) error {
	return fmt.Errorf("row %d (counted from 0) is missing; the list must have all %d rows: %w", row, rows, ErrRowCount)
}

// check returns an error if a split tests no row, or all of them; names may be nil.
func (s *SplitList) check(names []string, rows int) error {
	words := splitWords(s.Folds)
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
			return kindErrorf(ErrFormat, "%s has no test samples", what)
		case rows:
			return kindErrorf(ErrFormat, "%s tests every sample, so no samples are left for training", what)
		}
	}
	return nil
}

// SplitFile reads a split file of the rows of the file that the dataset was imported from, see
// the function SplitFile, and returns what it says of the dataset's rows.
func (m *Manifest) SplitFile(path string) (*SplitList, error) {
	s, err := SplitFile(path, m.FileRows())
	kept := m.FileRow()
	if err != nil || kept == nil {
		return s, err
	}
	words := 1
	if s.Overlap {
		words = splitWords(s.Folds)
	}
	all := s.Assigned
	s.Assigned = make([]uint16, 0, len(kept)*words)
	for _, row := range kept {
		s.Assigned = append(s.Assigned, all[row*words:(row+1)*words]...)
	}
	if s.Overlap {
		if err := s.check(nil, len(kept)); err != nil {
			return nil, fmt.Errorf("%s: after samples with missing values are left out, %w", path, err)
		}
		return s, nil
	}
	for fold := range s.Folds {
		if !slices.Contains(s.Assigned, uint16(fold)) {
			return nil, kindErrorf(ErrFormat, "%s: all samples of fold %d are left out for missing values", path, fold)
		}
	}
	return s, nil
}
