package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Source is a set of rows that can be read from beginning to end, again and
// again, with the same result: a file, or a generator.
type Source interface {
	// Info describes the rows.
	Info() Info
	// Scan calls f for each row in order and stops at the first error, which it
	// returns. The Row and its slices are reused: f must not keep them.
	Scan(f func(*Row) error) error
}

// Info describes what a Source gives.
type Info struct {
	File     string // for messages; empty: the rows are in no file
	Rows     int    // -1: only a scan can tell
	Features int
	Labels   int // 0: rows have no labels

	FeatureNames []string // empty or Features long
	LabelNames   []string // empty or Labels long
	HasRowNames  bool

	// LabelType says what the labels are.
	LabelType LabelType
	// HasValues, HasIntervals, HasGroups and HasWeights: rows have a Value, an Interval, a Group, a Weight.
	HasValues, HasIntervals, HasGroups, HasWeights bool
	// Shape says that the features are images.
	Shape Shape
	// LabelColumns says where in a CSV file the labels stand.
	LabelColumns LabelColumns
	// Reading says how the file was read.
	Reading Reading
	// Sparse says that rows list their columns, so that a file may end before the
	// last one.
	Sparse bool

	// Missing says what becomes of missing values.
	Missing Missing
	// CountedFrom is where a libsvm file begins to count features.
	CountedFrom Counting
	// LabelFlags names the columns of the labels of a CSV file as flags do. LabelsListed is true if --label-columns named
	// them.
	LabelFlags   []string
	LabelsListed bool
	// DefaultLabels is true if the labels of a CSV file are called 0, 1, 2, ..., as if they had no names.
	DefaultLabels bool
	// Rare is true if so few features are not 0 that a packed file of them unpacks to more bytes than readers accept.
	Rare bool
	// MissingWords counts the words that a scan took for missing values; nil: the file cannot have such words.
	MissingWords *WordCounts
	// ClassNames lists the names of the labels in a file of classes.
	ClassNames []string
	// Fractions counts the rows of a scan whose ages are not whole numbers; nil: errors are not measured from whole
	// numbers.
	Fractions *int
	// Slow is true if a row takes long to read, so that progress is reported after each row.
	Slow bool
	// Notes say how a file was read, if users might expect otherwise.
	Notes []errtext.Text
	// Validation describes the file of the validation rows, which come last; nil: there are none.
	Validation *Info
}

// Said returns the Notes and, of a source that was scanned, what the scan found.
func (i Info) Said() []errtext.Text {
	said := slices.Concat(i.Notes, i.ScanNotes())
	if v := i.Validation; v != nil {
		for _, note := range v.Said() {
			said = append(said, errtext.Sprintf("validation samples of %s: %s", v.File, note))
		}
	}
	return said
}

// ScanNotes says which words a scan took for missing values. It also says how many ages are not whole numbers, if
// errors are measured from whole numbers.
func (i *Info) ScanNotes() (notes []errtext.Text) {
	if c := i.MissingWords; c != nil {
		for _, word := range slices.Sorted(maps.Keys(c.Rows)) {
			notes = append(notes, errtext.Sprintf("%q (%s) is read as missing", word, Counted(c.Rows[word].rows, "sample")))
		}
	}
	if i.Fractions == nil || *i.Fractions == 0 {
		return notes
	}
	flag := errtext.Option("values", "")
	if len(i.LabelFlags) == 1 {
		flag = errtext.Option("values", ListFlag("", i.LabelFlags...).Value)
	}
	return append(notes, errtext.Sprintf("the ages of %s are not whole numbers; errors of predictions are measured from "+
		"the nearest whole number, or with %s from the exact age", Counted(*i.Fractions, "sample"), flag))
}

// Counting is the index of a libsvm file's first feature; empty for files of other
// kinds.
type Counting string

// The two ways to count.
const (
	FromZero Counting = "0"
	FromOne  Counting = "1"
)

