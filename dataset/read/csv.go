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

// csvSource streams rows from a table.
type csvSource struct {
	table     *Table
	columns   csvColumns
	classes   bool // the label is text
	missing   dataset.Missing
	kind      dataset.LabelKind
	unseen    func(row int, category, level string) // nil: such a level is refused
	validates bool                                  // true if the rows are validation samples
	info      dataset.Info
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

// openTableSource opens a file whose family has tables, and finds what its columns are.
func openTableSource(path string, o *OpenOptions) (dataset.Source, error) {
	t, like, first, err := openTable(path, o)
	if err != nil {
		return nil, err
	}
	s := &csvSource{
		table: t, classes: !o.NoLabels && o.Labels.Kind == dataset.Class, missing: o.Missing, kind: o.Labels.Kind,
		unseen: o.CSV.Unseen, validates: o.set.validates != "",
		info: dataset.Info{File: o.Called, MissingWords: &dataset.WordCounts{}},
	}
	width, index := t.Width, like.CSV.RowNames != o.CSV.RowNames
	if o = like; o.set.schema != nil {
		o = o.columnsLikeTraining(t.names, width)
	}
	if o, err = o.only(t.names, width); err != nil {
		return nil, pathError(t.File, err)
	}
	records, c, m := t.head, &s.columns, t.dialect.marks
	if !t.Header {
		records = append([][]string{first}, records...)
	}
	if o.CSV.Images != "" {
		o, err = o.columnOfImages(t.names, records, width)
	}
	if err == nil {
		*c, err = chooseColumns(t.names, width, o)
	}
	if err == nil && t.stored != nil && c.rowNameFound {
		records, err = t.firstTexts(c.rowName)
	}
	var notes []errtext.Text
	if err == nil {
		notes, err = s.columnNotes(records, o)
	}
	if err != nil {
		return nil, pathError(t.File, err)
	}
	if t.stored != nil {
		if err := t.use(c, s.classes); err != nil {
			return nil, err
		}
	}
	if c.categories != nil {
		if err := s.findLevels(); err != nil {
			return nil, err
		}
	}
	numeric := c.numberColumns(s.classes)
	for _, record := range t.head { // its numbers may prove what the mark before decimals is
		for _, i := range numeric {
			if t.Proof.Needed && i < len(record) && strings.IndexByte(record[i], m.Decimal()) >= 0 &&
				numbers.IsField(record[i], m) {
				t.Proof.Look(record[i], m.Decimal())
			}
		}
	}
	t.head = nil
	s.describe(o)
	if t.stored != nil {
		s.info.Rows = t.rows
	}
	if index {
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("column %q, the index of pandas, has the names of the samples",
			o.CSV.RowNames))
	}
	s.info.Notes = slices.Concat(s.info.Notes, t.HowRead(), notes)
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
			i.FeatureNames = append(i.FeatureNames, dataset.NameAt(s.table.names, at))
			continue
		}
		k := &c.categories[at].Category
		for _, level := range k.Levels {
			i.FeatureNames = append(i.FeatureNames, k.Name+"="+level)
		}
		i.Reading.Categories = append(i.Reading.Categories, *k)
	}
	if i.Features = len(i.FeatureNames); s.table.names == nil && i.Reading.Categories == nil {
		i.FeatureNames = nil
	}
	passing(&i.Reading, s.table.names, c, o)
	i.LabelsListed = len(o.Labels.Columns) > 0
	for _, at := range c.labels {
		i.LabelFlags = append(i.LabelFlags, flagColumn(s.table.names, at))
	}
	if !s.table.Header {
		i.LabelColumns.Positions = c.labels
		return
	}
	// Several labels with the usual prefixes are found in any other file as well.
	usual, found := csvColumns{prefixes: new(LabelOptions).LabelPrefixes()}, len(c.labels) != 1
	for _, at := range c.labels {
		i.LabelNames = append(i.LabelNames, c.labelName(s.table.names[at]))
		i.LabelColumns.Names = append(i.LabelColumns.Names, s.table.names[at])
		found = found && usual.prefix(s.table.names[at]) != ""
	}
	if found {
		i.LabelColumns.Names = nil
	}
	for _, at := range append([]int{c.value, c.group, c.weight}, c.interval...) {
		if at >= 0 && !slices.Contains(c.labels, at) {
			i.LabelColumns.Beside = append(i.LabelColumns.Beside, s.table.names[at])
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
	case len(labels) == 1 && s.table.names != nil:
		notes = append(notes, errtext.Sprintf("%s %s column %d, %q", what, read, labels[0], s.table.names[labels[0]]))
	case len(labels) == 1:
		notes = append(notes, errtext.Sprintf("%s %s column %d", what, read, labels[0]))
	default:
		notes = append(notes, errtext.Sprintf("%s %s %s", what, read, nameList(s.table.names, labels)))
	}
	if o.CSV.Images != "" && c.rowName >= 0 {
		note := errtext.Sprintf("the images are named in column %d", c.rowName)
		if name := dataset.NameAt(s.table.names, c.rowName); name != "" {
			note += errtext.Sprintf(", %q", name)
		}
		notes = append(notes, note)
		if unread := c.free(); len(unread) > 0 && o.set.schema == nil {
			notes = append(notes, errtext.Sprintf("columns that are not read, because the features are the pixels of images: %s",
				nameList(s.table.names, unread)))
		}
	}
	if c.rowNameFound && o.set.schema == nil && o.CSV.Images == "" {
		note, err := c.rowNameNote(s.table.names, records, s.table.dialect.marks, o)
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return append(notes, o.numberNotes(s.table.names)...), nil
}

// Info implements Source.
func (s *csvSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *csvSource) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
	err := s.table.each(func(n int, record []string, r *csvRecords) error {
		if err := s.parse(&row, n, record, r); err != nil {
			return err
		}
		row.File = r.from
		return f(&row)
	})
	if err == nil {
		err = s.table.CheckMarks(s.columns.numberColumns(s.classes), s.table.Proof)
	}
	if err == nil && s.table.Proof.Doubt { // the next scan need not read the file twice
		s.table.Proof.Needed = false
	}
	return err
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
			return s.table.textError(n, c.rowName, err, r)
		}
	}
	for _, i := range c.labels {
		if s.classes {
			row.Text = s.table.dialect.marks.Plain(record[i])
			if err := notUTF8("the class of the sample", row.Text); err != nil {
				return s.table.textError(n, i, err, r)
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
		row.Group = strings.Clone(s.table.dialect.marks.Plain(record[c.group]))
		if err := notUTF8("the group of the sample", row.Group); err != nil {
			return s.table.textError(n, c.group, err, r)
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
		v, reason = s.table.dialect.marks.Parse(field)
		if s.table.Proof.Needed && (len(field) > 4 || v != math.Floor(v)) {
			s.table.Proof.Look(field, s.table.dialect.marks.Decimal())
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

// fieldError is an error about a field of row n, with advice.
func (s *csvSource) fieldError(n, column int, reason errtext.Text, record []string, r *csvRecords) error {
	field, m, c := record[column], s.table.dialect.marks, &s.columns
	drop := dataset.Option{Name: "drop", Value: dataset.ListFlag("drop", s.table.ColumnFlag(column)).Value}
	isNumber := func(i int) bool { return numbers.IsField(record[i], m) }
	switch label := slices.Contains(c.labels, column); {
	case n == 0 && numbers.IsMissing(field) && s.table.hasNone(column):
		reason = errtext.Sprintf("the column has no values; %s leaves it out", drop)
	case n == 0 && s.table.Header && s.table.stored == nil && !slices.ContainsFunc(c.features, isNumber) &&
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
		fit, conflict := s.table.Fitting(ways, c.numberColumns(s.classes))
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
	e := s.table.columnError(n, column, reason, r)
	if len(ways) > 0 {
		e.Err = &dataset.WaysError{Text: reason, Ways: ways}
	}
	return e
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
