package read

import (
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// This file has the errors about the contents of a CSV file, whose advice may need a look at all of its rows.

// fieldError is an error about a field of row n, with advice.
func (s *csvSource) fieldError(n, column int, reason errtext.Text, record []string, r *csvRecords) error {
	field, m, c := record[column], s.dialect.marks, &s.columns
	drop := dataset.Option{Name: "drop", Value: dataset.ListFlag("drop", flagColumn(s.names, column)).Value}
	isNumber := func(i int) bool { return numbers.IsField(record[i], m) }
	switch label := slices.Contains(c.labels, column); {
	case n == 0 && numbers.IsMissing(field) && s.hasNone(column):
		reason = errtext.Sprintf("the column has no values; %s leaves it out", drop)
	case n == 0 && s.header && s.table == nil && !slices.ContainsFunc(c.features, isNumber) &&
		!slices.ContainsFunc(c.labels, isNumber):
		reason += "; this line has no numbers: is it a second header line? A file may have only one header line"
	// it is almost a number
	case numbers.IsMissing(field), numbers.HasMarks(field), n > 0 && strings.ContainsAny(field, "0123456789"):
	case label && len(c.labels) > 1:
		reason += errtext.Sprintf("; %s leaves the column out if it is not a label, {label-columns} lists the labels", drop)
	case label:
		reason += errtext.Sprintf("; {labels=class} reads classes")
	default:
		reason += errtext.Sprintf(": {drop} leaves the column out, {row-names} reads it as names of samples, {categories} " +
			"makes a feature of each value; dataset inspect describes all columns")
	}
	ways := m.Ways(field)
	if len(ways) > 0 {
		fit, conflict := s.fitting(ways, c.numberColumns(s.classes))
		if plain, ok := strings.CutSuffix(string(reason), string(m.Advice(field))); ok && len(fit) < len(ways) {
			reason = errtext.Text(plain)
			for _, way := range fit {
				reason += "; " + way.Text()
			}
			if len(fit) == 0 {
				reason += conflict
			}
		}
		ways = fit
	}
	e := s.columnError(n, column, reason, r)
	if len(ways) > 0 {
		e.Err = &dataset.WaysError{Text: reason, Ways: ways}
	}
	return e
}

// hasNone reports whether a column has no value in any of several rows.
func (s *csvSource) hasNone(column int) bool {
	rows := 0
	err := s.eachRecord(func(_ int, record []string, r *csvRecords) error {
		if rows++; !isMissing(record, r, column) {
			return errFound
		}
		return nil
	})
	return err == nil && rows > 1
}

// columnError is an error about a field, without advice.
func (s *csvSource) columnError(n, column int, reason errtext.Text, r *csvRecords) *dataset.RowError {
	return &dataset.RowError{
		File: s.info.File, Row: n, Line: r.lineOf(column), Column: column, Kind: "column",
		Name: dataset.NameAt(s.names, column), Reason: reason,
	}
}

// textError is an error about a field that is no text.
func (s *csvSource) textError(n, column int, err error, r *csvRecords) error {
	e := s.columnError(n, column, errtext.Within(err.Error(), err), r)
	e.Err = err
	return e
}

// fitting returns the ways with which all fields of the given columns are numbers that are numbers now. conflict is for
// an error if there is none: it names a field that is no number then.
func (s *csvSource) fitting(ways []dataset.Way, columns []int) (fit []dataset.Way, conflict errtext.Text) {
	for _, way := range ways {
		other := numbers.MarksOf(&way)
		e := example{}
		err := s.eachRecord(func(_ int, record []string, r *csvRecords) error {
			for _, i := range columns {
				if field := strings.TrimSpace(record[i]); !numbers.IsMissing(field) && numbers.IsField(field, s.dialect.marks) &&
					!numbers.IsField(field, other) {
					e = example{strings.Clone(field), r.lineOf(i), i}
					return errFound
				}
			}
			return nil
		})
		if err == nil {
			fit = append(fit, way)
		} else if conflict == "" && e.field != "" {
			conflict = errtext.Sprintf("; %s, but then %q (line %d, column %d) is not a number: write all numbers of the file "+
				"with the same separators", way.Text(), e.field, e.line, e.column)
		}
	}
	return fit, conflict
}

// columnMarks are the first numbers of a column with a mark that may be one between thousands, and without marks.
type columnMarks struct {
	marked, whole example
	proved        bool // a number of five digits has no mark
}

// checkMarks reads the file again if every mark may separate thousands. It refuses the file if two ways to
// read it are left: numbers of a column have no mark, or the mark is a comma.
func (s *csvSource) checkMarks() error {
	mark, columns := s.dialect.marks.Decimal(), map[int]*columnMarks{}
	used := s.columns.numberColumns(s.classes)
	err := s.eachRecord(func(_ int, record []string, r *csvRecords) error {
		for _, i := range used {
			field := strings.TrimSpace(record[i])
			if field == "" || numbers.IsMissing(field) {
				continue
			}
			c := columns[i]
			if c == nil {
				c = new(columnMarks)
				columns[i] = c
			}
			switch {
			case numbers.LikeThousands(field, mark):
				c.marked.keep(strings.Clone(field), r.lineOf(i), i)
			case strings.IndexByte(field, mark) < 0:
				c.whole.keep(strings.Clone(field), r.lineOf(i), i)
				c.proved = c.proved || len(strings.TrimLeft(field, "+-")) > 4
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range used {
		c := columns[i]
		if c == nil || c.proved || c.marked.field == "" || c.whole.field == "" && mark == '.' {
			continue
		}
		return s.thousandsError(c)
	}
	return nil
}

func (s *csvSource) thousandsError(c *columnMarks) error {
	m, at := s.dialect.marks, c.marked
	grouped := numbers.Marks{Thousands: rune(m.Decimal()), Comma: !m.Comma}
	thousand, _ := grouped.ParseGrouped(at.field)
	decimal, _ := m.ParseGrouped(at.field)
	reason := errtext.Sprintf("%q may mean %v or %v: %v reads %v, %v reads %v", at.field, thousand, decimal, grouped,
		thousand, m, decimal)
	if c.whole.field != "" {
		reason += errtext.Sprintf("; %q (line %d) has no separator", c.whole.field, c.whole.line)
	}
	return &dataset.RowError{
		File: s.info.File, Row: -1, Line: at.line, Column: at.column, Kind: "column", Name: dataset.NameAt(s.names,
			at.column), Reason: reason, Err: &dataset.WaysError{Text: reason, Ways: []dataset.Way{
			oneWay("--thousands", string(m.Decimal()), "%q is %v", at.field, thousand), oneWay("--decimal", string(m.Decimal()),
				"%q is %v", at.field, decimal),
		}},
	}
}
