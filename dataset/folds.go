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
// fold of each of so many rows, in any order; rows and folds count from 0. It
// returns the folds by row and the number of folds, none of which may be empty. Errors name
// the file and the line.
func FoldsFile(path string, rows int) (folds []uint16, k int, err error) {
	in, closer, err := openText(path)
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
	return readFoldRows(r, header, rows)
}

// listReader reads a CSV file that lists something of rows: its header begins with "row", and what follows that stands
// between the columns.
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

// readFoldRows reads folds after the header.
func readFoldRows(r *listReader, header []string, rows int) ([]uint16, int, error) {
	if len(header) != 2 || strings.TrimSpace(header[0]) != "row" || strings.TrimSpace(header[1]) != "fold" {
		hint := ""
		if len(header) > 1 && strings.TrimSpace(header[0]) == "" && strings.TrimSpace(header[1]) == "row" {
			hint = "; the first column, without a name, is the index of a pandas frame: to_csv(..., index=False) leaves it out"
		}
		return nil, 0, fmt.Errorf("line 1: want the header row,fold, or row and a column of 0 and 1 for each split%s: %w", hint, ErrFormat)
	}
	f := foldList{lines: make([]int, rows), folds: make([]uint16, rows)}
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
	lines []int // by row: where it was listed; 0: not yet
	folds []uint16
}

func (f *foldList) add(line int, record []string) error {
	row, err := listedRow(f.lines, line, record[0])
	if err != nil {
		return err
	}
	fold, err := strconv.Atoi(strings.TrimSpace(record[1]))
	if err != nil || fold < 0 || fold >= MaxFolds {
		return fmt.Errorf("fold %.20q: want a whole number from 0 to %d, in digits: %w", record[1], MaxFolds-1, ErrFormat)
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
		return 0, fmt.Errorf("no rows: %w", ErrFormat)
	}
	k := int(slices.Max(folds)) + 1
	used := make([]bool, k)
	for _, f := range folds {
		used[f] = true
	}
	i := slices.Index(used, false)
	if i == 0 && !slices.Contains(used[1:], false) {
		return 0, fmt.Errorf("folds count from 0, and these count from 1 to %d: subtract 1 from each: %w", k-1, ErrFormat)
	}
	if i >= 0 {
		return 0, fmt.Errorf("fold %d of 0 to %d has no rows: %w", i, k-1, ErrFormat)
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
		return nil, fmt.Errorf("dataset: a split of %d bytes for %d rows: %w", len(b), rows, ErrFormat)
	}
	folds := make([]uint16, rows)
	for i := range folds {
		folds[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return folds, nil
}
