// Package dataflags has the flags that say how a data file is read, and the texts that describe how it was read.
package dataflags

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// FileFlags say which columns or variables of a data file are what.
type FileFlags struct {
	Labels       string   `enum:",distributions,incomplete,age,class,counts,bounded" default:"" placeholder:"KIND" group:"data" help:"Kind of labels: distributions; incomplete (degrees may be missing); age (see --sigma); class; counts; or bounded, real numbers (default: distributions; for predict and evaluate, as for training)."`
	LabelColumns []string `placeholder:"C" group:"data" help:"Label columns of a table: names, numbers counted from 0, \"last\", or ranges such as 3:last."`
	LabelPrefix  []string `seldom:"" placeholder:"P" group:"data" help:"Prefix of the names of label columns in a CSV, ARFF or Parquet file (default: label_, y_)."`
	Names        string   `seldom:"" placeholder:"FILE" group:"data" help:"JSON file with names: {\"features\": [...], \"labels\": [...], \"rows\": [...]}."`
	RowNames     string   `seldom:"" placeholder:"C" group:"data" help:"Column of a CSV, ARFF or Parquet file with the names of the samples."`
	Header       string   `seldom:"" enum:"auto,yes,no" default:"auto" group:"data" help:"Whether a CSV file begins with a header line: auto, yes or no."`

	Columns        []string `seldom:"" placeholder:"C" group:"data" help:"Columns of a CSV, ARFF or Parquet file to read, listed as for --label-columns (default: all). Of a Parquet file only these are read from disk."`
	FeatureColumns []string `placeholder:"C" group:"data" help:"Feature columns, listed as for --label-columns (default: all columns that have no other use); in other formats, features."`
	Drop           []string `placeholder:"C" group:"data" help:"Columns, or features of other formats, to leave out, listed as for --label-columns."`
	Delimiter      string   `seldom:"" placeholder:"D" group:"data" help:"Delimiter between the columns of a CSV file: one character, or tab (default: , ; | or tab, detected in the first lines)."`
	Decimal        string   `seldom:"" placeholder:"M" group:"data" help:"Decimal mark of a CSV file: . or , (default: detected in the first lines)."`
	Thousands      string   `seldom:"" placeholder:"M" group:"data" help:"Thousands separator in the numbers of a CSV file: , or . or ' or a blank (default: none)."`
	Encoding       string   `seldom:"" placeholder:"NAME" group:"data" help:"Encoding of a text file: utf-8, utf-16, utf-16le, utf-16be, latin-1, windows-1252, shift_jis, gbk and others (default: the encoding of the byte order mark, or else UTF-8)."`
	Categories     []string `seldom:"" placeholder:"C" group:"data" help:"Columns of a CSV, ARFF or Parquet file to read as categories, listed as for --label-columns. Each level of a category becomes a feature, which is 1 in the samples of that level and 0 in all others. The model keeps the levels."`
	Missing        string   `placeholder:"M" group:"data" help:"What to do about missing values: refuse the file; drop the samples; or replace missing features by a number, or by the mean or median of the training samples (default: refuse; for predict and evaluate, as for training)."`

	Images           string `seldom:"" placeholder:"DIR" group:"data" help:"Folder with PNG and JPEG images, whose names are in a column of the CSV file (image, file, filename, or --row-names). The features are the pixels of the images, resized to --shape (1xHxW grey, 3xHxW red, green, blue)."`
	FeaturesVariable string `seldom:"" placeholder:"V" group:"data" help:"Variable of a .mat or .npz file with the features (default: features)."`
	ZeroBased        bool   `seldom:"" group:"data" help:"Feature indices of a libsvm file begin at 0, even if no index in the file is 0."`
	DataFormat       string `seldom:"" placeholder:"F" group:"data" help:"Format of the data file, whatever its name; required for stdin (-): csv, tsv, libsvm, npz, npy, mat, arff or parquet; also csv.gz, tsv.gz, libsvm.gz or arff.gz."`
}

