package read

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// delimiterCount counts the fields of the first records of a file under one delimiter.
type delimiterCount struct {
	delimiter     rune
	first, widest int  // fields of the first record, and of the one with most
	even          bool // every record has as many, and is well formed
	full, numbers int  // fields with a value, and how many of them look like numbers
}

func newDelimiterCount(head []byte, all bool, delimiter rune, comma bool) (t delimiterCount) {
	comma = comma || delimiter != ','
	records, _, broken := firstRecords(head, all, delimiter)
	t = delimiterCount{delimiter: delimiter, even: !broken}
	for _, record := range records {
		if delimiter == ' ' { // at the end of a line it delimits nothing
			record = record[:filled(record)]
		}
		if t.widest == 0 {
			t.first = len(record)
		}
		t.even = t.even && len(record) == t.first
		t.widest = max(t.widest, len(record))
		for _, field := range record {
			if numbers.IsMissing(field) {
				continue
			}
			t.full++
			if numbers.Is(field) || comma && strings.Count(field, ",") == 1 && !strings.HasSuffix(field, ",") && numbers.HasMarks(field) {
				t.numbers++
			}
		}
	}
	return t
}

// better reports whether a greater share of t's fields than of u's are numbers; among equals
// the one whose records have equal lengths is better.
func (t *delimiterCount) better(u *delimiterCount) bool {
	a, b := t.numbers*max(u.full, 1), u.numbers*max(t.full, 1)
	return a > b || a == b && t.even && !u.even
}

// sniffDelimiter guesses the delimiter: of those that divide the first line into several
// fields, the best one, and a blank if it divides all lines evenly and no other does as well. comma: decimals
// are known to follow a comma.
func sniffDelimiter(head []byte, all, comma bool) (rune, error) {
	blank := newDelimiterCount(head, all, ' ', comma)
	isBlank := blank.even && blank.first > 1 && 2*blank.numbers >= blank.full
	var found, wide []delimiterCount
	for _, delimiter := range delimiters {
		t := newDelimiterCount(head, all, delimiter, comma)
		if t.first > 1 {
			found = append(found, t)
		}
		if t.widest > 1 {
			wide = append(wide, t)
		}
	}
	if len(found) == 0 {
		found = wide
	}
	switch {
	case len(found) == 0 && isBlank:
		return ' ', nil
	case len(found) == 0:
		return ',', nil // one column
	}
	best := found[0]
	for _, t := range found[1:] {
		if t.better(&best) {
			best = t
		}
	}
	if isBlank && blank.numbers*max(best.full, 1) > best.numbers*blank.full {
		if !best.even {
			return ' ', nil
		}
		found = append(found, blank)
		best = blank
	}
	for _, t := range found {
		if t.delimiter != best.delimiter && (!best.better(&t) || best.delimiter == ' ' && t.even) {
			var ways []dataset.Way
			for _, r := range []rune{best.delimiter, t.delimiter} {
				ways = append(ways, oneWay("--delimiter", strings.Trim(delimiterName(r), `"`), "%s between columns", delimiterName(r)))
			}
			return 0, &dataset.WaysError{Text: errtext.Sprintf("line 1: the separator of columns may be %s or %s; give it with {delimiter}",
				delimiterName(best.delimiter), delimiterName(t.delimiter)), Ways: ways}
		}
	}
	return best.delimiter, nil
}

// example is a field, with its line and column.
type example struct {
	field        string
	line, column int
}

func (e *example) keep(field string, line, column int) {
	if e.field == "" {
		*e = example{field, line, column}
	}
}

// first keeps the example that comes first in the file.
func (e *example) first(other *example) {
	if other.field != "" && (e.field == "" || other.line < e.line) {
		*e = *other
	}
}

// decimals are the first numbers of a column with a decimal comma, and with a point.
type decimals struct {
	comma, point example
	text         bool // a field is no number, however its marks are read
}

