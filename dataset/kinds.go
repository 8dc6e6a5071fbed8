package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

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
	open   func(string, *OpenOptions) (Source, error)
}

// fileKinds lists what Open knows, in the order of its message.
var fileKinds = []fileKind{
	{"mat", matFiles, openMAT},
	{"npz", npzFiles, openNPZ},
	{"npy", npyFiles, openNPY},
	{"csv", csvFiles, openCSV},
	{"csv.gz", csvFiles, openCSV},
	{"tsv", csvFiles, openTSV},
	{"tsv.gz", csvFiles, openTSV},
	{"libsvm", libsvmFiles, openLibsvm},
	{"libsvm.gz", libsvmFiles, openLibsvm},
	{"svm", libsvmFiles, openLibsvm},
	{"svm.gz", libsvmFiles, openLibsvm},
}

// Formats lists the kinds of data files that Open reads, as OpenOptions.Format
// names them.
func Formats() (all []string) {
	for _, k := range fileKinds {
		all = append(all, k.format)
	}
	return all
}

// tabs reports whether the name of the kind says that tabs stand between columns.
func (k *fileKind) tabs() bool { return strings.HasPrefix(k.format, "tsv") }

// openTSV opens a CSV file whose columns are separated by tabs, if it has any.
func openTSV(path string, o *OpenOptions) (Source, error) {
	tabs := *o
	tabs.tabs = o.Delimiter == 0
	return openCSV(path, &tabs)
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
			return nil, fmt.Errorf("%s: .%s files cannot be read: %s", o.shown(path), k.format, k.advice)
		}
	}
	return nil, fmt.Errorf("%s: unknown kind of data file; the name must end in .%s, or give the kind with --data-format",
		o.shown(path), strings.ReplaceAll(list, ", ", ", ."))
}

// read opens a file of this kind, with the features that o asks for.
func (k *fileKind) read(path string, o *OpenOptions) (Source, error) {
	if err := k.check(o); err != nil {
		return nil, fmt.Errorf("%s: %w", o.shown(path), err)
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
		{"--header", o.Header != HeaderAuto, csv, "CSV files"},
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
