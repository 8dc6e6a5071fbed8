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

func openCSV(path string, o *OpenOptions) (dataset.Source, error) {
	s := &csvSource{
		path: path, classes: !o.NoLabels && o.Labels.Kind == dataset.Class, missing: o.Missing, unseen: o.CSV.Unseen, encoding: o.Encoding, info: dataset.Info{File: o.Called, MissingWords: &dataset.WordCounts{}},
	}
	in, closer, err := openText(path, o.Encoding)
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	defer closer.Close()
	first, err := s.begin(in, o)
	if err != nil {
		return nil, err
	}
	records, c, m := s.head, &s.columns, s.dialect.marks
	if !s.header {
		records = append([][]string{first}, records...)
	}
	if o.set.schema != nil {
		o = o.columnsLikeTraining(s.names, len(first))
	}
	if o.CSV.Images != "" {
		o, err = o.columnOfImages(s.names, records, len(first))
	}
	if err == nil {
		*c, err = chooseColumns(s.names, len(first), o)
	}
	var notes []errtext.Text
	if err == nil {
		notes, err = s.columnNotes(records, o)
	}
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	if c.categories != nil {
		if err := s.findLevels(); err != nil {
			return nil, err
		}
	}
	numeric := c.numberColumns(s.classes)
	for _, record := range s.head { // its numbers may prove what the mark before decimals is
		for _, i := range numeric {
			if s.proof.Needed && i < len(record) && strings.IndexByte(record[i], m.Decimal()) >= 0 && numbers.IsField(record[i], m) {
				s.proof.Look(record[i], m.Decimal())
			}
		}
	}
	s.head = nil
	s.describe(o)
	s.info.Notes = append(s.notes(), notes...)
	return s, nil
}

// describe sets Info, but for the notes.
func (s *csvSource) describe(o *OpenOptions) {
	c, i := &s.columns, &s.info
	i.Rows, i.Labels, i.HasRowNames = -1, len(c.labels), c.rowName >= 0
	i.HasValues, i.HasIntervals, i.HasGroups = o.Beside.Values != "", len(o.Beside.Intervals) > 0, o.Beside.Groups != ""
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
	for _, at := range append([]int{c.value, c.group}, c.interval...) {
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
			notes = append(notes, errtext.Sprintf("columns that are not read, because the features are the pixels of images: %s", nameList(s.names, unread)))
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
		v, err := s.number(n, i, dataset.OfLabel, record, r)
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
	field, reason := record[column], errtext.Text("")
	switch {
	case !numbers.IsMissing(field):
		v, reason = s.dialect.marks.Parse(field)
		if s.proof.Needed && (len(field) > 4 || v != math.Floor(v)) {
			s.proof.Look(field, s.dialect.marks.Decimal())
		}
	case !s.missing.Refuses():
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