// Options returns the flags as options of package dataset. Errors are usage errors.
func (f *FileFlags) Options() (o read.OpenOptions, err error) {
	kind, err := dataset.ParseLabelKind(f.Labels)
	if err != nil {
		return o, cli.Usage(err)
	}
	o = read.OpenOptions{
		Labels:    read.LabelOptions{Kind: kind, Columns: f.LabelColumns, Prefixes: f.LabelPrefix},
		NamesFile: f.Names, CSV: read.CSVOptions{RowNames: f.RowNames},
	}
	if f.Header != "auto" {
		o.CSV.Header = dataset.Header(f.Header)
	}
	o.Columns, o.FeatureColumns, o.Drop, o.CSV.Categories = f.Columns, f.FeatureColumns, f.Drop, f.Categories
	o.CSV.Images, o.Arrays.FeaturesVariable, o.Libsvm.ZeroBased, o.Format = f.Images, f.FeaturesVariable, f.ZeroBased,
		f.DataFormat
	if f.DataFormat != "" && !slices.Contains(read.Formats(), f.DataFormat) {
		return o, cli.Usagef("{data-format=%s}: want one of %s", f.DataFormat, strings.Join(read.Formats(), ", "))
	}
	if f.Delimiter != "" {
		if o.CSV.Delimiter, err = read.ParseDelimiter(f.Delimiter); err != nil {
			return o, cli.WrongOption(err)
		}
	}
	if o.CSV.Decimal = f.Decimal; f.Decimal != "" {
		if _, err = read.ParseDecimal(f.Decimal); err != nil {
			return o, cli.WrongOption(err)
		}
	}
	if f.Thousands != "" {
		if o.CSV.Thousands, err = read.ParseThousands(f.Thousands); err != nil {
			return o, cli.WrongOption(err)
		}
		if f.Decimal == f.Thousands {
			return o, cli.Usagef("{decimal} and {thousands} are both %s: the decimal mark and the thousands separator must "+
				"differ", f.Decimal)
		}
	}
	if f.Encoding != "" {
		if o.Encoding, err = read.ParseEncoding(f.Encoding); err != nil {
			return o, cli.WrongOption(err)
		}
	}
	if o.Missing, err = dataset.ParseMissing(f.Missing); err != nil {
		return o, cli.Usagef("%w", err)
	}
	return o, nil
}

// DataFlags say how a data file with labels is read.
type DataFlags struct {
	FileFlags
	Shape          string   `seldom:"" placeholder:"CxHxW" group:"data" help:"Shape of the image that the features of a sample form: channels x height x width, such as 1x8x8 (default: the shape of a .npz array with three or four dimensions)."`
	Sigma          float64  `placeholder:"S" group:"data" help:"Standard deviation of the Gaussian of --labels age."`
	Range          string   `placeholder:"LOW:HIGH" group:"data" help:"Range of the numeric labels, such as 0:69: one label for each whole number. With this flag, distributions and counts are ordinal."`
	Bounds         []string `seldom:"" placeholder:"LOW:HIGH" group:"data" help:"Bounds of the targets of --labels bounded, such as 0:1: one pair for all labels, or one for each label in order (default: the least and the greatest target of each label in the training samples)."`
	Values         string   `seldom:"" placeholder:"C" group:"data" help:"Column of a CSV file, or variable of another file, with the exact number of each sample, within --range. It may be the label column of --labels age."`
	Intervals      []string `seldom:"" placeholder:"C" group:"data" help:"Two columns or variables with the least and the greatest number of each sample (default: [a, a + 1 - 1e-9] for a whole number a)."`
	Groups         string   `placeholder:"C" group:"data" help:"Column or variable with the group of each sample, such as a person. Validation keeps groups whole."`
	Weights        string   `seldom:"" placeholder:"C" group:"data" help:"Column or variable with the weight of each sample in the loss: a number of at least 0. Not all algorithms use weights."`
	LabelsVariable string   `seldom:"" placeholder:"V" group:"data" help:"Variable of a .mat or .npz file with the labels (default: labels)."`
	LabelsFile     string   `seldom:"" placeholder:"FILE" group:"data" help:"The .npy file with the labels of a .npy file of features. For an ARFF file, the XML file that lists its labels (default: the file of the same name with .xml, if there is one)."`
	Normalize      bool     `group:"data" help:"Divide the labels of each sample by their sum."`
	Tolerance      float64  `seldom:"" placeholder:"T" group:"data" help:"How much the sum of a sample's labels may differ from 1 (default: 0.0001)."`
}

