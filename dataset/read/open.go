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
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// OpenOptions says how Open reads a file; the zero value reads features and
// label distributions.
type OpenOptions struct {
	Labels LabelOptions
	Beside BesideOptions
	// NoLabels reads features only: labels, where the file has them, are passed
	// over, as prediction wants it.
	NoLabels bool
	// LabelsFile is the .npy file with the labels of a .npy file; empty: the same
	// name with its last "features" replaced by "labels".
	LabelsFile string
	// NamesFile is a JSON file with names, see FORMAT.md; names that the file has must be the same.
	NamesFile string
	// Features, where not 0, is the number of features that a model reads: a
	// libsvm file without names has at least as many, and a CSV file with NoLabels
	// and just so many columns has no label column.
	Features int
	// Header says whether a CSV file's first line is a header; "" takes it for one
	// if it has no number, or has one of the names that are looked for.
	Header dataset.Header
	// RowNames is the CSV column with row names, by header or number from 0;
	// empty: a column called "row_name" or "name", or a first one without name.
	RowNames string
	// Delimiter stands between the columns of a CSV file; 0: a comma, semicolon,
	// tab or pipe, as the first lines show.
	Delimiter rune
	// Decimal comes before the decimals of a CSV file: "." or ","; empty: a point,
	// or a comma where the first lines show it and columns are not cut by commas.
	Decimal string
	// Thousands stands between thousands in the numbers of a CSV file: a comma, a point, an apostrophe or a
	// blank; 0: nothing. With a comma or point, Decimal is the other one unless it is given.
	Thousands rune
	// Encoding is the encoding of a text file, as ParseEncoding returns it; empty: UTF-8, or what
	// a byte order mark says.
	Encoding string
	// FeatureColumns lists the columns (of a file that is no CSV: the features)
	// to use, as LabelOptions.Columns lists labels, in that order; empty: all that
	// are nothing else. Drop lists columns to pass over.
	FeatureColumns, Drop []string
	// Categories lists columns of a CSV file in the same way: each becomes a feature for each of
	// its levels, see Category. OpenFor adds those of the model.
	Categories []string
	// Unseen, if set, is called for each value of a category of a model that is none of its
	// levels: the category's features are 0 then. nil: such a value is refused.
	Unseen func(row int, category, level string)
	// FeaturesVariable and LabelsVariable are the variables of a .mat or .npz file
	// to read; empty: "features", and for labels see Open.
	FeaturesVariable, LabelsVariable string
	// Shape declares the features as images; the zero value leaves it to the file.
	Shape dataset.Shape
	// Images is a folder with the PNG and JPEG files that the rows of a CSV file name: their
	// pixels, resized to Shape, are the features; empty: the features are columns.
	Images string
	// ZeroBased counts the features of a libsvm file from 0 though no index is 0.
	ZeroBased bool
	// CountedFrom is how the libsvm file that a model was trained on counted features.
	CountedFrom dataset.Counting
	// Missing says what becomes of missing values.
	Missing dataset.Missing
	// Format is the kind of file, as its name would end, without the first point:
	// "csv", "csv.gz", "npz"; empty: see its name.
	Format string
	// Called is how messages call the file; empty: its path.
	Called string
	// AsTrained lists the options that were taken from the file that a model was trained on,
	// for OpenFor, which adds to them and tells them in Info.Notes.
	AsTrained []dataset.Option

	tabs          bool            // the name of the file says that tabs stand between its columns
	schema        *dataset.Schema // of the model that the file is for, see OpenFor
	known         knownColumns
	categories    []dataset.Category // of the model, with their positions in the file
	taken         *[]dataset.Option  // AsTrained and those that OpenFor took
	header        *firstLine         // what OpenFor learns of the first line of a CSV file
	size          fileSize           // of the file, or of all files of arrays
	modelFeatures int                // Features, also where only some columns of the file are used
}

