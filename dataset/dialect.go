package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dialect is how the records of a CSV file are written.
type dialect struct {
	delimiter rune // between columns
	marks     marks
	skip      int // bytes of a first line "sep=;"
}

// lines returns how many lines stand before the first record.
func (d *dialect) lines() int { return min(d.skip, 1) }

// String describes the dialect where it differs from commas between columns and decimal
// points; else it returns "".
func (d *dialect) String() string {
	var parts []string
	if d.delimiter != ',' {
		parts = append(parts, delimiterName(d.delimiter)+" between columns")
	}
	if d.marks.comma {
		parts = append(parts, "a decimal comma")
	}
	return strings.Join(parts, " and ")
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
	d.delimiter, d.skip = sepLine(head)
	if o.Delimiter != 0 {
		d.delimiter = o.Delimiter
	}
	head = head[d.skip:]
	if d.delimiter == 0 {
		if d.delimiter, err = sniffDelimiter(head, all, o.Decimal == ","); err != nil {
			return d, err
		}
	}
	if o.Decimal != "" {
		d.marks.comma, err = ParseDecimal(o.Decimal)
	} else if d.delimiter != ',' {
		d.marks.comma, err = sniffComma(head, all, &d)
	}
	return d, err
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
