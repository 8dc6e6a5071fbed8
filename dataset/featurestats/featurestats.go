// Package featurestats computes statistics of features in one pass, and from them which features lose values if they
// are rounded to float32.
package featurestats

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// MaxColumns bounds the columns of Stats.
const MaxColumns = 1 << 20

// Stats computes statistics of features. Its memory does not grow with the rows.
type Stats struct {
	info    dataset.Info
	Columns []Column // nil: there are too many
}

// Column are the statistics of one column.
type Column struct {
	Low, High float64
	Seen      int // values, without the zeros that a sparse row leaves out
	Zeros     int // values that are 0 and that rows list
	Missing   int
	Fraction  bool // some value is no whole number
	tiny      bool // some value is not 0 and nearer to it than 2^-126, so that float32 has few digits of it or none
}

// New returns the statistics of no rows.
func New(info dataset.Info) *Stats {
	w := &Stats{info: info}
	if info.Features <= MaxColumns {
		w.Columns = make([]Column, info.Features)
	}
	return w
}

// Add adds a row that is not left out.
func (w *Stats) Add(r *dataset.Row) {
	if w.Columns == nil {
		return
	}
	if r.Sparse {
		for i, v := range r.Values {
			if at := int(r.Columns[i]); at < len(w.Columns) {
				w.Columns[at].Add(v)
			}
		}
		return
	}
	columns := w.Columns[:min(len(w.Columns), len(r.Values))]
	for i := range columns {
		columns[i].Add(r.Values[i])
	}
}

// leastNormal is the least number above 0 that float32 stores with all digits.
const leastNormal = 0x1p-126

// Add adds a value; NaN is a missing one.
func (c *Column) Add(v float64) {
	if v != v {
		c.Missing++
		return
	}
	if c.Seen == 0 {
		c.Low, c.High = v, v
	}
	c.Seen++
	if v < c.Low {
		c.Low = v
	}
	if v > c.High {
		c.High = v
	}
	if math.Abs(v) < leastNormal {
		if v == 0 {
			c.Zeros++
		} else {
			c.tiny = true
		}
	}
	if !c.Fraction {
		c.Fraction = v != math.Floor(v)
	}
}

// Finish returns the statistics with the zeros that sparse rows do not list.
func (c Column) Finish(rows int) Column {
	if out := rows - c.Seen - c.Missing; out > 0 {
		if c.Seen == 0 {
			c.Low, c.High = 0, 0
		}
		if c.Low > 0 {
			c.Low = 0
		}
		if c.High < 0 {
			c.High = 0
		}
		c.Zeros += out
	}
	return c
}

// RoundedFeatures looks in a second pass at the features whose values may be different numbers and one float32:
// large values, values that differ by little, and values that are almost 0.
type RoundedFeatures struct {
	info    dataset.Info
	columns []roundedColumn
	most    int // different values that are kept of a column
}

// roundedColumn has the first different values of a feature.
type roundedColumn struct {
	feature   int
	low, high float64
	tiny      bool // some are almost 0
	values    map[float64]bool
}

// Bounds of RoundedFeatures: features, and different values of all of them.
const (
	maxRounded       = 1 << 10
	maxRoundedValues = 1 << 18
)

// nearlyEqual is the relative spread up to which fractions may differ by rounding in float64 alone.
const nearlyEqual = 0x1p-40

// Rounded returns the features to look at; nil: there are none. Fractions that differ by rounding in float64 alone do
// not count.
func (w *Stats) Rounded() *RoundedFeatures {
	f := &RoundedFeatures{info: w.info}
	for i, c := range w.Columns {
		// A coarse column has whole numbers that float32 has not, or fewer than some 2^12 numbers of float32 between its
		// least and its greatest value.
		most, spread := max(math.Abs(c.Low), math.Abs(c.High)), c.High-c.Low
		differ := spread > 0 && (!c.Fraction || spread > most*nearlyEqual)
		coarse := c.Seen > 0 && differ && !math.IsInf(most, 0) && (most > 0x1p24 || spread < most*0x1p-11)
		if (coarse || c.tiny) && len(f.columns) < maxRounded {
			f.columns = append(f.columns, roundedColumn{feature: i, low: c.Low, high: c.High, tiny: c.tiny,
				values: map[float64]bool{}})
		}
	}
	if len(f.columns) == 0 {
		return nil
	}
	f.most = maxRoundedValues / len(f.columns)
	return f
}

// Add looks at a row.
func (f *RoundedFeatures) Add(r *dataset.Row) {
	for i := range f.columns {
		c := &f.columns[i]
		at, ok := c.feature, c.feature < len(r.Values)
		if r.Sparse {
			at, ok = slices.BinarySearch(r.Columns, uint32(c.feature))
		}
		if ok && len(c.values) < f.most {
			if v := r.Values[at]; v == v {
				c.values[v] = true
			}
		}
	}
}

// Lines says of each feature that loses values how many, up to a bound.
func (f *RoundedFeatures) Lines() (lines []errtext.Text) {
	more := 0
	for i := range f.columns {
		line := f.line(&f.columns[i])
		switch {
		case line == "":
		case len(lines) < WarningNames:
			lines = append(lines, line)
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, errtext.Sprintf("%s more features have different values that become equal when rounded to "+
			"float32", units.Count(more)))
	}
	return lines
}

// line says what float32 makes of the values of a feature; it is empty if fewer than one in a hundred are lost.
func (f *RoundedFeatures) line(c *roundedColumn) errtext.Text {
	offset := math.Floor(c.low)
	stored, moved := map[float32]bool{}, map[float32]bool{}
	for v := range c.values {
		stored[float32(v)], moved[float32(v-offset)] = true, true
	}
	n := len(c.values)
	lost := n - len(stored)
	if lost == 0 || lost < n/100 {
		return ""
	}
	title := fmt.Sprintf("feature %d", c.feature)
	if name := dataset.NameAt(f.info.FeatureNames, c.feature); name != "" {
		title = fmt.Sprintf("feature %q", name)
	}
	advice := errtext.Sprintf("subtract an offset, such as %s, from the values", units.InFull(offset))
	switch {
	case len(moved)-len(stored) >= lost/2 && len(moved) > len(stored):
	case c.tiny:
		advice = "write the feature in another unit, or take logarithms of its values"
	default:
		advice = errtext.Sprintf("no offset keeps the values apart: split the column in two, such as day and second, or " +
			"leave it out with {drop} if it numbers the rows")
	}
	return errtext.Sprintf("%s different values of %s, from %s to %s, are rounded to %s in float32; %s",
		units.Count(n), title, units.InFull(c.low), units.InFull(c.high), dataset.Counted(len(stored), "number"), advice)
}

// WarningNames is how many features of one kind a warning names.
const WarningNames = 8

// Single says why a file with this only label column is refused, and what its values are.
func (c *Column) Single(info *dataset.Info) errtext.Text {
	name := ""
	if n := dataset.NameAt(info.LabelNames, 0); n != "" {
		name = fmt.Sprintf(", %q", n)
	}
	what := errtext.Sprintf("{labels=age}, with {sigma} and {range}, reads the column as a numeric label")
	switch {
	case !c.Fraction:
		what = errtext.Sprintf("the values are whole numbers and may be class numbers: {labels=class} reads them as "+
			"classes; %s", what)
	case c.Low >= 0 && c.High <= 1:
		what = "add the other class's probability, which is 1 minus this one, as a second label column"
	}
	return errtext.Sprintf("found only one label%s; the labels of a sample sum to 1, so a single label would always be "+
		"1; %s", name, what)
}
