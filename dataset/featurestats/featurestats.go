// Package featurestats computes statistics of features in one pass, and from them which features look wrong: constant,
// a row number, a copy of a label, or rounded away by float32.
package featurestats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds of Stats: columns, pairs of a feature and a label, and the number of rows
// from which on correlations use a sample of the rows only.
const (
	MaxColumns = 1 << 20
	maxPairs   = 1 << 20
	pairRows   = 256
)

// Stats computes statistics of features that show what looks wrong with them. Its
// memory does not grow with the rows.
type Stats struct {
	info         dataset.Info
	rows         int
	Columns      []Column      // nil: there are too many
	Correlations *correlations // nil: there are too many
}

// Column are the statistics of one column.
type Column struct {
	Low, High float64
	last      float64
	Seen      int // values, without the zeros that a sparse row leaves out
	Zeros     int // values that are 0 and that rows list
	Missing   int
	Fraction  bool // some value is no whole number
	tiny      bool // some value is not 0 and nearer to it than 2^-126, so that float32 has few digits of it or none
	falls     bool // some value is not above the one before
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
	if n := len(r.Targets()); w.Correlations == nil && n > 0 && n*w.info.Features <= maxPairs {
		w.Correlations = newCorrelations(r, w.info.Features)
	}
	if w.Correlations != nil && sampled(w.rows) {
		w.Correlations.add(r)
	}
	w.rows++
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

// sampled reports whether correlations use a row: all rows below pairRows, and every
// 2^(k+1)-th row from pairRows·2^k up to twice that.
func sampled(row int) bool {
	step := 1
	for n := row / pairRows; n > 0; n /= 2 {
		step *= 2
	}
	return row%step == 0
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
		c.Low, c.High, c.last = v, v, math.NaN() // nothing is below or above NaN
	}
	c.Seen++
	if !c.falls && v <= c.last { // falls first: the comparison of random values is mispredicted
		c.falls = true
	}
	c.last = v
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
		c.Zeros, c.falls = c.Zeros+out, true
	}
	return c
}

// correlations are the sums from which correlations of features with labels are computed.
// The first row is subtracted from all rows, which avoids cancellation of large values.
type correlations struct {
	rows    int
	x0, y0  []float64 // of the first row; x0 is nil for sparse rows
	sx, sxx []float64
	sy, syy []float64
	sxy     []float64 // by feature, then label
	offsets []float64 // scratch: labels less y0

	missing map[int]*labelSums // of features with missing values, over the rows in which they are missing
}

// labelSums are sums over labels of some rows.
type labelSums struct {
	rows    int
	sy, syy []float64
}

func newCorrelations(r *dataset.Row, features int) *correlations {
	labels := len(r.Targets())
	p := &correlations{
		y0: append([]float64(nil), r.Targets()...),
		sx: make([]float64, features), sxx: make([]float64, features),
		sy: make([]float64, labels), syy: make([]float64, labels), sxy: make([]float64, features*labels),
		offsets: make([]float64, labels), missing: map[int]*labelSums{},
	}
	if !r.Sparse {
		p.x0 = append([]float64(nil), r.Values...)
		for i, v := range p.x0 {
			if v != v {
				p.x0[i] = 0
			}
		}
	}
	return p
}

// add adds a row. It ignores a row of another shape, or without labels.
func (p *correlations) add(r *dataset.Row) {
	targets := r.Targets()
	if len(targets) != len(p.y0) || r.Sparse != (p.x0 == nil) {
		return
	}
	p.rows++
	for j, y := range targets {
		y -= p.y0[j]
		p.offsets[j] = y
		p.sy[j] += y
		p.syy[j] += float64(y * y)
	}
	for i, x := range r.Values {
		at := i
		if r.Sparse {
			at = int(r.Columns[i])
		} else {
			x -= p.x0[i]
		}
		switch {
		case at >= len(p.sx) || x == 0 || math.IsInf(x, 0):
		case math.IsNaN(x):
			h := p.missing[at]
			if h == nil {
				h = &labelSums{sy: make([]float64, len(p.sy)), syy: make([]float64, len(p.sy))}
				p.missing[at] = h
			}
			h.rows++
			for j, y := range p.offsets {
				h.sy[j] += y
				h.syy[j] += float64(y * y)
			}
		default:
			p.sx[at] += x
			p.sxx[at] += float64(x * x)
			sums := p.sxy[at*len(p.offsets) : (at+1)*len(p.offsets)]
			for j, y := range p.offsets {
				sums[j] += float64(x * y)
			}
		}
	}
}

