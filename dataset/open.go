package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OpenOptions says how Open reads a file; the zero value reads features and
// label distributions.
type OpenOptions struct {
	Labels LabelOptions
	// NoLabels reads features only: labels, where the file has them, are passed
	// over, as prediction wants it.
	NoLabels bool
	// LabelsFile is the .npy file with the labels of a .npy file; empty: the same
	// name with its last "features" replaced by "labels".
	LabelsFile string
	// NamesFile is a JSON file with names, see FORMAT.md; they replace the file's.
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

	schema *Schema // of the model that the file is for, see OpenFor
	known  known
}

// Header says whether a CSV file has a header line.
type Header string

// The values of Header.
const (
	HeaderAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// extensions lists what Open knows, in the order of its message.
var extensions = []struct {
	suffix string
	open   func(string, *OpenOptions) (Source, error)
}{
	{".mat", openMAT},
	{".npz", openNPZ},
	{".npy", openNPY},
	{".csv", openCSV},
	{".csv.gz", openCSV},
	{".libsvm", openLibsvm},
	{".libsvm.gz", openLibsvm},
	{".svm", openLibsvm},
	{".svm.gz", openLibsvm},
}

// Open opens a data file of the kind that its name ends in: .mat (MATLAB v5),
// .npz, .npy (features; see OpenOptions.LabelsFile), .csv, .libsvm or .svm, the
// last three also with .gz. FORMAT.md says what each must hold.
//
// Labels are taken from where LabelOptions.Columns says; otherwise from the
// variable or columns called "age" or "class" (for these kinds); otherwise from
// the variable "labels" or the columns with a label prefix; otherwise, for age
// and class in CSV, from the last column.
//
// Errors name the file. They wrap ErrFormat, ErrNoLabels, ErrRowCount or
// fs.ErrNotExist where these apply, and are *RowError where a row is at fault.
// Values are checked by Import, Build and Blocks.
func Open(path string, o OpenOptions) (Source, error) {
	if err := o.Labels.check(); err != nil && !o.NoLabels {
		return nil, err
	}
	o.Labels.Columns = trimmed(o.Labels.Columns)
	o.RowNames = strings.TrimSpace(o.RowNames)
	open, err := opener(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: a folder, not a data file", path)
	}
	src, err := open(path, &o)
	if err != nil {
		return nil, err
	}
	if !o.NoLabels {
		if src, err = withLabels(src, &o.Labels); err != nil {
			return nil, err
		}
	}
	if o.NamesFile != "" {
		if src, err = withNamesFile(src, o.NamesFile); err != nil {
			return nil, err
		}
	}
	src = withCleanNames(src)
	return src, src.Info().check()
}

// trimmed returns texts without the blanks at their ends.
func trimmed(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strings.TrimSpace(s)
	}
	return out
}

func opener(path string) (func(string, *OpenOptions) (Source, error), error) {
	var known []string
	lower := strings.ToLower(filepath.Base(path))
	for _, e := range extensions {
		if strings.HasSuffix(lower, e.suffix) {
			return e.open, nil
		}
		known = append(known, e.suffix)
	}
	return nil, fmt.Errorf("%s: not a known kind of data file; the name must end in %s", path, strings.Join(known, ", "))
}
