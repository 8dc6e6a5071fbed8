package read

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
)

// OpenOptions says how Open reads a file; the zero value reads features and label distributions.
type OpenOptions struct {
	Labels LabelOptions
	Beside BesideOptions
	CSV    CSVOptions
	Arrays ArrayOptions
	Libsvm LibsvmOptions
	// NoLabels reads features only, as for predictions: labels of the file are passed over.
	NoLabels bool
	// NamesFile is a JSON file with names, see FORMAT.md; names that the file has must be the same.
	NamesFile string
	// Features is the number of features that a model reads; 0: there is no model. A libsvm file without names has at
	// least as many. A CSV file with NoLabels and exactly as many columns has no label column.
	Features int
	// Encoding is the encoding of a CSV or libsvm file, as ParseEncoding returns it; empty: UTF-8, or what a byte order
	// mark says.
	Encoding string
	// FeatureColumns lists the columns (of a file that is no CSV: the features) to use, in that order and as
	// LabelOptions.Columns lists labels; empty: all that are nothing else. Drop lists columns to pass over.
	FeatureColumns, Drop []string
	// Columns lists the columns of a table that are read, as LabelOptions.Columns lists labels; empty: all.
	Columns []string
	// Shape declares the features as images; the zero value leaves it to the file.
	Shape dataset.Shape
	// Missing says what becomes of missing values.
	Missing dataset.Missing
	// Format is the kind of file, as its name would end, without the first point: "csv", "csv.gz", "npz"; empty: see its
	// name.
	Format string
	// Called is how messages call the file; empty: its path.
	Called string
	// AsTrained lists the options that were taken from the file that a model was trained on, for OpenFor, which adds to
	// them and tells them in Info.Notes.
	AsTrained []dataset.Option

	set settled
}

// CSVOptions says how a CSV file is read.
type CSVOptions struct {
	// Header says whether the first line is a header; "" takes it for one if it has no number, or has one of the names
	// that are looked for.
	Header dataset.Header
	// RowNames is the column with row names, by header or number from 0; empty: a column called "row_name" or "name", or
	// a first one without name.
	RowNames string
	// Delimiter stands between columns; 0: a comma, semicolon, tab or pipe, as the first lines show.
	Delimiter rune
	// Decimal comes before decimals: "." or ","; empty: a point, or a comma if the first lines show it and no comma
	// stands between columns.
	Decimal string
	// Thousands stands between thousands: a comma, a point, an apostrophe or a blank; 0: nothing. With a comma or point,
	// Decimal is the other one unless it is given.
	Thousands rune
	// Categories lists columns as FeatureColumns does: each becomes a feature for each of its levels, see
	// dataset.Category. OpenFor adds those of the model.
	Categories []string
	// Unseen, if set, is called for each value of a category of a model that is none of its levels: the category's
	// features are 0 then. nil: such a value is refused.
	Unseen func(row int, category, level string)
	// Images is a folder with the PNG and JPEG files that rows name: their pixels, resized to Shape, are the features;
	// empty: the features are columns.
	Images string
}

// ArrayOptions says which arrays of a .mat, .npz or .npy file are read.
type ArrayOptions struct {
	// LabelsFile is the .npy file with the labels of a .npy file; empty: the same name with its last "features" replaced
	// by "labels".
	LabelsFile string
	// FeaturesVariable and LabelsVariable are the variables of a .mat or .npz file; empty: "features", and for labels see
	// Open.
	FeaturesVariable, LabelsVariable string
}

// LibsvmOptions says how a libsvm file counts its features.
type LibsvmOptions struct {
	// ZeroBased counts from 0 although no index is 0.
	ZeroBased bool
	// CountedFrom is how the file that a model was trained on counted.
	CountedFrom dataset.Counting
}

// settled is what Open and OpenFor find out before a reader opens the file.
type settled struct {
	tabs          bool            // the name of the file says that tabs stand between its columns
	schema        *dataset.Schema // of the model that the file is for, see OpenFor
	known         knownColumns
	categories    []dataset.Category // of the model, with their positions in the file
	taken         *[]dataset.Option  // AsTrained and those that OpenFor took
	validates     string             // the training file, if the file has validation samples; empty: it is for a model
	size          fileSize           // of the file, or of all files of arrays
	modelFeatures int                // Features, also where only some columns of the file are used
}

