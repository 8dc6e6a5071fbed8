// Package read reads data files: CSV, libsvm, MATLAB and NumPy files become sources of rows. A reader of one format knows
// only its format. What users ask for beyond that happens to its rows afterwards, in Open: missing values, labels made of
// ages, classes or counts, images and names.
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
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Open opens a data file of the kind that its name ends in: .mat (MATLAB v5), .npz, .npy (features; see
// ArrayOptions.LabelsFile), .csv, .tsv, .libsvm or .svm. The last four may also end in .gz. FORMAT.md says what each must
// hold. A path that begins with { is a JSON object with the .npy files of a dataset.
//
// Labels are in the columns of LabelOptions.Columns or in ArrayOptions.LabelsVariable. If neither is given, a variable or
// column called "age" or "class" has the labels of these kinds; in CSV files also "label", "target" or "y". Else the
// variable "labels" or the columns with a label prefix have them.
//
// Errors name the file. They wrap dataset.ErrFormat, ErrNoLabels, ErrRowCount or fs.ErrNotExist if these apply, and are a
// *dataset.RowError if a row is wrong. Package importer checks the values.
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
	if !o.Missing.Refuses() {
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
	described.FeatureNames, described.LabelNames = dataset.CleanNames(described.FeatureNames), dataset.CleanNames(described.LabelNames)
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
	case l.Kind != dataset.Age && !l.Ordered:
	case l.Kind == dataset.Age && (!(l.Sigma > 0) || math.IsInf(l.Sigma, 0)):
		return fmt.Errorf("sigma %v: want a number above 0", l.Sigma)
	case l.Low >= l.High || l.High-l.Low >= dataset.MaxLabels || l.Low < -dataset.MaxNumber || l.High >= dataset.MaxNumber:
		return errtext.Errorf(errtext.WrongOption, "range {range:%d:%d}: want {range:LOW:HIGH} with the lower number first, at most %d numbers, and all numbers from %d to %d", l.Low, l.High, dataset.MaxLabels, -dataset.MaxNumber, dataset.MaxNumber-1)
	}
	for _, list := range []*[]string{&o.Labels.Columns, &o.FeatureColumns, &o.Drop, &o.CSV.Categories, &o.Beside.Intervals} {
		*list = dataset.Trimmed(*list)
	}
	for _, name := range []*string{&o.CSV.RowNames, &o.Beside.Values, &o.Beside.Groups} {
		*name = strings.TrimSpace(*name)
	}
	if n := len(o.Beside.Intervals); n != 0 && n != 2 {
		return fmt.Errorf("intervals: want two columns, with the lowest and the highest number of each sample, got %d", n)
	}
	switch channels := o.Shape.Channels; {
	case o.CSV.Images == "":
	case o.Shape == dataset.Shape{}:
		return dataset.OptionErrorf("{images} needs {shape}, the size of the images, such as {shape:1x32x32} (grey) or {shape:3x32x32} (red, green, blue)")
	case channels != images.Grey && channels != images.RGB:
		return dataset.OptionErrorf("{shape=%v} has %d channels, want 1 (grey) or 3 (red, green, blue)", o.Shape, channels)
	case len(o.FeatureColumns)+len(o.Drop) > 0:
		return dataset.OptionErrorf("{images} cannot be combined with {feature-columns} or {drop}, because the features are the pixels of the images")
	}
	return nil
}

// sizeOf returns the size of the file that Open reads, or of all files of a JSON object.
func sizeOf(path, called string) (fileSize, error) {
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
	matFiles: openMAT, npzFiles: openNPZ, npyFiles: openNPY, csvFiles: openCSV, libsvmFiles: openLibsvm,
}

// read opens a file of this kind, with the features that o asks for.
func (k *fileKind) read(path string, o *OpenOptions) (*pipeline, error) {
	if err := k.check(o); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Called, err)
	}
	rest := *o
	if k.family == csvFiles {
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
