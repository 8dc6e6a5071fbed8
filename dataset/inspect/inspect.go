// Package inspect describes data files: what each column seems to be, what is wrong, and which flags read the file. It
// tries ways to read a CSV file as a user would, with the errors of package read as advice.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Inspection describes a data file that was read from beginning to end.
type Inspection struct {
	File     string `json:"file"`
	Rows     int    `json:"samples"`
	RowNames bool   `json:"row_names"`
	Features int    `json:"features"`
	Labels   int    `json:"labels"`
	// LabelsAre says what an import would take the labels for.
	LabelsAre string `json:"labels_are"`
	// FeatureColumns describes each feature; empty if there are more than featurestats.MaxColumns.
	FeatureColumns []ColumnSummary `json:"feature_columns"`
	LabelColumns   []ColumnSummary `json:"label_columns"`
	// LabelSums describes the sums of the labels of the rows; nil without labels, or where no sum is finite.
	LabelSums *SumSummary    `json:"label_sums,omitempty"`
	Missing   MissingSummary `json:"missing"`
	Warnings  []string       `json:"warnings"` // what is wrong
	Notes     []string       `json:"notes"`    // how the file was read

	// Encoding is how the text of a CSV or libsvm file is written; empty for files of other kinds.
	Encoding string `json:"encoding,omitempty"`
	// Columns describes each column of a CSV file; empty if there are more than 4,096.
	Columns []ColumnProfile `json:"columns,omitempty"`
	// Refused says why the file cannot be read by the flags that were given; empty: it can.
	Refused string `json:"refused,omitempty"`
	// Readings lists the ways to read a CSV file, the best one first.
	Readings []TriedReading `json:"readings,omitempty"`
}

// ColumnSummary describes one feature or label.
type ColumnSummary struct {
	Name    string   `json:"name,omitempty"`
	Least   *float64 `json:"least"` // nil: every value is missing, or one is infinite
	Most    *float64 `json:"most"`
	Zeros   int      `json:"zeros"`
	Missing int      `json:"missing"`
}

// SumSummary describes the sums of the rows' label degrees, where they are finite.
type SumSummary struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Off counts the rows that do not sum to 1 within the tolerance or have a
	// negative label; FirstOff is the first of them, -1 where there is none.
	Off      int `json:"off"`
	FirstOff int `json:"first_off"`
}

// MissingSummary counts missing values.
type MissingSummary struct {
	Values int `json:"values"`           // of features
	Labels int `json:"labels"`           // of labels: of each column, or of a row's class or age
	Images int `json:"images,omitempty"` // names of images
	Rows   int `json:"samples"`          // with a missing feature, label or name of an image
}

// missingCount also counts the samples with a missing feature or name of an image.
type missingCount struct {
	MissingSummary
	lacking int
}

// Inspect reads a data file and describes it. The file may have no labels. Missing values
// are counted, whatever o.Missing says. A CSV file that can be read in several ways, or in none without other
// flags, is no error: Refused says why, and Readings which flags read it. Memory grows with the columns, not with the
// rows (but see FORMAT.md for files that are read into memory).
func Inspect(path string, o read.OpenOptions, io importer.Options) (*Inspection, error) {
	o.Called = cmp.Or(o.Called, read.CalledOf(path))
	found, err := inspect(path, o, io)
	var row *dataset.RowError
	var ways *dataset.WaysError
	if err != nil && !errors.As(err, &row) && !errors.As(err, &ways) && !errors.Is(err, dataset.ErrAmbiguous) &&
		!errors.Is(err, dataset.ErrNoLabels) {
		return nil, err
	}
	format, failed := read.FormatOf(path, o)
	if failed != nil || !read.IsTable(format) {
		if found == nil && (errors.As(err, &ways) || errors.Is(err, dataset.ErrAmbiguous)) {
			r := readings{path: path, o: o, io: io, tried: map[string]bool{}}
			if _, failed := r.branch(dataset.Way{}, err, r.tryWhole); failed != nil {
				return nil, failed
			}
			found = refused(o.Called)
			found.Refused, found.Readings, err = err.Error(), r.found, nil
		}
		if found != nil && format == "libsvm" {
			found.Encoding = cmp.Or(o.Encoding, read.EncodingOf(path))
		}
		return found, err
	}
	return inspectColumns(path, format, o, io, found, err)
}

