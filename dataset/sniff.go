package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// delimiterCount counts the fields of the first records of a file under one delimiter.
type delimiterCount struct {
	delimiter     rune
	first, widest int  // fields of the first record, and of the one with most
	even          bool // every record has as many, and is well formed
	full, numbers int  // fields with a value, and how many of them look like numbers
	comma         bool // decimals may follow a comma
}

func newDelimiterCount(head []byte, all bool, delimiter rune, comma bool) (t delimiterCount) {
	t = delimiterCount{delimiter: delimiter, even: true, comma: comma || delimiter != ','}
	broken := eachRecord(head, all, delimiter, func(_ int, record []string) {
		if delimiter == ' ' { // at the end of a line it delimits nothing
			record = record[:filled(record)]
		}
		if t.widest == 0 {
			t.first = len(record)
		}
		t.even = t.even && len(record) == t.first
		t.widest = max(t.widest, len(record))
		for _, field := range record {
			t.count(field)
		}
	})
	t.even = t.even && !broken
	return t
}

func (t *delimiterCount) count(field string) {
	if isMissing(field) {
		return
	}
	t.full++
	if isNumber(field) || t.comma && strings.Count(field, ",") == 1 && !strings.HasSuffix(field, ",") && marked(field) {
		t.numbers++
	}
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
	found := delimiterCounts(head, all, comma, func(t *delimiterCount) bool { return t.first > 1 })
	if len(found) == 0 {
		found = delimiterCounts(head, all, comma, func(t *delimiterCount) bool { return t.widest > 1 })
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
			var ways []Way
			for _, r := range []rune{best.delimiter, t.delimiter} {
				ways = append(ways, oneWay("--delimiter", strings.Trim(delimiterName(r), `"`), "%s between columns", delimiterName(r)))
			}
			return 0, &WaysError{fmt.Sprintf("line 1: the separator of columns may be %s or %s; give it with --delimiter",
				delimiterName(best.delimiter), delimiterName(t.delimiter)), ways}
		}
	}
	return best.delimiter, nil
}

// delimiterCounts lists the counts under each delimiter for which wanted is true.
func delimiterCounts(head []byte, all, comma bool, wanted func(*delimiterCount) bool) (found []delimiterCount) {
	for _, delimiter := range delimiters {
		if t := newDelimiterCount(head, all, delimiter, comma); wanted(&t) {
			found = append(found, t)
		}
	}
	return found
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
		if commas == 0 && isNumber(field) {
			d.point.keep(field, line, column)
		}
	case commas == 1 && isNumber(strings.Replace(field, ",", ".", 1)):
		d.comma.keep(field, line, column)
	}
	d.text = d.text || !marked(field) && !isMissing(field) && !isNumber(field)
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
	if o.Header == HeaderNo || o.Header == HeaderAuto && slices.ContainsFunc(names, marked) {
		names = nil
	}
	uses := make([]columnUse, len(first))
	set := func(use columnUse, columns []int) {
		for _, i := range columns {
			uses[i] = use
		}
	}
	classes := o.Labels.Kind == Class && !o.NoLabels
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
	var header []string
	records := 0
	look := func(line int, record []string) {
		if more := len(record) - len(columns); more > 0 {
			columns = append(slices.Grow(columns, more), make([]decimals, more)...)
		}
		for i, field := range record {
			columns[i].look(field, line, i)
		}
	}
	eachRecord(head, all, d.delimiter, func(line int, record []string) {
		if records++; records == 1 {
			look(line, record)
			header = slices.Clone(record)
			return
		}
		if records == 2 {
			clear(columns)
		}
		look(line, record)
	})
	marked := func(c decimals) bool { return c.comma.field != "" || c.point.field != "" }
	if !slices.ContainsFunc(columns, marked) {
		return false, nil
	}
	uses := o.uses(header)
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
		return false, &WaysError{fmt.Sprintf("%q (line %d, column %d) has a comma, but %q (line %d, column %d) has a point (columns counted from 0): "+
			"--decimal , or --decimal . gives the decimal separator, --thousands , or --thousands . the thousands separator",
			comma.field, comma.line+d.before, comma.column, point.field, point.line+d.before, point.column), []Way{
			oneWay("--decimal", ",", "the decimal separator is a comma"), oneWay("--decimal", ".", "the decimal separator is a point"),
			oneWay("--thousands", ",", "the thousands separator is a comma"), oneWay("--thousands", ".", "the thousands separator is a point"),
		}}
	}
	return comma.field != "", nil
}