// AsRead sets flags that are not given to the options with which a data file was read. For a file of another kind, it
// sets only the flags about labels and missing values. Flags that name other files stay as they are.
func (d *DataFlags) AsRead(r *dataset.Reading, sameKind bool) {
	text := func(flag *string, value string) {
		if *flag == "" {
			*flag = value
		}
	}
	list := func(flag *[]string, value []string) {
		if len(*flag) == 0 {
			*flag = value
		}
	}
	text(&d.Labels, string(r.Labels))
	text(&d.Range, r.Range)
	text(&d.Missing, r.Missing)
	list(&d.Bounds, r.Bounds)
	d.Sigma, d.Tolerance = cmp.Or(d.Sigma, r.Sigma), cmp.Or(d.Tolerance, r.Tolerance)
	d.Normalize = d.Normalize || r.Normalize
	if !sameKind {
		return
	}
	if d.Header == "auto" && r.Header != dataset.HeaderAuto {
		d.Header = string(r.Header)
	}
	if len(d.Categories) == 0 {
		for _, k := range r.Categories {
			d.Categories = append(d.Categories, k.Name)
		}
	}
	for flag, value := range map[*string]string{&d.Values: r.Values, &d.Groups: r.Groups,
		&d.Weights: r.Weights, &d.RowNames: r.RowNames,
		&d.Delimiter: r.Delimiter, &d.Decimal: r.Decimal, &d.Thousands: r.Thousands, &d.Encoding: r.Encoding,
		&d.FeaturesVariable: r.FeaturesVariable, &d.LabelsVariable: r.LabelsVariable, &d.Shape: r.Shape.String()} {
		text(flag, value)
	}
	for flag, value := range map[*[]string][]string{&d.LabelColumns: r.LabelColumns, &d.LabelPrefix: r.LabelPrefix,
		&d.Intervals: r.Intervals, &d.Columns: r.ReadColumns, &d.FeatureColumns: r.FeatureColumns, &d.Drop: r.Drop} {
		list(flag, value)
	}
	d.ZeroBased = d.ZeroBased || r.ZeroBased
}

// Open opens a data file, or stdin, as the flags say.
func (d *DataFlags) Open(a *cli.App, path string) (dataset.Source, importer.Checks, error) {
	return d.OpenWith(a, path, ValidationFlag{})
}

// ValidationFlag names a file of validation samples.
type ValidationFlag struct {
	Validation string `seldom:"" placeholder:"FILE" group:"data" help:"Data file of the samples that validate: their loss decides early stopping and choices, and they are never trained on or held out. It is read like --data, and has the same columns (default: validation samples are drawn from the training samples)."`
}

// Check refuses a file of validation samples without a data file, from stdin, or that is the data file.
func (v ValidationFlag) Check(data string) error {
	switch {
	case v.Validation == "":
		return nil
	case data == "":
		return cli.Usagef("{validation} needs {data}; for a dataset, give it to {coppice dataset import}")
	case v.Validation == Stdin:
		return cli.Usagef("{validation=-}: validation samples cannot be read from stdin; give a file")
	}
	same := v.Validation == data
	if of, err := os.Stat(data); err == nil && !same {
		own, err := os.Stat(v.Validation)
		same = err == nil && os.SameFile(of, own)
	}
	if same {
		return cli.Usagef("{validation=%s}: this is the data file, too; validation samples must be others than "+
			"training samples", v.Validation)
	}
	return nil
}

