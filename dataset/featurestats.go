package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds of featureStats: columns, pairs of a feature and a label, and the number of rows
// from which on correlations use a sample of the rows only.
const (
	maxStatsColumns = 1 << 20
	maxPairs        = 1 << 20
	pairRows        = 256
)

// featureStats computes statistics of features that show what looks wrong with them. Its
// memory does not grow with the rows.
type featureStats struct {
	info         Info
	rows         int
	columns      []columnStats // nil: there are too many
	correlations *correlations // nil: there are too many
}

// columnStats are the statistics of one column.
type columnStats struct {
	low, high float64
	last      float64
	seen      int // values, without the zeros that a sparse row leaves out
	zeros     int // those of seen that are 0
	missing   int
	fraction  bool // some value is no whole number
	tiny      bool // some value is not 0 and nearer to it than 2^-126, so that float32 has few digits of it or none
	falls     bool // some value is not above the one before
}

func newFeatureStats(info Info) *featureStats {
	w := &featureStats{info: info}
	if info.Features <= maxStatsColumns {
		w.columns = make([]columnStats, info.Features)
	}
	return w
}

// add adds a row that is not left out.
func (w *featureStats) add(r *Row) {
	if w.columns == nil {
		return
	}
	if n := len(r.targets()); w.correlations == nil && n > 0 && n*w.info.Features <= maxPairs {
		w.correlations = newCorrelations(r, w.info.Features)
	}
	if w.correlations != nil && sampled(w.rows) {
		w.correlations.add(r)
	}
	w.rows++
	if r.Sparse {
		for i, v := range r.Values {
			if at := int(r.Columns[i]); at < len(w.columns) {
				w.columns[at].add(v)
			}
		}
		return
	}
	columns := w.columns[:min(len(w.columns), len(r.Values))]
	for i := range columns {
		columns[i].add(r.Values[i])
	}
}

// sampled reports whether correlations use a row: all rows below pairRows, and every
// 2^(k+1)-th row from pairRows·2^k up to twice that.
func sampled(row int) bool {
	step := 1
	for n := row / pairRows; n > 0; n /= 2 {
		step *= 2
	}
	return row%step == 0
}

// targets are the numbers that the labels of a row are, or were made from.
func (r *Row) targets() []float64 {
	if r.raw != nil {
		return r.raw
	}
	return r.Labels
}

func (c *columnStats) add(v float64) {
	if c.seen == 0 || v != v {
		c.begin(v)
		return
	}
	c.seen++
	if !c.falls && v <= c.last { // falls first: the comparison of random values is mispredicted
		c.falls = true
	}
	c.last = v
	if v < c.low {
		c.low = v
	}
	if v > c.high {
		c.high = v
	}
	if math.Abs(v) < leastNormal {
		c.near(v)
	}
	if !c.fraction {
		c.fraction = v != math.Floor(v)
	}
}

// leastNormal is the least number above 0 of which float32 has all digits.
const leastNormal = 0x1p-126

// near counts a value that is 0 or almost 0.
func (c *columnStats) near(v float64) {
	if v == 0 {
		c.zeros++
	} else {
		c.tiny = true
	}
}

// begin adds a missing value, or the first one that is not.
func (c *columnStats) begin(v float64) {
	if math.IsNaN(v) {
		c.missing++
		return
	}
	c.seen, c.low, c.high, c.last = 1, v, v, v
	if math.Abs(v) < leastNormal {
		c.near(v)
	}
	c.fraction = v != math.Floor(v)
}

// finish returns the statistics with the zeros that sparse rows do not list.
func (c columnStats) finish(rows int) columnStats {
	if out := rows - c.seen - c.missing; out > 0 {
		if c.seen == 0 {
			c.low, c.high = 0, 0
		}
		if c.low > 0 {
			c.low = 0
		}
		if c.high < 0 {
			c.high = 0
		}
		c.zeros, c.falls = c.zeros+out, true
	}
	return c
}

// roundedFeatures looks in a second pass at the features whose values may be different numbers and one float32:
// large ones, those that differ by little, and those that are almost 0.
type roundedFeatures struct {
	info    Info
	columns []roundedColumn
	most    int // different values that are kept of a column
}

// roundedColumn has the first different values of a feature.
type roundedColumn struct {
	feature   int
	low, high float64
	tiny      bool // some are almost 0
	coarse    bool // what is not almost 0 is looked at as well
	values    map[float64]bool
}

// Bounds of roundedFeatures: features, and different values of all of them.
const (
	maxRounded       = 1 << 10
	maxRoundedValues = 1 << 18
)

