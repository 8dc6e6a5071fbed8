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
	top       int    // where the comments begin
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

// sniffBytes and sniffRecords bound the bytes and records that the dialect of a file is
// guessed from.
const (
	sniffBytes   = 1 << 18
	sniffRecords = 100
)

// sniffDialect guesses the dialect of a file that begins with head, except for what o
// gives; all: head is the whole file.
func sniffDialect(head []byte, all bool, o *OpenOptions) (d dialect, err error) {
	if d.delimiter, d.skip = sepLine(head); d.skip > 0 {
		d.before = 1
	}
	switch {
	case o.Delimiter != 0:
		d.delimiter = o.Delimiter
	case o.tabs && bytes.IndexByte(head, '\t') >= 0:
		d.delimiter = '\t'
	}
	d.skipComments(head)
	head = head[d.skip:]
	if d.delimiter == 0 {
		if d.delimiter, err = sniffDelimiter(head, all, o.Decimal == ","); err != nil {
			return d, err
		}
	}
	d.marks.Thousands = o.Thousands
	switch {
	case o.Decimal != "":
		d.marks.Comma, err = ParseDecimal(o.Decimal)
	case o.Thousands == ',' || o.Thousands == '.':
		d.marks.Comma = o.Thousands == '.'
	case d.delimiter != ',':
		d.marks.Comma, err = sniffComma(head, all, &d, o)
	}
	return d, err
}

// commentMarks begin the lines of comments that may stand before the first record.
var commentMarks = []string{"#", "%", "//"}

// skipComments moves the first record behind the comments at the start of a file. A file of comments alone has
// no record, and then they are its records.
func (d *dialect) skipComments(head []byte) {
	found, at := *d, d.skip
	for line := d.before + 1; ; line++ {
		text, _, more := bytes.Cut(head[at:], []byte("\n"))
		mark := commentMark(string(text))
		switch {
		case mark == "" && strings.TrimSpace(string(text)) != "":
			*d = found
			return
		case !more:
			return
		}
		at += len(text) + 1
		if mark == "" {
			continue
		}
		if found.comments == 0 {
			found.top = d.skip
		}
		_, name, _ := strings.Cut(string(text), mark)
		found.commented = at - 1 - len(strings.TrimLeft(name, mark+" "))
		found.mark, found.skip, found.before, found.comments = mark, at, line, found.comments+1
	}
}

// atRowLike returns the dialect of a file whose rows begin at the first comment that is like the rows after it, and the
// record of that; ok is false if there is none. Such a comment has as many fields, and numbers where the others have only
// numbers, the first column aside. A comment whose mark stands before a blank and a number, in a column of numbers, is none.
func (d dialect) atRowLike(head []byte, rest [][]string) (like dialect, first []string, ok bool) {
	width, _ := realColumns(rest)
	like = d
	like.before, like.comments = d.before-bytes.Count(head[d.top:d.skip], []byte("\n")), 0
	for at := d.top; at < d.skip; like.before++ {
		text, _, _ := bytes.Cut(head[at:d.skip], []byte("\n"))
		line := string(text)
		if mark := commentMark(line); mark != "" {
			r := newCSVReader(strings.NewReader(line))
			r.Comma = d.delimiter
			behind, _ := strings.CutPrefix(strings.TrimLeft(line, " "), mark)
			record, err := r.Read()
			if err == nil && filled(record) == width && d.numbersLike(record, rest) && !(strings.HasPrefix(behind, " ") && aboveNumbers(rest, 0, d.marks)) {
				like.skip = at
				return like, slices.Clone(record), true
			}
			like.comments++
		}
		at += len(text) + 1
	}
	return d, nil, false
}

// numbersLike reports whether a record has numbers in the columns in which rest has only numbers, but for the first, and
// whether there are such columns.
func (d *dialect) numbersLike(record []string, rest [][]string) bool {
	columns := 0
	for i := 1; i < len(record); i++ {
		if !aboveNumbers(rest, i, d.marks) {
			continue
		}
		if columns++; !numbers.IsMissing(record[i]) && !numbers.IsField(record[i], d.marks) {
			return false
		}
	}
	return columns > 0
}

// commentMark returns the mark that a line of a comment begins with; empty: it is none. A line whose first
// field is a mark alone has a column of that name.
func commentMark(line string) string {
	for _, mark := range commentMarks {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), mark); ok && !strings.HasPrefix(rest, "\t") && (rest == "" || !slices.Contains(delimiters, rune(rest[0]))) {
			return mark
		}
	}
	return ""
}

// ParseThousands reads the mark between thousands: a comma, a point, an apostrophe or a blank.
func ParseThousands(s string) (rune, error) {
	switch s {
	case ",", ".", "'", " ":
		return rune(s[0]), nil
	}
	return 0, fmt.Errorf("thousands %q: want , or . or ' or a blank", s)
}

// sepLine reads a first line such as "sep=;", which spreadsheets write; size is the length
// of that line, or 0 if there is none.
func sepLine(head []byte) (delimiter rune, size int) {
	line, _, found := bytes.Cut(head, []byte("\n"))
	text := strings.Trim(strings.TrimSuffix(string(line[:min(len(line), 16)]), "\r"), `"`)
	rest, ok := strings.CutPrefix(text, "sep=")
	if !ok {
		return 0, 0
	}
	delimiter, err := ParseDelimiter(rest)
	if err != nil {
		return 0, 0
	}
	size = len(line)
	if found {
		size++
	}
	return delimiter, size
}

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

// csvReader reads records of at most maxLine bytes and maxColumns fields, plus a buffer: a quote
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
	errTooLong = dataset.Errorf(dataset.ErrFormat, "a row has more than %s bytes, the limit for a CSV file: is a closing quote missing?", units.Count(maxLine))
	errTooWide = dataset.Errorf(dataset.ErrFormat, "a row has more than %s columns, the limit for a CSV file; write the data as .npz, .npy or .libsvm", units.Count(dataset.MaxColumns))
)

// readAhead is more than the bytes after a record that are read with it.
const readAhead = 1 << 13

// bounded fails once left bytes were read, or delimiters for too many fields.
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
	from   *measuredFile
	before int // lines before the first record
	header bool
	width  int
	cut    bool // records may have empty fields after the last column

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

// line returns the line in the file of a column of the last record; 0 if the record was
// blank, since its line is not known.
func (r *csvRecords) line(column int) int {
	if r.inBlank {
		return 0
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
		reason = errtext.Sprintf("%.40q is in column %d, which is ignored because it is empty in the first lines; name the column in a header", record[at], at)
	case commentMark(record[0]) != "" && len(record) < r.width:
		reason += "; this line looks like a comment, but comments are only allowed before the first row: remove the line"
	case r.header && r.n == 0 && len(record) == r.width+1:
		reason += "; the header must name every column, including the column of row names"
	}
	return &dataset.RowError{File: r.file, Row: r.n, Line: r.line(0), Column: -1, Reason: reason}
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
