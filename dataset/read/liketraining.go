package read

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// given adds the options of o, which Open checked, to what the reader of the file found.
func given(r dataset.Reading, kind *fileKind, o *OpenOptions) dataset.Reading {
	r.Kind = familyNames[kind.family]
	r.LabelColumns, r.LabelPrefix = o.Labels.Columns, append([]string(nil), o.Labels.Prefixes...)
	if r.Labels = o.Labels.Kind; r.Labels == dataset.Age {
		r.Sigma = o.Labels.Sigma
	}
	if r.Labels == dataset.Age || o.Labels.Ordered {
		r.Range = fmt.Sprintf("%d:%d", o.Labels.Low, o.Labels.High)
	}
	r.Bounds = pairs(o.Labels.Bounds)
	r.Values, r.Intervals, r.Groups = o.Beside.Values, o.Beside.Intervals, o.Beside.Groups
	r.Weights = o.Beside.Weights
	if r.RowNames == "" {
		r.RowNames = o.CSV.RowNames
	}
	r.ReadColumns, r.FeatureColumns, r.Drop, r.Header = o.Columns, o.FeatureColumns, o.Drop, o.CSV.Header
	if o.CSV.Delimiter == '\t' {
		r.Delimiter = tabWord
	} else if o.CSV.Delimiter != 0 {
		r.Delimiter = string(o.CSV.Delimiter)
	}
	if o.CSV.Thousands != 0 {
		r.Thousands = string(o.CSV.Thousands)
	}
	r.Decimal, r.Encoding, r.Missing = o.CSV.Decimal, o.Encoding, o.Missing.String()
	r.FeaturesVariable, r.LabelsVariable, r.ZeroBased, r.DataFormat, r.Shape = o.Arrays.FeaturesVariable,
		o.Arrays.LabelsVariable, o.Libsvm.ZeroBased, o.Format, o.Shape
	for _, f := range [...]struct{ name, path string }{{"names", o.NamesFile}, {"labels_file", o.Arrays.LabelsFile},
		{"images", o.CSV.Images}} {
		if f.path != "" {
			r.Files = append(r.Files, f.name)
		}
	}
	return r
}

// passing notes which columns of a CSV file with these names were dropped.
func passing(r *dataset.Reading, names []string, c *csvColumns, o *OpenOptions) {
	if r.Columns = c.width; len(names) == 0 {
		return
	}
	if o.CSV.RowNames != "" && c.rowName >= 0 && names[c.rowName] != "" {
		r.RowNames = names[c.rowName]
	}
	if r.Chosen = len(o.FeatureColumns)+len(o.Columns) > 0; r.Chosen || len(o.Drop) == 0 {
		return
	}
	dropped, _ := findColumns(names, len(names), o.Drop) // chooseColumns found them
	if r.Chosen = len(dropped) > dataset.MaxDropped; r.Chosen {
		return
	}
	for _, i := range dropped {
		r.Dropped = append(r.Dropped, dataset.DroppedColumn{Name: names[i], At: i})
	}
}

// likeTraining takes from the reading of the model's file what o leaves open, if the file is of
// a kind that it applies to.
func (o *OpenOptions) likeTraining(path string) {
	r := &o.set.schema.Reading
	kind, err := kindOf(path, o)
	if err != nil {
		return // Open says so
	}
	take := func(name string, dst *string, value string) {
		if *dst == "" && value != "" {
			*dst = value
			o.took(name, value)
		}
	}
	if kind.family == csvFiles || kind.family == libsvmFiles || kind.family == arffFiles {
		if start, _ := textStart(path, 4); markOf(start) == "" {
			take("encoding", &o.Encoding, r.Encoding)
		}
	}
	switch kind.family {
	case csvFiles:
		if o.CSV.Header == dataset.HeaderAuto && r.Header != dataset.HeaderAuto {
			o.CSV.Header = r.Header
			o.took("header", string(r.Header))
		}
		if d, err := ParseDelimiter(r.Delimiter); err == nil && o.CSV.Delimiter == 0 && !kind.tabs {
			o.CSV.Delimiter = d
			o.took("delimiter", r.Delimiter)
		}
		if o.CSV.Thousands == 0 || string(o.CSV.Thousands) != r.Decimal {
			take("decimal", &o.CSV.Decimal, r.Decimal)
		}
		if m, err := ParseThousands(r.Thousands); err == nil && o.CSV.Thousands == 0 && o.CSV.Decimal != r.Thousands {
			o.CSV.Thousands = m
			o.took("thousands", r.Thousands)
		}
	case matFiles, npzFiles:
		take("features-variable", &o.Arrays.FeaturesVariable, r.FeaturesVariable)
		if o.NoLabels {
			return
		}
		take("labels-variable", &o.Arrays.LabelsVariable, r.LabelsVariable)
		if o.sameScale() && !IsTable(r.Kind) {
			take("values", &o.Beside.Values, r.Values)
			o.takeIntervals()
		}
	}
}

// sameScale reports whether the labels of the file are what those of the model's file were.
func (o *OpenOptions) sameScale() bool {
	r := &o.set.schema.Reading
	return r.Range != "" && o.Labels.Kind == r.Labels
}

func (o *OpenOptions) takeIntervals() {
	if r := &o.set.schema.Reading; len(o.Beside.Intervals) == 0 && len(r.Intervals) == 2 {
		o.Beside.Intervals = r.Intervals
		o.took("intervals", dataset.ListFlag("intervals", r.Intervals...).Value)
	}
}

// took notes that an option is that of the model's file.
func (o *OpenOptions) took(name, value string) {
	*o.set.taken = append(*o.set.taken, dataset.Option{Name: name, Value: value})
}

