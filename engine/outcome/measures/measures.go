// Package measures compares predicted label distributions with true ones, by
// the ten measures that the label-distribution literature prints (Geng 2016,
// Table 1; Shen et al. 2017, Table 1), and averages them over rows and folds.
//
// In every formula d is the true distribution of a row, p the predicted one and
// sums run over labels, in order, in float64. Rows of float32 degrees are divided by their sums in float64 first, the
// true ones too: rounded to float32 they sum to 1 but for some 1e-8. A term 0/0 counts as 0. Where
// papers define a measure differently, the definition here is the one that
// reproduces their figures.
package measures

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Measure describes a measure of predictions.
type Measure struct {
	Name           string // in JSON and metrics
	Title          string // in tables
	Formula        string
	HigherIsBetter bool
	Func           func(d, p []float64) float64 // nil: it is a measure of classes or numbers
}

// Count is the number of measures of All, and CountMore the number of measures of More.
const (
	Count     = 10
	CountMore = 9
)

// All lists the ten measures in the order of tables, sums and JSON.
var All = []Measure{
	{Name: "kl", Title: "K-L", Formula: "Σ d ln(d/p)", HigherIsBetter: false, Func: KL},
	{Name: "euclidean", Title: "Euclidean", Formula: "sqrt(Σ (d-p)²)", HigherIsBetter: false, Func: Euclidean},
	{Name: "sorensen", Title: "Sørensen", Formula: "Σ|d-p| / Σ(d+p)", HigherIsBetter: false, Func: Sorensen},
	{Name: "chi2", Title: "Squared χ²", Formula: "Σ (d-p)²/(d+p)", HigherIsBetter: false, Func: Chi2},
	{Name: "fidelity", Title: "Fidelity", Formula: "Σ sqrt(d·p)", HigherIsBetter: true, Func: Fidelity},
	{Name: "intersection", Title: "Intersection", Formula: "Σ min(d, p)", HigherIsBetter: true, Func: Intersection},
	{Name: "chebyshev", Title: "Chebyshev", Formula: "max|d-p|", HigherIsBetter: false, Func: Chebyshev},
	{Name: "clark", Title: "Clark", Formula: "sqrt(Σ (d-p)²/(d+p)²)", HigherIsBetter: false, Func: Clark},
	{Name: "canberra", Title: "Canberra", Formula: "Σ |d-p|/(d+p)", HigherIsBetter: false, Func: Canberra},
	{Name: "cosine", Title: "Cosine", Formula: "Σ d·p / (sqrt(Σ d²) sqrt(Σ p²))", HigherIsBetter: true, Func: Cosine},
}

// More lists further measures of distributions than All, in the order of tables, sums and
// JSON. A job has them if its spec says `measures: all`.
var More = []Measure{
	{Name: "spearman", Title: "Spearman", Formula: "correlation of the ranks of d and p", HigherIsBetter: true,
		Func: Spearman},
	{Name: "jensen_shannon", Title: "Jensen-Shannon", Formula: "(K-L(d, m) + K-L(p, m)) / 2, m = (d+p)/2",
		HigherIsBetter: false, Func: JensenShannon},
	{Name: "zero_one", Title: "Zero-one loss", Formula: "0 if d and p have their maximum at the same label, else 1",
		HigherIsBetter: false, Func: ZeroOne},
	{Name: "error_probability", Title: "Error probability", Formula: "1 - d at the label with the largest p",
		HigherIsBetter: false, Func: ErrorProbability},
	{Name: "kendall", Title: "Kendall", Formula: "(C-D) / sqrt(pairs unequal in d · pairs unequal in p), over pairs of " +
		"labels: C have the same order in d and p, D the opposite", HigherIsBetter: true, Func: Kendall},
	{Name: "wave_hedges", Title: "Wave-Hedges", Formula: "Σ |d-p|/max(d, p)", HigherIsBetter: false, Func: WaveHedges},
	{Name: "mse", Title: "MSE", Formula: "Σ (d-p)² / number of labels", HigherIsBetter: false, Func: MSE},
	{Name: "top_2", Title: "Top-2 overlap", Formula: "fraction of the 2 labels with the largest d that are among the 2 " +
		"with the largest p", HigherIsBetter: true, Func: Top2},
	{Name: "top_3", Title: "Top-3 overlap", Formula: "fraction of the 3 labels with the largest d that are among the 3 " +
		"with the largest p", HigherIsBetter: true, Func: Top3},
}

