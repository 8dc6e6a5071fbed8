package measures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Measure is one entry of All.
type Measure struct {
	Name           string // in JSON and metrics
	Title          string // in tables
	Formula        string
	HigherIsBetter bool
	Func           func(d, p []float64) float64
}

// Count is the number of measures.
const Count = 10

// All lists the measures in the order of tables, sums and JSON.
var All = []Measure{
	{"kl", "K-L", "Σ d ln(d/p)", false, KL},
	{"euclidean", "Euclidean", "sqrt(Σ (d-p)²)", false, Euclidean},
	{"sorensen", "Sørensen", "Σ|d-p| / Σ(d+p)", false, Sorensen},
	{"chi2", "Squared χ²", "Σ (d-p)²/(d+p)", false, Chi2},
	{"fidelity", "Fidelity", "Σ sqrt(d·p)", true, Fidelity},
	{"intersection", "Intersection", "Σ min(d, p)", true, Intersection},
	{"chebyshev", "Chebyshev", "max|d-p|", false, Chebyshev},
	{"clark", "Clark", "sqrt(Σ (d-p)²/(d+p)²)", false, Clark},
	{"canberra", "Canberra", "Σ |d-p|/(d+p)", false, Canberra},
	{"cosine", "Cosine", "Σ d·p / (sqrt(Σ d²) sqrt(Σ p²))", true, Cosine},
}

// CountMore is the number of measures of More.
const CountMore = 4

// More lists further measures of distributions than All, in the order of tables, sums and
// JSON. A job has them if its spec says `measures: all`.
var More = []Measure{
	{"spearman", "Spearman", "correlation of the ranks of d and p", true, Spearman},
	{"jensen_shannon", "Jensen-Shannon", "(K-L(d, m) + K-L(p, m)) / 2, m = (d+p)/2", false, JensenShannon},
	{"zero_one", "Zero-one loss", "0 if d and p have their maximum at the same label, else 1", false, ZeroOne},
	{"error_probability", "Error probability", "1 - d at the label with the largest p", false, ErrorProbability},
}

// Stat is a mean and the population standard deviation around it.
type Stat struct {
	Mean float64
	Std  float64
}

// Report holds a Stat for each measure, in the order of All. Its JSON is an
// object by name in that order: {"kl":{"mean":0.07,"std":0.02},...}; a value
// that is not finite is null.
type Report [Count]Stat

// Get returns the Stat of a measure by name, and whether there is one.
func (r Report) Get(name string) (Stat, bool) {
	for i := range All {
		if All[i].Name == name {
			return r[i], true
		}
	}
	return Stat{}, false
}

type statJSON struct {
	Mean *float64 `json:"mean"`
	Std  *float64 `json:"std"`
}