// Open opens a data file of the kind that its name ends in: .mat (MATLAB v5),
// .npz, .npy (features; see OpenOptions.LabelsFile), .csv, .tsv, .libsvm or .svm,
// the last four also with .gz. FORMAT.md says what each must hold. A path that begins with { is a JSON object with the .npy
// files of a dataset.
//
// Labels are taken from where LabelOptions.Columns or OpenOptions.LabelsVariable
// says; otherwise from the variable or columns called "age" or "class" (for these kinds; in CSV also "label", "target" or "y"); otherwise from
// the variable "labels" or the columns with a label prefix.
//
// Errors name the file. They wrap ErrFormat, ErrNoLabels, ErrRowCount or
// fs.ErrNotExist where these apply, and are *RowError where a row is at fault.
// Values are checked by Import, Build and Blocks.
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
	o.size, o.modelFeatures, o.tabs = size, o.Features, kind.tabs
	src, err := kind.read(path, &o)
	if err != nil {
		return nil, err
	}
	if !o.Missing.Refuses() {
		src = withMissing(src, &o)
	}
	if !o.NoLabels {
		if src, err = withLabels(src, &o); err != nil {
			return nil, err
		}
	}
	if o.Images != "" {
		if src, err = withImages(src, &o); err != nil {
			return nil, err
		}
	}
	if names != nil {
		if src, err = WithNames(src, o.NamesFile, names); err != nil {
			return nil, err
		}
	}
	described := src.Info()
	described.FeatureNames, described.LabelNames = dataset.CleanNames(described.FeatureNames), dataset.CleanNames(described.LabelNames)
	described.Missing, described.Reading = o.Missing, given(described.Reading, kind, &o)
	if o.Shape != (dataset.Shape{}) {
		described.Shape = o.Shape
	}
	return &namedSource{Source: src, info: described}, described.Check()
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
	for _, list := range []*[]string{&o.Labels.Columns, &o.FeatureColumns, &o.Drop, &o.Categories, &o.Beside.Intervals} {
		*list = dataset.Trimmed(*list)
	}
	for _, name := range []*string{&o.RowNames, &o.Beside.Values, &o.Beside.Groups} {
		*name = strings.TrimSpace(*name)
	}
	if n := len(o.Beside.Intervals); n != 0 && n != 2 {
		return fmt.Errorf("intervals: want two columns, with the lowest and the highest number of each sample, got %d", n)
	}
	switch channels := o.Shape.Channels; {
	case o.Images == "":
	case o.Shape == dataset.Shape{}:
		return dataset.OptionErrorf("{images} needs {shape}, the size of the images, such as {shape:1x32x32} (grey) or {shape:3x32x32} (red, green, blue)")
	case channels != images.Grey && channels != images.RGB:
		return dataset.OptionErrorf("{shape=%v} has %d channels, want 1 (grey) or 3 (red, green, blue)", o.Shape, channels)
	case len(o.FeatureColumns)+len(o.Drop) > 0:
		return dataset.OptionErrorf("{images} cannot be combined with {feature-columns} or {drop}, because the features are the pixels of the images")
	}
	return nil
}

// emptyFile is what errors say of a file with nothing in it.
const emptyFile = "the file is empty"

// fileFamily groups the kinds of files that differ in their compression only.
type fileFamily int

const (
	matFiles fileFamily = iota
	npzFiles
	npyFiles
	csvFiles
	libsvmFiles
)

// fileKind is a kind of data file.
type fileKind struct {
	format string // as names end, after a point
	family fileFamily
	tabs   bool // between columns, if there are any
	open   func(string, *OpenOptions) (dataset.Source, error)
}

// fileKinds lists what Open knows, in the order of its message.
var fileKinds = []fileKind{
	{"mat", matFiles, false, openMAT},
	{"npz", npzFiles, false, openNPZ},
	{"npy", npyFiles, false, openNPY},
	{"csv", csvFiles, false, openCSV},
	{"csv.gz", csvFiles, false, openCSV},
	{"tsv", csvFiles, true, openCSV},
	{"tsv.gz", csvFiles, true, openCSV},
	{"libsvm", libsvmFiles, false, openLibsvm},
	{"libsvm.gz", libsvmFiles, false, openLibsvm},
	{"svm", libsvmFiles, false, openLibsvm},
	{"svm.gz", libsvmFiles, false, openLibsvm},
}

