package read

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
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

// familyNames are the values of Reading.Kind.
var familyNames = [...]string{matFiles: "mat", npzFiles: "npz", npyFiles: "npy", csvFiles: "csv", libsvmFiles: "libsvm"}

// fileKind is a kind of data file.
type fileKind struct {
	format string // as names end, after a point
	family fileFamily
	tabs   bool // between columns, if there are any
}

// fileKinds lists what Open knows, in the order of its message.
var fileKinds = []fileKind{
	{"mat", matFiles, false},
	{"npz", npzFiles, false},
	{"npy", npyFiles, false},
	{"csv", csvFiles, false},
	{"csv.gz", csvFiles, false},
	{"tsv", csvFiles, true},
	{"tsv.gz", csvFiles, true},
	{"libsvm", libsvmFiles, false},
	{"libsvm.gz", libsvmFiles, false},
	{"svm", libsvmFiles, false},
	{"svm.gz", libsvmFiles, false},
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
		if o.Format != "" {
			return nil, dataset.OptionErrorf("{data-format=%s}: the files of a JSON object are .npy files; omit {data-format}", o.Format)
		}
		return &namedKind, nil
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
var namedKind = fileKind{"arrays", npzFiles, false}

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
		{"--delimiter", o.CSV.Delimiter != 0, csv, "CSV files"},
		{"--thousands", o.CSV.Thousands != 0, csv, "CSV files"},
		{"--decimal", o.CSV.Decimal != "", csv, "CSV files"},
		{"--encoding", o.Encoding != "", []fileFamily{csvFiles, libsvmFiles}, "text files: CSV and libsvm"},
		{"--label-columns", len(o.Labels.Columns) > 0, csv, "CSV files"},
		{"--label-prefix", len(o.Labels.Prefixes) > 0, csv, "CSV files"},
		{"--header", o.CSV.Header != dataset.HeaderAuto, csv, "CSV files"},
		{"--categories", len(o.CSV.Categories) > 0, csv, "CSV files"},
		{"--row-names", o.CSV.RowNames != "", csv, "CSV files"},
		{"--features-variable", o.Arrays.FeaturesVariable != "", variables, ".mat and .npz files"},
		{"--labels-variable", o.Arrays.LabelsVariable != "", variables, ".mat and .npz files"},
		{"--images", o.CSV.Images != "", csv, "CSV files"},
		{"--values", o.Beside.Values != "", besides, "CSV, .mat and .npz files"},
		{"--intervals", len(o.Beside.Intervals) > 0, besides, "CSV, .mat and .npz files"},
		{"--groups", o.Beside.Groups != "", besides, "CSV, .mat and .npz files"},
		{"--zero-based", o.Libsvm.ZeroBased, []fileFamily{libsvmFiles}, "libsvm files"},
		{"--labels-file", o.Arrays.LabelsFile != "", []fileFamily{npyFiles}, ".npy files"},
	} {
		if option.given && !slices.Contains(option.of, k.family) {
			return fmt.Errorf("%s can only be used with %s", option.flag, option.what)
		}
	}
	return nil
}

// FormatOf returns the kind of a data file without its compression: "csv", "libsvm", "mat", "npz" or "npy".
func FormatOf(path string, o OpenOptions) (string, error) {
	o.Called = cmp.Or(o.Called, CalledOf(path))
	kind, err := kindOf(path, &o)
	if err != nil {
		return "", err
	}
	return familyNames[kind.family], nil
}

// CalledOf returns how messages call what Open reads.
func CalledOf(path string) string {
	if IsNamedArrays(path) {
		return NamedArrays
	}
	return path
}