// MarshalJSON implements json.Marshaler.
func (r Report) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, s := range r {
		v, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("measures: %s: %w", All[i].Name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:%s", All[i].Name, v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler; a measure that is absent or null
// becomes NaN, and names that are not in All are ignored.
func (r *Report) UnmarshalJSON(b []byte) error {
	var m map[string]statJSON
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("measures: %w", err)
	}
	for i := range All {
		s := m[All[i].Name]
		r[i] = Stat{orNaN(s.Mean), orNaN(s.Std)}
	}
	return nil
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// MarshalJSON implements json.Marshaler: {"mean":0.07,"std":0.02}, where what is not finite
// is null.
func (s Stat) MarshalJSON() ([]byte, error) {
	v := statJSON{&s.Mean, &s.Std}
	if s.Mean-s.Mean != 0 {
		v.Mean = nil
	}
	if s.Std-s.Std != 0 {
		v.Std = nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler; what is absent or null becomes NaN.
func (s *Stat) UnmarshalJSON(b []byte) error {
	var v statJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = Stat{orNaN(v.Mean), orNaN(v.Std)}
	return nil
}

// StatOf returns mean and population standard deviation of n values from their sum and the
// sum of their squares.
func StatOf(n, sum, squares float64) Stat {
	mean := sum / n
	return Stat{mean, math.Sqrt(max(squares/n-float64(mean*mean), 0))}
}

// StatOver returns mean and population standard deviation of values.
func StatOver(values []float64) Stat {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		d := v - mean
		squares += float64(d * d)
	}
	return Stat{mean, math.Sqrt(squares / n)}
}

// overFolds returns the Stat over folds of the means that of gives.
func overFolds[T any](folds []T, of func(*T) Stat) Stat {
	var means []float64
	for i := range folds {
		means = append(means, of(&folds[i]).Mean)
	}
	return StatOver(means)
}

// Width is the number of sums that describe a set of rows: the number of rows,
// then Count sums of the measures, then Count sums of their squares. The sums of a dataset
// are the sums of its shards, added element by element.
const Width = 1 + 2*Count

// shortRow is the number of labels up to which measures of a row do not allocate.
const shortRow = 128

// Row holds the measures of one row, in the order of All.
type Row [Count]float64

// number is the type of a share.
type number interface{ float32 | float64 }

// OfRow returns the measures of one row of shares. d and p are divided by their
// sums; one whose sum is not positive and finite is taken as it is.
func OfRow[T number](d, p []T) Row {
	var buf [2 * shortRow]float64
	wide := buf[:]
	if 2*len(d) > len(wide) {
		wide = make([]float64, 2*len(d))
	}
	x, y := wide[:len(d)], wide[len(d):2*len(d)]
	normalize(x, d)
	normalize(y, p)
	return Row{
		KL(x, y), Euclidean(x, y), Sorensen(x, y), Chi2(x, y), Fidelity(x, y),
		Intersection(x, y), Chebyshev(x, y), Clark(x, y), Canberra(x, y), Cosine(x, y),
	}
}

// Accumulate adds one row to the sums dst (Width values): d is its true
// distribution, p the predicted one (see OfRow).
func Accumulate(dst []float64, d, p []float32) {
	if len(dst) != Width {
		panic("measures: sums of the wrong width")
	}
	accumulate(dst, OfRow(d, p))
}

// accumulate adds the measures of a row to the sums dst.
func accumulate(dst []float64, row Row) {
	dst[0]++
	for i, v := range row {
		dst[1+i] += v
		dst[1+Count+i] += float64(v * v)
	}
}

// FromSums returns mean and population standard deviation over the rows that
// sums (Width values) describe; all are NaN where there are no rows.
func FromSums(sums []float64) Report {
	if len(sums) != Width {
		panic("measures: sums of the wrong width")
	}
	var r Report
	n := sums[0]
	for i := range r {
		r[i] = StatOf(n, sums[1+i], sums[1+Count+i])
	}
	return r
}

// OverFolds returns, for each measure, the mean over folds of the folds' means,
// and the population standard deviation of these. All are NaN where there are
// no folds.
func OverFolds(folds []Report) Report {
	var r Report
	for i := range r {
		r[i] = overFolds(folds, func(f *Report) Stat { return f[i] })
	}
	return r
}

// normalize sets dst to v divided by its sum, if that is positive and finite, and otherwise to v.
func normalize[T number](dst []float64, v []T) {
	if len(dst) != len(v) {
		panic("measures: two rows of different numbers of labels")
	}
	sum := 0.0
	for i, x := range v {
		dst[i] = float64(x)
		sum += dst[i]
	}
	if !(sum > 0 && sum <= math.MaxFloat64) {
		return
	}
	for i := range dst {
		dst[i] /= sum
	}
}

// Epsilon is the least degree after clipping: 2^-52, float64's distance from 1 to the next number.
const Epsilon = 0x1p-52

// A Clip says whether degrees are clipped before they are compared.
type Clip string

// The ways to clip.
const (
	NoClip Clip = ""
	// PyLDL clips both distributions to [Epsilon, 1] for the six measures for which PyLDL 0.1
	// does so: K-L, Sørensen, squared χ², Clark, Canberra and Jensen-Shannon. K-L has no other
	// clamp then. The other measures are as they are without.
	PyLDL Clip = "pyldl"
)

// comparison holds a row as two distributions, and as clipped ones, which are the same slices
// where nothing is clipped.
type comparison struct{ d, p, clippedD, clippedP []float64 }

// compare returns a row of shares; d and p are divided by their sums as in OfRow. The comparison is in space, if
// that has room for four numbers a label.
func compare[T number](space []float64, d, p []T, how Clip) comparison {
	n := len(d)
	if 4*n > len(space) {
		space = make([]float64, 4*n)
	}
	c := comparison{d: space[:n], p: space[n : 2*n]}
	normalize(c.d, d)
	normalize(c.p, p)
	c.clippedD, c.clippedP = c.d, c.p
	if how == PyLDL {
		c.clippedD, c.clippedP = space[2*n:3*n], space[3*n:4*n]
		clip(c.clippedD, c.d)
		clip(c.clippedP, c.p)
	}
	return c
}

// clip sets dst to v, each value within [Epsilon, 1].
func clip(dst, v []float64) {
	for i, x := range v {
		dst[i] = min(max(x, Epsilon), 1)
	}
}

// ClippedRow returns what OfRow does, of degrees that are clipped as how says.
func ClippedRow[T number](d, p []T, how Clip) Row {
	if how == NoClip {
		return OfRow(d, p)
	}
	var buf [4 * shortRow]float64
	c := compare(buf[:], d, p, how)
	x, y := c.clippedD, c.clippedP
	return Row{
		divergence(x, y, Epsilon), Euclidean(c.d, c.p), Sorensen(x, y), Chi2(x, y), Fidelity(c.d, c.p),
		Intersection(c.d, c.p), Chebyshev(c.d, c.p), Clark(x, y), Canberra(x, y), Cosine(c.d, c.p),
	}
}

// MoreRow holds the measures More of one row, in their order.
type MoreRow [CountMore]float64

// MoreOfRow returns the measures More of one row of shares, clipped as how says; d and p are
// divided by their sums as in OfRow.
func MoreOfRow[T number](d, p []T, how Clip) MoreRow {
	var buf [4 * shortRow]float64
	c := compare(buf[:], d, p, how)
	return MoreRow{Spearman(c.d, c.p), JensenShannon(c.clippedD, c.clippedP), ZeroOne(c.d, c.p), ErrorProbability(c.d, c.p)}
}