// Others lists measures of predicted classes, of numbers that a distribution over a scale gives, of predicted numbers,
// of targets in bounds and of labels with missing degrees, in the order of tables.
var Others = []Measure{
	{Name: "accuracy", Title: "Accuracy", Formula: "fraction of samples with the right predicted class",
		HigherIsBetter: true, Func: nil},
	{Name: "mean_recall", Title: "Mean recall", Formula: "TP/(TP+FN), averaged over true classes", HigherIsBetter: true,
		Func: nil},
	{Name: "mean_jaccard", Title: "Mean Jaccard", Formula: "TP/(TP+FP+FN), averaged over true classes",
		HigherIsBetter: true, Func: nil},
	{Name: "log_loss", Title: "Log loss", Formula: "-ln p of the true class", HigherIsBetter: false, Func: nil},
	{Name: "mae_expected", Title: "MAE, expected", Formula: "|Σ y p - true number|", HigherIsBetter: false, Func: nil},
	{Name: "mae_median", Title: "MAE, median", Formula: "|median of p - true number|", HigherIsBetter: false, Func: nil},
	{Name: "mae_mode", Title: "MAE, mode", Formula: "|mode of p - true number|", HigherIsBetter: false, Func: nil},
	{Name: "mae", Title: "MAE", Formula: "|predicted number - true number|", HigherIsBetter: false, Func: nil},
	{Name: "mae_floored", Title: "MAE, floored", Formula: "|floor of the predicted number - true number|",
		HigherIsBetter: false, Func: nil},
	{Name: "mae_target", Title: "MAE, targets", Formula: "|predicted target - true target|, averaged over labels",
		HigherIsBetter: false, Func: nil},
	{Name: "mse_target", Title: "MSE, targets", Formula: "(predicted target - true target)², averaged over labels",
		HigherIsBetter: false, Func: nil},
	{Name: "rmse_target", Title: "RMSE, targets", Formula: "square root of a label's MSE, averaged over labels",
		HigherIsBetter: false, Func: nil},
	{Name: "r2_target", Title: "R², targets", Formula: "1 - Σ (predicted - true)² / Σ (true - mean)² of a label, " +
		"averaged over labels", HigherIsBetter: true, Func: nil},
	{Name: "mae_scaled", Title: "MAE, scaled", Formula: "MAE of targets scaled to [-1, 1], averaged over labels",
		HigherIsBetter: false, Func: nil},
	{Name: "mse_scaled", Title: "MSE, scaled", Formula: "MSE of targets scaled to [-1, 1], averaged over labels",
		HigherIsBetter: false, Func: nil},
	{Name: "mae_observed", Title: "MAE, observed degrees", Formula: "|p - d|, averaged over the degrees that are not " +
		"missing", HigherIsBetter: false, Func: nil},
}

// every lists all measures.
var every = slices.Concat(All, More, Others)

func indexOf(name string) int {
	return slices.IndexFunc(every, func(m Measure) bool { return m.Name == name })
}

// Find returns the measure of a name.
func Find(name string) (Measure, bool) {
	if at := indexOf(name); at >= 0 {
		return every[at], true
	}
	return Measure{}, false
}

// Names lists the names that Find knows, in the order of tables.
func Names() (names []string) {
	for _, m := range every {
		names = append(names, m.Name)
	}
	return names
}

// MinPrediction is the smallest predicted share that KL divides by.
const MinPrediction = 1e-12

// KL is the Kullback-Leibler divergence Σ d ln(d/p), in nats. Terms with d = 0
// count 0; p is clamped from below at MinPrediction. Of two distributions it is not negative: a sum
// that rounding or the clamp takes below 0 is 0. Lower is better; 0 when p = d.
func KL(d, p []float64) float64 {
	return divergence(d, p, MinPrediction)
}

// divergence is KL with p clamped from below at least.
func divergence(d, p []float64, least float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		if x == 0 {
			continue
		}
		sum += float64(x * num.Log(x/max(p[j], least)))
	}
	return max(sum, 0)
}

// Euclidean is the distance sqrt(Σ (d-p)²), within [0, √2] for distributions.
// Lower is better.
func Euclidean(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := x - p[j]
		sum += float64(y * y)
	}
	return math.Sqrt(sum)
}

// Sorensen is the distance Σ|d-p| / Σ(d+p), within [0, 1]; for distributions it
// is 1 - Intersection. Two rows of zeros have 0. Lower is better.
func Sorensen(d, p []float64) float64 {
	p = pair(d, p)
	diff, sum := 0.0, 0.0
	for j, x := range d {
		diff += math.Abs(x - p[j])
		sum += x + p[j]
	}
	return ratio(diff, sum)
}

// Chi2 is the squared χ² distance Σ (d-p)²/(d+p), within [0, 2] for
// distributions. Lower is better.
func Chi2(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := x - p[j]
		sum += ratio(float64(y*y), x+p[j])
	}
	return sum
}

