// Package read reads data files: CSV, libsvm, MATLAB and NumPy files become sources of rows. A reader of one format
// knows only its format. What users ask for beyond that happens to its rows afterwards, in Open: missing values, labels
// made of ages, classes or counts, images and names.
package read

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Open opens a data file of the kind that its name ends in: .mat (MATLAB v5), .npz, .npy (features; see
// ArrayOptions.LabelsFile), .csv, .tsv, .libsvm or .svm. The last four may also end in .gz. FORMAT.md says what each
// must hold. A path that begins with { is a JSON object with the .npy files of a dataset. A folder, or a pattern such
// as part-*.parquet, has the .parquet files of a dataset.
//
// Labels are in the columns of LabelOptions.Columns or in ArrayOptions.LabelsVariable. If neither is given, a variable
// or column called "age" or "class" has the labels of these kinds; in CSV files also "label", "target" or "y". Else the
// variable "labels" or the columns with a label prefix have them.
//
// Errors name the file. They wrap dataset.ErrFormat, ErrNoLabels, ErrRowCount or fs.ErrNotExist if these apply, and are
// a *dataset.RowError if a row is wrong. Package importer checks the values.
func Open(path string, o OpenOptions) (dataset.Source, error) {
	o.Called = cmp.Or(o.Called, CalledOf(path))
	if err := o.check(); err != nil {
		return nil, err
	}
	size, err := sizeOf(path, o.Called)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(path, &o)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s: %s", o.Called, emptyFile)
	}
	var names *Names
	if o.NamesFile != "" {
		if names, err = ReadNames(o.NamesFile); err != nil {
			return nil, err
		}
		o.Labels.order = names.Labels
	}
	o.set.size, o.set.modelFeatures, o.set.tabs = size, o.Features, kind.tabs
	p, err := kind.read(path, &o)
	if err != nil {
		return nil, err
	}
	if !o.Missing.Refuses() || !o.NoLabels && o.Labels.Kind == dataset.Incomplete {
		p = withMissing(p, &o)
	}
	if !o.NoLabels {
		if p, err = withLabels(p, &o); err != nil {
			return nil, err
		}
	}
	if o.CSV.Images != "" {
		if p, err = withImages(p, &o); err != nil {
			return nil, err
		}
	}
	if names != nil {
		named, err := WithNames(p, o.NamesFile, names)
		if err != nil {
			return nil, err
		}
		p = pipelineOf(named)
	}
	described := p.info
	described.FeatureNames, described.LabelNames = dataset.CleanNames(described.FeatureNames),
		dataset.CleanNames(described.LabelNames)
	described.Missing, described.Reading = o.Missing, given(described.Reading, kind, &o)
	if o.Shape != (dataset.Shape{}) {
		described.Shape = o.Shape
	}
	return p.described(described), described.Check()
}