// Formats lists the kinds of data files that Open reads, as OpenOptions.Format
// names them.
func Formats() (all []string) {
	for _, k := range fileKinds {
		all = append(all, k.format)
	}
	return all
}

// others are kinds of files that Open does not read, with advice for messages.
var others = []struct{ format, advice string }{
	{"xlsx", "save the sheet as CSV"},
	{"xlsm", "save the sheet as CSV"},
	{"xls", "save the sheet as CSV"},
	{"ods", "save the sheet as CSV"},
	{"parquet", "convert the file with pandas: read_parquet(...).to_csv(..., index=False)"},
	{"feather", "convert the file with pandas: read_feather(...).to_csv(..., index=False)"},
	{"pkl", "write the arrays with NumPy: savez(..., features=..., labels=...)"},
	{"pickle", "write the arrays with NumPy: savez(..., features=..., labels=...)"},
	{"h5", "write the arrays with NumPy: savez(..., features=..., labels=...)"},
	{"hdf5", "write the arrays with NumPy: savez(..., features=..., labels=...)"},
	{"rds", "convert the file with R: write.csv(..., row.names=FALSE)"},
	{"rdata", "convert the file with R: write.csv(..., row.names=FALSE)"},
	{"arff", "save it as CSV"},
	{"json", "save it as CSV"},
	{"zip", "decompress the file"},
}

// kindOf returns the kind of a file: o.Format, or what its name ends in.
func kindOf(path string, o *OpenOptions) (*fileKind, error) {
	if IsNamedArrays(path) {
		return kindOfNamed(o)
	}
	lower := strings.ToLower(filepath.Base(path))
	for i := range fileKinds {
		k := &fileKinds[i]
		if o.Format == k.format || o.Format == "" && strings.HasSuffix(lower, "."+k.format) {
			return k, nil
		}
	}
	list := strings.Join(Formats(), ", ")
	if o.Format != "" {
		return nil, fmt.Errorf("format %q is unknown; want one of %s", o.Format, list)
	}
	for _, k := range others {
		if strings.HasSuffix(lower, "."+k.format) {
			return nil, fmt.Errorf("%s: .%s files cannot be read: %s", o.Called, k.format, k.advice)
		}
	}
	return nil, errtext.Errorf(errtext.WrongData, "%s: unknown kind of data file; the name must end in .%s, or give the kind with {data-format}",
		o.Called, strings.ReplaceAll(list, ", ", ", ."))
}

// namedKind is the kind of a JSON object with the files of arrays.
var namedKind = fileKind{"arrays", npzFiles, false, openNamed}

// kindOfNamed returns namedKind, or an error if o.Format gives another.
func kindOfNamed(o *OpenOptions) (*fileKind, error) {
	if o.Format != "" {
		return nil, dataset.OptionErrorf("{data-format=%s}: the files of a JSON object are .npy files; omit {data-format}", o.Format)
	}
	return &namedKind, nil
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

// read opens a file of this kind, with the features that o asks for.
func (k *fileKind) read(path string, o *OpenOptions) (dataset.Source, error) {
	if err := k.check(o); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Called, err)
	}
	if k.family == csvFiles {
		return k.open(path, o)
	}
	rest := *o
	chosen := len(o.FeatureColumns)+len(o.Drop) > 0
	if chosen || o.choosesAsTrained() {
		rest.Features = 0 // of the file there may be more or fewer
	}
	src, err := k.open(path, &rest)
	if err != nil {
		return nil, err
	}
	if rest = *o; !chosen {
		src = rest.chooseLikeTraining(src)
	}
	columns := src.Info().Features
	if src, err = withColumns(src, &rest); err != nil {
		return nil, err
	}
	info := src.Info()
	info.Reading.Columns = columns
	return &namedSource{Source: src, info: info}, nil
}

