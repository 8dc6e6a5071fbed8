package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// csvSource streams rows from a CSV file.
type csvSource struct {
	path     string
	encoding string
	dialect  dialect
	header   bool
	columns  csvColumns
	names    []string // of all columns, from the header
	classes  bool     // the label is text
	mark     string   // of a comment, before the first name of the header
	cut      bool     // empty columns after the last one are left out
	proof    numbers.DecimalsProof
	head     [][]string // the first records behind the first, until the columns are known
	missing  dataset.Missing
	unseen   func(row int, category, level string) // nil: such a level is refused
	info     dataset.Info
}

// begin finds the dialect, the header and the columns, and returns the first record.
func (s *csvSource) begin(in io.Reader, o *OpenOptions) (first []string, err error) {
	b := bufio.NewReaderSize(in, sniffBytes)
	head, err := b.Peek(sniffBytes)
	head, all := bytes.Clone(head), errors.Is(err, io.EOF)
	if s.dialect, err = sniffDialect(head, all, o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	r, err := newCSVRecords(s.info.File, b, &s.dialect)
	if err != nil {
		return nil, err
	}
	if first, err = r.First(); err != nil {
		return nil, err
	}
	var rest [][]string
	if records, _, _ := firstRecords(head[s.dialect.skip:], all, s.dialect.delimiter); len(records) > 1 {
		rest = records[1:]
	}
	s.proof, s.head = numbers.DecimalsProof{Needed: o.CSV.Decimal == "" && o.CSV.Thousands == 0}, rest
	if first, err = s.findHeader(head, first, rest, o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	var width int
	if width, s.cut = realColumns(append(rest, first)); s.cut {
		first = first[:min(width, len(first))]
	}
	if !s.header {
		return first, nil
	}
	s.names = first
	for i, name := range first {
		first[i] = strings.TrimSpace(name)
		what := fmt.Sprintf("line %d: the name of column %d (counted from 0)", r.lineOf(0), i)
		if err := notUTF8(what, first[i]); err != nil {
			return nil, pathError(s.info.File, err)
		}
		if err := dataset.CheckName(first[i]); err != nil {
			return nil, fmt.Errorf("%s: %s %w", s.info.File, what, err)
		}
	}
	return first, nil
}

// eachRecord calls f with each row's number and record.
func (s *csvSource) eachRecord(f func(n int, record []string, r *csvRecords) error) error {
	in, file, err := openText(s.path, s.encoding)
	if err != nil {
		return pathError(s.info.File, err)
	}
	defer file.Close()
	r, err := newCSVRecords(s.info.File, in, &s.dialect)
	if err != nil {
		return err
	}
	if r.from, r.header, r.width, r.cut, r.blank = file, s.header, s.columns.width, s.cut, make([]string, s.columns.width); s.header {
		if _, err := r.First(); err != nil {
			return err
		}
		r.width, r.blank = s.columns.width, make([]string, s.columns.width)
	}
	for n := 0; ; n++ {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(n, record, r); err != nil {
			return err
		}
	}
}

// notes says how the file is read. It knows nothing of the columns yet.
func (s *csvSource) notes() []errtext.Text {
	d, between, before := &s.dialect, "blanks", "a point"
	if d.delimiter != ' ' {
		between = delimiterName(d.delimiter)
	}
	if d.marks.Comma {
		before = "a comma"
	}
	how := errtext.Sprintf("%s between columns, %s before decimals", between, before)
	if d.marks.Thousands != 0 {
		how += errtext.Sprintf(", %q between thousands", d.marks.Thousands)
	}
	notes := append(s.info.Notes, how)
	switch {
	case s.header && s.mark != "":
		notes = append(notes, errtext.Sprintf("line %d is the header, read without its mark %s", d.before+1, s.mark))
	case s.header:
		notes = append(notes, errtext.Sprintf("line %d is the header", d.before+1))
	default:
		notes = append(notes, errtext.Sprintf("no header: line %d is the first row", d.before+1))
	}
	switch {
	case d.comments == 1:
		notes = append(notes, "1 line of comments before it is skipped")
	case d.comments > 1:
		notes = append(notes, errtext.Sprintf("%d lines of comments before it are skipped", d.comments))
	}
	if s.cut {
		notes = append(notes, "empty columns at the ends of lines are ignored")
	}
	return notes
}

// numberColumns lists the columns that numbers are read from; but for categories; classes: the label is none.
func (c *csvColumns) numberColumns(classes bool) []int {
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

// findHeader decides whether the first record is a header, or the last comment before it, and returns
// the header or the first row.
func (s *csvSource) findHeader(head []byte, first []string, rest [][]string, o *OpenOptions) ([]string, error) {
	d := &s.dialect
	if o.set.schema != nil && o.CSV.Header == dataset.HeaderAuto && o.set.known.inNumbers(first, d.marks) {
		return nil, &dataset.WaysError{Text: errtext.Sprintf("the first line has only numbers, among them every feature name of the model: give {header=yes} if it is a header, {header=no} if it is a row"), Ways: headerWays}
	}
	auto := *o
	auto.CSV.Header = dataset.HeaderAuto
	header, err := hasHeader(first, rest, d.marks, &auto)
	if d.comments > 0 && o.CSV.Header != dataset.HeaderNo && !(header && err == nil) {
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
	if o.CSV.Header != dataset.HeaderAuto {
		header, err = o.CSV.Header == dataset.HeaderYes, nil
	}
	if s.header = header; header {
		if name := strings.TrimLeft(first[0], " "); commentMark(name) != "" && len(name) > 1 {
			s.mark = commentMark(name)
			first[0] = strings.TrimLeft(name, s.mark+" ")
		}
	}
	return first, err
}