// check returns an error for options that contradict each other, and takes blanks off the ends of names.
func (o *OpenOptions) check() error {
	switch l := &o.Labels; {
	case o.NoLabels:
	case l.Kind == dataset.Class && l.Ordered:
		return errors.New("classes are not numeric")
	case l.Kind == dataset.Incomplete && l.Ordered:
		return dataset.OptionErrorf("{range} cannot be used with {labels=incomplete}: labels with missing degrees are not " +
			"numeric")
	case l.Kind != dataset.Age && !l.Ordered:
	case l.Kind == dataset.Age && (!(l.Sigma > 0) || math.IsInf(l.Sigma, 0)):
		return fmt.Errorf("sigma %v: want a number above 0", l.Sigma)
	case l.Low >= l.High || l.High-l.Low >= dataset.MaxLabels || l.Low < -dataset.MaxNumber || l.High >= dataset.MaxNumber:
		return errtext.Errorf(errtext.WrongOption, "range {range:%d:%d}: want {range:LOW:HIGH} with the lower number "+
			"first, at most %d numbers, and all numbers from %d to %d", l.Low, l.High, dataset.MaxLabels, -dataset.MaxNumber,
			dataset.MaxNumber-1)
	}
	if err := o.Labels.checkBounded(); err != nil {
		return err
	}
	for _, list := range []*[]string{&o.Labels.Columns, &o.Columns, &o.FeatureColumns, &o.Drop, &o.CSV.Categories,
		&o.Beside.Intervals} {
		*list = dataset.Trimmed(*list)
	}
	for _, name := range []*string{&o.CSV.RowNames, &o.Beside.Values, &o.Beside.Groups,
		&o.Beside.Weights} {
		*name = strings.TrimSpace(*name)
	}
	if n := len(o.Beside.Intervals); n != 0 && n != 2 {
		return fmt.Errorf("intervals: want two columns, with the lowest and the highest number of each sample, got %d", n)
	}
	switch channels := o.Shape.Channels; {
	case o.CSV.Images == "":
	case o.Shape == dataset.Shape{}:
		return dataset.OptionErrorf("{images} needs {shape}, the size of the images, such as {shape:1x32x32} (grey) or " +
			"{shape:3x32x32} (red, green, blue)")
	case channels != images.Grey && channels != images.RGB:
		return dataset.OptionErrorf("{shape=%v} has %d channels, want 1 (grey) or 3 (red, green, blue)", o.Shape, channels)
	case len(o.FeatureColumns)+len(o.Drop) > 0:
		return dataset.OptionErrorf("{images} cannot be combined with {feature-columns} or {drop}, because the features " +
			"are the pixels of the images")
	}
	return nil
}