// OpenWith is Open with the validation samples of a file, too.
func (d *DataFlags) OpenWith(a *cli.App, path string, v ValidationFlag) (dataset.Source, importer.Checks, error) {
	o, checks, err := d.Options()
	if err == nil {
		err = v.Check(path)
	}
	if err != nil {
		return nil, checks, err
	}
	if path, err = File(a, path, &o); err != nil {
		return nil, checks, err
	}
	src, err := read.Open(path, o)
	if err == nil && v.Validation != "" {
		src, err = read.WithValidation(src, v.Validation, o)
	}
	if err != nil {
		return nil, checks, cli.BadData(err)
	}
	return src, checks, nil
}

// Options is FileFlags.Options with the flags about labels.
func (d *DataFlags) Options() (o read.OpenOptions, checks importer.Checks, err error) {
	if o, err = d.FileFlags.Options(); err != nil {
		return o, checks, err
	}
	o.Arrays.LabelsFile, o.Arrays.LabelsVariable = d.LabelsFile, d.LabelsVariable
	if d.Shape != "" {
		if o.Shape, err = dataset.ParseShape(d.Shape); err != nil {
			return o, checks, cli.Usagef("{shape=%.40s}: %w", d.Shape, err)
		}
	}
	if math.IsNaN(d.Tolerance) || d.Tolerance < 0 || d.Tolerance > 1 {
		return o, checks, cli.Usagef("{tolerance=%v}: want a number from 0 to 1", d.Tolerance)
	}
	if n := len(d.Intervals); n != 0 && n != 2 {
		return o, checks, cli.Usagef("{intervals}: want two columns, with the least and the greatest number of each "+
			"sample; got %d", n)
	}
	o.Beside = read.BesideOptions{Values: d.Values, Intervals: d.Intervals, Groups: d.Groups, Weights: d.Weights}
	checks = importer.Checks{Normalize: d.Normalize, Tolerance: d.Tolerance}
	l, age := &o.Labels, o.Labels.Kind == dataset.Age
	if err := d.bounded(l); err != nil {
		return o, checks, err
	}
	switch {
	case l.Kind == dataset.Incomplete && d.Range != "":
		return o, checks, cli.Usagef("{range} needs numeric labels, but {labels=incomplete} reads distributions with " +
			"missing degrees")
	case l.Kind == dataset.Incomplete && d.Normalize:
		return o, checks, cli.Usagef("{normalize} cannot be used with {labels=incomplete}: degrees that are known stay as " +
			"they are")
	case !age && d.Sigma != 0:
		return o, checks, cli.Usagef("{sigma} needs {labels=age}")
	case l.Kind == dataset.Class && d.Range != "":
		return o, checks, cli.Usagef("{range} needs numeric labels, but {labels=class} reads classes")
	case !age && d.Range == "" && (d.Values != "" || len(d.Intervals) > 0):
		return o, checks, cli.Usagef("{values} and {intervals} need numeric labels: give {range}")
	case age && (math.IsNaN(d.Sigma) || math.IsInf(d.Sigma, 0) || d.Sigma <= 0):
		return o, checks, cli.Usagef("{labels=age} needs {sigma} with a number above 0, such as {sigma=2}")
	case age && d.Range == "":
		return o, checks, cli.Usagef("{labels=age} needs {range=LOW:HIGH}, such as {range=0:69}")
	case d.Range == "":
		return o, checks, nil
	}
	l.Ordered, l.Sigma = !age, d.Sigma
	l.Low, l.High, err = ParseRange(d.Range)
	return o, checks, err
}

// bounded reads the bounds of targets, and refuses flags that have no meaning for targets.
func (d *DataFlags) bounded(l *read.LabelOptions) (err error) {
	if l.Kind != dataset.Bounded {
		if len(d.Bounds) > 0 {
			return cli.Usagef("{bounds} needs {labels=bounded}")
		}
		return nil
	}
	switch {
	case d.Range != "":
		return cli.Usagef("{range} is for whole numbers, but {labels=bounded} reads real numbers: give {bounds=LOW:HIGH}")
	case d.Values != "" || len(d.Intervals) > 0:
		return cli.Usagef("{values} and {intervals} need numeric labels, but {labels=bounded} reads targets")
	case d.Normalize || d.Tolerance != 0:
		return cli.Usagef("{normalize} and {tolerance} need labels that sum to 1, but {labels=bounded} reads targets")
	}
	if l.Bounds, err = dataset.ParseBounds(d.Bounds); err != nil {
		return cli.WrongOption(err)
	}
	return nil
}

