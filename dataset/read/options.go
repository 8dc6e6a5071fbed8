package read

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
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
}

// Single reports whether labels are made from one column.
func (o *LabelOptions) Single() bool { return o.Kind == dataset.Age || o.Kind == dataset.Class }

// IsTarget reports whether name is a usual name of the only label column.
func (o *LabelOptions) IsTarget(name string) bool {
	return o.Single() && (strings.EqualFold(name, string(o.Kind)) || slices.ContainsFunc(targetNames, func(s string) bool { return strings.EqualFold(name, s) }))
}

// targetNames are the usual names, in small or capital letters, of a column with one class or one age a row.
// The kind itself is one more.
var targetNames = []string{"label", "target", "y"}

// names lists what is named.
func (b *BesideOptions) names() (all []string) {
	for _, name := range append([]string{b.Values, b.Groups}, b.Intervals...) {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// isNumber reports whether a name is that of exact numbers or of an end of their intervals.
func (b *BesideOptions) isNumber(name string) bool {
	return name == b.Values || slices.Contains(b.Intervals, name)
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
		return dataset.Errorf(dataset.ErrFormat, "%s features are too many for a file of %s bytes: a file may have %s features, or one for each byte if the file has more bytes; %s",
			units.Count(n), units.Count(int(o.set.size)), units.Count(dataset.MaxColumns), advice)
	}
	return nil
}

// checkItems returns an error if the values of n rows, or n names, are too many to be kept in memory.
func (o *OpenOptions) checkItems(name string, n int, advice string) error {
	if n > o.set.size.items() {
		return dataset.Errorf(dataset.ErrFormat, "%q has %s values, too many for a file of %s bytes: a file may have %s values that are kept in memory, or one for each byte if the file has more bytes; %s",
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