// refused describes a file that cannot be read.
func refused(file string) *Inspection {
	return &Inspection{File: file, FeatureColumns: []ColumnSummary{}, LabelColumns: []ColumnSummary{},
		Warnings: []string{}, Notes: []string{}}
}

// inspectColumns adds to found, which is nil if the file cannot be read as the options say because of err, what the
// columns seem to be and how the file can be read.
func inspectColumns(path, format string, o read.OpenOptions, io importer.Options, found *Inspection,
	err error) (*Inspection, error) {
	r := readings{path: path, o: o, io: io, tried: map[string]bool{}}
	r.o.Labels.Columns, r.o.FeatureColumns, r.o.Drop = dataset.Trimmed(o.Labels.Columns),
		dataset.Trimmed(o.FeatureColumns), dataset.Trimmed(o.Drop)
	if failed := r.find(dataset.Way{}); failed != nil {
		return nil, failed
	}
	if found == nil && r.profile == nil {
		return nil, err
	}
	if found == nil {
		found = refused(o.Called)
	}
	if !slices.ContainsFunc(r.found, func(r TriedReading) bool { return len(r.Flags) == 0 }) {
		r.asGiven()
	}
	if err != nil {
		found.Refused = err.Error()
	} else {
		found.Refused = r.refused
	}
	if found.Readings = r.found; found.Readings == nil {
		found.Readings = []TriedReading{}
	}
	for i := range found.Readings {
		if r := &found.Readings[i]; r.Flags == nil {
			r.Flags = []dataset.Flag{}
		}
	}
	if format != "parquet" {
		found.Encoding = cmp.Or(o.Encoding, read.EncodingOf(path))
	}
	if p := r.profile; p != nil {
		p.setLabels(r.labels, o.Labels.Kind, r.found[:min(1, len(r.found))])
		if c, _ := p.table.Choose(&o); c.RowName >= 0 && !p.wide && r.refused == "" && err == nil {
			p.columns[c.RowName].Role = RoleRowNames
		}
		p.hints()
		found.Columns = p.columns
		if found.Rows == 0 {
			found.Rows, found.Notes = p.rows, errtext.Strings(p.table.HowRead())
		}
	}
	return found, nil
}

// inspect describes a file that can be read as the options say.
func inspect(path string, o read.OpenOptions, io importer.Options) (*Inspection, error) {
	o.Missing = dataset.Missing{Keep: true}
	src, err := read.Open(path, o)
	note := ""
	if errors.Is(err, dataset.ErrNoLabels) {
		note = "no labels found: " + err.Error()
		o.NoLabels = true
		src, err = read.Open(path, o)
	}
	if errors.Is(err, dataset.ErrAmbiguous) && !leavesEncoding(err) &&
		(o.Labels.Kind == dataset.Class || o.Beside.Groups != "") {
		note = "classes and groups are not read: " + err.Error()
		o.NoLabels, o.Beside.Groups = o.NoLabels || o.Labels.Kind == dataset.Class, ""
		src, err = read.Open(path, o)
	}
	if err != nil {
		return nil, err
	}
	s := newInspector(src.Info(), &io)
	s.singleLabel = o.Labels.Single()
	if err := src.Scan(s.add); err != nil {
		return nil, err
	}
	rounded := s.features.Rounded()
	if rounded != nil {
		if err := src.Scan(func(r *dataset.Row) error { rounded.Add(r); return nil }); err != nil {
			return nil, err
		}
	}
	found := s.finish()
	if rounded != nil {
		found.Warnings = append(found.Warnings, errtext.Strings(rounded.Lines())...)
	}
	if note != "" {
		found.Notes = append(found.Notes, note)
	}
	return found, nil
}