// Fidelity is the similarity Σ sqrt(d·p), within [0, 1] for distributions.
// Higher is better.
func Fidelity(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += math.Sqrt(x * p[j])
	}
	return sum
}

// Intersection is the similarity Σ min(d, p), within [0, 1] for distributions.
// Higher is better.
func Intersection(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += min(x, p[j])
	}
	return sum
}

// Chebyshev is the distance max|d-p|, within [0, 1] for distributions. Lower is
// better.
func Chebyshev(d, p []float64) float64 {
	p = pair(d, p)
	most := 0.0
	for j, x := range d {
		most = max(most, math.Abs(x-p[j]))
	}
	return most
}

// Clark is the distance sqrt(Σ (d-p)²/(d+p)²), within [0, √labels]. A label with
// exactly one of d and p zero counts 1, one with both zero counts 0. Lower is
// better.
func Clark(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := ratio(x-p[j], x+p[j])
		sum += float64(y * y)
	}
	return math.Sqrt(sum)
}

// Canberra is the metric Σ |d-p|/(d+p), within [0, labels]. A label with exactly
// one of d and p zero counts 1, one with both zero counts 0. It is not squared,
// as Table 2 of the StructRF paper prints it: that would be Chi2. Lower is better.
func Canberra(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += ratio(math.Abs(x-p[j]), x+p[j])
	}
	return sum
}

// Cosine is the similarity Σ d·p / (sqrt(Σ d²) sqrt(Σ p²)), within [0, 1]; it is
// 0 where a row is all zeros. Higher is better.
func Cosine(d, p []float64) float64 {
	p = pair(d, p)
	dp, dd, pp := 0.0, 0.0, 0.0
	for j, x := range d {
		y := p[j]
		dp += float64(x * y)
		dd += float64(x * x)
		pp += float64(y * y)
	}
	return ratio(dp, math.Sqrt(dd)*math.Sqrt(pp))
}

// Spearman is the rank correlation, within [-1, 1]: Pearson's correlation of the ranks of d and
// of p, where equal degrees have the mean of their ranks. It is 0 where all degrees of a row are
// equal, which SciPy gives no number for. Higher is better.
func Spearman(d, p []float64) float64 {
	p = pair(d, p)
	dp, dd, pp := 0.0, 0.0, 0.0
	for j := range d {
		x, y := centred(d, j), centred(p, j)
		dp += float64(x * y)
		dd += float64(x * x)
		pp += float64(y * y)
	}
	return ratio(dp, math.Sqrt(dd)*math.Sqrt(pp))
}

// centred is twice the distance of the rank of v[j] in v from the mean rank: a whole number.
func centred(v []float64, j int) float64 {
	below, same := 0, 0
	for _, x := range v {
		switch {
		case x < v[j]:
			below++
		case x == v[j]:
			same++
		}
	}
	return float64(2*below + same - len(v))
}

// JensenShannon is the divergence (K-L(d, m) + K-L(p, m)) / 2 with m = (d + p)/2, in nats,
// within [0, ln 2] for distributions: Lin 1991, and the square of SciPy's distance. Terms 0 ln 0
// count 0. Lower is better.
func JensenShannon(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		m := (x + p[j]) / 2
		sum += part(x, m) + part(p[j], m)
	}
	return max(sum, 0) / 2 // of equal distributions rounding may leave less than 0
}

// part is x ln(x/m), 0 for x = 0.
func part(x, m float64) float64 {
	if x == 0 {
		return 0
	}
	return float64(x * num.Log(x/m))
}

// ZeroOne is 0 if d and p have their maximum at the same label, else 1; of equal degrees the lowest
// label counts. Lower is better.
func ZeroOne(d, p []float64) float64 {
	if greatest(d) == greatest(pair(d, p)) {
		return 0
	}
	return 1
}

// ErrorProbability is 1 - d at the label with the largest p (of equal ones the lowest): the
// probability that this label is wrong, within [0, 1] (Geng 2016, section 4.1). Lower is better.
func ErrorProbability(d, p []float64) float64 {
	return 1 - d[greatest(pair(d, p))]
}

// greatest is the label of the greatest degree, of equal ones the lowest.
func greatest(v []float64) int {
	best := 0
	for j, x := range v {
		if x > v[best] {
			best = j
		}
	}
	return best
}

