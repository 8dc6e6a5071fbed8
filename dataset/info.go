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
	File     string // for messages; empty where there is none
	Rows     int    // -1 where only a scan can tell
	Features int
	Labels   int // 0 where the rows carry no labels

	FeatureNames []string // empty or Features long
	LabelNames   []string // empty or Labels long
	HasRowNames  bool

	// LabelType says what the labels are.
	LabelType LabelType
	// HasValues, HasIntervals and HasGroups: rows have a Value, an Interval, a Group.
	HasValues, HasIntervals, HasGroups bool
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
	// labelFlags are how flags name the columns of labels in a CSV file; labelsListed: by --label-columns.
	LabelFlags   []string
	LabelsListed bool
	// defaultLabels: the labels of a CSV file are called 0, 1, 2, ..., as if they had no names.
	DefaultLabels bool
	// unsure: the first line of a CSV file has numbers and was read as a row, but could
	// be a header.
	Unsure bool
	// rare: so few features are not 0 that a file of them, packed as usual, would unpack to more than maxRatio
	// times its size.
	Rare bool
	// missingWords counts the words that a scan took for missing values; nil: the file has no such words.
	MissingWords *WordCounts
	// classNames are the names of labels that a file of classes has.
	ClassNames []string
	// fractions counts the rows of a scan whose ages are no whole numbers, if errors are measured from whole ones; nil: they
	// are not.
	Fractions *int
	// slow: a row takes long to read, so that progress is reported after each.
	Slow bool
	// Notes say how a file was read, where users might expect otherwise.
	Notes []errtext.Text
}

// Said returns the Notes and, of a source that was scanned, what the scan found.
func (i Info) Said() []errtext.Text { return slices.Concat(i.Notes, i.ScanNotes()) }

// ScanNotes says which words a scan took for missing values, and that it found ages that are no whole numbers, if errors are
// measured from whole ones.
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
	return append(notes, errtext.Sprintf("the ages of %s are not whole numbers; errors of predictions are measured from the nearest whole number, or with %s from the exact age", Counted(*i.Fractions, "sample"), flag))
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
		err = cmp.Or(i.LabelType.check(i.Labels, i.HasValues), checkNames("feature", i.FeatureNames), checkNames("label", i.LabelNames),
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
	// LeftOut rows have a missing value and are in no dataset; only their Number
	// and Name mean anything.
	LeftOut bool

	Lack   Lack      // of a row that is left out
	Turned bool      // the features are an image that was turned
	Line   int       // in a text file, from 1
	File   Measured  // the text file; nil for others
	Raw    []float64 // the numbers that Labels were made from; nil if there were none
	Text   string    // a label as it was written, for classes
}

// ListsClasses reports whether the labels of a row, as a libsvm file has them, may be numbers of classes.
func (i *Info) ListsClasses(labels []float64) bool {
	return i.CountedFrom != "" && !slices.ContainsFunc(labels, func(v float64) bool { return v != math.Floor(v) })
}

// ClassListHint says what to do about a row of a libsvm file that seems to list the numbers of its classes.
var ClassListHint = errtext.Sprintf("these labels are whole numbers and may be class numbers: {labels=class} reads one class for each sample; for several classes, write the probability of every class " +
	"(0.5,0,0.5 for two classes of three); {labels=counts} reads counts")

// Targets are the numbers that the labels of a row are, or were made from.
func (r *Row) Targets() []float64 {
	if r.Raw != nil {
		return r.Raw
	}
	return r.Labels
}