// closest returns the label with the greatest absolute correlation with feature i, and the
// correlation. It is 0 if one of the two is nearly constant, or if there are few rows.
func (p *correlations) closest(i int) (label int, r float64) {
	out := p.missing[i]
	n := float64(p.rows)
	if out != nil {
		n -= float64(out.rows)
	}
	vx := float64(n*p.sxx[i]) - float64(p.sx[i]*p.sx[i])
	for j := range p.sy {
		sy, syy := p.sy[j], p.syy[j]
		if out != nil {
			sy, syy = sy-out.sy[j], syy-out.syy[j]
		}
		vy := float64(n*syy) - float64(sy*sy)
		if n < MinRows || !(vx > 1e-9*n*p.sxx[i]) || !(vy > 1e-9*n*syy) {
			continue
		}
		c := (float64(n*p.sxy[i*len(p.sy)+j]) - float64(p.sx[i]*sy)) / math.Sqrt(vx) / math.Sqrt(vy)
		if math.Abs(c) > math.Abs(r) {
			label, r = j, c
		}
	}
	return label, r
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
	coarse    bool // what is not almost 0 is looked at as well
	values    map[float64]bool
}

// Bounds of RoundedFeatures: features, and different values of all of them.
const (
	maxRounded       = 1 << 10
	maxRoundedValues = 1 << 18
)

// nearlyEqual is the relative spread up to which values may differ by rounding in float64 alone.
const nearlyEqual = 0x1p-40

