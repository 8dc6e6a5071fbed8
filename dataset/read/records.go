package read

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// firstRecords returns the first records of a file that begins with head, divided by delimiter, and their
// lines. It leaves out the last record, which head may have a part of only, unless it is the
// first. broken: a record was not well-formed.
func firstRecords(head []byte, all bool, delimiter rune) (records [][]string, lines []int, broken bool) {
	r := csv.NewReader(bytes.NewReader(head))
	r.Comma, r.FieldsPerRecord, r.TrimLeadingSpace = delimiter, -1, delimiter != '\t'
	for n := range sniffRecords {
		record, err := r.Read()
		if err != nil {
			return records, lines, !errors.Is(err, io.EOF) && (all || n == 0)
		}
		if cut := !all && int(r.InputOffset()) >= len(head); cut && n > 0 {
			break
		}
		if len(record) > 1 || filled(record) > 0 {
			line, _ := r.FieldPos(0)
			records, lines = append(records, record), append(lines, line)
		}
	}
	return records, lines, false
}

// csvReader reads records of at most maxLine bytes and dataset.MaxColumns fields, plus a buffer: a quote
// that is never closed must not read the whole file into memory.
type csvReader struct {
	*csv.Reader
	in    *bounded
	limit int // bytes of a record
}

func newCSVReader(in io.Reader) *csvReader {
	b := &bounded{in: in}
	r := csv.NewReader(b)
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	return &csvReader{r, b, maxLine}
}

// Read reads the next record.
func (r *csvReader) Read() ([]string, error) {
	r.in.left, r.in.fields, r.in.delimiter = r.limit, 0, utf8.AppendRune(r.in.delimiter[:0], r.Comma)
	record, err := r.Reader.Read()
	if err == nil && len(record) > dataset.MaxColumns {
		return nil, errTooWide
	}
	return record, err
}

var (
	errTooLong = dataset.Errorf(dataset.ErrFormat, "a row has more than %s bytes, the limit for a CSV file: is a "+
		"closing quote missing?", units.Count(maxLine))
	errTooWide = dataset.Errorf(dataset.ErrFormat, "a row has more than %s columns, the limit for a CSV file; write the "+
		"data as .npz, .npy or .libsvm", units.Count(dataset.MaxColumns))
)

// readAhead is more than the bytes after a record that are read with it.
const readAhead = 1 << 13

// bounded fails once left bytes were read, or delimiters, if there are any, for too many fields.
type bounded struct {
	in        io.Reader
	left      int
	fields    int
	delimiter []byte
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	if len(b.delimiter) == 0 {
		return n, err
	}
	if b.fields += bytes.Count(p[:n], b.delimiter); b.fields > dataset.MaxColumns+readAhead {
		return 0, errTooWide
	}
	return n, err
}

// csvRecords reads the records of a CSV file, which must all have as many columns as the
// first. It skips blank lines, and records of empty fields at the end of the file, which
// spreadsheets write.
type csvRecords struct {
	*csvReader
	file   string
	from   dataset.Measured
	before int // lines before the first record
	header bool
	width  int
	cut    bool // records may have empty fields after the last column

	numbers  []float64 // of a table: by column, if isNumber says so
	isNumber []bool    // nil: all columns are texts
	line     int       // of a table

	n       int // rows read
	pending int // blank records before next
	next    []string
	blank   []string
	inBlank bool  // the last record was blank
	end     error // after next
}

// newCSVRecords begins to read after the dialect's first line.
func newCSVRecords(file string, in io.Reader, d *dialect) (*csvRecords, error) {
	if _, err := io.CopyN(io.Discard, in, int64(d.skip)); err != nil {
		return nil, pathError(file, textError(err))
	}
	r := &csvRecords{csvReader: newCSVReader(in), file: file, before: d.before}
	r.Comma, r.FieldsPerRecord, r.TrimLeadingSpace = d.delimiter, -1, d.delimiter != '\t'
	return r, nil
}

// First reads the first record, from which the width is known.
func (r *csvRecords) First() ([]string, error) {
	first, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s: %s", r.file, emptyFile)
	}
	if err != nil {
		return nil, r.readError(err)
	}
	r.width = len(first)
	r.blank = make([]string, r.width)
	return slices.Clone(first), nil
}

// Next reads the next row's record, or io.EOF.
func (r *csvRecords) Next() (record []string, err error) {
	for r.next == nil && r.end == nil { // to the next record that is not blank
		record, err := r.Read()
		switch empty := err == nil && filled(record) == 0; {
		case errors.Is(err, io.EOF):
			r.end = err
		case err != nil:
			r.end = r.readError(err)
		case empty && len(record) == 1 && r.width > 1: // a line of blanks
		case empty && (r.width > 1 || len(record) > r.width):
			r.pending++
		case r.cut && len(record) > r.width && filled(record[r.width:]) == 0:
			r.next = record[:r.width]
		case len(record) != r.width:
			r.end = r.widthError(record)
		default:
			r.next = record
		}
	}
	if r.end != nil {
		return nil, r.end
	}
	if record, r.inBlank = r.next, r.pending > 0; r.inBlank {
		r.pending--
		record = r.blank
	} else {
		r.next = nil
	}
	r.n++
	return record, nil
}

// lineOf returns the line in the file of a column of the last record; 0 if the record was
// blank, since its line is not known.
func (r *csvRecords) lineOf(column int) int {
	if r.inBlank {
		return 0
	}
	if r.csvReader == nil {
		return r.line
	}
	line, _ := r.FieldPos(column)
	return line + r.before
}