// Check returns an error if no dataset can have this Info.
func (i Info) Check() error {
	columns, err := max(len(i.LabelColumns.Names), len(i.LabelColumns.Positions)), i.Shape.check(i.Features)
	switch {
	case i.Features < 1 || i.Features > MaxFeatures:
		err = fmt.Errorf("found %s features, want 1 to %s", units.Count(i.Features), units.Count(MaxFeatures))
	case i.Labels < 0 || i.Labels > MaxLabels:
		err = fmt.Errorf("found %d labels, want at most %d", i.Labels, MaxLabels)
	case i.Rows > MaxRows:
		err = fmt.Errorf("found %s samples, want at most %s", units.Count(i.Rows), units.Count(MaxRows))
	case len(i.FeatureNames) != 0 && len(i.FeatureNames) != i.Features:
		err = fmt.Errorf("found %d feature names for %d features", len(i.FeatureNames), i.Features)
	case len(i.LabelNames) != 0 && len(i.LabelNames) != i.Labels:
		err = fmt.Errorf("found %d label names for %d labels", len(i.LabelNames), i.Labels)
	case err != nil:
	case columns > 1 && columns != i.Labels:
		err = fmt.Errorf("found %d label columns for %d labels", columns, i.Labels)
	case i.HasIntervals && i.LabelType.Scale == nil:
		err = errors.New("intervals need numeric labels")
	default:
		err = cmp.Or(i.LabelType.check(i.Labels, i.HasValues), checkNames("feature", i.FeatureNames),
			checkNames("label", i.LabelNames),
			CheckDistinct("features", i.FeatureNames), CheckDistinct("labels", i.LabelNames))
	}
	if err != nil {
		return fmt.Errorf("%s%w", Prefix(i.File), err)
	}
	return nil
}

// Prefix returns the beginning of messages about a file; empty: the data is in no file.
func Prefix(file string) string {
	if file == "" {
		return ""
	}
	return file + ": "
}

// Measured is a file that is being read.
type Measured interface {
	// ReadShare returns the share of the file that was read, from 0 to 1; -1 if it is unknown.
	ReadShare() float64
}

// Row is one row as a Source gives it, before it is checked.
type Row struct {
	Number int // from 0
	// Sparse rows list the columns of Values, ascending, in Columns; the Values of
	// others are all features.
	Sparse  bool
	Columns []uint32
	Values  []float64
	Labels  []float64 // Info.Labels degrees
	Name    string
	// Value is the exact number of a row on the scale of the labels, and Interval the
	// least and the greatest that it may be, where Info says that there are such.
	Value    float64
	Interval [2]float64
	// Group is what the row belongs to, such as a person, where Info.HasGroups.
	Group string
	// Weight is the weight of the row in losses, where Info.HasWeights.
	Weight float64
	// Validation rows are in a file of their own, and follow all others.
	Validation bool
	// LeftOut rows have a missing value and are in no dataset; only their Number
	// and Name mean anything.
	LeftOut bool

	Lack   Lack      // why the row is left out
	Turned bool      // true if the features are an image that was turned
	Line   int       // in a text file, from 1
	File   Measured  // the text file; nil: the rows are in a file of another kind
	Raw    []float64 // the numbers that Labels were made from; nil: there were none
	Text   string    // the class as the file writes it
}

// ListsClasses reports whether the labels of a row, as a libsvm file has them, may be numbers of classes.
func (i *Info) ListsClasses(labels []float64) bool {
	return i.CountedFrom != "" && !slices.ContainsFunc(labels, func(v float64) bool { return v != math.Floor(v) })
}

// ClassListHint says what to do about a row of a libsvm file that seems to list the numbers of its classes.
var ClassListHint = errtext.Sprintf("these labels are whole numbers and may be class numbers: {labels=class} reads " +
	"one class for each sample; for several classes, write the probability of every class " +
	"(0.5,0,0.5 for two classes of three); {labels=counts} reads counts")

// Targets are the numbers that the labels of a row are, or were made from.
func (r *Row) Targets() []float64 {
	if r.Raw != nil {
		return r.Raw
	}
	return r.Labels
}
