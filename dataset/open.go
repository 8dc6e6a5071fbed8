package dataset

import (
	"cmp"
	"fmt"
	"os"
	"strings"
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
	Header Header
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
	Shape Shape
	// Images is a folder with the PNG and JPEG files that the rows of a CSV file name: their
	// pixels, resized to Shape, are the features; empty: the features are columns.
	Images string
	// ZeroBased counts the features of a libsvm file from 0 though no index is 0.
	ZeroBased bool
	// CountedFrom is how the libsvm file that a model was trained on counted features.
	CountedFrom Counting
	// Missing says what becomes of missing values.
	Missing Missing
	// Format is the kind of file, as its name would end, without the first point:
	// "csv", "csv.gz", "npz"; empty: see its name.
	Format string
	// Called is how messages call the file; empty: its path.
	Called string
	// AsTrained lists the options that were taken from the file that a model was trained on,
	// for OpenFor, which adds to them and tells them in Info.Notes.
	AsTrained []Option

	tabs          bool    // the name of the file says that tabs stand between its columns
	schema        *Schema // of the model that the file is for, see OpenFor
	known         knownColumns
	categories    []Category // of the model, with their positions in the file
	taken         *[]Option  // AsTrained and those that OpenFor took
	header        *firstLine // what OpenFor learns of the first line of a CSV file
	size          fileSize   // of the file
	modelFeatures int        // Features, also where only some columns of the file are used
}

// shown is how messages call the file at path.
func (o *OpenOptions) shown(path string) string { return cmp.Or(o.Called, path) }

// Header says whether a CSV file has a header line.
type Header string

// The values of Header.
const (
	HeaderAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Open opens a data file of the kind that its name ends in: .mat (MATLAB v5),
// .npz, .npy (features; see OpenOptions.LabelsFile), .csv, .tsv, .libsvm or .svm,
// the last four also with .gz. FORMAT.md says what each must hold.
//
// Labels are taken from where LabelOptions.Columns or OpenOptions.LabelsVariable
// says; otherwise from the variable or columns called "age" or "class" (for these kinds; in CSV also "label", "target" or "y"); otherwise from
// the variable "labels" or the columns with a label prefix.
//
// Errors name the file. They wrap ErrFormat, ErrNoLabels, ErrRowCount or
// fs.ErrNotExist where these apply, and are *RowError where a row is at fault.
// Values are checked by Import, Build and Blocks.
func Open(path string, o OpenOptions) (Source, error) {
	if err := o.Labels.check(); err != nil && !o.NoLabels {
		return nil, err
	}
	o.Labels.Columns, o.FeatureColumns, o.Drop = trimmed(o.Labels.Columns), trimmed(o.FeatureColumns), trimmed(o.Drop)
	o.Categories = trimmed(o.Categories)
	o.RowNames = strings.TrimSpace(o.RowNames)
	if err := o.Beside.trim(); err != nil {
		return nil, err
	}
	if err := o.checkImages(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: this is a folder, want a data file", path)
	}
	kind, err := kindOf(path, &o)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: a pipe or device cannot be read twice; pass the data on stdin (-), with --data-format", path)
	}
	if info.Size() == 0 {
		return nil, kindErrorf(ErrFormat, "%s: %s", o.shown(path), emptyFile)
	}
	var names *Names
	if o.NamesFile != "" {
		if names, err = ReadNames(o.NamesFile); err != nil {
			return nil, err
		}
		o.Labels.order = names.Labels
	}
	o.size, o.modelFeatures = fileSize(info.Size()), o.Features
	src, err := kind.read(path, &o)
	if err != nil {
		return nil, err
	}
	if src = withMissing(src, &o); o.Images == "" {
		src = withShape(src, o.Shape)
	}
	if !o.NoLabels {
		if err := checkSingle(src, &o); err != nil {
			return nil, err
		}
		if src, err = withScale(src, &o); err != nil {
			return nil, err
		}
		if src, err = withLabels(src, &o.Labels); err != nil {
			return nil, err
		}
	}
	if src, err = withImages(src, &o); err != nil {
		return nil, err
	}
	if names != nil {
		if src, err = WithNames(src, o.NamesFile, names); err != nil {
			return nil, err
		}
	}
	src = withReading(withCleanNames(src), kind, &o)
	return src, src.Info().check()
}

// emptyFile is what errors say of a file with nothing in it.
const emptyFile = "the file is empty"

// trimmed returns texts without the blanks at their ends.
func trimmed(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strings.TrimSpace(s)
	}
	return out
}