// widthError reports a record with another number of columns than the first.
func (r *csvRecords) widthError(record []string) error {
	r.n, r.inBlank = r.n+r.pending, false
	reason := errtext.Sprintf("found %d columns, want %d as in the first line", len(record), r.width)
	switch {
	case r.cut && len(record) > r.width:
		at := r.width + slices.IndexFunc(record[r.width:], func(s string) bool { return strings.TrimSpace(s) != "" })
		reason = errtext.Sprintf("%.40q is in column %d, which is ignored because it is empty in the first lines; name the "+
			"column in a header", record[at], at)
	case commentMark(record[0]) != "" && len(record) < r.width:
		reason += "; this line looks like a comment, but comments are only allowed before the first row: remove the line"
	case r.header && r.n == 0 && len(record) == r.width+1:
		reason += "; the header must name every column, including the column of row names"
	}
	return &dataset.RowError{File: r.file, Row: r.n, Line: r.lineOf(0), Column: -1, Reason: reason}
}

// readError describes what encoding/csv says about the next row.
func (r *csvRecords) readError(err error) error {
	n := r.n + r.pending
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return &dataset.RowError{
			File: r.file, Row: n, Line: parse.Line + r.before, Column: -1,
			Reason: errtext.Sprintf("character %d: %v", parse.Column, parse.Err),
		}
	}
	return fmt.Errorf("%s: row %d (counted from 0): %w", r.file, n, textError(err))
}

// aboveNumbers reports whether column i of rest has numbers and no other values.
func aboveNumbers(rest [][]string, i int, m numbers.Marks) bool {
	all := false
	for _, record := range rest {
		if i >= len(record) || numbers.IsMissing(record[i]) {
			continue
		}
		if all = numbers.IsField(record[i], m); !all {
			return false
		}
	}
	return all
}

// filled returns the number of fields of a record up to the last field that is not blank.
func filled(record []string) int {
	n := len(record)
	for n > 0 && strings.TrimSpace(record[n-1]) == "" {
		n--
	}
	return n
}

// realColumns returns how many columns records have up to the last one with a value, and whether
// some records have empty ones after it.
func realColumns(records [][]string) (n int, cut bool) {
	widest := 0
	for _, record := range records {
		n, widest = max(n, filled(record)), max(widest, len(record))
	}
	return n, n > 0 && n < widest
}

// dialect is how the records of a CSV file are written.
type dialect struct {
	delimiter rune // between columns
	marks     numbers.Marks
	skip      int // bytes before the first record: a line "sep=;" and comments
	before    int // lines of them
	comments  int // lines of comments of these
	// commented is where in the file the last comment begins, after its mark: its line may be the header.
	commented int
	mark      string // of that comment
}

// delimiters are those that are recognised.
var delimiters = []rune{',', ';', '\t', '|'}

const tabWord = "tab"

func delimiterName(r rune) string {
	if r == '\t' {
		return tabWord
	}
	return strconv.Quote(string(r))
}

// ParseDelimiter reads what stands between the columns of a CSV file: one
// character, or "tab".
func ParseDelimiter(s string) (rune, error) {
	if s == tabWord || s == `\t` {
		return '\t', nil
	}
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 || size != len(s) || r == 0 || r == utf8.RuneError || strings.ContainsRune("\"\r\n.-0123456789", r) {
		return 0, fmt.Errorf("delimiter %q: want one character, such as ; or |, or the word tab", s)
	}
	return r, nil
}

// ParseDecimal reads the decimal separator and reports whether it is a comma.
func ParseDecimal(s string) (comma bool, err error) {
	if s != "." && s != "," {
		return false, fmt.Errorf("decimal %q: want . or ,", s)
	}
	return s == ",", nil
}

// ParseThousands reads the mark between thousands: a comma, a point, an apostrophe or a blank.
func ParseThousands(s string) (rune, error) {
	switch s {
	case ",", ".", "'", " ":
		return rune(s[0]), nil
	}
	return 0, fmt.Errorf("thousands %q: want , or . or ' or a blank", s)
}

// sniffBytes and sniffRecords bound the bytes and records that the dialect of a file is
// guessed from.
const (
	sniffBytes   = 1 << 18
	sniffRecords = 100
)

// commentMark returns the mark that a line of a comment begins with; empty: it is none. A line whose first
// field is a mark alone has a column of that name.
func commentMark(line string) string {
	for _, mark := range commentMarks {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), mark); ok && !strings.HasPrefix(rest, "\t") &&
			(rest == "" || !slices.Contains(delimiters, rune(rest[0]))) {
			return mark
		}
	}
	return ""
}

// commentMarks begin the lines of comments that may stand before the first record.
var commentMarks = []string{"#", "%", "//"}

// namedColumns is a file with named columns that is no CSV file. What its columns are is decided as for a CSV file.
type namedColumns interface {
	// columns returns the names of the columns.
	columns() []string
	// refuses says why a column cannot be read, or cannot be read as texts; empty: it can.
	refuses(column int, asText bool) errtext.Text
	// each calls f with the number of each row and its record. The record has the columns that are used as texts; but
	// numbers that are not needed as texts may be in csvRecords.numbers.
	each(used, asText []bool, f func(n int, record []string, r *csvRecords) error) error
	// prepare returns o with what the file says of its columns, and the number of rows or -1.
	prepare(o *OpenOptions) (*OpenOptions, int)
	// notes says what prepare took from the file.
	notes() []errtext.Text
}

// isMissing reports whether a field of a row is missing.
func isMissing(record []string, r *csvRecords, i int) bool {
	if r.isNumber != nil && r.isNumber[i] {
		return r.numbers[i] != r.numbers[i]
	}
	return numbers.IsMissing(record[i])
}
