package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// parse reads row n from a record, which r has just read.
func (s *csvSource) parse(row *Row, n int, record []string, r *csvRecords) error {
	row.Number, row.line, row.Values, row.Labels = n, r.line(0), row.Values[:0], row.Labels[:0]
	for _, i := range s.columns.features {
		if s.columns.categories != nil && s.columns.categories[i] != nil {
			if err := s.parseCategory(row, s.columns.categories[i], record, r); err != nil {
				return err
			}
			continue
		}
		v, reason := s.number(record[i], n, ofFeature)
		if reason != "" {
			return s.fieldError(n, i, reason, record, r)
		}
		row.Values = append(row.Values, v)
	}
	if s.columns.rowName >= 0 {
		row.Name = record[s.columns.rowName]
		if err := notUTF8("the name of the sample", row.Name); err != nil {
			return s.textError(n, s.columns.rowName, err, r)
		}
	}
	for _, i := range s.columns.labels {
		if s.classes {
			row.text = s.dialect.marks.text(record[i])
			if err := notUTF8("the class of the sample", row.text); err != nil {
				return s.textError(n, i, err, r)
			}
			continue
		}
		v, reason := s.number(record[i], n, ofLabel)
		if reason != "" {
			return s.fieldError(n, i, reason, record, r)
		}
		row.Labels = append(row.Labels, v)
	}
	return s.parseBeside(row, record, r)
}

// number reads a field of a row. A missing value is NaN if Missing allows it; else it is refused, and
// the reason ends with advice.
func (s *csvSource) number(field string, row int, what valueOf) (v float64, reason string) {
	if !isMissing(field) {
		v, reason = s.dialect.marks.parse(field)
		if s.proof.needed && (len(field) > 4 || v != math.Floor(v)) {
			s.proof.look(field, s.dialect.marks.decimal())
		}
		return v, reason
	}
	if !s.missing.refuses() {
		s.info.missingWords.add(field, row)
		return nan, ""
	}
	if _, reason = parseNumber(field); reason == "" || strings.TrimSpace(field) != "" {
		reason = fmt.Sprintf("%.40q is a missing value", strings.TrimSpace(field))
	}
	return 0, reason + s.missing.hint(what)
}

func (s *csvSource) fieldError(n, column int, reason string, record []string, r *csvRecords) error {
	if n == 0 && isMissing(record[column]) && s.hasNone(column) {
		reason = "the column has no values; " + Option{"drop", listFlag("drop", flagColumn(s.names, column)).Value}.String() + " leaves it out"
	} else if n == 0 && s.header && s.textOnly(record) {
		reason += "; this line has no numbers: is it a second header line? A file may have only one header line"
	} else if field := record[column]; !isMissing(field) && !marked(field) && (n == 0 || !strings.ContainsAny(field, "0123456789")) && !respelt(field) {
		reason += s.textHint(column)
	}
	ways := s.dialect.marks.ways(record[column])
	if len(ways) > 0 {
		fit, conflict := s.fitting(ways, s.columns.numeric(s.classes))
		if plain, ok := strings.CutSuffix(reason, s.dialect.marks.advice(record[column])); ok && len(fit) < len(ways) {
			reason = plain
			for _, way := range fit {
				reason += "; " + way.What
			}
			if len(fit) == 0 {
				reason += conflict
			}
		}
		ways = fit
	}
	e := s.columnError(n, column, reason, r)
	if len(ways) > 0 {
		e.Err = &WaysError{reason, ways}
	}
	return e
}

// hasNone reports whether a column has no value in any of several rows.
func (s *csvSource) hasNone(column int) bool {
	rows := 0
	err := s.eachRecord(func(_ int, record []string, _ *csvRecords) error {
		if rows++; !isMissing(record[column]) {
			return errFound
		}
		return nil
	})
	return err == nil && rows > 1
}

// columnError is an error about a field, without advice.
func (s *csvSource) columnError(n, column int, reason string, r *csvRecords) *RowError {
	return &RowError{
		File: s.info.File, Row: n, Line: r.line(column), Column: column, Kind: "column",
		Name: nameAt(s.names, column), Reason: reason,
	}
}

// textError is an error about a field that is no text.
func (s *csvSource) textError(n, column int, err error, r *csvRecords) error {
	e := s.columnError(n, column, err.Error(), r)
	e.Err = err
	return e
}

// targetNote says which columns labels are read from, or would be.
func (c *csvColumns) targetNote(names []string, o *LabelOptions) string {
	labels, read := c.labels, "read from"
	if len(labels) == 0 {
		labels, read = c.passed, "not read:"
	}
	what := o.target(len(labels))
	switch {
	case len(labels) == 0:
		return "no label columns found: all remaining columns are features"
	case len(labels) == 1 && names != nil:
		return fmt.Sprintf("%s %s column %d, %q", what, read, labels[0], names[labels[0]])
	case len(labels) == 1:
		return fmt.Sprintf("%s %s column %d", what, read, labels[0])
	}
	return fmt.Sprintf("%s %s %s", what, read, nameList(names, labels))
}

// target is what notes call n labels, with the verb: "the class is", "5 labels are".
func (o *LabelOptions) target(n int) string {
	switch {
	case o.single():
		return fmt.Sprintf("the %s is", o.Kind)
	case n == 1:
		return "the label is"
	}
	return fmt.Sprintf("%d labels are", n)
}

// numeric lists the columns that numbers are read from; but for categories; classes: the label is none.
func (c *csvColumns) numeric(classes bool) []int {
	all := slices.Clone(c.interval)
	for _, i := range c.features {
		if c.categories == nil || c.categories[i] == nil {
			all = append(all, i)
		}
	}
	if !classes {
		all = append(all, c.labels...)
	}
	if c.value >= 0 {
		all = append(all, c.value)
	}
	return all
}

// textHint says what to do about a column of text.
func (s *csvSource) textHint(column int) string {
	if several := len(s.columns.labels) > 1; slices.Contains(s.columns.labels, column) && several {
		return "; " + Option{"drop", listFlag("drop", flagColumn(s.names, column)).Value}.String() + " leaves the column out if it is not a label, --label-columns lists the labels"
	} else if slices.Contains(s.columns.labels, column) {
		return "; --labels class reads classes"
	}
	return ": --drop leaves the column out, --row-names reads it as names of samples, --categories makes a feature of each value; dataset inspect describes all columns"
}

// textOnly reports whether a record has no number among features and labels.
func (s *csvSource) textOnly(record []string) bool {
	for _, i := range append(append([]int(nil), s.columns.features...), s.columns.labels...) {
		if _, reason := s.dialect.marks.parse(record[i]); reason == "" {
			return false
		}
	}
	return true
}
