package dataset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// MaxFolds bounds the number of folds.
const MaxFolds = 1 << 16

// FoldsFile reads a CSV file (or .csv.gz) with the header row,fold that gives the
// fold of each of so many rows; rows and folds count from 0, and both columns and rows may have any order. It
// returns the folds by row and the number of folds, none of which may be empty. Errors name
// the file and the line.
func FoldsFile(path string, rows int) (folds []uint16, k int, err error) {
	in, closer, err := openText(path, encodingOfMark)
	if err != nil {
		return nil, 0, pathError(path, err)
	}
	defer closer.Close()
	folds, k, err = readFolds(in, rows)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	return folds, k, nil
}

func readFolds(in io.Reader, rows int) ([]uint16, int, error) {
	r, header, err := newListReader(in)
	if err != nil {
		return nil, 0, err
	}
	row, folds, err := listColumns(header)
	if err == nil && !folds {
		err = kindErrorf(ErrFormat, "line 1: want the columns row and fold")
	}
	if err != nil {
		return nil, 0, err
	}
	return readFoldRows(r, row, rows)
}

// listReader reads a CSV file that lists something of rows: a column of its header is "row", and what follows the first one
// stands between the columns.
type listReader struct {
	*csvReader
	before int // lines before the header
}

// listHead is how many bytes of a list show what stands between its columns.
const listHead = 1 << 12

// newListReader reads the header.
func newListReader(in io.Reader) (r *listReader, header []string, err error) {
	b := bufio.NewReaderSize(in, listHead)
	head, _ := b.Peek(listHead)
	delimiter, skip := sepLine(head)
	if delimiter == 0 {
		delimiter = ','
		first := bytes.TrimLeft(head, "\r\n")
		if at := bytes.IndexAny(first, string(delimiters)+"\n"); at >= 0 && first[at] != '\n' {
			delimiter = rune(first[at])
		}
	}
	if _, err := b.Discard(skip); err != nil {
		return nil, nil, err
	}
	r = &listReader{newCSVReader(b), min(skip, 1)}
	r.Comma, r.TrimLeadingSpace = delimiter, delimiter != '\t'
	header, err = r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, r.failed(err)
	}
	return r, header, nil
}

// line returns the line of the last record.
func (r *listReader) line() int {
	line, _ := r.FieldPos(0)
	return line + r.before
}

// failed says where the file cannot be read.
func (r *listReader) failed(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w: %w", parse.Line+r.before, parse.Err, ErrFormat)
	}
	return textError(err)
}

// The columns of lists of rows, in capital or small letters.
const (
	rowColumn  = "row"
	foldColumn = "fold"
)

// listColumns returns the place of the column of row numbers, and whether the other column has folds. The error says
// what a header has.
func listColumns(header []string) (row int, folds bool, err error) {
	names := trimmed(header)
	isRow := func(name string) bool { return strings.EqualFold(name, rowColumn) }
	row = slices.IndexFunc(names, isRow)
	empty, hint := slices.Index(names, ""), ""
	switch {
	case empty == 0 && row == 1:
		hint = "; the first column has no name and seems to be the index of a pandas data frame: write the file with to_csv(..., index=False)"
	case row >= 0 && slices.ContainsFunc(names[row+1:], isRow):
		hint = "; found two columns named row"
	case row >= 0 && empty >= 0:
		hint = fmt.Sprintf("; column %d (counted from 0) has no name", empty)
	case row >= 0 && len(names) > 1:
		return row, len(names) == 2 && strings.EqualFold(names[1-row], foldColumn), nil
	}
	return 0, false, kindErrorf(ErrFormat, "line 1: want the columns row and fold, or row and one column of 0 and 1 for each split%s", hint)
}

// wholeNumber reads a number in digits, which may have a fraction of zeros.
func wholeNumber(field string) (int, error) {
	field = strings.TrimSpace(field)
	if whole, fraction, cut := strings.Cut(field, "."); cut && strings.Trim(fraction, "0") == "" {
		field = whole
	}
	return strconv.Atoi(field)
}

// readFoldRows reads folds after the header, in which the column at row has the numbers of rows.
func readFoldRows(r *listReader, row, rows int) ([]uint16, int, error) {
	f := foldList{row: row, lines: make([]int, rows), folds: make([]uint16, rows)}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, r.failed(err)
		}
		if err := f.add(r.line(), record); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", r.line(), err)
		}
	}
	return f.finish()
}

type foldList struct {
	row   int   // column of the numbers of rows
	lines []int // by row: where it was listed; 0: not yet
	folds []uint16
}

func (f *foldList) add(line int, record []string) error {
	row, err := listedRow(f.lines, line, record[f.row])
	if err != nil {
		return err
	}
	field := record[1-f.row]
	fold, err := wholeNumber(field)
	if err != nil || fold < 0 || fold >= MaxFolds {
		hint := ""
		if _, is := tested(field); is && err != nil {
			hint = "; a column that marks the samples of a split must not be called fold"
		}
		return kindErrorf(ErrFormat, "fold %.20q: want a whole number from 0 to %d, in digits%s", field, MaxFolds-1, hint)
	}
	f.folds[row] = uint16(fold)
	return nil
}

func (f *foldList) finish() ([]uint16, int, error) {
	if row := slices.Index(f.lines, 0); row >= 0 {
		return nil, 0, missingRow(row, len(f.lines))
	}
	k, err := countFolds(f.folds)
	return f.folds, k, err
}

// countFolds returns the number of folds, none of which is empty.
func countFolds(folds []uint16) (int, error) {
	if len(folds) == 0 {
		return 0, kindErrorf(ErrFormat, "the file lists no rows")
	}
	k := int(slices.Max(folds)) + 1
	used := make([]bool, k)
	for _, f := range folds {
		used[f] = true
	}
	i := slices.Index(used, false)
	if i == 0 && !slices.Contains(used[1:], false) {
		return 0, kindErrorf(ErrFormat, "the folds are numbered from 1 to %d, want numbers from 0: subtract 1 from each", k-1)
	}
	if i >= 0 {
		return 0, kindErrorf(ErrFormat, "fold %d has no samples; the folds are 0 to %d", i, k-1)
	}
	return k, nil
}

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
		return nil, fmt.Errorf("dataset: the list of folds is damaged: got %d bytes for %d samples: %w", len(b), rows, ErrFormat)
	}
	folds := make([]uint16, rows)
	for i := range folds {
		folds[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return folds, nil
}