// rounded returns the features to look at; nil: there are none.
func (w *featureStats) rounded() *roundedFeatures {
	f := &roundedFeatures{info: w.info}
	for i, c := range w.columns {
		if coarse := c.mayRound(); (coarse || c.tiny) && len(f.columns) < maxRounded {
			f.columns = append(f.columns, roundedColumn{i, c.low, c.high, c.tiny, coarse, map[float64]bool{}})
		}
	}
	if len(f.columns) == 0 {
		return nil
	}
	f.most = maxRoundedValues / len(f.columns)
	return f
}

// mayRound reports whether a column has whole numbers that float32 has not, or fewer than some 2^12 numbers of float32 between its least
// and its greatest value.
// Values that differ by rounding in float64 alone do not count.
func (c *columnStats) mayRound() bool {
	most, spread := max(math.Abs(c.low), math.Abs(c.high)), c.high-c.low
	if c.seen == 0 || !(spread > most*0x1p-40) || math.IsInf(most, 0) {
		return false
	}
	return most > 0x1p24 || spread < most*0x1p-11
}

// add looks at a row.
func (f *roundedFeatures) add(r *Row) {
	for i := range f.columns {
		c := &f.columns[i]
		at, ok := c.feature, c.feature < len(r.Values)
		if r.Sparse {
			at, ok = slices.BinarySearch(r.Columns, uint32(c.feature))
		}
		if ok && len(c.values) < f.most {
			if v := r.Values[at]; v == v && (c.coarse || math.Abs(v) < leastNormal) {
				c.values[v] = true
			}
		}
	}
}

// lines says of each feature that loses values how many, up to a bound.
func (f *roundedFeatures) lines() (lines []string) {
	more := 0
	for i := range f.columns {
		line := f.line(&f.columns[i])
		switch {
		case line == "":
		case len(lines) < warningNames:
			lines = append(lines, line)
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s more features have different values that become equal when rounded to float32", units.Count(more)))
	}
	return lines
}

// line says what float32 makes of the values of a feature; it is empty if fewer than one in a hundred are lost.
func (f *roundedFeatures) line(c *roundedColumn) string {
	if c.tiny {
		if line := f.tinyLine(c); line != "" || !c.coarse {
			return line
		}
	}
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
	s := Suspect{Feature: c.feature, Name: nameAt(f.info.FeatureNames, c.feature)}
	advice := fmt.Sprintf("subtract an offset, such as %s, from the values", units.InFull(offset))
	if len(moved)-len(stored) < lost/2 || len(moved) == len(stored) {
		advice = "no offset keeps the values apart: split the column in two, such as day and second, or leave it out with --drop if it numbers the rows"
	}
	return fmt.Sprintf("%s different values of %s, from %s to %s, are rounded to %s in float32; %s",
		units.Count(n), s.title(), units.InFull(c.low), units.InFull(c.high), counted(len(stored), "number"), advice)
}

// tinyLine says how many values of a feature, of those that are almost 0, are 0 or one number as float32, and which numbers to
// write instead; it is empty if float32 tells them apart from each other and from 0.
func (f *roundedFeatures) tinyLine(c *roundedColumn) string {
	stored, n, zeros, low, high, least := map[float32]bool{}, 0, 0, math.Inf(1), math.Inf(-1), leastNormal
	for v := range c.values {
		if v == 0 || math.Abs(v) >= leastNormal {
			continue
		}
		n, low, high, least = n+1, min(low, v), max(high, v), min(least, math.Abs(v))
		if x := float32(v); x == 0 {
			zeros++
		} else {
			stored[x] = true
		}
	}
	if len(stored) == n {
		return ""
	}
	advice := "take logarithms of the values, or leave the feature out with --drop"
	_, exponent, _ := strings.Cut(strconv.FormatFloat(least, 'e', -1, 64), "e-")
	power, _ := strconv.Atoi(exponent)
	factor, err := strconv.ParseFloat(fmt.Sprintf("1e%d", power), 64)
	if err == nil && max(math.Abs(c.low), math.Abs(c.high))*factor < math.MaxFloat32 {
		advice = fmt.Sprintf("multiply the feature by 1e%d", power)
	} else if c.low < 0 {
		advice = "no factor keeps the values different from 0: leave the feature out with --drop, or write it in another unit"
	}
	s := Suspect{Feature: c.feature, Name: nameAt(f.info.FeatureNames, c.feature)}
	what := fmt.Sprintf("%s of %s, %s", counted(n, "different value"), s.title(), units.InFull(low))
	if n > 1 {
		what += " to " + units.InFull(high)
	}
	switch {
	case n == 1:
		what += ", is rounded to 0"
	case len(stored) == 0:
		what += ", are rounded to 0"
	case zeros == 0:
		what += ", are rounded to " + counted(len(stored), "number")
	default:
		what += fmt.Sprintf(", are rounded to 0 and %s", counted(len(stored), "other number"))
	}
	return what + " in float32; " + advice
}