// LabelOptions says where a file has its labels and what they are.
type LabelOptions struct {
	Kind dataset.LabelKind
	// Columns names the label columns of a CSV file: headers, numbers from 0,
	// "last", and ranges of these, FROM:TO. Empty: see Open.
	Columns []string
	// Prefixes are those of label columns of a CSV file; empty: "label_", "y_".
	Prefixes []string
	// Sigma is the standard deviation of an Age's Gaussian, in its own unit.
	Sigma float64
	// Low and High bound the integers at which the Gaussian is taken, inclusive.
	Low, High int
	// Ordered says that the labels of Distributions and Counts are a scale: the integers
	// from Low to High.
	Ordered bool
	// Bounds are the bounds of targets of the kind Bounded; nil: none are given.
	Bounds *dataset.Bounds
	// Classes, where given, are the classes in their order (those of a model);
	// otherwise they are the distinct ones of the file, sorted, by value where
	// all are numbers.
	Classes []string

	order []string // of the classes that were found, if these are the same
}

// BesideOptions names what a file has of its rows beside features and labels: columns of a
// CSV file, as LabelOptions.Columns names them, or variables of a .mat or .npz file.
type BesideOptions struct {
	// Values has the exact number of each row on the scale of the labels; it may be the
	// label of kind Age itself.
	Values string
	// Intervals has the least and the greatest number of each row: two names, or none.
	Intervals []string
	// Groups has what each row belongs to, such as a person.
	Groups string
	// Weights has the weight of each row in losses.
	Weights string
}

// Single reports whether labels are made from one column.
func (o *LabelOptions) Single() bool { return o.Kind == dataset.Age || o.Kind == dataset.Class }

// IsTarget reports whether name is a usual name of the only label column.
func (o *LabelOptions) IsTarget(name string) bool {
	return o.Single() && (strings.EqualFold(name, string(o.Kind)) || slices.ContainsFunc(targetNames, func(s string) bool {
		return strings.EqualFold(name, s)
	}))
}

// targetNames are the usual names, in small or capital letters, of a column with one class or one age a row.
// The kind itself is one more.
var targetNames = []string{"label", "target", "y"}

// names lists what is named.
func (b *BesideOptions) names() (all []string) {
	for _, name := range append([]string{b.Values, b.Groups, b.Weights}, b.Intervals...) {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// knownColumns are the names of columns of a CSV file that a schema knows.
type knownColumns struct {
	features map[string]bool
	labels   map[string]string // names of labels by column; "": the label has the column's name
	beside   map[string]bool   // columns beside features and labels, which are neither
	passed   map[string]bool   // columns that were dropped, unless a feature has the name
	passedAt map[int]string    // those that a feature has the name of, in a file of width columns
	width    int
	chosen   bool // all columns that are not known are ignored
}

// passes reports whether column i of a file is none of the model's features; names is nil if
// the file has no header.
func (k *knownColumns) passes(names []string, i int) bool {
	if names == nil {
		return false
	}
	name := names[i]
	at, there := k.passedAt[i]
	return k.label(name) || k.beside[name] || k.passed[name] || k.chosen && !k.features[name] ||
		there && at == name && len(names) == k.width
}

func (k *knownColumns) feature(column string) bool { return column != "" && k.features[column] }

func (k *knownColumns) label(column string) bool {
	_, ok := k.labels[column]
	return ok
}

// inNumbers reports whether a line of numbers, which looks like a row of data, has the
// names of all features.
func (k *knownColumns) inNumbers(line []string, m numbers.Marks) bool {
	names := make(map[string]bool, len(line))
	for _, field := range line {
		if !numbers.IsField(field, m) {
			return false
		}
		names[strings.TrimSpace(field)] = true
	}
	for name := range k.features {
		if !names[name] {
			return false
		}
	}
	return len(k.features) > 0
}

// LabelPrefixes lists the beginnings of names of label columns.
func (l *LabelOptions) LabelPrefixes() []string {
	if len(l.Prefixes) > 0 {
		return l.Prefixes
	}
	return []string{"label_", "y_"}
}

// LabelPrefix returns the one of LabelPrefixes that a name begins with; empty: none.
func (l *LabelOptions) LabelPrefix(name string) string { return prefixOf(l.LabelPrefixes(), name) }

// prefixOf returns the prefix that name begins with, if it is longer.
func prefixOf(prefixes []string, name string) string {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) && len(name) > len(p) {
			return p
		}
	}
	return ""
}

// fileSize is the size of a data file in bytes, packed if it is packed.
type fileSize int64

// unpacked returns how many bytes the file, or an array of it, may unpack to.
func (n fileSize) unpacked() int64 { return max(freeUnpacked, maxRatio*int64(n)) }

