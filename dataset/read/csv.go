package read

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// csvSource streams rows from a CSV file, or from another table.
type csvSource struct {
	table     table // nil: a CSV file
	rows      int   // of the table; -1: unknown
	allTexts  bool  // all columns of the table are read, as texts
	path      string
	encoding  string
	dialect   dialect
	header    bool
	columns   csvColumns
	names     []string // of all columns, from the header
	classes   bool     // the label is text
	mark      string   // of a comment, before the first name of the header
	cut       bool     // empty columns after the last one are left out
	proof     numbers.DecimalsProof
	head      [][]string // the first records behind the first, until the columns are known
	missing   dataset.Missing
	kind      dataset.LabelKind
	unseen    func(row int, category, level string) // nil: such a level is refused
	validates bool                                  // true if the rows are validation samples
	info      dataset.Info
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
	if s.table != nil {
		used, asText := s.uses()
		return s.table.each(used, asText, f)
	}
	in, file, err := openText(s.path, s.encoding)
	if err != nil {
		return pathError(s.info.File, err)
	}
	defer file.Close()
	r, err := newCSVRecords(s.info.File, in, &s.dialect)
	if err != nil {
		return err
	}
	if r.from, r.header, r.width, r.cut, r.blank = file, s.header, s.columns.width, s.cut,
		make([]string, s.columns.width); s.header {
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
	if s.table != nil {
		return append(s.info.Notes, s.table.notes()...)
	}
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
	for _, i := range []int{c.value, c.weight} {
		if i >= 0 {
			all = append(all, i)
		}
	}
	return all
}

// findHeader decides whether the first record is a header, or the last comment before it, and returns
// the header or the first row.
func (s *csvSource) findHeader(head []byte, first []string, rest [][]string, o *OpenOptions) ([]string, error) {
	d := &s.dialect
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

// open finds what the columns are.
func (s *csvSource) open(o *OpenOptions) (dataset.Source, error) {
	like, first, err := s.start(o)
	if err != nil {
		return nil, err
	}
	width, index := len(first), like.CSV.RowNames != o.CSV.RowNames
	if o = like; o.set.schema != nil {
		o = o.columnsLikeTraining(s.names, width)
	}
	if o, err = o.only(s.names, width); err != nil {
		return nil, pathError(s.info.File, err)
	}
	records, c, m := s.head, &s.columns, s.dialect.marks
	if !s.header {
		records = append([][]string{first}, records...)
	}
	if o.CSV.Images != "" {
		o, err = o.columnOfImages(s.names, records, width)
	}
	if err == nil {
		*c, err = chooseColumns(s.names, width, o)
	}
	if err == nil && s.table != nil && c.rowNameFound {
		records, err = s.firstNames()
	}
	var notes []errtext.Text
	if err == nil {
		notes, err = s.columnNotes(records, o)
	}
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	if s.table != nil {
		if err := s.checkColumns(); err != nil {
			return nil, err
		}
	}
	if c.categories != nil {
		if err := s.findLevels(); err != nil {
			return nil, err
		}
	}
	numeric := c.numberColumns(s.classes)
	for _, record := range s.head { // its numbers may prove what the mark before decimals is
		for _, i := range numeric {
			if s.proof.Needed && i < len(record) && strings.IndexByte(record[i], m.Decimal()) >= 0 &&
				numbers.IsField(record[i], m) {
				s.proof.Look(record[i], m.Decimal())
			}
		}
	}
	s.head = nil
	s.describe(o)
	if s.table != nil {
		s.info.Rows = s.rows
	}
	if index {
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("column %q, the index of pandas, has the names of the samples",
			o.CSV.RowNames))
	}
	s.info.Notes = append(s.notes(), notes...)
	return s, nil
}

// describe sets Info, but for the notes.
func (s *csvSource) describe(o *OpenOptions) {
	c, i := &s.columns, &s.info
	i.Rows, i.Labels, i.HasRowNames = -1, len(c.labels), c.rowName >= 0
	i.HasValues, i.HasIntervals, i.HasGroups = o.Beside.Values != "", len(o.Beside.Intervals) > 0, o.Beside.Groups != ""
	i.HasWeights = o.Beside.Weights != ""
	for _, at := range c.features {
		if c.categories == nil || c.categories[at] == nil {
			i.FeatureNames = append(i.FeatureNames, dataset.NameAt(s.names, at))
			continue
		}
		k := &c.categories[at].Category
		for _, level := range k.Levels {
			i.FeatureNames = append(i.FeatureNames, k.Name+"="+level)
		}
		i.Reading.Categories = append(i.Reading.Categories, *k)
	}
	if i.Features = len(i.FeatureNames); s.names == nil && i.Reading.Categories == nil {
		i.FeatureNames = nil
	}
	passing(&i.Reading, s.names, c, o)
	i.LabelsListed = len(o.Labels.Columns) > 0
	for _, at := range c.labels {
		i.LabelFlags = append(i.LabelFlags, flagColumn(s.names, at))
	}
	if !s.header {
		i.LabelColumns.Positions = c.labels
		return
	}
	// Several labels with the usual prefixes are found in any other file as well.
	usual, found := csvColumns{prefixes: new(LabelOptions).LabelPrefixes()}, len(c.labels) != 1
	for _, at := range c.labels {
		i.LabelNames = append(i.LabelNames, c.labelName(s.names[at]))
		i.LabelColumns.Names = append(i.LabelColumns.Names, s.names[at])
		found = found && usual.prefix(s.names[at]) != ""
	}
	if found {
		i.LabelColumns.Names = nil
	}
	for _, at := range append([]int{c.value, c.group, c.weight}, c.interval...) {
		if at >= 0 && !slices.Contains(c.labels, at) {
			i.LabelColumns.Beside = append(i.LabelColumns.Beside, s.names[at])
		}
	}
	if o.set.schema != nil { // where default names stand in another order they count
		return
	}
	i.FeatureNames = withoutDefaults(i.FeatureNames, dataset.DefaultFeatureName)
	named := len(i.LabelNames) > 0
	i.LabelNames = withoutDefaults(i.LabelNames, strconv.Itoa)
	i.DefaultLabels = named && i.LabelNames == nil
}

// withoutDefaults returns names, or nil if WriteCSV gives all of them to
// columns without names (a label's without its prefix).
func withoutDefaults(names []string, byDefault func(int) string) []string {
	for i, name := range names {
		if name != byDefault(i) {
			return names
		}
	}
	return nil
}

// columnNotes says what the columns are; records has the first rows.
func (s *csvSource) columnNotes(records [][]string, o *OpenOptions) (notes []errtext.Text, _ error) {
	c := &s.columns
	labels, read := c.labels, "read from"
	if len(labels) == 0 {
		labels, read = c.passed, "not read:"
	}
	what := o.Labels.target(len(labels))
	switch {
	case len(labels) == 0:
		notes = append(notes, "no label columns found: all remaining columns are features")
	case len(labels) == 1 && s.names != nil:
		notes = append(notes, errtext.Sprintf("%s %s column %d, %q", what, read, labels[0], s.names[labels[0]]))
	case len(labels) == 1:
		notes = append(notes, errtext.Sprintf("%s %s column %d", what, read, labels[0]))
	default:
		notes = append(notes, errtext.Sprintf("%s %s %s", what, read, nameList(s.names, labels)))
	}
	if o.CSV.Images != "" && c.rowName >= 0 {
		note := errtext.Sprintf("the images are named in column %d", c.rowName)
		if name := dataset.NameAt(s.names, c.rowName); name != "" {
			note += errtext.Sprintf(", %q", name)
		}
		notes = append(notes, note)
		if unread := c.free(); len(unread) > 0 && o.set.schema == nil {
			notes = append(notes, errtext.Sprintf("columns that are not read, because the features are the pixels of images: %s",
				nameList(s.names, unread)))
		}
	}
	if c.rowNameFound && o.set.schema == nil && o.CSV.Images == "" {
		note, err := c.rowNameNote(s.names, records, s.dialect.marks, o)
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return append(notes, o.numberNotes(s.names)...), nil
}

// Info implements Source.
func (s *csvSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *csvSource) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
	err := s.eachRecord(func(n int, record []string, r *csvRecords) error {
		if err := s.parse(&row, n, record, r); err != nil {
			return err
		}
		row.File = r.from
		return f(&row)
	})
	if err != nil || !s.proof.Needed || !s.proof.Doubt {
		return err
	}
	if err := s.checkMarks(); err != nil {
		return err
	}
	s.proof.Needed = false
	return nil
}

// parse reads row n from a record, which r has just read.
func (s *csvSource) parse(row *dataset.Row, n int, record []string, r *csvRecords) (err error) {
	c := &s.columns
	row.Number, row.Line, row.Values, row.Labels = n, r.lineOf(0), row.Values[:0], row.Labels[:0]
	for _, i := range c.features {
		if c.categories != nil && c.categories[i] != nil {
			if err := s.parseCategory(row, c.categories[i], record, r); err != nil {
				return err
			}
			continue
		}
		v, err := s.number(n, i, dataset.OfFeature, record, r)
		if err != nil {
			return err
		}
		row.Values = append(row.Values, v)
	}
	if c.rowName >= 0 {
		row.Name = record[c.rowName]
		if err := notUTF8("the name of the sample", row.Name); err != nil {
			return s.textError(n, c.rowName, err, r)
		}
	}
	for _, i := range c.labels {
		if s.classes {
			row.Text = s.dialect.marks.Plain(record[i])
			if err := notUTF8("the class of the sample", row.Text); err != nil {
				return s.textError(n, i, err, r)
			}
			continue
		}
		v, err := s.number(n, i, valueOf(s.kind), record, r)
		if err != nil {
			return err
		}
		row.Labels = append(row.Labels, v)
	}
	if c.value >= 0 {
		if row.Value, err = s.number(n, c.value, dataset.OfLabel, record, r); err != nil {
			return err
		}
	}
	if c.weight >= 0 {
		if row.Weight, err = s.number(n, c.weight, dataset.OfLabel, record, r); err != nil {
			return err
		}
	}
	for k, i := range c.interval {
		if row.Interval[k], err = s.number(n, i, dataset.OfLabel, record, r); err != nil {
			return err
		}
	}
	if c.group >= 0 {
		row.Group = strings.Clone(s.dialect.marks.Plain(record[c.group]))
		if err := notUTF8("the group of the sample", row.Group); err != nil {
			return s.textError(n, c.group, err, r)
		}
	}
	return nil
}

// number reads a field of row n. A missing value is NaN if Missing allows it; else it is refused with advice.
func (s *csvSource) number(n, column int, what dataset.ValueOf, record []string, r *csvRecords) (v float64, err error) {
	if r.isNumber != nil && r.isNumber[column] {
		if v := r.numbers[column]; v == v {
			return v, nil
		}
	}
	field, reason := record[column], errtext.Text("")
	switch {
	case !numbers.IsMissing(field):
		v, reason = s.dialect.marks.Parse(field)
		if s.proof.Needed && (len(field) > 4 || v != math.Floor(v)) {
			s.proof.Look(field, s.dialect.marks.Decimal())
		}
	case !s.missing.Refuses(), what == dataset.OfDegree && s.kind == dataset.Incomplete:
		s.info.MissingWords.Add(field, n)
		v = numbers.NaN
	default:
		if _, reason = numbers.Parse(field); reason == "" || strings.TrimSpace(field) != "" {
			reason = errtext.Sprintf("%.40q is a missing value", strings.TrimSpace(field))
		}
		reason += s.missing.Hint(what)
	}
	if reason != "" {
		return 0, s.fieldError(n, column, reason, record, r)
	}
	return v, nil
}

// target is what notes call n labels, with the verb: "the class is", "5 labels are".
func (o *LabelOptions) target(n int) string {
	switch {
	case o.Single():
		return fmt.Sprintf("the %s is", o.Kind)
	case n == 1:
		return "the label is"
	}
	return fmt.Sprintf("%d labels are", n)
}

// Table is a CSV file as a table of texts, for package inspect: its dialect and its header are known, but not what its
// columns are.
type Table struct {
	s *csvSource

	File   string                // for messages
	Header bool                  // the first line is a header
	Width  int                   // columns
	Marks  numbers.Marks         // in the numbers of the file
	Proof  numbers.DecimalsProof // what the numbers of a column have to prove about them
	Notes  []errtext.Text        // how the file is read
}

// ColumnName returns the name of a column; empty: it has none.
func (t *Table) ColumnName(column int) string { return dataset.NameAt(t.s.names, column) }

// ColumnFlag returns a column as flags name it: its name, or its number if the name is not enough.
func (t *Table) ColumnFlag(column int) string { return flagColumn(t.s.names, column) }

// ColumnNames lists columns for messages.
func (t *Table) ColumnNames(columns ...int) string { return nameList(t.s.names, columns) }

// Each calls f with each record from the first row on, its number, and the file that is being read.
func (t *Table) Each(f func(n int, record []string, file dataset.Measured) error) error {
	return t.s.eachRecord(func(n int, record []string, r *csvRecords) error { return f(n, record, r.from) })
}

// Choose returns what the columns are. After an error it has what was found before.
func (t *Table) Choose(o *OpenOptions) (Columns, error) {
	if t.s.table != nil {
		o, _ = t.s.table.prepare(o)
	}
	o, err := o.only(t.s.names, t.Width)
	if err != nil {
		return Columns{RowName: -1, Category: make([]bool, t.Width), Used: make([]bool, t.Width)}, err
	}
	c, err := chooseColumns(t.s.names, t.Width, o)
	all := Columns{Features: c.features, Labels: c.labels, Numbers: c.numberColumns(o.Labels.Kind == dataset.Class &&
		!o.NoLabels), Used: c.used, RowName: c.rowName}
	all.Category = make([]bool, t.Width)
	for i, category := range c.categories {
		all.Category[i] = category != nil
	}
	return all, err
}

// CheckMarks reads the numbers of columns again if proof says that every mark in them may separate thousands. It
// returns an error that says so if the file can be read in two ways.
func (t *Table) CheckMarks(columns []int, proof numbers.DecimalsProof) error {
	if !proof.Needed || !proof.Doubt {
		return nil
	}
	t.s.columns.features = columns
	return t.s.checkMarks()
}

// Fitting returns the ways with which all fields of the columns are numbers that are numbers now. If there is none,
// conflict names a field that is no number then.
func (t *Table) Fitting(ways []dataset.Way, columns []int) (fit []dataset.Way, conflict errtext.Text) {
	return t.s.fitting(ways, columns)
}

// OpenTable finds the dialect and the header of a CSV file, or the columns of another table.
func OpenTable(path string, o *OpenOptions) (*Table, error) {
	o.Called = cmp.Or(o.Called, CalledOf(path))
	kind, err := kindOf(path, o)
	if err != nil {
		return nil, err
	}
	given := *o
	given.set.tabs = kind.tabs
	s := newTableSource(path, &given)
	s.allTexts = true
	_, first, err := s.start(&given)
	if err != nil {
		return nil, err
	}
	s.columns = csvColumns{width: len(first), value: -1, rowName: -1, group: -1, weight: -1}
	return &Table{s: s, File: s.info.File, Header: s.header, Width: len(first), Marks: s.dialect.marks, Proof: s.proof,
		Notes: s.notes()}, nil
}

// Columns says what the columns of a table are if they are read with some options.
type Columns struct {
	Features, Labels []int
	Numbers          []int  // from which numbers are read: features, labels, exact numbers and intervals
	Category, Used   []bool // by column: it is a category; an option or its name says what it is
	RowName          int    // the column with the names of the rows; -1: none
}
