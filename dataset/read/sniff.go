package read

import (
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

// columnUse says what the fields of a column are read as.
type columnUse uint8

const (
	asNumber columnUse = iota
	asText             // names, classes, groups, levels
	unread
)

// uses says what the columns of a file are read as, by the flags and by the model; first is the first record.
func (o *OpenOptions) uses(first []string) []columnUse {
	names := make([]string, len(first))
	for i, name := range first {
		names[i] = strings.TrimSpace(name)
	}
	if o.Header == dataset.HeaderNo || o.Header == dataset.HeaderAuto && slices.ContainsFunc(names, numbers.HasMarks) {
		names = nil
	}
	uses := make([]columnUse, len(first))
	set := func(use columnUse, columns []int) {
		for _, i := range columns {
			uses[i] = use
		}
	}
	classes := o.Labels.Kind == dataset.Class && !o.NoLabels
	if c, err := chooseColumns(names, len(first), o); err == nil {
		for i := range uses {
			uses[i] = unread
		}
		set(asText, slices.Concat(c.features, c.labels, slices.DeleteFunc([]int{c.rowName, c.group}, func(i int) bool { return i < 0 })))
		set(asNumber, c.numeric(classes))
		return uses
	}
	texts := slices.Concat(o.Categories, []string{o.RowNames, o.Beside.Groups})
	if classes {
		texts = append(texts, o.Labels.Columns...)
	}
	for i, items := range [][]string{texts, o.Drop} {
		for _, item := range items {
			if found, err := findColumns(names, len(first), []string{item}); item != "" && err == nil {
				set([]columnUse{asText, unread}[i], found)
			}
		}
	}
	return uses
}

// sniffComma guesses whether the decimal separator is a comma: a number of the first records has a
// decimal comma and none has a point. The first record, which may be a header, counts only
// if it is the only one. Columns with texts, and columns that are read as texts, count
// only if no other has a mark. Columns that are not read do not count.
func sniffComma(head []byte, all bool, d *dialect, o *OpenOptions) (bool, error) {
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
	uses := o.uses(records[0])
	var found, rest decimals
	for i := range columns {
		c, into := &columns[i], &found
		switch {
		case i < len(uses) && uses[i] == unread:
			continue
		case c.text || i < len(uses) && uses[i] == asText:
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

// findHeader decides whether the first record is a header, or the last comment before it, and returns
// the header or the first row.
func (s *csvSource) findHeader(head []byte, first []string, rest [][]string, o *OpenOptions) ([]string, error) {
	d := &s.dialect
	if o.schema != nil && o.Header == dataset.HeaderAuto && o.known.inNumbers(first, d.marks) {
		return nil, &dataset.WaysError{Text: errtext.Sprintf("the first line has only numbers, among them every feature name of the model: give {header=yes} if it is a header, {header=no} if it is a row"), Ways: headerWays}
	}
	auto := *o
	auto.Header = dataset.HeaderAuto
	header, err := hasHeader(first, rest, d.marks, &auto)
	if d.comments > 0 && o.Header != dataset.HeaderNo && !(header && err == nil) {
		behind := *d // as if the header stood after the comments
		behind.skip, behind.before, behind.comments = d.commented, d.before-1, d.comments-1
		names, _, _ := firstRecords(head[behind.skip:d.skip], true, d.delimiter)
		width, _ := realColumns(append(rest, first))
		if len(names) == 1 && filled(names[0]) == width {
			if named, err := hasHeader(names[0], append([][]string{first}, rest...), d.marks, o); named && err == nil {
				*d, s.header, s.mark = behind, true, d.mark
				return names[0], nil
			}
		}
	}
	if o.Header != dataset.HeaderAuto {
		header, err = o.Header == dataset.HeaderYes, nil
	}
	if d.comments > 0 && !header && err == nil {
		if like, row, ok := d.atRowLike(head, append([][]string{first}, rest...)); ok && o.Header == dataset.HeaderNo {
			*d, first = like, row
		} else if ok {
			return nil, &dataset.WaysError{Text: errtext.Sprintf("line %d begins with %s like a comment, but has fields and numbers like the lines below: "+
				"{header=no} reads the line as a row, {header=yes} skips it and reads the first line without %s as the header. If it is a comment and the file has no header, remove the line",
				like.before+1, d.mark, d.mark), Ways: commentWays}
		}
	}
	if s.header = header; header {
		if name := strings.TrimLeft(first[0], " "); commentMark(name) != "" && len(name) > 1 {
			s.mark = commentMark(name)
			first[0] = strings.TrimLeft(name, s.mark+" ")
		}
	}
	return first, err
}

// hasHeader reports whether the first line of a file is a header: a line without numbers, with a name that a flag or
// the features of the model have, or that counts the columns. A usual name, or a label of the model, beside
// numbers above numbers makes it one only if namedHeader says so. A line that could also be a row is an error; rest has
// records after it.
func hasHeader(first []string, rest [][]string, m numbers.Marks, o *OpenOptions) (bool, error) {
	if o.Header != dataset.HeaderAuto {
		return o.Header == dataset.HeaderYes, nil
	}
	if o.Images != "" && slices.ContainsFunc(first, isImageName) {
		return false, nil
	}
	c := csvColumns{prefixes: o.LabelPrefixes(), known: o.known}
	listed := slices.Concat([]string{o.RowNames}, o.Labels.Columns, o.FeatureColumns, o.Drop, o.Categories, o.Beside.names())
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
	if at := textAboveNumbers(first, rest, m); at >= 0 {
		return fmt.Sprintf("the first line has the text %.40q above numbers and could be a header", strings.TrimSpace(first[at]))
	}
	if !distinctFields(first) {
		return ""
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
	return &dataset.WaysError{Text: errtext.Sprintf("%s: give {header=yes} if it is a header, {header=no} if it is a row", doubt), Ways: headerWays}
}

// namedHeader reports whether a first record with numbers is a header because of its fields in the columns usual, which
// are usual names or labels of the model. It is an error if these could also be classes of a row; false without an
// error: they are no reason to take it for a header.
func namedHeader(first []string, rest [][]string, usual []int, m numbers.Marks, o *OpenOptions) (bool, error) {
	s := o.schema
	again := slices.ContainsFunc(usual, func(i int) bool { // a column has the text of the first line once more
		field := strings.TrimSpace(first[i])
		return slices.ContainsFunc(rest, func(record []string) bool { return i < len(record) && strings.TrimSpace(record[i]) == field })
	})
	if again || byNumber(o.Labels.Columns) || s != nil && len(s.LabelColumns.Positions) > 0 {
		return false, nil
	}
	above, named := 0, 0 // numbers above numbers; names of features of the model
	for i, field := range first {
		if numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			above++
			if o.known.feature(strings.TrimSpace(field)) {
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
	return false, headerError(fmt.Sprintf("the first line has numbers and %.40q, which may be the name of a column or a class", strings.TrimSpace(first[usual[0]])))
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

// textAboveNumbers returns the first column with text in first and numbers only in rest; -1: none.
func textAboveNumbers(first []string, rest [][]string, m numbers.Marks) int {
	for i, field := range first {
		if !numbers.IsMissing(field) && !numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			return i
		}
	}
	return -1
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

// distinctFields reports whether the fields of a record differ and none is empty, but for the last ones.
func distinctFields(record []string) bool {
	seen := make(map[string]bool, len(record))
	for _, field := range record[:filled(record)] {
		if field = strings.TrimSpace(field); field == "" || seen[field] {
			return false
		}
		seen[field] = true
	}
	return true
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