// sizeOf returns the size of the file that Open reads, or of all files of a JSON object, a folder or a pattern.
func sizeOf(path, called string) (fileSize, error) {
	if info, err := os.Stat(path); !IsNamedArrays(path) && err == nil && info.IsDir() || IsPattern(path) {
		return severalSize(path)
	}
	if !IsNamedArrays(path) {
		return regularSize(path, called, "pass the data on stdin (-), with --data-format")
	}
	arrays, err := parseNamedArrays(path)
	if err != nil {
		return 0, err
	}
	var total fileSize
	for _, a := range arrays {
		n, err := regularSize(a.path, fmt.Sprintf("%s: array %q", called, a.name), "give a regular file")
		if errors.As(err, new(*fs.PathError)) {
			err = fmt.Errorf("%s: array %q: %w", called, a.name, err)
		}
		if err == nil && n == 0 {
			err = dataset.Errorf(dataset.ErrFormat, "%s: array %q: %s", called, a.name, emptyFile)
		}
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// severalSize returns the size of the files of a folder or of a pattern.
func severalSize(path string) (total fileSize, err error) {
	files, err := filesOf(path)
	if err != nil {
		return 0, pathError(path, err)
	}
	for _, name := range files {
		n, err := regularSize(name, name, "give a regular file")
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Size returns the size of the file that Open reads for a path, or of all files of a folder or of a pattern. An error
// wraps fs.ErrNotExist if there is none.
func Size(path string) (int64, error) {
	n, err := sizeOf(path, CalledOf(path))
	return int64(n), err
}

// regularSize returns the size of a regular file. Messages call the file called; advice says
// what to do about a pipe.
func regularSize(path, called, advice string) (fileSize, error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return 0, err
	case info.IsDir():
		return 0, fmt.Errorf("%s: this is a folder, want a data file", called)
	case info.Mode().IsRegular():
		return fileSize(info.Size()), nil
	}
	return 0, fmt.Errorf("%s: a pipe or device cannot be read twice; %s", called, advice)
}

// openers open the files of each family.
var openers = [...]func(path string, o *OpenOptions) (dataset.Source, error){
	matFiles: openMAT, npzFiles: openNPZ, npyFiles: openNPY, csvFiles: openTableSource,
	libsvmFiles: openLibsvm, arffFiles: openTableSource, parquetFiles: openTableSource,
}

// read opens a file of this kind, with the features that o asks for.
func (k *fileKind) read(path string, o *OpenOptions) (*pipeline, error) {
	if err := k.check(o); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Called, err)
	}
	rest := *o
	if k.family.isTable() {
		src, err := openers[k.family](path, o)
		if err != nil {
			return nil, err
		}
		return pipelineOf(src), nil
	}
	chosen := len(o.FeatureColumns)+len(o.Drop) > 0
	if chosen || o.choosesAsTrained() {
		rest.Features = 0 // of the file there may be more or fewer
	}
	src, err := openers[k.family](path, &rest)
	if err != nil {
		return nil, err
	}
	p := pipelineOf(src)
	if rest = *o; !chosen {
		p = rest.chooseLikeTraining(p)
	}
	columns := p.info.Features
	if p, err = withColumns(p, &rest); err != nil {
		return nil, err
	}
	info := p.info
	info.Reading.Columns = columns
	return p.described(info), nil
}

// selectedColumns selects features, in the order asked for.
type selectedColumns struct {
	all      int          // the number of features that there are
	info     dataset.Info // of the selected features
	features []int        // the selected features by their numbers
	index    map[int]int  // by number: the index in features
}

// withColumns returns p with only the features that o asks for. It is for all kinds of
// files but CSV; columns are features here.
func withColumns(p *pipeline, o *OpenOptions) (*pipeline, error) {
	if len(o.FeatureColumns)+len(o.Drop) == 0 {
		return p, nil
	}
	s := &selectedColumns{all: p.info.Features, info: p.info, index: map[int]int{}}
	names := s.info.FeatureNames
	c := csvColumns{used: make([]bool, s.all)}
	_, err := c.take(names, o.Drop)
	if err == nil {
		s.features, err = c.take(names, o.FeatureColumns)
	}
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	if len(o.FeatureColumns) == 0 {
		s.features = c.free()
	}
	s.info.Features, s.info.FeatureNames, s.info.Shape = len(s.features), nil, dataset.Shape{}
	for i, old := range s.features {
		s.index[old] = i
		if names != nil {
			s.info.FeatureNames = append(s.info.FeatureNames, names[old])
		}
	}
	s.info.Notes = slices.Concat(s.info.Notes, o.numberNotes(names))
	return p.after(simple(s.begin), s.info), nil
}

// begin begins a scan.
func (s *selectedColumns) begin() func(*dataset.Row) error {
	p := selectedRow{selectedColumns: s}
	return func(r *dataset.Row) error {
		if r.Sparse {
			p.sparse(r)
			r.Columns = p.columns
		} else if err := p.dense(r); err != nil {
			return err
		}
		r.Values = p.values
		return nil
	}
}

// selectedRow is the selected features of one row.
type selectedRow struct {
	*selectedColumns
	columns  []uint32 // of a sparse row: as Row.Columns
	values   []float64
	selected []entry // of a sparse row, in the order of the file
}

// entry is a value of a sparse row.
type entry struct {
	column uint32
	value  float64
}

// dense sets p to the selected features of a dense row.
func (p *selectedRow) dense(r *dataset.Row) error {
	if want := p.all; len(r.Values) != want {
		return dataset.RowErrorf(p.info.File, r.Number, "found %d features, want %d", len(r.Values), want)
	}
	p.values = p.values[:0]
	for _, i := range p.features {
		p.values = append(p.values, r.Values[i])
	}
	return nil
}

// sparse sets p to the selected features of a sparse row, in ascending order of columns.
func (p *selectedRow) sparse(r *dataset.Row) {
	p.selected = p.selected[:0]
	for j, column := range r.Columns {
		if i, ok := p.index[int(column)]; ok {
			p.selected = append(p.selected, entry{uint32(i), r.Values[j]})
		}
	}
	slices.SortFunc(p.selected, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	p.columns, p.values = p.columns[:0], p.values[:0]
	for _, e := range p.selected {
		p.columns, p.values = append(p.columns, e.column), append(p.values, e.value)
	}
}

// filling fills, drops or refuses missing values (NaN).
type filling struct {
	info    dataset.Info
	missing dataset.Missing
	classes bool            // labels are Row.text
	degrees bool            // labels are degrees or counts, and one is above 0
	partial bool            // degrees of labels may be missing
	images  bool            // names are names of images
	label   dataset.ValueOf // what labels are
}

// begin begins a scan.
func (s *filling) begin() func(*dataset.Row) error {
	var values []float64
	s.info.MissingWords.Rows = nil
	return func(r *dataset.Row) error {
		label := -1
		if !s.partial {
			label = slices.IndexFunc(r.Labels, math.IsNaN)
		}
		feature := slices.IndexFunc(r.Values, math.IsNaN)
		noClass := s.classes && numbers.IsMissing(r.Text)
		unlabelled := label >= 0 || noClass || importer.MissingBeside(&s.info, r) != ""
		if noClass {
			s.info.MissingWords.Add(r.Text, r.Number)
		}
		if unlabelled && s.info.HasGroups && numbers.IsMissing(r.Group) {
			s.info.MissingWords.Add(r.Group, r.Number)
		}
		switch {
		case s.missing.Keep, s.missing.Drop:
			r.Lack = s.lackOf(r, feature >= 0 && s.missing.Drop || unlabelled)
			r.LeftOut = r.Lack != dataset.LacksNothing
		case label >= 0:
			return &dataset.RowError{
				File: s.info.File, Row: r.Number, Column: label, Kind: "label", Name: dataset.NameAt(s.info.LabelNames, label),
				Reason: "the label is missing, and missing labels cannot be filled" + s.missing.Hint(s.label),
			}
		case feature >= 0 && s.missing.Fill:
			values = append(values[:0], r.Values...)
			for i, v := range values {
				if math.IsNaN(v) {
					values[i] = s.missing.Value
				}
			}
			r.Values = values
		}
		return nil
	}
}

// lackOf returns what a row lacks; value: a value of it is missing.
func (s *filling) lackOf(r *dataset.Row, value bool) dataset.Lack {
	switch {
	case s.images && numbers.IsMissing(r.Name):
		return dataset.LacksImage
	case value:
		return dataset.LacksValue
	case s.degrees && len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, func(v float64) bool { return v != 0 }):
		return dataset.LacksDegrees
	}
	return dataset.LacksNothing
}

// withMissing applies o.Missing, which does not refuse missing values, to the rows of p.
func withMissing(p *pipeline, o *OpenOptions) *pipeline {
	s := &filling{info: p.info, missing: o.Missing, classes: !o.NoLabels && o.Labels.Kind == dataset.Class,
		images: o.CSV.Images != "", partial: !o.NoLabels && o.Labels.Kind == dataset.Incomplete,
		label: valueOf(o.Labels.Kind)}
	s.degrees = !o.NoLabels && (o.Labels.Kind == dataset.Counts || o.Labels.Kind == dataset.Distributions &&
		!o.Missing.Keep)
	if s.info.Missing = o.Missing; o.Missing.Drop {
		s.info.Rows = -1
	}
	if s.info.MissingWords == nil {
		s.info.MissingWords = &dataset.WordCounts{}
	}
	return p.after(simple(s.begin), s.info)
}

// withFill fills the missing features of p with what the model of s keeps for them.
func withFill(p *pipeline, s *dataset.Schema) (*pipeline, error) {
	switch by := p.info.Missing.By; {
	case by == "":
		return p, nil
	case s.Fills() && by != s.Reading.Missing:
		return nil, dataset.OptionErrorf("{missing=%s}: the model has the %s of its training samples but not the %s: give "+
			"{missing=%[2]s}, as in training", by, s.Reading.Missing, by)
	case !s.Fills():
		return nil, dataset.OptionErrorf("{missing=%s}: the model does not have the %s of its training samples, because it "+
			"was trained without missing values or with another {missing}", by, by)
	}
	return p.after(simple(func() func(*dataset.Row) error {
		var values []float64
		return func(r *dataset.Row) error {
			if !slices.ContainsFunc(r.Values, math.IsNaN) {
				return nil
			}
			values = append(values[:0], r.Values...)
			for i, v := range values {
				column := i
				if r.Sparse {
					column = int(r.Columns[i])
				}
				if math.IsNaN(v) && column < len(s.Fill) {
					values[i] = s.Fill[column]
				}
			}
			r.Values = values
			return nil
		}
	}), p.info), nil
}

// OpenFor is Open for a model: rows have the features and, unless o.NoLabels, the labels of s
// in the order of s. If both the file and s have names, columns are matched by name, and the
// names must be the same; otherwise columns are matched by position. Label columns that s
// knows need not be in LabelOptions.Columns. A sparse file without names may have fewer
// features than s: the others are 0. The file is read as s.Reading says, except for what o
// gives: o.Labels, o.Missing and o.CountedFrom are taken from o alone.
func OpenFor(path string, o OpenOptions, s *dataset.Schema) (dataset.Source, *Matching, error) {
	o.Missing.Model = s
	p, m, err := openLike(path, o, s, func(p *pipeline) (*pipeline, error) { return withFill(boundsOfModel(p, s), s) })
	if err != nil {
		return nil, nil, err
	}
	return p, m, nil
}

// openLike opens a file as OpenFor does. The last step of its rows is from end.
func openLike(path string, o OpenOptions, s *dataset.Schema, end func(*pipeline) (*pipeline, error)) (*pipeline,
	*Matching, error) {
	taken := slices.Clone(o.AsTrained)
	o.Features, o.set.schema, o.set.taken = s.Features, s, &taken
	o.likeTraining(path)
	o.set.known = knownColumnsOf(s, o.Labels.LabelPrefixes())
	if o.CSV.Images != "" && o.Shape == (dataset.Shape{}) {
		o.Shape = s.Shape
	}
	if o.Labels.Kind == dataset.Class {
		o.Labels.Classes = s.LabelNames
	}
	src, err := Open(path, o)
	var p *pipeline
	var m *Matching
	if err == nil {
		if p, m, err = project(src, s, !o.NoLabels); err != nil && o.set.validates != "" {
			err = errtext.Errorf(errtext.WrongData, "%w; here, the model has the columns of %s", err, o.set.validates)
		}
	}
	if err == nil {
		p, err = end(p)
	}
	note := o.note()
	advise := func(err error) error {
		if note == "" {
			return err
		}
		return errtext.Errorf(errtext.WrongData, "%w; %s", err, note)
	}
	if err != nil {
		return nil, nil, advise(err)
	}
	p = withNote(p, note)
	p.advise = advise
	return p, m, nil
}

// known returns the columns that s knows. Labels are known by the columns that were trained
// on and by their names, with or without a prefix. A name that a feature also has is the
// feature's.
func knownColumnsOf(s *dataset.Schema, prefixes []string) knownColumns {
	k := knownColumns{
		features: make(map[string]bool), labels: make(map[string]string), beside: make(map[string]bool),
		passed: make(map[string]bool), passedAt: make(map[int]string), width: s.Reading.Columns, chosen: s.Reading.Chosen,
	}
	for _, name := range s.FeatureNames {
		k.features[name] = true
	}
	for i := range s.Reading.Categories {
		k.features[s.Reading.Categories[i].Name] = true
	}
	add := func(column, label string) {
		if column != "" && !k.features[column] {
			k.labels[column] = label
		}
	}
	for _, name := range s.LabelNames {
		for _, p := range prefixes {
			add(p+name, name)
		}
		add(name, name)
	}
	for i, column := range s.LabelColumns.Names {
		add(column, "")
		if len(s.LabelNames) == len(s.LabelColumns.Names) {
			add(column, s.LabelNames[i])
		}
	}
	for _, column := range s.LabelColumns.Beside {
		if column != "" && !k.features[column] {
			k.beside[column] = true
		}
	}
	for _, p := range s.Reading.Dropped {
		if p.Name == "" || k.features[p.Name] {
			k.passedAt[p.At] = p.Name
		} else {
			k.passed[p.Name] = true
		}
	}
	return k
}