// items returns how many features the file may have, and how many values of rows may be in memory.
func (n fileSize) items() int { return max(dataset.MaxColumns, int(n)) }

// checkFeatures returns an error if a file has n features, and neither bytes for so many nor a model that
// reads them.
func (o *OpenOptions) checkFeatures(n int, advice string) error {
	if most := max(o.set.size.items(), o.set.modelFeatures); n > most {
		return dataset.Errorf(dataset.ErrFormat, "%s features are too many for a file of %s bytes: a file may have %s "+
			"features, or one for each byte if the file has more bytes; %s",
			units.Count(n), units.Count(int(o.set.size)), units.Count(dataset.MaxColumns), advice)
	}
	return nil
}

// checkItems returns an error if the values of n rows, or n names, are too many to be kept in memory.
func (o *OpenOptions) checkItems(name string, n int, advice string) error {
	if n > o.set.size.items() {
		return dataset.Errorf(dataset.ErrFormat, "%q has %s values, too many for a file of %s bytes: a file may have %s "+
			"values that are kept in memory, or one for each byte if the file has more bytes; %s",
			name, units.Count(n), units.Count(int(o.set.size)), units.Count(dataset.MaxColumns), advice)
	}
	return nil
}

// labelVariables lists the names under which labels may stand in a .mat or .npz
// file, best first; none where no labels are wanted.
func (o *OpenOptions) labelVariables() []string {
	switch {
	case o.NoLabels:
		return nil
	case o.Arrays.LabelsVariable != "":
		return []string{o.Arrays.LabelsVariable}
	case o.Labels.Kind == dataset.Age || o.Labels.Kind == dataset.Class:
		return []string{string(o.Labels.Kind), "labels"}
	}
	return []string{"labels"}
}

// featuresVariable is the name under which features stand in a .mat or .npz file.
func (o *OpenOptions) featuresVariable() string { return cmp.Or(o.Arrays.FeaturesVariable, "features") }

// isImageColumn reports whether a column has a usual name of the one that names the images.
func isImageColumn(name string) bool {
	return slices.ContainsFunc(imageColumns, func(usual string) bool { return strings.EqualFold(name, usual) })
}

// imageColumns are the usual names, in small or capital letters, of the column of a CSV file that names the images.
var imageColumns = []string{"image", "file", "filename", "row_name", "name"}

// fileFamily groups the kinds of files that differ in their compression only.
type fileFamily int

const (
	matFiles fileFamily = iota
	npzFiles
	npyFiles
	csvFiles
	libsvmFiles
	arffFiles
	parquetFiles
)

// familyNames are the values of Reading.Kind.
var familyNames = [...]string{matFiles: "mat", npzFiles: "npz", npyFiles: "npy", csvFiles: "csv", libsvmFiles: "libsvm",
	arffFiles: "arff", parquetFiles: "parquet"}

// isTable reports whether files of this family have named columns.
func (f fileFamily) isTable() bool { return f == csvFiles || f == arffFiles || f == parquetFiles }

// IsTable reports whether files of a format, as FormatOf returns it, have named columns.
func IsTable(format string) bool {
	i := slices.Index(familyNames[:], format)
	return i >= 0 && fileFamily(i).isTable()
}

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
	{"arff", arffFiles, false},
	{"arff.gz", arffFiles, false},
	{parquetFormat, parquetFiles, false},
}

// Formats lists the kinds of data files that Open reads, as OpenOptions.Format
// names them.
func Formats() (all []string) {
	for _, k := range fileKinds {
		all = append(all, k.format)
	}
	return all
}