// columnsLikeTraining is o with the columns of a CSV file of n columns that were given for the
// model's file and are in this file too; names is nil if the file has no header.
func (o *OpenOptions) columnsLikeTraining(names []string, n int) *OpenOptions {
	if !IsTable(o.set.schema.Reading.Kind) {
		return o
	}
	r, like := &o.set.schema.Reading, *o
	headerless := len(o.set.schema.LabelColumns.Positions) > 0 // the model's file
	if names == nil && (!headerless || n != r.Columns) {
		return o
	}
	like.takeCategories(names, headerless)
	has := func(columns ...string) bool {
		return names == nil || !headerless && !slices.ContainsFunc(columns, func(c string) bool {
			return !slices.Contains(names, c)
		})
	}
	if o.CSV.RowNames == "" && r.RowNames != "" && has(r.RowNames) {
		like.CSV.RowNames = r.RowNames
		like.took("row-names", r.RowNames)
	}
	if !o.NoLabels && o.sameScale() {
		if o.Beside.Values == "" && r.Values != "" && has(r.Values) {
			like.Beside.Values = r.Values
			like.took("values", r.Values)
		}
		if has(r.Intervals...) {
			like.takeIntervals()
		}
	}
	if names != nil {
		like.tellDropped(names)
		return &like
	}
	if len(o.FeatureColumns)+len(o.Drop)+len(o.Columns) == 0 {
		like.chooseAsTrained()
	}
	if len(r.FeatureColumns) > 0 {
		return &like
	}
	// Groups, weights, exact numbers and intervals of the model's file that are read as nothing else are dropped.
	like.Drop = slices.Clone(like.Drop)
	of := &BesideOptions{Values: r.Values, Intervals: r.Intervals, Groups: r.Groups, Weights: r.Weights}
	for _, name := range of.names() {
		i, err := findColumn(nil, n, name)
		if err == nil && !slices.Contains(o.set.schema.LabelColumns.Positions, i) &&
			!slices.Contains(like.Beside.names(), name) {
			like.Drop = append(like.Drop, name)
		}
	}
	return &like
}

// takeCategories finds the categories of the model in the columns of a file.
func (o *OpenOptions) takeCategories(names []string, headerless bool) {
	var taken []string
	for _, k := range o.set.schema.Reading.Categories {
		if names != nil {
			if k.At = slices.Index(names, k.Name); headerless || k.At < 0 {
				continue
			}
		}
		if o.set.categories = append(o.set.categories, k); !slices.Contains(o.CSV.Categories, k.Name) {
			taken = append(taken, k.Name)
		}
		o.Features -= len(k.Levels) - 1 // of columns
	}
	if len(taken) > 0 {
		o.took("categories", dataset.ListFlag("categories", taken...).Value)
	}
}

// tellDropped notes which columns of a file are ignored as those of the model's file were.
func (o *OpenOptions) tellDropped(names []string) {
	if len(o.FeatureColumns) > 0 {
		return
	}
	var passed []string
	for i, name := range names {
		if o.set.known.passes(names, i) && !slices.Contains(o.Drop, name) && !o.set.known.label(name) &&
			!o.set.known.beside[name] && name != o.CSV.RowNames {
			passed = append(passed, name)
		}
	}
	if n := len(passed); n > featurestats.WarningNames {
		passed = append(passed[:featurestats.WarningNames], "...")
	}
	if len(passed) > 0 {
		o.took("drop", dataset.ListFlag("drop", passed...).Value)
	}
}

// choosesAsTrained reports whether the model's file was no CSV file and not all of its features
// were read.
func (o *OpenOptions) choosesAsTrained() bool {
	if o.set.schema == nil {
		return false
	}
	r := &o.set.schema.Reading
	return !IsTable(r.Kind) && len(r.FeatureColumns)+len(r.Drop) > 0
}

// chooseLikeTraining has those features of a file that is no CSV file chosen that were chosen
// from the model's file, if the file has as many. A sparse file without names may have fewer.
func (o *OpenOptions) chooseLikeTraining(p *pipeline) *pipeline {
	if !o.choosesAsTrained() {
		return p
	}
	r, info := &o.set.schema.Reading, p.info
	if info.Sparse && len(info.FeatureNames) == 0 && info.Features < r.Columns {
		info.Features = r.Columns
		p = p.described(info)
	}
	if info.Features != r.Columns {
		return p
	}
	for _, list := range [][]string{r.FeatureColumns, r.Drop} {
		if _, err := findColumns(info.FeatureNames, info.Features, list); err != nil {
			return p
		}
	}
	o.chooseAsTrained()
	return p
}

// chooseAsTrained takes the lists of columns from the reading of the model's file.
func (o *OpenOptions) chooseAsTrained() {
	r := &o.set.schema.Reading
	o.Columns, o.FeatureColumns, o.Drop = r.ReadColumns, r.FeatureColumns, r.Drop
	chosen := dataset.Reading{ReadColumns: r.ReadColumns, FeatureColumns: r.FeatureColumns, Drop: r.Drop}
	for _, option := range chosen.Options() {
		o.took(option.Name, option.Value)
	}
}

// note lists the options that come from the model's file. It is empty if there are no such options.
func (o *OpenOptions) note() errtext.Text {
	var all []errtext.Text
	for _, option := range *o.set.taken {
		all = append(all, option.Text())
	}
	if len(all) == 0 {
		return ""
	}
	return errtext.Sprintf("read with the options of the training file: %s (options that are given override these)",
		errtext.Join(all, " "))
}

// withNote returns p with a note about how it was read, unless that is empty.
func withNote(p *pipeline, note errtext.Text) *pipeline {
	if note == "" {
		return p
	}
	info := p.info
	info.Notes = append(slices.Clone(info.Notes), note)
	return p.described(info)
}
