package dataset

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
)

// dialect is how the records of a CSV file are written.
type dialect struct {
	delimiter rune // between columns
	marks     marks
	skip      int // bytes before the first record: a line "sep=;" and comments
	before    int // lines of them
	comments  int // lines of comments of these
	// commented is where in the file the last comment begins, after its mark: its line may be the header.
	commented int
	mark      string // of that comment
	top       int    // where the comments begin
}

// withHeaderBehindMark returns the dialect of a file whose last comment before the first record is the header.
func (d dialect) withHeaderBehindMark() dialect {
	d.skip, d.before, d.comments = d.commented, d.before-1, d.comments-1
	return d
}

// String says what stands between columns and in numbers.
func (d *dialect) String() string {
	s := delimiterName(d.delimiter) + " between columns, "
	if d.delimiter == ' ' {
		s = "blanks between columns, "
	}
	if d.marks.comma {
		s += "a comma before decimals"
	} else {
		s += "a point before decimals"
	}
	if d.marks.thousands != 0 {
		s += fmt.Sprintf(", %q between thousands", d.marks.thousands)
	}
	return s
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
	if size == 0 || size != len(s) || !validDelimiter(r) {
		return 0, fmt.Errorf("delimiter %q: want one character, such as ; or |, or the word tab", s)
	}
	return r, nil
}

func validDelimiter(r rune) bool {
	digit := r >= '0' && r <= '9'
	return r > 0 && r != '"' && r != '\r' && r != '\n' && r != '.' && r != '-' && !digit && r != utf8.RuneError
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
	d.marks.thousands = o.Thousands
	switch {
	case o.Decimal != "":
		d.marks.comma, err = ParseDecimal(o.Decimal)
	case o.Thousands == ',' || o.Thousands == '.':
		d.marks.comma = o.Thousands == '.'
	case d.delimiter != ',':
		d.marks.comma, err = sniffComma(head, all, &d, o)
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
	numbers := 0
	for i := 1; i < len(record); i++ {
		if !aboveNumbers(rest, i, d.marks) {
			continue
		}
		if numbers++; !isMissing(record[i]) && !isFieldNumber(record[i], d.marks) {
			return false
		}
	}
	return numbers > 0
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

// records returns the first records of a file that begins with head.
func (d *dialect) records(head []byte, all bool) (records [][]string) {
	eachRecord(head[d.skip:], all, d.delimiter, func(_ int, record []string) { records = append(records, slices.Clone(record)) })
	return records
}

// eachRecord calls f with the first records of a file, divided by delimiter, and their
// lines. It leaves out the last record, which head may have a part of only, unless it is the
// first. broken: a record was not well-formed.
func eachRecord(head []byte, all bool, delimiter rune, f func(line int, record []string)) (broken bool) {
	r := csv.NewReader(bytes.NewReader(head))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = delimiter, -1, true, delimiter != '\t'
	for n := range sniffRecords {
		record, err := r.Read()
		if err != nil {
			return !errors.Is(err, io.EOF) && (all || n == 0)
		}
		if cut := !all && int(r.InputOffset()) >= len(head); cut && n > 0 {
			return false
		}
		if len(record) > 1 || !isBlank(record) {
			line, _ := r.FieldPos(0)
			f(line, record)
		}
	}
	return false
}
