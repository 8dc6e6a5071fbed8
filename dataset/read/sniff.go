package read

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
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
			if numbers.Is(field) || comma && strings.Count(field, ",") == 1 && !strings.HasSuffix(field, ",") &&
				numbers.HasMarks(field) {
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
				ways = append(ways, oneWay("--delimiter", strings.Trim(delimiterName(r), `"`), "%s between columns",
					delimiterName(r)))
			}
			return 0, &dataset.WaysError{Text: errtext.Sprintf(
				"line 1: the separator of columns may be %s or %s; give it with {delimiter}",
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
		return false, &dataset.WaysError{Text: errtext.Sprintf(
			"%q (line %d, column %d) has a comma, but %q (line %d, column %d) has a point (columns counted from 0): "+
				"{decimal=,} or {decimal=.} gives the decimal separator, {thousands=,} or {thousands=.} the thousands separator",
			comma.field, comma.line+d.before, comma.column, point.field, point.line+d.before, point.column), Ways: []dataset.Way{
			oneWay("--decimal", ",", "the decimal separator is a comma"), oneWay("--decimal", ".",
				"the decimal separator is a point"),
			oneWay("--thousands", ",", "the thousands separator is a comma"), oneWay("--thousands", ".",
				"the thousands separator is a point"),
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

// hasHeader reports whether the first line of a file is a header: a line without numbers, with a name that a flag or
// the features of the model have, or that counts the columns. A usual name, or a label of the model, beside
// numbers above numbers makes it one only if namedHeader says so. A line that could also be a row is an error; rest has
// records after it.
func hasHeader(first []string, rest [][]string, m numbers.Marks, o *OpenOptions) (bool, error) {
	if o.CSV.Header != dataset.HeaderAuto {
		return o.CSV.Header == dataset.HeaderYes, nil
	}
	if o.CSV.Images != "" && slices.ContainsFunc(first, isImageName) {
		return false, nil
	}
	c := csvColumns{prefixes: o.Labels.LabelPrefixes(), known: o.set.known}
	listed := slices.Concat([]string{o.CSV.RowNames}, o.Labels.Columns, o.FeatureColumns, o.Drop, o.CSV.Categories,
		o.Beside.names())
	var usual []int // columns with a usual name, or one of a label
	number := false
	for i, field := range first {
		switch field = strings.TrimSpace(field); {
		case numbers.IsField(field, m):
			number = true
		case field == "":
		case slices.Contains(listed, field), c.known.feature(field):
			return true, nil
		case field == "row_name", field == "name", o.Labels.IsTarget(field), c.prefix(field) != "", c.known.label(field):
			usual = append(usual, i)
		}
	}
	if !number {
		return true, nil
	}
	if len(usual) > 0 {
		if header, err := namedHeader(first, rest, usual, m, o); header || err != nil {
			return header, err
		}
	}
	switch counting := counts(first, m); {
	case counting && first[0] == "":
		return true, nil
	case counting:
		return false, headerError("the first line has the numbers 0, 1, ... and may number the columns")
	}
	if doubt := headerDoubt(first, rest, m, listed); doubt != "" {
		return false, headerError(doubt)
	}
	return false, nil
}

// counts reports whether the numbers of a line are 0, 1, 2, ...: the header of a data frame
// without names. Beside other fields two numbers are enough.
func counts(first []string, m numbers.Marks) bool {
	n := 0
	for _, field := range first {
		if !numbers.IsField(field, m) {
			continue
		}
		if field != strconv.Itoa(n) {
			return false
		}
		n++
	}
	return n > 2 || n == 2 && len(first) > 2
}

// headerDoubt says why a first record with numbers, which is read as a row, could be a header; empty: it is a
// row. rest has records after it, and listed the columns that flags name.
func headerDoubt(first []string, rest [][]string, m numbers.Marks, listed []string) string {
	if len(rest) == 0 {
		return ""
	}
	for i, field := range first {
		if !numbers.IsMissing(field) && !numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			return fmt.Sprintf("the first line has the text %.40q above numbers and could be a header", strings.TrimSpace(field))
		}
	}
	seen := make(map[string]bool, len(first)) // a header's fields differ and none is empty, but for the last ones
	for _, field := range first[:filled(first)] {
		if field = strings.TrimSpace(field); field == "" || seen[field] {
			return ""
		}
		seen[field] = true
	}
	far := farFromRest(first, rest, m)
	switch named := namedByNumber(first, listed); {
	case named > 1 || named == 1 && far:
		return "the first line has the numbers by which options name columns, and could be a header"
	case far:
		return "the first line has numbers far from the numbers below, and could be a header"
	case evenlySpaced(first) && !slices.ContainsFunc(rest, evenlySpaced):
		return "only the first line has evenly spaced whole numbers, and could be a header"
	}
	return ""
}

// headerError is the error for a first line that could be a header or a row.
func headerError(doubt string) error {
	return &dataset.WaysError{Text: errtext.Sprintf("%s: give {header=yes} if it is a header, {header=no} if it is a row",
		doubt), Ways: headerWays}
}

// namedHeader reports whether a first record with numbers is a header because of its fields in the columns usual, which
// are usual names or labels of the model. It is an error if these could also be classes of a row; false without an
// error: they are no reason to take it for a header.
func namedHeader(first []string, rest [][]string, usual []int, m numbers.Marks, o *OpenOptions) (bool, error) {
	s := o.set.schema
	again := slices.ContainsFunc(usual, func(i int) bool { // a column has the text of the first line once more
		field := strings.TrimSpace(first[i])
		return slices.ContainsFunc(rest, func(record []string) bool {
			return i < len(record) && strings.TrimSpace(record[i]) == field
		})
	})
	if again || byNumber(o.Labels.Columns) || s != nil && len(s.LabelColumns.Positions) > 0 {
		return false, nil
	}
	above, named := 0, 0 // numbers above numbers; names of features of the model
	for i, field := range first {
		if numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			above++
			if o.set.known.feature(strings.TrimSpace(field)) {
				named++
			}
		}
	}
	switch {
	case above == named: // also if there are none
		return true, nil
	case slices.ContainsFunc(usual, func(i int) bool { return aboveNumbers(rest, i, m) }):
		return true, nil
	case counts(first, m) && (above > 2 || first[0] == ""):
		return true, nil
	}
	return false, headerError(fmt.Sprintf("the first line has numbers and %.40q, which may be the name of a column or a "+
		"class", strings.TrimSpace(first[usual[0]])))
}

// byNumber reports whether a list of columns names all of them by numbers.
func byNumber(list []string) bool {
	for _, item := range list {
		from, to, isRange := strings.Cut(item, ":")
		if _, err := strconv.Atoi(from); err != nil {
			return false
		}
		if _, err := strconv.Atoi(to); isRange && err != nil && to != lastColumn {
			return false
		}
	}
	return len(list) > 0
}

// namedByNumber counts the whole numbers that name columns if all of them are fields of first; else it
// returns 0.
func namedByNumber(first, listed []string) (n int) {
	for _, item := range listed {
		for name := range strings.SplitSeq(item, ":") {
			if _, err := strconv.Atoi(name); err != nil {
				continue
			}
			if !slices.ContainsFunc(first, func(field string) bool { return strings.TrimSpace(field) == name }) {
				return 0
			}
			n++
		}
	}
	return n
}

// farFromRest reports whether a third or more of the numbers of first, and more than one of them if there are
// several, are farther from the range of their columns in rest than that range is wide or from 0.
func farFromRest(first []string, rest [][]string, m numbers.Marks) bool {
	compared, far := 0, 0
	for i, field := range first {
		v, reason := m.Parse(field)
		if reason != "" || v != v {
			continue
		}
		low, high, n := math.Inf(1), math.Inf(-1), 0
		for _, record := range rest {
			if i >= len(record) || numbers.IsMissing(record[i]) {
				continue
			}
			if x, reason := m.Parse(record[i]); reason == "" && x == x {
				low, high, n = min(low, x), max(high, x), n+1
			}
		}
		if n < 3 { // the range of so few says little
			continue
		}
		compared++
		if wide := max(high-low, math.Abs(low), math.Abs(high)); v > high+wide || v < low-wide {
			far++
		}
	}
	return far > 0 && 3*far >= compared && (far > 1 || compared == 1)
}

// evenlySpaced reports whether a record has four or more whole numbers and nothing else, each greater than
// the one before by the same.
func evenlySpaced(record []string) bool {
	const least = 4
	record = record[:filled(record)]
	if len(record) < least {
		return false
	}
	var before, step int
	for i, field := range record {
		v, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || i == 1 && v <= before || i > 1 && v-before != step {
			return false
		}
		before, step = v, v-before
	}
	return true
}

// headerWays are the ways to read a first line.
var headerWays = []dataset.Way{oneWay("--header", "yes", "the first line is a header"),
	oneWay("--header", "no", "the first line is a row")}
