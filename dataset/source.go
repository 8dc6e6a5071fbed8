package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
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

func Prefix(file string) string {
	if file == "" {
		return ""
	}
	return file + ": "
}

// LabelType says what the labels of a dataset are. The zero value: degrees of labels in no
// order.
type LabelType struct {
	// Classes: each row has one label of degree 1, its class.
	Classes bool `json:"classes,omitempty"`
	// Scale: the labels are whole numbers in ascending order; nil: they are not.
	Scale *Scale `json:"scale,omitempty"`
}

// Scale says which numbers the labels of an ordered scale are: label i is Low + i.
type Scale struct {
	Low  int   `json:"low"`
	True Truth `json:"true"`
}

// Truth says which number of a row on a scale is the true one, which errors are measured
// from.
type Truth string

// The values of Truth.
const (
	TrueValue    Truth = "value"    // the exact number that the shards have (Rows.Value)
	TrueMode     Truth = "mode"     // the mode of the row's distribution: of ages without exact numbers
	TrueExpected Truth = "expected" // the expected value of the row's distribution
)

// MaxNumber bounds the numbers of a scale: neighbours are told apart as float32.
const MaxNumber = 1 << 23

// check returns an error if no dataset has such labels. values: the rows have exact numbers.
func (t *LabelType) check(labels int, values bool) error {
	s := t.Scale
	switch {
	case s == nil && values:
		return errors.New("there are exact numbers, but the labels are not numeric")
	case s == nil:
		return nil
	case t.Classes:
		return errors.New("the labels cannot be both classes and numeric")
	case labels < 2 || s.Low < -MaxNumber || s.Low+labels > MaxNumber:
		return fmt.Errorf("%d numeric labels from %d are not possible", labels, s.Low)
	case (s.True == TrueValue) != values || !values && s.True != TrueMode && s.True != TrueExpected:
		return fmt.Errorf("the kind of the true numbers, %.20q, does not fit the labels", s.True)
	}
	return nil
}

// String describes the type in a few words; labels is their number.
func (t *LabelType) String(labels int) string {
	switch s := t.Scale; {
	case t.Classes:
		return "classes"
	case s == nil:
		return "distributions"
	case s.True == TrueValue:
		return fmt.Sprintf("numeric labels from %d to %d, with exact numbers", s.Low, s.Low+labels-1)
	default:
		return fmt.Sprintf("numeric labels from %d to %d", s.Low, s.Low+labels-1)
	}
}

// Same tells whether two types are equal.
func (t *LabelType) Same(other *LabelType) bool {
	a, b := t.Scale, other.Scale
	return t.Classes == other.Classes && (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// Expected returns the expected number of a distribution p over the scale, Σ y p / Σ p.
func (s *Scale) Expected(p []float32) float64 {
	sum, total := 0.0, 0.0
	for i, v := range p {
		sum += float64(float64(i) * float64(v))
		total += float64(v)
	}
	return float64(s.Low) + sum/total
}

// Median returns the least number at which the cumulative share of p is at least a half of
// all.
func (s *Scale) Median(p []float32) float64 {
	total := 0.0
	for _, v := range p {
		total += float64(v)
	}
	half, sum := total/2, 0.0
	for i, v := range p {
		if sum += float64(v); sum >= half {
			return float64(s.Low + i)
		}
	}
	return math.NaN() // a share is not a number
}

// Mode returns the number of the greatest share of p, of equal ones the lowest.
func (s *Scale) Mode(p []float32) float64 { return float64(s.Low + Greatest(p)) }

// Greatest returns the label of the greatest share, of equal ones the lowest.
func Greatest(p []float32) int {
	best := 0
	for i, v := range p {
		if v > p[best] {
			best = i
		}
	}
	return best
}

// Number returns the true number of row i of r.
func (s *Scale) Number(r *Rows, i int) float64 {
	switch s.True {
	case TrueValue:
		return r.Value[i]
	case TrueMode:
		return s.Mode(r.Label(i))
	}
	return s.Expected(r.Label(i))
}

// wholeInterval is what is missing of 1 in the interval of a whole number: an age a is
// reached on one birthday and lasts until just before the next.
const wholeInterval = 1 - 1e-9

// Interval returns the least and the greatest number that row i of r may have: the interval
// that its file gave, or else [a, a + 1 - 1e-9] where its number a is whole, or else [a, a].
func (s *Scale) Interval(r *Rows, i int) (low, high float64) {
	if r.Interval != nil {
		return r.Interval[2*i], r.Interval[2*i+1]
	}
	a := s.Number(r, i)
	if a == math.Floor(a) {
		return a, a + wholeInterval
	}
	return a, a
}

// Shape says that the features of a row are an image: Channels x Height x Width numbers, channel
// by channel, each row of pixels after the one above it. The zero value: the features are no
// image.
type Shape struct{ Channels, Height, Width int }

// ParseShape reads a shape as String writes it, such as 1x8x8.
func ParseShape(text string) (Shape, error) {
	var s Shape
	parts := strings.Split(text, "x")
	if len(parts) != 3 {
		return s, errtext.Errorf(errtext.WrongOption, "want {shape:CHANNELSxHEIGHTxWIDTH}, such as {shape:1x8x8}")
	}
	for i, side := range []*int{&s.Channels, &s.Height, &s.Width} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 1 || n > MaxFeatures || strconv.Itoa(n) != parts[i] {
			return Shape{}, fmt.Errorf("want three whole numbers from 1 to %d, such as 1x8x8", MaxFeatures)
		}
		*side = n
	}
	if _, err := Volume([]int{s.Channels, s.Height, s.Width}, MaxFeatures); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// Volume returns the product of numbers that are at least 1, or an error if it is above a limit.
func Volume(sides []int, limit int) (int, error) {
	n := 1
	for _, side := range sides {
		if side < 1 || side > limit/n {
			return 0, fmt.Errorf("a sample may have at most %d numbers", limit)
		}
		n *= side
	}
	return n, nil
}

// Size is how many features the shape has; 0 of no image.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// String writes channels x height x width, such as 1x8x8; "" of no image.
func (s Shape) String() string {
	if s == (Shape{}) {
		return ""
	}
	return fmt.Sprintf("%dx%dx%d", s.Channels, s.Height, s.Width)
}

// MarshalText implements encoding.TextMarshaler.
func (s Shape) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Shape) UnmarshalText(text []byte) (err error) {
	if *s, err = ParseShape(string(text)); err != nil {
		return fmt.Errorf("shape %.40q: %w", text, err)
	}
	return nil
}

// check returns an error if rows with so many features cannot have the shape.
func (s Shape) check(features int) error {
	switch {
	case s == (Shape{}):
		return nil
	case s.Channels < 1 || s.Height < 1 || s.Width < 1:
		return errors.New("the shape has no pixels")
	case s.Size() != features:
		return fmt.Errorf("the shape %s has %d numbers, but a sample has %s", s, s.Size(), Counted(features, "feature"))
	}
	return nil
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

// Gaussian sets dst[k] to exp(-(low+k-mean)²/(2 sigma²)), divided by the sum over k. It
// subtracts the greatest exponent from all, so that a small sigma does not make every
// degree 0.
func Gaussian(dst []float64, mean, sigma float64, low int) {
	nearest := min(math.Floor(mean+0.5), float64(low+len(dst)-1)) - mean
	scale := 1 / (2 * float64(sigma*sigma))
	sum := 0.0
	for k := range dst {
		x := float64(low+k) - mean
		dst[k] = num.Exp(-scale * (float64(x*x) - float64(nearest*nearest)))
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
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
