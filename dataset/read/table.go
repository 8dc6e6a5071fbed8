package read

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Table is a file of texts in columns: a CSV file, or a file of another family with named columns. Its dialect and its
// header are known, but not what its columns are.
type Table struct {
	File   string                // for messages
	Header bool                  // the first line is a header
	Width  int                   // columns
	Listed []int                 // labels that a list names, unless options name others; nil: none
	Proof  numbers.DecimalsProof // what the numbers of a column have to prove about the mark before decimals

	path     string
	encoding string
	stored   namedColumns // nil: a CSV file
	rows     int          // of stored; -1: unknown
	dialect  dialect
	names    []string   // of all columns, from the header
	mark     string     // of a comment, before the first name of the header
	cut      bool       // empty columns after the last one are left out
	head     [][]string // the first records behind the first, until the columns are known

	// used are the columns of stored that are read, and asText the columns that are read as texts.
	used, asText []bool
}

// OpenTable opens a table whose columns are all read as texts, for package inspect.
func OpenTable(path string, o *OpenOptions) (*Table, error) {
	o.Called = cmp.Or(o.Called, CalledOf(path))
	kind, err := kindOf(path, o)
	if err != nil {
		return nil, err
	}
	given := *o
	given.set.tabs = kind.tabs
	t, _, _, err := openTable(path, &given)
	if err != nil {
		return nil, err
	}
	t.used, t.asText = make([]bool, t.Width), make([]bool, t.Width)
	for i := range t.Width {
		t.used[i], t.asText[i] = t.stored == nil || t.stored.refuses(i, true) == "", true
	}
	return t, nil
}

// openTable finds the dialect and the header of a CSV file, or the columns of another table. first is the first record,
// or the header. like is o with what the file says of its columns.
func openTable(path string, o *OpenOptions) (t *Table, like *OpenOptions, first []string, err error) {
	kind, err := kindOf(path, o)
	if err != nil {
		return nil, nil, nil, err
	}
	t = &Table{File: o.Called, path: path, encoding: o.Encoding}
	if kind.family == csvFiles {
		in, closer, err := openText(path, t.encoding)
		if err != nil {
			return nil, nil, nil, pathError(t.File, err)
		}
		defer closer.Close()
		first, err = t.begin(in, o)
		t.Width = len(first)
		return t, o, first, err
	}
	if kind.family == arffFiles {
		t.stored, err = openARFF(path, o)
	} else {
		t.stored, err = openParquet(path, o)
	}
	if err != nil {
		return nil, nil, nil, pathError(t.File, err)
	}
	t.names, t.Header, t.rows = dataset.Trimmed(t.stored.columns()), true, -1
	t.Width = len(t.names)
	if t.Width > dataset.MaxColumns {
		return nil, nil, nil, dataset.Errorf(dataset.ErrFormat, "%s: the file has more than %d columns", t.File,
			dataset.MaxColumns)
	}
	for i, name := range t.names {
		what := fmt.Sprintf("the name of column %d (counted from 0)", i)
		if err := cmp.Or(notUTF8(what, name), dataset.CheckName(name)); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %s: %w", t.File, what, err)
		}
	}
	t.dialect.marks.Thousands = o.CSV.Thousands
	if o.CSV.Decimal != "" {
		t.dialect.marks.Comma, err = ParseDecimal(o.CSV.Decimal)
	} else {
		t.dialect.marks.Comma = o.CSV.Thousands == '.'
	}
	like, t.rows = t.stored.prepare(o)
	if a, ok := t.stored.(*arffTable); ok && a.told {
		t.Listed = a.labels
	}
	return t, like, t.names, err
}

// begin finds the dialect, the header and the columns, and returns the first record.
func (t *Table) begin(in io.Reader, o *OpenOptions) (first []string, err error) {
	b := bufio.NewReaderSize(in, sniffBytes)
	head, err := b.Peek(sniffBytes)
	head, all := bytes.Clone(head), errors.Is(err, io.EOF)
	if t.dialect, err = sniffDialect(head, all, o); err != nil {
		return nil, pathError(t.File, err)
	}
	r, err := newCSVRecords(t.File, b, &t.dialect)
	if err != nil {
		return nil, err
	}
	if first, err = r.First(); err != nil {
		return nil, err
	}
	var rest [][]string
	if records, _, _ := firstRecords(head[t.dialect.skip:], all, t.dialect.delimiter); len(records) > 1 {
		rest = records[1:]
	}
	t.Proof, t.head = numbers.DecimalsProof{Needed: o.CSV.Decimal == "" && o.CSV.Thousands == 0}, rest
	if first, err = t.findHeader(head, first, rest, o); err != nil {
		return nil, pathError(t.File, err)
	}
	var width int
	if width, t.cut = realColumns(append(rest, first)); t.cut {
		first = first[:min(width, len(first))]
	}
	if !t.Header {
		return first, nil
	}
	t.names = first
	for i, name := range first {
		first[i] = strings.TrimSpace(name)
		what := fmt.Sprintf("line %d: the name of column %d (counted from 0)", r.lineOf(0), i)
		if err := notUTF8(what, first[i]); err != nil {
			return nil, pathError(t.File, err)
		}
		if err := dataset.CheckName(first[i]); err != nil {
			return nil, fmt.Errorf("%s: %s %w", t.File, what, err)
		}
	}
	return first, nil
}