// ParseRange parses the value of --range.
func ParseRange(text string) (low, high int, err error) {
	if low, high, err = read.ParseRange(text); err != nil {
		err = cli.WrongOption(err)
	}
	return low, high, err
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// DatasetName makes the name of a dataset from the name of a file.
func DatasetName(path string) string {
	switch {
	case path == Stdin:
		return "stdin"
	case read.IsNamedArrays(path):
		return "arrays"
	}
	base := filepath.Base(path)
	base = strings.TrimSuffix(base, ".gz")
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if read.IsPattern(path) {
		base = strings.Trim(unfit.ReplaceAllString(base, ""), "_-.") // part of part-*.parquet
		if dir := filepath.Base(filepath.Dir(path)); base == "" && !strings.ContainsAny(dir, "*?[") {
			base = dir // of folder/*.parquet
		}
	}
	name := strings.TrimLeft(unfit.ReplaceAllString(base, "_"), ".-")
	if len(name) > protocol.MaxName-16 {
		name = name[:protocol.MaxName-16]
	}
	if protocol.CheckName(name) != nil {
		name = "data_" + name
	}
	return name
}

// BelongTo refuses flags about reading if there is no data file. A dataset was read when it was imported.
func (d *DataFlags) BelongTo(data string) error {
	if data != "" {
		return nil
	}
	if given := d.Given(); len(given) > 0 {
		return cli.Usagef("%s says how to read a data file: it needs {data}; for a dataset, give it to {coppice dataset "+
			"import}", cli.FlagText(given[0].Name))
	}
	return nil
}

// Given returns the flags that differ from their defaults, as on the command line.
func (d *DataFlags) Given() []dataset.Flag { return given(reflect.ValueOf(*d)) }

// Given is DataFlags.Given without the flags about labels.
func (f *FileFlags) Given() []dataset.Flag { return given(reflect.ValueOf(*f)) }

func given(flags reflect.Value) (all []dataset.Flag) {
	for i := range flags.NumField() {
		field, value := flags.Type().Field(i), flags.Field(i)
		if field.Anonymous {
			all = append(all, given(value)...)
			continue
		}
		if value.IsZero() || fmt.Sprint(value.Interface()) == field.Tag.Get("default") {
			continue
		}
		f := dataset.Flag{Name: "--" + strings.ToLower(capital.ReplaceAllString(field.Name, "$1-$2"))}
		switch v := value.Interface().(type) {
		case bool:
		case []string:
			var items []string
			for _, item := range v {
				items = append(items, strings.ReplaceAll(item, ",", `\,`))
			}
			f.Value = strings.Join(items, ",")
		default:
			f.Value = fmt.Sprint(v)
		}
		all = append(all, f)
	}
	return all
}

// capital matches the beginning of a word in the name of a field.
var capital = regexp.MustCompile("([a-z])([A-Z])")

// Stdin is the file name that means stdin.
const Stdin = "-"

// File returns the path of a data file. Stdin is copied to a temporary file, because data is read twice. The file
// is deleted after the command.
func File(a *cli.App, path string, o *read.OpenOptions) (string, error) {
	if path != Stdin {
		return path, nil
	}
	if o.Format == "" {
		return "", cli.Usagef("- is stdin, whose format is unknown; give {data-format} with one of %s",
			strings.Join(read.Formats(), ", "))
	}
	dir, err := tempdir.Make("stdin")
	if err != nil {
		return "", err
	}
	a.AtEnd(func() { dir.Remove() })
	f, err := os.Create(filepath.Join(dir.Path, "data"))
	if err != nil {
		return "", err
	}
	o.Called = "stdin"
	if err := spool(a, f); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// spool copies stdin to f and closes f. An interrupt ends it.
func spool(a *cli.App, f *os.File) error {
	m := progress.New(a)
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(f, &counted{a.Stdin, m, 0})
		if closed := f.Close(); err == nil {
			err = closed
		}
		done <- err
	}()
	select {
	case err := <-done:
		m.Clear()
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		return nil
	case <-a.Ctx.Done():
		return a.Ctx.Err()
	}
}

// counted is a reader that shows how much was read.
type counted struct {
	io.Reader
	m *progress.Meter
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.m.Show("reading stdin: " + units.Format(c.n))
	return n, err
}

// UnseenFlag says what to do about category values that the model does not know.
type UnseenFlag struct {
	Unseen string `enum:"refuse,ignore" default:"refuse" group:"data" help:"What to do about a category value that is not a level of the model: refuse the file; or ignore the value, so that all features of the category are 0 in that sample."`
}

// Unseen counts the samples with category values that the model does not know.
type Unseen struct {
	Rows  int    `json:"samples"`
	First string `json:"first"` // the row and the value

	last int // the row that was counted last
}

// Count makes o count such values, if they are not refused.
func (f *UnseenFlag) Count(o *read.OpenOptions) *Unseen {
	if f.Unseen != "ignore" {
		return nil
	}
	u := &Unseen{last: -1}
	o.CSV.Unseen = func(row int, category, level string) {
		if u.Rows == 0 {
			u.First = fmt.Sprintf("row %d (counted from 0), %s %q", row, category, level)
		}
		if row != u.last {
			u.Rows, u.last = u.Rows+1, row
		}
	}
	return u
}

// String describes the samples; empty if there are none.
func (u *Unseen) String() string {
	if u == nil || u.Rows == 0 {
		return ""
	}
	return fmt.Sprintf("%s with levels that the model does not know; their features are set to 0; the first is in %s",
		units.Plural(u.Rows, "sample"), u.First)
}

// LeftOut has the row numbers of the samples that a command left out because of missing values.
type LeftOut []int

// Add adds a row.
func (l *LeftOut) Add(row int) { *l = append(*l, row) }

// String says how many samples were left out, and which; empty if there are none.
func (l LeftOut) String() string {
	if len(l) == 0 {
		return ""
	}
	var numbers []string
	for _, row := range l[:min(maxLeftOutShown, len(l))] {
		numbers = append(numbers, fmt.Sprint(row))
	}
	if len(l) > maxLeftOutShown {
		numbers = append(numbers, "...")
	}
	return fmt.Sprintf("left out because of missing values: %s (rows counted from 0: %s)", units.Plural(len(l), "sample"),
		strings.Join(numbers, ", "))
}

const maxLeftOutShown = 20

// Tell prints the notes about how a file was read.
func Tell(a *cli.App, src dataset.Source) {
	if a.JSON { // JSON has the notes
		return
	}
	for _, note := range src.Info().Said() {
		a.Note("%s: %s", src.Info().File, note)
	}
}

// ReadingFlags writes the flags with which a file was read, quoted for a shell.
func ReadingFlags(r *dataset.Reading) string {
	var parts []string
	for _, o := range r.Options() {
		parts = append(parts, o.String())
	}
	return strings.Join(parts, " ")
}

// Dropped lists the columns that were ignored when a file was read.
func Dropped(r *dataset.Reading) string {
	if r.Chosen {
		return "all columns that are not listed here"
	}
	var names []string
	for _, p := range r.Dropped {
		names = append(names, p.Name)
	}
	return cli.NameList(names)
}

// Categories lists the categories of a file, with their levels.
func Categories(r *dataset.Reading) string {
	var all []string
	for _, k := range r.Categories {
		all = append(all, cli.NameList([]string{k.Name})+": "+cli.NameList(k.Levels))
	}
	return cmp.Or(strings.Join(all, "; "), "none")
}