// Rounded returns the features to look at; nil: there are none. Values that differ by rounding in float64 alone do not count.
func (w *Stats) Rounded() *RoundedFeatures {
	f := &RoundedFeatures{info: w.info}
	for i, c := range w.Columns {
		// A coarse column has whole numbers that float32 has not, or fewer than some 2^12 numbers of float32 between its least
		// and its greatest value.
		most, spread := max(math.Abs(c.Low), math.Abs(c.High)), c.High-c.Low
		coarse := c.Seen > 0 && spread > most*nearlyEqual && !math.IsInf(most, 0) && (most > 0x1p24 || spread < most*0x1p-11)
		if (coarse || c.tiny) && len(f.columns) < maxRounded {
			f.columns = append(f.columns, roundedColumn{i, c.Low, c.High, c.tiny, coarse, map[float64]bool{}})
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
			if v := r.Values[at]; v == v && (c.coarse || math.Abs(v) < leastNormal) {
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
		lines = append(lines, errtext.Sprintf("%s more features have different values that become equal when rounded to float32", units.Count(more)))
	}
	return lines
}

// line says what float32 makes of the values of a feature; it is empty if fewer than one in a hundred are lost.
func (f *RoundedFeatures) line(c *roundedColumn) errtext.Text {
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
	s := Suspect{Feature: c.feature, Name: dataset.NameAt(f.info.FeatureNames, c.feature)}
	advice := errtext.Sprintf("subtract an offset, such as %s, from the values", units.InFull(offset))
	if len(moved)-len(stored) < lost/2 || len(moved) == len(stored) {
		advice = errtext.Sprintf("no offset keeps the values apart: split the column in two, such as day and second, or leave it out with {drop} if it numbers the rows")
	}
	return errtext.Sprintf("%s different values of %s, from %s to %s, are rounded to %s in float32; %s",
		units.Count(n), s.title(), units.InFull(c.low), units.InFull(c.high), dataset.Counted(len(stored), "number"), advice)
}

// tinyLine says how many of the values of a feature that are almost 0 are 0 or one number as float32. It is empty if float32
// tells them apart from each other and from 0.
func (f *RoundedFeatures) tinyLine(c *roundedColumn) errtext.Text {
	stored, n, low, high := map[float32]bool{}, 0, math.Inf(1), math.Inf(-1)
	for v := range c.values {
		if v != 0 && math.Abs(v) < leastNormal {
			n, low, high = n+1, min(low, v), max(high, v)
			stored[float32(v)] = true
		}
	}
	if len(stored) == n && !stored[0] {
		return ""
	}
	s := Suspect{Feature: c.feature, Name: dataset.NameAt(f.info.FeatureNames, c.feature)}
	become := dataset.Counted(len(stored), "number")
	if stored[0] && len(stored) == 1 {
		become = "0"
	}
	return errtext.Sprintf("in float32, %s of %s, from %s to %s, would be %s; write the feature in another unit, or take logarithms of its values",
		dataset.Counted(n, "different value"), s.title(), units.InFull(low), units.InFull(high), become)
}

// The kinds of suspects.
const (
	SuspectRowNumber = "row number" // it numbers the rows
	SuspectConstant  = "constant"   // it has one value
	SuspectLabel     = "label"      // it is a label or follows from one
)

// Suspect is a feature that looks wrong.
type Suspect struct {
	Feature int    `json:"feature"` // from 0
	Name    string `json:"name,omitempty"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
}

// copyCorrelation is the absolute correlation above which a feature counts as a copy of a
// label.
const copyCorrelation = 0.999

// Suspects lists the features that look wrong, in the order of their numbers.
func (w *Stats) Suspects() (all []Suspect) {
	for i, c := range w.Columns {
		c = c.Finish(w.rows)
		s := Suspect{Feature: i, Name: dataset.NameAt(w.info.FeatureNames, i)}
		label, r := 0, 0.0
		if w.Correlations != nil {
			label, r = w.Correlations.closest(i)
		}
		switch {
		case c.Low == c.High && w.rows > 1 && c.Missing == 0:
			s.Kind, s.Reason = SuspectConstant, fmt.Sprintf("is %s in every sample", units.InFull(c.Low))
		case float32(c.Low) == float32(c.High) && w.rows > 1 && c.Missing == 0 && c.High-c.Low <= math.Abs(c.High)*nearlyEqual:
			s.Kind, s.Reason = SuspectConstant, fmt.Sprintf("is %s in every sample, rounded to float32", units.InFull(float64(float32(c.Low))))
		case math.Abs(r) > copyCorrelation:
			s.Kind, s.Reason = SuspectLabel, fmt.Sprintf("is %s or follows from it (correlation %.4f)", w.target(label), r)
		case NamedAsNumber(s.Name):
			s.Kind, s.Reason = SuspectRowNumber, "has the name of a row number"
		case w.rows >= MinRows && !c.Fraction && !c.falls && c.Missing == 0:
			s.Kind, s.Reason = SuspectRowNumber, "looks like a row number: its whole numbers increase from row to row"
		default:
			continue
		}
		all = append(all, s)
	}
	return all
}

// target names a label, or what the labels were made from.
func (w *Stats) target(label int) string {
	if w.info.Labels != len(w.Correlations.y0) {
		return "the label"
	}
	if name := dataset.NameAt(w.info.LabelNames, label); name != "" {
		return fmt.Sprintf("label %q", name)
	}
	return fmt.Sprintf("label %d", label)
}

// NamedAsNumber reports whether a feature has the name of a row number, such as "id".
func NamedAsNumber(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"id", "index", "idx", "row", "row_id", "rowid"}, name) || strings.HasPrefix(name, "unnamed: ")
}

// WarningNames is how many features of one kind a warning names.
const WarningNames = 8

// Warnings returns a line for each suspect, up to a bound.
func Warnings(suspects []Suspect) (lines []errtext.Text) {
	var constant []Suspect
	byKind := map[string]int{}
	for _, s := range suspects {
		if s.Kind == SuspectConstant {
			constant = append(constant, s)
			continue
		}
		if byKind[s.Kind]++; byKind[s.Kind] <= WarningNames {
			lines = append(lines, errtext.Sprintf("%s %s%s", s.title(), s.Reason, s.advice()))
		}
	}
	for _, kind := range []string{SuspectRowNumber, SuspectLabel} {
		if n := byKind[kind] - WarningNames; n > 0 {
			lines = append(lines, errtext.Sprintf("%s more features look suspicious in the same way (%s)", units.Count(n), kind))
		}
	}
	if len(constant) > 0 {
		lines = append(lines, errtext.Sprintf("%s", constantLine(constant)))
	}
	return lines
}

func (s *Suspect) title() string {
	if s.Name == "" {
		return fmt.Sprintf("feature %d", s.Feature)
	}
	return fmt.Sprintf("feature %q", s.Name)
}

// advice says how to leave the feature out; its number need not be its column's.
func (s *Suspect) advice() errtext.Text {
	if s.Name == "" {
		return errtext.Sprintf("; {drop} leaves columns out")
	}
	return errtext.Sprintf("; %s leaves it out", errtext.Option("drop", s.Name))
}

func constantLine(constant []Suspect) string {
	var names []string
	for i := range constant[:min(WarningNames, len(constant))] {
		names = append(names, strings.TrimPrefix(constant[i].title(), "feature "))
	}
	list := strings.Join(names, ", ")
	if n := len(constant) - len(names); n > 0 {
		list += fmt.Sprintf(" and %s more", units.Count(n))
	}
	if len(constant) == 1 {
		return fmt.Sprintf("feature %s %s", list, constant[0].Reason)
	}
	return fmt.Sprintf("%s features are constant, each with one value in all samples: %s", units.Count(len(constant)), list)
}

// Single says why a file with this only label column is refused, and what its values are.
func (c *Column) Single(info *dataset.Info) errtext.Text {
	name := ""
	if n := dataset.NameAt(info.LabelNames, 0); n != "" {
		name = fmt.Sprintf(", %q", n)
	}
	what := errtext.Sprintf("{labels=age}, with {sigma} and {range}, reads the column as a numeric label")
	switch {
	case !c.Fraction:
		what = errtext.Sprintf("the values are whole numbers and may be class numbers: {labels=class} reads them as classes; %s", what)
	case c.Low >= 0 && c.High <= 1:
		what = "add the other class's probability, which is 1 minus this one, as a second label column"
	}
	return errtext.Sprintf("found only one label%s; the labels of a sample sum to 1, so a single label would always be 1; %s", name, what)
}

// MinRows is the least number of rows that show what a column seems to be, other than constant.
const MinRows = 10
