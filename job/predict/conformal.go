package predict

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Conformal collects calibration samples for split conformal prediction, which the model must not have been trained
// on. The conformity score of a label is the absolute residual |truth - prediction|, so the intervals of a label have
// the same width in all samples, before they are clipped to the values that the label can have.
//
// Vovk, Gammerman, Shafer: Algorithmic Learning in a Random World, 2005; Lei et al.: Distribution-Free Predictive
// Inference for Regression, JASA 2018.
type Conformal struct {
	scale     *dataset.Scale // with the true number of a sample; nil: the labels are not numeric
	number    bool           // true if the model predicts a number
	names     []string       // of the predicted values
	low, high []float64      // the least and the greatest value of each
	scores    [][]float64    // of each value; +Inf of a truth outside of its range, which no clipped interval has
	rows      int
}

// MaxScores bounds the conformity scores of all labels, and the pairs of a Calibration, which are in memory.
const MaxScores = 1 << 27

// Add adds sample i of a block, which has labels. A degree that is missing has no score.
func (c *Conformal) Add(p *Block, i int) error {
	if c.rows++; c.rows > MaxScores/len(c.names) {
		return errtext.Errorf(errtext.WrongData, "the calibration samples have more than %s labels altogether; give fewer "+
			"samples", units.Count(MaxScores))
	}
	predicted := p.Row(i)
	add := func(k int, truth, predicted float64) {
		score := math.Abs(truth - predicted)
		if truth < c.low[k] || truth > c.high[k] {
			score = math.Inf(1)
		}
		c.scores[k] = append(c.scores[k], score)
	}
	if c.number {
		add(0, c.scale.Number(p.Rows, i), float64(predicted[0]))
		return nil
	}
	for k, d := range p.Rows.Label(i) {
		if d == d {
			add(k, float64(d), float64(predicted[k]))
		}
	}
	if c.scale != nil {
		add(len(c.names)-1, c.scale.Number(p.Rows, i), c.scale.Expected(predicted))
	}
	return nil
}

// Intervals say how far the intervals of each predicted value reach.
type Intervals struct {
	Coverage float64    `json:"coverage"`
	Samples  int        `json:"samples"` // for calibration
	Values   []Interval `json:"labels"`

	low, high []float64 // the least and the greatest value of each
	scale     *dataset.Scale
	expected  bool // true if the last of Values is the expected number
}

// Interval is of one predicted value: a label, or the expected number.
type Interval struct {
	Label     string  `json:"label"`
	Samples   int     `json:"samples"` // with a known degree
	Rank      int     `json:"rank"`    // of HalfWidth among the scores of these samples, from 1
	HalfWidth float64 `json:"half_width"`
}

// Rank returns ceil((n + 1) c): the rank of the score among n scores that intervals with coverage c need. If it exceeds
// n, there are too few scores, and least is the smallest number of scores that is enough. The coverage is the decimal
// number that its shortest text says: 0.9 is nine tenths.
func Rank(n int, coverage float64) (rank, least int) {
	c, _ := new(big.Rat).SetString(strconv.FormatFloat(coverage, 'f', -1, 64))
	up := func(x *big.Rat) int { // ceil
		q, r := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
		if r.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		return int(q.Int64())
	}
	rank = up(new(big.Rat).Mul(c, big.NewRat(int64(n)+1, 1)))
	return rank, up(new(big.Rat).Quo(c, new(big.Rat).Sub(big.NewRat(1, 1), c)))
}

// CheckCoverage returns an error unless a coverage is from 1e-6 to 1 - 1e-6.
func CheckCoverage(coverage float64) error {
	if !(coverage >= 1e-6 && coverage <= 1-1e-6) {
		return errtext.Errorf(errtext.WrongOption, "{interval=%v}: want a coverage from 0.000001 to 0.999999, such as "+
			"{interval:0.9}", coverage)
	}
	return nil
}

