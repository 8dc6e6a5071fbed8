package read

import (
	"errors"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// This file has the errors about the contents of a table, whose advice may need a look at all of its rows.

// hasNone reports whether a column has no value in any of several rows.
func (t *Table) hasNone(column int) bool {
	rows := 0
	err := t.each(func(_ int, record []string, r *csvRecords) error {
		if rows++; !isMissing(record, r, column) {
			return errFound
		}
		return nil
	})
	return err == nil && rows > 1
}

// columnError is an error about a field, without advice.
func (t *Table) columnError(n, column int, reason errtext.Text, r *csvRecords) *dataset.RowError {
	return &dataset.RowError{
		File: t.File, Row: n, Line: r.lineOf(column), Column: column, Kind: "column",
		Name: dataset.NameAt(t.names, column), Reason: reason,
	}
}

// textError is an error about a field that is no text.
func (t *Table) textError(n, column int, err error, r *csvRecords) error {
	e := t.columnError(n, column, errtext.Within(err.Error(), err), r)
	e.Err = err
	return e
}

// inColumn adds the column to an error about a row.
func (t *Table) inColumn(err error, i int) error {
	var at *dataset.RowError
	if errors.As(err, &at) {
		at.Column, at.Kind, at.Name = i, "column", dataset.NameAt(t.names, i)
	}
	return err
}

// Fitting returns the ways with which all fields of the given columns are numbers that are numbers now. conflict is for
// an error if there is none: it names a field that is no number then.
func (t *Table) Fitting(ways []dataset.Way, columns []int) (fit []dataset.Way, conflict errtext.Text) {
	for _, way := range ways {
		other := numbers.MarksOf(&way)
		e := example{}
		err := t.each(func(_ int, record []string, r *csvRecords) error {
			for _, i := range columns {
				if field := strings.TrimSpace(record[i]); !numbers.IsMissing(field) && numbers.IsField(field, t.dialect.marks) &&
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

// CheckMarks reads the numbers of columns again if proof says that every mark in them may separate thousands. It
// refuses the file if two ways to read it are left: numbers of a column have no mark, or the mark is a comma.
func (t *Table) CheckMarks(columns []int, proof numbers.DecimalsProof) error {
	if !proof.Needed || !proof.Doubt {
		return nil
	}
	mark, found := t.dialect.marks.Decimal(), map[int]*columnMarks{}
	err := t.each(func(_ int, record []string, r *csvRecords) error {
		for _, i := range columns {
			field := strings.TrimSpace(record[i])
			if field == "" || numbers.IsMissing(field) {
				continue
			}
			c := found[i]
			if c == nil {
				c = new(columnMarks)
				found[i] = c
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
	for _, i := range columns {
		c := found[i]
		if c == nil || c.proved || c.marked.field == "" || c.whole.field == "" && mark == '.' {
			continue
		}
		return t.thousandsError(c)
	}
	return nil
}

func (t *Table) thousandsError(c *columnMarks) error {
	m, at := t.dialect.marks, c.marked
	grouped := numbers.Marks{Thousands: rune(m.Decimal()), Comma: !m.Comma}
	thousand, _ := grouped.ParseGrouped(at.field)
	decimal, _ := m.ParseGrouped(at.field)
	reason := errtext.Sprintf("%q may mean %v or %v: %v reads %v, %v reads %v", at.field, thousand, decimal, grouped,
		thousand, m, decimal)
	if c.whole.field != "" {
		reason += errtext.Sprintf("; %q (line %d) has no separator", c.whole.field, c.whole.line)
	}
	return &dataset.RowError{
		File: t.File, Row: -1, Line: at.line, Column: at.column, Kind: "column", Name: dataset.NameAt(t.names,
			at.column), Reason: reason, Err: &dataset.WaysError{Text: reason, Ways: []dataset.Way{
			oneWay("--thousands", string(m.Decimal()), "%q is %v", at.field, thousand), oneWay("--decimal", string(m.Decimal()),
				"%q is %v", at.field, decimal),
		}},
	}
}