type inspector struct {
	info         dataset.Info
	o            *importer.Options
	features     *featurestats.Stats
	labels       []featurestats.Column
	single       featurestats.Column // the values of the only label, before they are divided by their sum
	sums         SumSummary
	rows         int      // with labels
	summed       int      // rows in the range of sums
	below        rowTally // rows with a negative label
	empty        rowTally // rows whose labels are all 0
	uneven       rowTally // rows whose labels do not sum to 1
	turned       int      // images
	read         int
	missing      missingCount
	nonFinite    nonFiniteValues
	limit        float64          // distance from 1 of a sum that passes
	singleLabel  bool             // labels are made from one age or class
	groups       *identity.Groups // nil: rows have no groups
	groupsError  error
	rescaled     int   // rows whose labels sum to 1 within the tolerance only
	refused      int   // rows with an exact number, interval, group or weight that an import refuses
	firstRefused error // of the first of them
}

func newInspector(info dataset.Info, o *importer.Options) *inspector {
	s := &inspector{
		info: info, o: o, features: featurestats.New(info), labels: make([]featurestats.Column, info.Labels),
		sums: SumSummary{FirstOff: -1}, limit: cmp.Or(o.Tolerance, importer.DefaultTolerance),
	}
	if info.HasGroups {
		s.groups = identity.NewGroups(info.File)
	}
	return s
}

func (s *inspector) add(r *dataset.Row) error {
	if s.read++; s.read%importer.ProgressRows == 0 || s.info.Slow {
		if err := s.o.Report("inspect", s.read, s.info.Rows, r.File); err != nil {
			return err
		}
	}
	s.countMissing(r)
	s.nonFinite.add(&s.info, r)
	if r.Turned {
		s.turned++
	}
	if r.Lack == dataset.LacksDegrees {
		s.empty.add(r.Number)
	}
	if r.LeftOut { // its class or age is missing
		r.Labels, r.Raw = nil, nil
	} else {
		s.addLabels(r)
		if err := importer.CheckBeside(&s.info, r); err != nil {
			if s.refused++; s.refused == 1 {
				s.firstRefused = err
			}
		} else if s.groups != nil && s.groupsError == nil {
			s.groupsError = s.groups.Add(r)
		}
	}
	s.features.Add(r)
	return nil
}

func (s *inspector) countMissing(r *dataset.Row) {
	features, labels := 0, 0
	for _, v := range r.Values {
		if math.IsNaN(v) {
			features++
		}
	}
	for i, v := range r.Labels {
		if !math.IsNaN(v) {
			continue
		}
		if labels++; !s.singleLabel {
			s.labels[i].Missing++
		}
	}
	if r.Lack == dataset.LacksValue && labels == 0 { // a class of text
		labels = 1
	}
	s.missing.Values, s.missing.Labels = s.missing.Values+features, s.missing.Labels+labels
	if r.Lack == dataset.LacksImage {
		s.missing.Images++
	}
	if features+labels > 0 || r.Lack == dataset.LacksImage {
		s.missing.Rows++
		if labels == 0 || features > 0 {
			s.missing.lacking++
		}
	}
}