// Intervals returns the intervals with a coverage, which CheckCoverage accepts. The half width of a label is the score
// with the rank that Rank returns. If calibration samples and new ones are exchangeable, an interval contains the truth
// of a new sample with at least this probability, for each label alone.
func (c *Conformal) Intervals(coverage float64) (*Intervals, error) {
	v := &Intervals{Coverage: coverage, Samples: c.rows, low: c.low, high: c.high, scale: c.scale,
		expected: c.scale != nil && !c.number}
	for k, scores := range c.scores {
		n := len(scores)
		rank, least := Rank(n, coverage)
		if rank > n {
			of := ""
			if n < c.rows {
				of = " with a known degree of " + c.names[k]
			}
			return nil, errtext.Errorf(errtext.WrongData, "intervals with coverage %v need at least %s calibration samples%s, "+
				"but there are %s", coverage, units.Count(least), of, units.Count(n))
		}
		slices.Sort(scores)
		if math.IsInf(scores[rank-1], 1) {
			outside := n - slices.Index(scores, math.Inf(1))
			return nil, errtext.Errorf(errtext.WrongData, "%s: the truth of %s is outside the bounds %s to %s of the model, "+
				"more than intervals with coverage %v may miss", c.names[k],
				units.Count(outside)+" of "+units.Plural(n, "calibration sample"), units.InFull(c.low[k]),
				units.InFull(c.high[k]), coverage)
		}
		v.Values = append(v.Values, Interval{Label: c.names[k], Samples: n, Rank: rank, HalfWidth: scores[rank-1]})
	}
	return v, nil
}

// Of appends the ends of the intervals of a prediction to dst: low and high of each of Values. Ends are rounded
// outwards to float32, so that rounding excludes no truth.
func (v *Intervals) Of(dst, predicted []float32) []float32 {
	add := func(k int, p float64) {
		half, low, high := v.Values[k].HalfWidth, v.low[k], v.high[k]
		dst = append(dst, roundDown(min(max(p-half, low), high)), roundUp(min(max(p+half, low), high)))
	}
	for k, p := range predicted {
		add(k, float64(p))
	}
	if v.expected {
		add(len(v.Values)-1, v.scale.Expected(predicted))
	}
	return dst
}

// roundDown returns the greatest float32 that is at most x.
func roundDown(x float64) float32 {
	f := dataset.PositiveZero(x)
	if float64(f) > x {
		f = math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return f
}

// roundUp returns the least float32 that is at least x.
func roundUp(x float64) float32 { return dataset.PositiveZero(-float64(roundDown(-x))) }

// columns returns the columns of the ends, two for each value: NAME_low and NAME_high. names are the columns of the
// predicted values, and others are all columns before. If a name would occur twice, the columns of all intervals begin
// with interval_.
func (v *Intervals) columns(names, others []string) (all []string) {
	if v.expected {
		names = append(slices.Clone(names), "expected")
	}
	for prefix := ""; ; prefix += "interval_" {
		all = all[:0]
		for _, name := range names {
			all = append(all, prefix+name+"_low", prefix+name+"_high")
		}
		if !slices.ContainsFunc(all, func(name string) bool { return slices.Contains(others, name) }) {
			return all
		}
	}
}

// intervalArrays keeps the ends of all intervals for the arrays of an archive: 8 bytes for each value of a sample. If
// of is nil, it keeps none.
type intervalArrays struct {
	of   *Intervals
	ends []float32 // samples x values x 2
}

// add adds the prediction of a sample.
func (a *intervalArrays) add(predicted []float32) {
	if a.of != nil {
		a.ends = a.of.Of(a.ends, predicted)
	}
}

// write writes the arrays "low" and "high" (float32, samples x labels, or samples x 1 of numbers), and for numeric
// labels "expected_low" and "expected_high" (float32, samples x 1).
func (a *intervalArrays) write(z *npy.Archive, width int) error {
	if a.of == nil {
		return nil
	}
	values := len(a.of.Values)
	samples := len(a.ends) / (2 * values)
	part := func(name string, from, to, end int) error {
		out, err := z.Floats(name, samples, to-from)
		for i := 0; i < samples && err == nil; i++ {
			for k := from; k < to && err == nil; k++ {
				at := 2*(i*values+k) + end
				err = out.Write(a.ends[at : at+1])
			}
		}
		if err != nil {
			return err
		}
		return out.Flush()
	}
	err := cmp.Or(part("low", 0, width, 0), part("high", 0, width, 1))
	if err == nil && a.of.expected {
		err = cmp.Or(part("expected_low", width, values, 0), part("expected_high", width, values, 1))
	}
	return err
}