// others are kinds of files that Open does not read, with what converts them: IN is the file and OUT its name without
// its ending.
var others = []struct{ format, advice string }{
	{"xlsx", inPandas + `pandas.read_excel(IN).to_csv(OUT.csv, index=False)`},
	{"xlsm", inPandas + `pandas.read_excel(IN).to_csv(OUT.csv, index=False)`},
	{"xls", inPandas + `pandas.read_excel(IN).to_csv(OUT.csv, index=False)`},
	{"ods", inPandas + `pandas.read_excel(IN).to_csv(OUT.csv, index=False)`},
	{"feather", inPandas + `pandas.read_feather(IN).to_parquet(OUT.parquet)`},
	{"arrow", inPandas + `pandas.read_feather(IN).to_parquet(OUT.parquet)`},
	{"orc", inPandas + `pandas.read_orc(IN).to_parquet(OUT.parquet)`},
	{"jsonl", inPandas + `pandas.read_json(IN, lines=True).to_csv(OUT.csv, index=False)`},
	{"ndjson", inPandas + `pandas.read_json(IN, lines=True).to_csv(OUT.csv, index=False)`},
	{"json", inPandas + `pandas.read_json(IN).to_csv(OUT.csv, index=False)`},
	{"dta", inPandas + `pandas.read_stata(IN).to_csv(OUT.csv, index=False)`},
	{"sas7bdat", inPandas + `pandas.read_sas(IN).to_csv(OUT.csv, index=False)`},
	{"sav", inPandas + `pandas.read_spss(IN).to_csv(OUT.csv, index=False)`},
	{"pkl", inPickle},
	{"pickle", inPickle},
	{"h5", inHDF5},
	{"hdf5", inHDF5},
	{"rds", `convert the file in R with write.csv(readRDS(IN), OUT.csv, row.names=FALSE), or in Python with ` +
		`import pyreadr; pyreadr.read_r(IN)[None].to_csv(OUT.csv, index=False)`},
	{"rdata", `convert the file in R with load(IN) and write.csv(X, OUT.csv, row.names=FALSE) for the data frame X in it`},
	{"zip", unpack},
	{"bz2", unpack},
	{"xz", unpack},
	{"zst", unpack},
	{"7z", unpack},
	{"tar", unpack},
	{"tar.gz", unpack},
	{"tgz", unpack},
}

// What converts a file in Python.
const (
	inPandas = "convert the file in Python with import pandas; "
	inPickle = inPandas + `pandas.read_pickle(IN).to_csv(OUT.csv, index=False) for a data frame; for arrays, ` +
		`numpy.savez(OUT.npz, features=..., labels=...)`
	inHDF5 = `convert the file in Python with import h5py, numpy; f = h5py.File(IN); numpy.savez(OUT.npz, ` +
		`features=f["features"][()], labels=f["labels"][()]); "features" and "labels" are the names in the file, which ` +
		`list(f) lists; pandas.read_hdf(IN).to_csv(OUT.csv, index=False) converts what pandas wrote`
	inMAT = `convert the file in Python with import h5py, numpy; f = h5py.File(IN); numpy.savez(OUT.npz, ` +
		`features=f["features"][()].T, labels=f["labels"][()].T)` // HDF5 has the transposed arrays
	unpack = "decompress the file"
)

// adviceFor puts the names of a file into advice.
func adviceFor(path, advice string) string {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	names := []string{"IN", strconv.Quote(path)}
	for _, ending := range []string{".csv", ".parquet", ".npz"} {
		names = append(names, "OUT"+ending, strconv.Quote(base+ending))
	}
	return strings.NewReplacer(names...).Replace(advice)
}

// kindOf returns the kind of a file: o.Format, or what its name ends in.
func kindOf(path string, o *OpenOptions) (*fileKind, error) {
	if IsNamedArrays(path) {
		if o.Format != "" {
			return nil, dataset.OptionErrorf("{data-format=%s}: the files of a JSON object are .npy files; omit {data-format}",
				o.Format)
		}
		return &namedKind, nil
	}
	lower := strings.ToLower(filepath.Base(path))
	standard := o.Format == "" || o.Format == parquetFormat
	if info, err := os.Stat(path); err == nil && info.IsDir() && standard {
		lower = "." + parquetFormat
	} else if IsPattern(path) {
		if !standard {
			return nil, dataset.OptionErrorf("{data-format=%s}: a pattern names .parquet files; omit {data-format}", o.Format)
		}
		lower = "." + parquetFormat
	}
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
			return nil, fmt.Errorf("%s: .%s files cannot be read: %s", o.Called, k.format, adviceFor(path, k.advice))
		}
	}
	return nil, errtext.Errorf(errtext.WrongData, "%s: unknown kind of data file; the name must end in .%s, or give the "+
		"kind with {data-format}",
		o.Called, strings.ReplaceAll(list, ", ", ", ."))
}

// namedKind is the kind of a JSON object with the files of arrays.
var namedKind = fileKind{"arrays", npzFiles, false}