func (s *inspector) addLabels(r *dataset.Row) {
	if len(r.Labels) == 0 {
		return
	}
	sum, negative, partial := 0.0, false, false
	for i, v := range r.Labels {
		if s.info.LabelType.Incomplete && math.IsNaN(v) { // counted
			partial = true
			continue
		}
		s.labels[i].Add(v)
		sum, negative = sum+v, negative || v < 0
	}
	if partial && sum <= 1+s.limit && !negative {
		s.rows++
		return
	}
	if len(r.Labels) == 1 {
		s.single.Add(r.Targets()[0])
	}
	s.rows++
	if s.info.LabelType.Bounds != nil { // targets have no sum
		return
	}
	if !math.IsInf(sum, 0) && !math.IsNaN(sum) { // JSON has no such number
		if s.summed++; s.summed == 1 {
			s.sums.Least, s.sums.Most = sum, sum
		}
		s.sums.Least, s.sums.Most = min(s.sums.Least, sum), max(s.sums.Most, sum)
	}
	if negative {
		if clipped, bad := importer.ClippedSum(r.Labels, sum, s.limit); bad < 0 {
			sum, negative = clipped, false
		}
	}
	off := !(math.Abs(sum-1) <= s.limit)
	if s.o.Normalize {
		off = !(sum > 0)
	} else if !off && math.Abs(sum-1) > importer.SumRounding {
		s.rescaled++
	}
	if !off && !negative {
		return
	}
	if s.sums.Off++; s.sums.Off == 1 {
		s.sums.FirstOff = r.Number
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0): // told as missing or not finite
	case negative:
		s.below.add(r.Number)
	case sum == 0:
		s.empty.add(r.Number)
	default:
		s.uneven.add(r.Number)
	}
}

// rowTally counts rows with one fault.
type rowTally struct{ n, first int }

func (t *rowTally) add(row int) {
	if t.n++; t.n == 1 {
		t.first = row
	}
}

// finish returns the inspection.
func (s *inspector) finish() *Inspection {
	found := &Inspection{
		File: s.info.File, Rows: s.read, RowNames: s.info.HasRowNames, Missing: s.missing.MissingSummary,
		LabelsAre: s.info.LabelType.String(s.info.Labels), Features: s.info.Features, Labels: s.info.Labels,
		FeatureColumns: []ColumnSummary{}, LabelColumns: []ColumnSummary{},
		Notes: append([]string{}, errtext.Strings(s.info.Notes)...),
	}
	for i, c := range s.features.Columns {
		found.FeatureColumns = append(found.FeatureColumns,
			summaryOf(c.Finish(s.read), dataset.NameAt(s.info.FeatureNames, i)))
	}
	for i, c := range s.labels {
		found.LabelColumns = append(found.LabelColumns, summaryOf(c, dataset.NameAt(s.info.LabelNames, i)))
	}
	if s.features.Columns == nil {
		found.Notes = append(found.Notes, fmt.Sprintf("the file has more than %s features, so single features were not "+
			"checked", units.Count(featurestats.MaxColumns)))
	}
	if s.summed > 0 {
		found.LabelSums = &s.sums
	}
	if s.rescaled > 0 {
		found.Notes = append(found.Notes, importer.RescaledNote(s.rescaled))
	}
	if s.turned > 0 {
		found.Notes = append(found.Notes, importer.TurnedText(s.turned))
	}
	err := s.groupsError
	if s.groups != nil {
		_, notes, failed := s.groups.Sorted()
		found.Notes, err = append(found.Notes, notes...), cmp.Or(err, failed)
	}
	found.Notes = slices.Concat(found.Notes, errtext.Strings(s.info.ScanNotes()))
	found.Warnings = append([]string{}, s.faults()...)
	if err != nil {
		found.Warnings = append(found.Warnings, err.Error())
	}
	return found
}

func summaryOf(c featurestats.Column, name string) ColumnSummary {
	s := ColumnSummary{Name: name, Zeros: c.Zeros, Missing: c.Missing}
	if seen := c.Seen > 0 || c.Zeros > 0; seen && !math.IsInf(c.Low, 0) && !math.IsInf(c.High, 0) {
		low, high := c.Low, c.High
		s.Least, s.Most = &low, &high
	}
	return s
}