// check refuses options that do not apply to this kind of file.
func (k *fileKind) check(o *OpenOptions) error {
	csv, variables := []fileFamily{csvFiles}, []fileFamily{matFiles, npzFiles}
	besides := []fileFamily{csvFiles, matFiles, npzFiles}
	for _, option := range []struct {
		flag  string
		given bool
		of    []fileFamily
		what  string
	}{
		{"--delimiter", o.Delimiter != 0, csv, "CSV files"},
		{"--thousands", o.Thousands != 0, csv, "CSV files"},
		{"--decimal", o.Decimal != "", csv, "CSV files"},
		{"--encoding", o.Encoding != "", []fileFamily{csvFiles, libsvmFiles}, "text files: CSV and libsvm"},
		{"--label-columns", len(o.Labels.Columns) > 0, csv, "CSV files"},
		{"--label-prefix", len(o.Labels.Prefixes) > 0, csv, "CSV files"},
		{"--header", o.Header != dataset.HeaderAuto, csv, "CSV files"},
		{"--categories", len(o.Categories) > 0, csv, "CSV files"},
		{"--row-names", o.RowNames != "", csv, "CSV files"},
		{"--features-variable", o.FeaturesVariable != "", variables, ".mat and .npz files"},
		{"--labels-variable", o.LabelsVariable != "", variables, ".mat and .npz files"},
		{"--images", o.Images != "", csv, "CSV files"},
		{"--values", o.Beside.Values != "", besides, "CSV, .mat and .npz files"},
		{"--intervals", len(o.Beside.Intervals) > 0, besides, "CSV, .mat and .npz files"},
		{"--groups", o.Beside.Groups != "", besides, "CSV, .mat and .npz files"},
		{"--zero-based", o.ZeroBased, []fileFamily{libsvmFiles}, "libsvm files"},
		{"--labels-file", o.LabelsFile != "", []fileFamily{npyFiles}, ".npy files"},
	} {
		if option.given && !slices.Contains(option.of, k.family) {
			return fmt.Errorf("%s can only be used with %s", option.flag, option.what)
		}
	}
	return nil
}

// selectedColumns is a Source with some of the features of another Source.
type selectedColumns struct {
	dataset.Source              // the other Source
	info           dataset.Info // of the selected features
	features       []int        // the selected features by their numbers in Source, in the order asked for
	index          map[int]int  // by number in Source: the index in features
}

// withColumns returns src with only the features that o asks for. It is for all kinds of
// files but CSV; columns are features here.
func withColumns(src dataset.Source, o *OpenOptions) (dataset.Source, error) {
	if len(o.FeatureColumns)+len(o.Drop) == 0 {
		return src, nil
	}
	s := &selectedColumns{Source: src, info: src.Info(), index: map[int]int{}}
	names, n := s.info.FeatureNames, s.info.Features
	c := csvColumns{used: make([]bool, n)}
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
	s.describe()
	s.info.Notes = slices.Concat(s.info.Notes, o.numberNotes(names))
	return s, nil
}

// describe sets info and index from features.
func (s *selectedColumns) describe() {
	names := s.info.FeatureNames
	s.info.Features, s.info.FeatureNames, s.info.Shape = len(s.features), nil, dataset.Shape{}
	for i, old := range s.features {
		s.index[old] = i
		if names != nil {
			s.info.FeatureNames = append(s.info.FeatureNames, names[old])
		}
	}
}

// Info describes the rows with the selected features.
func (s *selectedColumns) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *selectedColumns) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
	p := selectedRow{selectedColumns: s}
	return s.Source.Scan(func(r *dataset.Row) error {
		row = *r
		if r.Sparse {
			p.sparse(r)
			row.Columns = p.columns
		} else if err := p.dense(r); err != nil {
			return err
		}
		row.Values = p.values
		return f(&row)
	})
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
	if want := p.Source.Info().Features; len(r.Values) != want {
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

// errFound ends a scan.
var errFound = errors.New("found")