// Kendall is the rank correlation tau-b, within [-1, 1]: the pairs of labels that d and p order alike, less the pairs
// that they order differently, divided by sqrt(x·y), where x pairs are unequal in d and y in p (Kendall 1945; SciPy's
// kendalltau). It is 0 where all degrees of a row are equal, which SciPy gives no number for. Higher is better.
func Kendall(d, p []float64) float64 {
	p = pair(d, p)
	agree, inD, inP := 0, 0, 0
	for j := range d {
		for k := range j {
			x, y := cmp.Compare(d[j], d[k]), cmp.Compare(p[j], p[k])
			agree += x * y
			inD += x * x
			inP += y * y
		}
	}
	return ratio(float64(agree), math.Sqrt(float64(inD))*math.Sqrt(float64(inP)))
}

// WaveHedges is the distance Σ |d-p|/max(d, p), within [0, labels] (Cha 2007). Lower is better.
func WaveHedges(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += ratio(math.Abs(x-p[j]), max(x, p[j]))
	}
	return sum
}

// MSE is the mean squared error over labels, Σ (d-p)² divided by their number. Lower is better.
func MSE(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := x - p[j]
		sum += float64(y * y)
	}
	return ratio(sum, float64(len(d)))
}

// Top2 is the fraction of the two labels with the largest d that are among the two with the largest p. Of equal degrees
// the lowest label comes first. A single label has 1. Higher is better.
func Top2(d, p []float64) float64 { return overlap(d, p, 2) }

// Top3 is Top2 for three labels. Two labels have 1.
func Top3(d, p []float64) float64 { return overlap(d, p, 3) }

// mostTop bounds the number of labels that overlap compares.
const mostTop = 3

// overlap is the fraction of the k labels with the largest d that are among the k with the largest p, with k at most
// mostTop and at most the number of labels.
func overlap(d, p []float64, k int) float64 {
	k = min(k, len(d))
	var ofD, ofP [mostTop]int
	largest(ofD[:k], d)
	largest(ofP[:k], pair(d, p))
	both := 0
	for _, j := range ofD[:k] {
		if slices.Contains(ofP[:k], j) {
			both++
		}
	}
	return ratio(float64(both), float64(k))
}

// largest sets labels to the labels with the largest degrees in v, the largest first; of equal ones the lowest label
// comes first.
func largest(labels []int, v []float64) {
	for i := range labels {
		best := -1
		for j, x := range v {
			if !slices.Contains(labels[:i], j) && (best < 0 || x > v[best]) {
				best = j
			}
		}
		labels[i] = best
	}
}

// ratio is a/b with 0/0 = 0.
func ratio(a, b float64) float64 {
	if a == 0 && b == 0 {
		return 0
	}
	return a / b
}

// pair returns p and panics if its length is not d's.
func pair(d, p []float64) []float64 {
	if len(d) != len(p) {
		panic("measures: two rows of different numbers of labels")
	}
	return p[:len(d)]
}

// shortRow is the number of labels up to which measures of a row do not allocate.
const shortRow = 128

// Row holds the measures of one row, in the order of All.
type Row [Count]float64

// number is the type of a share.
type number interface{ float32 | float64 }

// OfRow returns the measures of one row of shares. d and p are divided by their
// sums; one whose sum is not positive and finite is taken as it is.
func OfRow[T number](d, p []T) Row { return ClippedRow(d, p, NoClip) }

// ClippedRow returns what OfRow does, of degrees that are clipped as how says.
func ClippedRow[T number](d, p []T, how Clip) Row {
	var buf [4 * shortRow]float64
	c, least := compare(buf[:], d, p, how), MinPrediction
	if how == PyLDL {
		least = Epsilon
	}
	x, y := c.clippedD, c.clippedP
	return Row{
		divergence(x, y, least), Euclidean(c.d, c.p), Sorensen(x, y), Chi2(x, y), Fidelity(c.d, c.p),
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
	return MoreRow{Spearman(c.d, c.p), JensenShannon(c.clippedD, c.clippedP), ZeroOne(c.d, c.p),
		ErrorProbability(c.d, c.p), Kendall(c.d, c.p), WaveHedges(c.clippedD, c.clippedP), MSE(c.d, c.p), Top2(c.d, c.p),
		Top3(c.d, c.p)}
}

// Epsilon is the least degree after clipping: 2^-52, float64's distance from 1 to the next number.
const Epsilon = 0x1p-52

// A Clip says whether degrees are clipped before they are compared.
type Clip string

// The ways to clip.
const (
	NoClip Clip = ""
	// PyLDL clips both distributions to [Epsilon, 1] for the seven measures for which PyLDL 0.1
	// does so: K-L, Sørensen, squared χ², Clark, Canberra, Jensen-Shannon and Wave-Hedges. K-L has no other
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

// Stat is a mean and the population standard deviation around it.
type Stat struct {
	Mean float64
	Std  float64
}

type statJSON struct {
	Mean *float64 `json:"mean"`
	Std  *float64 `json:"std"`
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