// faults lists what an import would refuse.
func (s *inspector) faults() (lines []string) {
	if s.read == 0 {
		lines = append(lines, "no samples")
	}
	missing := s.missing.MissingSummary
	if s.info.LabelType.Incomplete {
		missing.Labels, missing.Rows = 0, s.missing.lacking
	}
	if missing.Rows > 0 {
		lines = append(lines, missing.fault(&s.info))
	}
	if l := s.single; !s.singleLabel && s.info.LabelType.Bounds == nil && l.Seen > 0 && (l.Low != 1 || l.High != 1) {
		lines = append(lines, l.Single(&s.info).String())
		s.below, s.empty, s.uneven = rowTally{}, rowTally{}, rowTally{}
	}
	uneven := errtext.Sprintf("{normalize} divides the labels of each sample by their sum; {labels} tells how to read " +
		"labels that are not probabilities")
	if s.info.CountedFrom != "" && !slices.ContainsFunc(s.labels, func(c featurestats.Column) bool { return c.Fraction }) {
		uneven = dataset.ClassListHint
	}
	for _, f := range []struct {
		rowTally
		what string
		hint errtext.Text
	}{
		{s.below, "with a negative label", errtext.Sprintf(
			"probabilities must be 0 or more: {label-columns} lists the label columns, {labels=age} or {labels:class} reads a " +
				"single label column, and {labels:bounded} targets that are real numbers")},
		{s.empty, "whose labels are all 0", "such samples have no label distribution" + dataset.DropHint},
		{s.uneven, "whose labels do not sum to 1", uneven},
	} {
		if f.n > 0 {
			lines = append(lines, fmt.Sprintf("found %s %s, the first in row %d; %s", dataset.Counted(f.n, "sample"), f.what,
				f.first, f.hint))
		}
	}
	if s.refused > 0 {
		lines = append(lines, fmt.Sprintf("found %s with an invalid exact number, interval, group or weight, such as %v",
			dataset.Counted(s.refused, "sample"), s.firstRefused))
	}
	if n := s.nonFinite.count; n > 0 {
		lines = append(lines, fmt.Sprintf("%v (%s)", s.nonFinite.first, dataset.Counted(n, "such value")))
	}
	return lines
}

// fault says how many values are missing, and which options accept them.
func (m *MissingSummary) fault(info *dataset.Info) string {
	hint := dataset.Missing{}.Hint(dataset.OfFeature)
	if m.Labels > 0 || m.Images > 0 {
		hint = dataset.DropHint
		if m.Labels > 0 && info.Labels > 1 && !info.LabelType.Classes && info.LabelType.Scale == nil {
			hint += dataset.IncompleteHint
		}
	}
	var parts []string
	for _, c := range []struct {
		n    int
		noun string
	}{{m.Values, "feature"}, {m.Labels, "label"}, {m.Images, "image name"}} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 missing "+c.noun)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%s missing %ss", units.Count(c.n), c.noun))
		}
	}
	return fmt.Sprintf("found %s with missing values: %s%s", dataset.Counted(m.Rows, "sample"),
		strings.Join(parts, " and "), hint)
}

// nonFiniteValues are the values of features and labels that an import refuses since they are not finite as float32.
// Missing values are none.
type nonFiniteValues struct {
	first *dataset.RowError
	count int
}

// add adds the values of a row; info describes its source.
func (u *nonFiniteValues) add(info *dataset.Info, r *dataset.Row) {
	for i, v := range r.Values {
		if r.Sparse {
			i = int(r.Columns[i])
		}
		u.addValue(r.Number, "feature", i, info.FeatureNames, v)
	}
	if r.LeftOut {
		return
	}
	for i, v := range r.Labels {
		u.addValue(r.Number, "label", i, info.LabelNames, v)
	}
}

func (u *nonFiniteValues) addValue(row int, kind string, column int, names []string, v float64) {
	if !math.IsInf(float64(float32(v)), 0) {
		return
	}
	if u.count++; u.count == 1 {
		u.first = &dataset.RowError{
			Row: row, Column: column, Kind: kind, Name: dataset.NameAt(names, column), Reason: importer.NotFinite(v, ""),
		}
	}
}