func (d *decimals) look(field string, line, column int) {
	switch commas := strings.Count(field, ","); {
	case strings.Contains(field, "."):
		if commas == 0 && numbers.Is(field) {
			d.point.keep(field, line, column)
		}
	case commas == 1 && numbers.Is(strings.Replace(field, ",", ".", 1)):
		d.comma.keep(field, line, column)
	}
	d.text = d.text || !numbers.HasMarks(field) && !numbers.IsMissing(field) && !numbers.Is(field)
}

// sniffComma guesses whether the decimal separator is a comma: a number of the first records has a
// decimal comma and none has a point. The first record, which may be a header, counts only
// if it is the only one. Columns with texts count only if no other has a mark.
func sniffComma(head []byte, all bool, d *dialect) (bool, error) {
	var columns []decimals
	records, lines, _ := firstRecords(head, all, d.delimiter)
	for n, record := range records {
		if n == 0 && len(records) > 1 {
			continue
		}
		if more := len(record) - len(columns); more > 0 {
			columns = append(slices.Grow(columns, more), make([]decimals, more)...)
		}
		for i, field := range record {
			columns[i].look(field, lines[n], i)
		}
	}
	marked := func(c decimals) bool { return c.comma.field != "" || c.point.field != "" }
	if !slices.ContainsFunc(columns, marked) {
		return false, nil
	}
	var found, rest decimals
	for i := range columns {
		c, into := &columns[i], &found
		if c.text {
			into = &rest
		}
		into.comma.first(&c.comma)
		into.point.first(&c.point)
	}
	if found.comma.field == "" && found.point.field == "" { // numbers as names
		return rest.comma.field != "" && rest.point.field == "", nil
	}
	comma, point := found.comma, found.point
	if comma.field != "" && point.field != "" {
		return false, &dataset.WaysError{Text: errtext.Sprintf("%q (line %d, column %d) has a comma, but %q (line %d, column %d) has a point (columns counted from 0): "+
			"{decimal=,} or {decimal=.} gives the decimal separator, {thousands=,} or {thousands=.} the thousands separator",
			comma.field, comma.line+d.before, comma.column, point.field, point.line+d.before, point.column), Ways: []dataset.Way{
			oneWay("--decimal", ",", "the decimal separator is a comma"), oneWay("--decimal", ".", "the decimal separator is a point"),
			oneWay("--thousands", ",", "the thousands separator is a comma"), oneWay("--thousands", ".", "the thousands separator is a point"),
		}}
	}
	return comma.field != "", nil
}

// sniffDialect guesses the dialect of a file that begins with head, except for what o
// gives; all: head is the whole file.
func sniffDialect(head []byte, all bool, o *OpenOptions) (d dialect, err error) {
	if d.delimiter, d.skip = sepLine(head); d.skip > 0 {
		d.before = 1
	}
	switch {
	case o.CSV.Delimiter != 0:
		d.delimiter = o.CSV.Delimiter
	case o.set.tabs && bytes.IndexByte(head, '\t') >= 0:
		d.delimiter = '\t'
	}
	d.skipComments(head)
	head = head[d.skip:]
	if d.delimiter == 0 {
		if d.delimiter, err = sniffDelimiter(head, all, o.CSV.Decimal == ","); err != nil {
			return d, err
		}
	}
	d.marks.Thousands = o.CSV.Thousands
	switch {
	case o.CSV.Decimal != "":
		d.marks.Comma, err = ParseDecimal(o.CSV.Decimal)
	case o.CSV.Thousands == ',' || o.CSV.Thousands == '.':
		d.marks.Comma = o.CSV.Thousands == '.'
	case d.delimiter != ',':
		d.marks.Comma, err = sniffComma(head, all, &d)
	}
	return d, err
}

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
		_, name, _ := strings.Cut(string(text), mark)
		found.commented = at - 1 - len(strings.TrimLeft(name, mark+" "))
		found.mark, found.skip, found.before, found.comments = mark, at, line, found.comments+1
	}
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