// findHeader decides whether the first record is a header, or the last comment before it, and returns
// the header or the first row.
func (t *Table) findHeader(head []byte, first []string, rest [][]string, o *OpenOptions) ([]string, error) {
	d := &t.dialect
	if o.set.schema != nil && o.CSV.Header == dataset.HeaderAuto && o.set.known.inNumbers(first, d.marks) {
		return nil, &dataset.WaysError{Text: errtext.Sprintf(
			"the first line has only numbers, among them every feature name of the model: give {header=yes} if it is a " +
				"header, {header=no} if it is a row"), Ways: headerWays}
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
				*d, t.Header, t.mark = behind, true, d.mark
				return names[0], nil
			}
		}
	}
	if o.CSV.Header != dataset.HeaderAuto {
		header, err = o.CSV.Header == dataset.HeaderYes, nil
	}
	if t.Header = header; header {
		if name := strings.TrimLeft(first[0], " "); commentMark(name) != "" && len(name) > 1 {
			t.mark = commentMark(name)
			first[0] = strings.TrimLeft(name, t.mark+" ")
		}
	}
	return first, err
}

// each calls f with each row's number and record.
func (t *Table) each(f func(n int, record []string, r *csvRecords) error) error {
	if t.stored != nil {
		return t.stored.each(t.used, t.asText, f)
	}
	in, file, err := openText(t.path, t.encoding)
	if err != nil {
		return pathError(t.File, err)
	}
	defer file.Close()
	r, err := newCSVRecords(t.File, in, &t.dialect)
	if err != nil {
		return err
	}
	if r.from, r.header, r.width, r.cut, r.blank = file, t.Header, t.Width, t.cut,
		make([]string, t.Width); t.Header {
		if _, err := r.First(); err != nil {
			return err
		}
		r.width, r.blank = t.Width, make([]string, t.Width)
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

// use sets which columns of a table that is no CSV file are read. It refuses a column that cannot be read.
func (t *Table) use(c *csvColumns, classes bool) error {
	t.used, t.asText = make([]bool, t.Width), make([]bool, t.Width)
	for _, i := range slices.Concat(c.features, c.labels, c.interval, []int{c.value, c.group, c.weight, c.rowName}) {
		if i >= 0 {
			t.used[i] = true
			t.asText[i] = i == c.group || i == c.rowName || c.categories != nil && c.categories[i] != nil ||
				classes && slices.Contains(c.labels, i)
		}
	}
	for i := range t.used {
		if reason := t.stored.refuses(i, t.asText[i]); t.used[i] && reason != "" {
			drop := dataset.Option{Name: "drop", Value: dataset.ListFlag("drop", t.ColumnFlag(i)).Value}
			return dataset.Errorf(dataset.ErrFormat, "%s: column %d %q (counted from 0) has %w; %s leaves the column out",
				t.File, i, t.names[i], errtext.Errorf(errtext.WrongData, "%s", reason), drop)
		}
	}
	return nil
}

// firstTexts reads a column of the first rows, as texts of records. Their other columns are empty.
func (t *Table) firstTexts(column int) (records [][]string, err error) {
	used := make([]bool, len(t.names))
	used[column] = t.stored.refuses(column, true) == ""
	err = t.stored.each(used, used, func(n int, record []string, _ *csvRecords) error {
		if n == sniffRecords {
			return errFound
		}
		records = append(records, slices.Clone(record))
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return records, err
}

// Each calls f with each record from the first row on, its number, and the file that is being read.
func (t *Table) Each(f func(n int, record []string, file dataset.Measured) error) error {
	return t.each(func(n int, record []string, r *csvRecords) error { return f(n, record, r.from) })
}

// Choose returns what the columns are. After an error it has what was found before.
func (t *Table) Choose(o *OpenOptions) (Columns, error) {
	if t.stored != nil {
		o, _ = t.stored.prepare(o)
	}
	o, err := o.only(t.names, t.Width)
	if err != nil {
		return Columns{RowName: -1, Category: make([]bool, t.Width), Used: make([]bool, t.Width)}, err
	}
	c, err := chooseColumns(t.names, t.Width, o)
	all := Columns{Features: c.features, Labels: c.labels, Numbers: c.numberColumns(o.Labels.Kind == dataset.Class &&
		!o.NoLabels), Used: c.used, RowName: c.rowName}
	all.Category = make([]bool, t.Width)
	for i, category := range c.categories {
		all.Category[i] = category != nil
	}
	return all, err
}

// HowRead says how the file is read. It knows nothing of the columns yet.
func (t *Table) HowRead() []errtext.Text {
	if t.stored != nil {
		return t.stored.notes()
	}
	d, between, before := &t.dialect, "blanks", "a point"
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
	notes := []errtext.Text{how}
	switch {
	case t.Header && t.mark != "":
		notes = append(notes, errtext.Sprintf("line %d is the header, read without its mark %s", d.before+1, t.mark))
	case t.Header:
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
	if t.cut {
		notes = append(notes, "empty columns at the ends of lines are ignored")
	}
	return notes
}

// Separators returns the marks in the numbers of the file.
func (t *Table) Separators() numbers.Marks { return t.dialect.marks }

// ColumnName returns the name of a column; empty: it has none.
func (t *Table) ColumnName(column int) string { return dataset.NameAt(t.names, column) }

// ColumnFlag returns a column as flags name it: its name, or its number if the name is not enough.
func (t *Table) ColumnFlag(column int) string { return flagColumn(t.names, column) }

// ColumnNames lists columns for messages.
func (t *Table) ColumnNames(columns ...int) string { return nameList(t.names, columns) }