// check refuses options that do not apply to this kind of file.
func (k *fileKind) check(o *OpenOptions) error {
	csv, variables := []fileFamily{csvFiles}, []fileFamily{matFiles, npzFiles}
	tables := []fileFamily{csvFiles, arffFiles, parquetFiles}
	besides := append([]fileFamily{matFiles, npzFiles}, tables...)
	const tableNames = "CSV, ARFF and Parquet files"
	for _, option := range []struct {
		flag  string
		given bool
		of    []fileFamily
		what  string
	}{
		{"--delimiter", o.CSV.Delimiter != 0, csv, "CSV files"},
		{"--thousands", o.CSV.Thousands != 0, tables, tableNames},
		{"--decimal", o.CSV.Decimal != "", tables, tableNames},
		{"--encoding", o.Encoding != "", []fileFamily{csvFiles, libsvmFiles, arffFiles}, "text files: CSV, libsvm and ARFF"},
		{"--label-columns", len(o.Labels.Columns) > 0, tables, tableNames},
		{"--label-prefix", len(o.Labels.Prefixes) > 0, tables, tableNames},
		{"--columns", len(o.Columns) > 0, tables, tableNames},
		{"--header", o.CSV.Header != dataset.HeaderAuto, csv, "CSV files"},
		{"--categories", len(o.CSV.Categories) > 0, tables, tableNames},
		{"--row-names", o.CSV.RowNames != "", tables, tableNames},
		{"--features-variable", o.Arrays.FeaturesVariable != "", variables, ".mat and .npz files"},
		{"--labels-variable", o.Arrays.LabelsVariable != "", variables, ".mat and .npz files"},
		{"--images", o.CSV.Images != "", csv, "CSV files"},
		{"--values", o.Beside.Values != "", besides, "CSV, ARFF, Parquet, .mat and .npz files"},
		{"--intervals", len(o.Beside.Intervals) > 0, besides, "CSV, ARFF, Parquet, .mat and .npz files"},
		{"--groups", o.Beside.Groups != "", besides, "CSV, ARFF, Parquet, .mat and .npz files"},
		{"--weights", o.Beside.Weights != "", besides, "CSV, ARFF, Parquet, .mat and .npz files"},
		{"--zero-based", o.Libsvm.ZeroBased, []fileFamily{libsvmFiles}, "libsvm files"},
		{"--labels-file", o.Arrays.LabelsFile != "", []fileFamily{npyFiles, arffFiles}, ".npy and ARFF files"},
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

// oneWay is a way that one flag chooses.
func oneWay(flag, value, format string, args ...any) dataset.Way {
	f := dataset.Flag{Name: flag, Value: value}
	if strings.HasPrefix(flag, "--label-") || flag == "--drop" { // they take lists
		f = dataset.ListFlag(flag, value)
	}
	return dataset.Way{What: fmt.Sprintf(format, args...), Flags: []dataset.Flag{f}}
}

// Bounds of data files. They keep the memory that a file takes, and the time, in proportion to its
// size: a packed file may hold a thousand times as much as it has bytes.
const (
	// maxLine bounds a line of a libsvm file and a record of a CSV file, in bytes.
	maxLine = 32 * dataset.MaxColumns
	// maxArrays bounds the arrays of a .npz file.
	maxArrays = 1 << 12
	// A packed file may unpack to freeUnpacked bytes, or to maxRatio times its size if that is more.
	freeUnpacked = 64 << 20
	maxRatio     = 200
)

// expansionError says that what, a file or an array of one, unpacks to too many bytes; advice says
// what to do.
func expansionError(what, advice string) error {
	return dataset.Errorf(dataset.ErrFormat, "%s decompresses to more than %d times the size of the file and to more "+
		"than %s; %s",
		what, maxRatio, units.Format(freeUnpacked), advice)
}

// unpacking reads what a packed file unpacks to, up to left bytes.
type unpacking struct {
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, expansionError("the file", "decompress the file with gunzip first")
	}
	return n, err
}

// tempFile makes a temporary file for up to size bytes in the folder that TMPDIR names, and
// removes its name: the system deletes the file when it is closed or the program ends.
func tempFile(size int64) (*os.File, error) {
	if err := files.CheckSpace(os.TempDir(), size); err != nil {
		return nil, err
	}
	return tempdir.File("columns")
}

// openSized opens a file, and returns its size.
func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// emptyFile is what errors say of a file with nothing in it.
const emptyFile = "the file is empty"

// errFound ends a scan.
var errFound = errors.New("found")

// closers is a Reader that closes several things, in order.
type closers struct {
	io.Reader
	all []io.Closer
}

// Close closes everything.
func (c *closers) Close() (err error) {
	for _, one := range c.all {
		err = errors.Join(err, one.Close())
	}
	return err
}

// oneColumn refuses several columns where a row has one age or class.
func oneColumn(o *OpenOptions, name string, columns int) error {
	if o.Labels.Single() && columns != 1 {
		return fmt.Errorf("%q has %d columns; labels of kind %q need one column, which must be named", name, columns,
			o.Labels.Kind)
	}
	return nil
}
