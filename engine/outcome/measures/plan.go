package measures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Plan says which measures there are of predictions: the ten of distributions, and those
// beside them that the type of the labels and what is predicted allow.
type Plan struct {
	Labels int
	Type   dataset.LabelType
	Number bool // a number is predicted; otherwise a distribution, class shares or targets in bounds
	// Bounds are the bounds of targets, a pair for each label, if Type has targets; Add and Read need them.
	Bounds *dataset.Bounds
	More   bool // the measures More as well, unless a number is predicted
	Clip   Clip // of distributions, in the ten and in More
	// Both has the ten and More of clipped degrees as well, unless a number is predicted; with
	// More, and without Clip.
	Both bool
}

// Clipped are the measures of distributions whose degrees are clipped.
type Clipped struct {
	Ten  Report          `json:"ten"`
	More *OfDistribution `json:"more"`
}

// Added are the measures beside the ten. Each is nil where it does not apply.
type Added struct {
	Classes *Classes   `json:"classes,omitempty"`
	Scale   *OnScale   `json:"scale,omitempty"`
	Number  *OfNumber  `json:"number,omitempty"`
	Targets *OfTargets `json:"targets,omitempty"`
	// Distribution are those that a job has where its spec asks for all measures.
	Distribution *OfDistribution `json:"distribution,omitempty"`
	// Observed are the errors of degrees that are not missing, of labels in which degrees may be missing.
	Observed *Observed `json:"observed,omitempty"`
}

// None tells whether there are none.
func (a *Added) None() bool {
	return a == nil || a.Classes == nil && a.Scale == nil && a.Number == nil && a.Distribution == nil &&
		a.Observed == nil && a.Targets == nil
}

// Width is the number of sums that describe a set of rows.
func (p *Plan) Width() int {
	_, _, width := p.ends()
	return width
}

// ends returns where the parts of the sums end. The first part has the ten (see the constant Width) and More, or the
// number of rows if a number is predicted. The second part has classes, the three numbers of a distribution over a
// scale, a number and the number floored, the errors of targets, or the degrees that are not missing. With Both, the
// third part has the ten and More of clipped degrees.
func (p *Plan) ends() (distribution, plain, all int) {
	if p.Number {
		return 1, 1 + 2*errorWidth, 1 + 2*errorWidth
	}
	distribution = Width
	if p.More {
		distribution += moreWidth
	}
	plain = distribution
	switch {
	case p.Type.Classes:
		plain += classWidth(p.Labels)
	case p.Type.Scale != nil:
		plain += 3 * errorWidth
	case p.Type.Incomplete:
		plain += observedWidth
	case p.Type.Bounds != nil:
		plain += targetWidth * p.Labels
	}
	if all = plain; p.Both {
		all += Width + moreWidth
	}
	return distribution, plain, all
}

// Add adds row i of r to the sums dst (Width values); predicted is a distribution, class shares,
// targets or one number. It returns the K-L divergence of the row, or 0 if a number is predicted.
func (p *Plan) Add(dst []float64, r *dataset.Rows, i int, predicted []float32) (kl float64) {
	distribution, plain, all := p.ends()
	if len(dst) != all {
		panic("measures: sums of the wrong width")
	}
	s := p.Type.Scale
	if p.Number {
		dst[0]++
		truth, v := s.Number(r, i), float64(predicted[0])
		addError(dst[1:1+errorWidth], truth, v)
		addError(dst[1+errorWidth:], truth, math.Floor(v))
		return 0
	}
	d := r.Label(i)
	if p.Type.Incomplete {
		addObserved(dst[distribution:plain], d, predicted)
		if dataset.CountMissing(d) > 0 { // it has no other measure
			dst[0]++
			return 0
		}
	}
	if p.Type.Bounds != nil {
		addTargets(dst[distribution:plain], p.Bounds, d, predicted)
		var space [2 * shortRow]float64
		x, y := asDistributions(space[:], d, predicted)
		return addShares(p, dst, plain, x, y)
	}
	kl = addShares(p, dst, plain, d, predicted)
	added := dst[distribution:plain]
	switch {
	case p.Type.Classes:
		addClass(added, d, predicted)
	case s != nil:
		truth := s.Number(r, i)
		for k, v := range []float64{s.Expected(predicted), s.Median(predicted), s.Mode(predicted)} {
			addError(added[k*errorWidth:(k+1)*errorWidth], truth, v)
		}
	}
	return kl
}

// AddWeighted is Add with everything that the row adds multiplied by the weight of the row. one is working memory
// (Width values).
func (p *Plan) AddWeighted(dst, one []float64, r *dataset.Rows, i int, predicted []float32) (kl float64) {
	clear(one)
	kl = p.Add(one, r, i, predicted)
	if weight := r.WeightOf(i); weight > 0 { // 0 times an infinite measure is no number
		num.AddScaled64(dst, weight, one)
	}
	return kl
}

// addShares adds the measures of distributions of a row, and returns the K-L divergence. Those of clipped degrees begin
// at plain.
func addShares[T number](p *Plan, dst []float64, plain int, d, predicted []T) (kl float64) {
	row := ClippedRow(d, predicted, p.Clip)
	accumulate(dst[:Width], row)
	if p.More {
		addMore(dst[Width:], MoreOfRow(d, predicted, p.Clip))
	}
	if p.Both {
		clipped := dst[plain:]
		accumulate(clipped[:Width], ClippedRow(d, predicted, PyLDL))
		addMore(clipped[Width:], MoreOfRow(d, predicted, PyLDL))
	}
	return row[0]
}

// Read returns what sums (Width values) say: the ten, which are NaN where a number is
// predicted, and those beside them; nil: there are none.
func (p *Plan) Read(sums []float64) (Report, *Added) {
	distribution, plain, all := p.ends()
	if len(sums) != all {
		panic("measures: sums of the wrong width")
	}
	n, added, a := sums[0], sums[distribution:plain], new(Added)
	switch {
	case p.Number:
		a.Number = new(OfNumber)
	case p.Type.Classes:
		a.Classes = classesFrom(added, p.Labels)
	case p.Type.Scale != nil:
		a.Scale = new(OnScale)
	case p.Type.Incomplete:
		a.Observed = observedFrom(added)
	case p.Type.Bounds != nil:
		a.Targets = targetsFrom(n, added, p.Bounds)
	}
	for _, e := range a.errors() {
		if e != nil {
			*e, added = errorsFrom(n, added[:errorWidth]), added[errorWidth:]
		}
	}
	if p.Number || p.Gaps(sums) {
		return reportFrom(make([]float64, Width)), a
	}
	if p.More {
		a.Distribution = moreFrom(n, sums[Width:])
	}
	if a.None() {
		a = nil
	}
	return reportFrom(sums[:Width]), a
}

// Gaps reports whether sums (Width values) are of rows with missing degrees. Such rows have no measures but the errors
// of the other degrees.
func (p *Plan) Gaps(sums []float64) bool {
	distribution, _, _ := p.ends()
	return p.Type.Incomplete && !p.Number && sums[distribution] > 0
}

// ReadClipped returns what sums (Width values) say of clipped degrees; nil: the plan has not both, or there are gaps.
func (p *Plan) ReadClipped(sums []float64) *Clipped {
	if p.Number || !p.Both || p.Gaps(sums) {
		return nil
	}
	_, plain, _ := p.ends()
	clipped := sums[plain:]
	return &Clipped{reportFrom(clipped[:Width]), moreFrom(clipped[0], clipped[Width:])}
}

// Report holds a Stat for each measure, in the order of All. Its JSON is an
// object by name in that order: {"kl":{"mean":0.07,"std":0.02},...}; a value
// that is not finite is null.
type Report [Count]Stat

// Get returns the Stat of a measure by name, and whether there is one.
func (r Report) Get(name string) (Stat, bool) { return Value(name, r, nil) }

// MarshalJSON implements json.Marshaler.
func (r Report) MarshalJSON() ([]byte, error) { return marshal(All, r[:]) }

// UnmarshalJSON implements json.Unmarshaler; a measure that is absent or null
// becomes NaN, and names that are not in All are ignored.
func (r *Report) UnmarshalJSON(b []byte) error { return unmarshal(b, All, r[:]) }

// marshal writes an object with a Stat for each measure, by name, in the order of the measures.
func marshal(of []Measure, stats []Stat) ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, s := range stats {
		v, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("measures: %s: %w", of[i].Name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:%s", of[i].Name, v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// unmarshal reads what marshal writes. A measure that is absent or null becomes NaN, and other names are ignored.
func unmarshal(b []byte, of []Measure, stats []Stat) error {
	var m map[string]statJSON
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("measures: %w", err)
	}
	for i := range of {
		s := m[of[i].Name]
		stats[i] = Stat{orNaN(s.Mean), orNaN(s.Std)}
	}
	return nil
}

// overFolds returns the Stat over folds of the means that of gives.
func overFolds[T any](folds []T, of func(T) Stat) Stat {
	var means []float64
	for _, f := range folds {
		means = append(means, of(f).Mean)
	}
	return StatOver(means)
}

// Width is the number of sums that describe a set of rows: the number of rows,
// then Count sums of the measures, then Count sums of their squares. The sums of a dataset
// are the sums of its shards, added element by element.
const Width = 1 + 2*Count

// accumulate adds the measures of a row to the sums dst (the constant Width).
func accumulate(dst []float64, row Row) {
	dst[0]++
	for i, v := range row {
		dst[1+i] += v
		dst[1+Count+i] += float64(v * v)
	}
}

// reportFrom reads the sums of rows (the constant Width); all are NaN where there are no rows.
func reportFrom(sums []float64) Report {
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
		r[i] = overFolds(folds, func(f Report) Stat { return f[i] })
	}
	return r
}

// stats lists the measures of a in the order of More and Others; nil: a has it not.
func (a *Added) stats() []*Stat {
	all := make([]*Stat, CountMore+len(Others))
	if d := a.Distribution; d != nil {
		for i := range d {
			all[i] = &d[i]
		}
	}
	if c := a.Classes; c != nil {
		copy(all[CountMore:], []*Stat{&c.Accuracy, &c.MeanRecall, &c.MeanJaccard, &c.LogLoss})
	}
	for i, e := range a.errors() {
		if e != nil {
			all[CountMore+4+i] = &e.MAE
		}
	}
	if a.Observed != nil {
		all[CountMore+len(Others)-1] = &a.Observed.MAE
	}
	if t := a.Targets; t != nil {
		copy(all[CountMore+9:], t.stats())
	}
	return all
}

// errors lists the errors of numbers, as Others lists them; nil: a has it not.
func (a *Added) errors() (all [5]*Errors) {
	if s := a.Scale; s != nil {
		all[0], all[1], all[2] = &s.Expected, &s.Median, &s.Mode
	}
	if n := a.Number; n != nil {
		all[3], all[4] = &n.Number, &n.Floored
	}
	return all
}

// Value returns the measure of a name: one of the ten from r, another from a, which may be nil.
// false: r and a have it not, as a model of distributions has no accuracy.
func Value(name string, r Report, a *Added) (Stat, bool) {
	switch at := indexOf(name); {
	case at < 0:
	case at < Count:
		return r[at], true
	case a != nil:
		if s := a.stats()[at-Count]; s != nil {
			return *s, true
		}
	}
	return Stat{}, false
}

// AddedOverFolds returns the measures beside the ten over folds: means of the folds' means
// with their deviation, and sums of the confusion matrices. nil: a fold has none.
func AddedOverFolds(folds []*Added) *Added {
	all := new(Added)
	have := func(part func(*Added) bool) bool {
		return len(folds) > 0 && !slices.ContainsFunc(folds, func(f *Added) bool { return f == nil || !part(f) })
	}
	if have(func(a *Added) bool { return a.Distribution != nil }) {
		all.Distribution = new(OfDistribution)
	}
	if have(func(a *Added) bool { return a.Classes != nil }) {
		all.Classes = &Classes{Confusion: confusionOverFolds(folds)}
	}
	if have(func(a *Added) bool { return a.Scale != nil }) {
		all.Scale = new(OnScale)
	}
	if have(func(a *Added) bool { return a.Number != nil }) {
		all.Number = new(OfNumber)
	}
	if have(func(a *Added) bool { return a.Observed != nil }) {
		all.Observed = new(Observed)
		for _, f := range folds {
			all.Observed.Degrees += f.Observed.Degrees
			all.Observed.Missing += f.Observed.Missing
		}
	}
	if have(func(a *Added) bool { return a.Targets != nil }) {
		all.Targets = &OfTargets{Labels: targetsOverFolds(folds)}
	}
	if all.None() {
		return nil
	}
	for i, s := range all.stats() {
		if s != nil {
			*s = overFolds(folds, func(f *Added) Stat { return *f.stats()[i] })
		}
	}
	for i, e := range all.errors() {
		if e == nil {
			continue
		}
		e.Scores = make([]float64, MaxScore+1)
		for _, f := range folds {
			of := f.errors()[i].Scores
			for s, v := range of[:min(len(of), len(e.Scores))] {
				e.Scores[s] += v / float64(len(folds))
			}
		}
	}
	return all
}

// targetsOverFolds returns the means over folds of the labels' errors.
func targetsOverFolds(folds []*Added) (all []OfTarget) {
	for c := range folds[0].Targets.Labels {
		var one OfTarget
		for i, s := range one.stats() {
			*s = overFolds(folds, func(f *Added) Stat {
				if c >= len(f.Targets.Labels) {
					return Stat{math.NaN(), math.NaN()}
				}
				return *f.Targets.Labels[c].stats()[i]
			})
		}
		all = append(all, one)
	}
	return all
}

// OfDistribution holds a Stat for each measure of More, in their order. Its JSON is as a Report's.
type OfDistribution [CountMore]Stat

// MarshalJSON implements json.Marshaler.
func (o OfDistribution) MarshalJSON() ([]byte, error) { return marshal(More, o[:]) }

// UnmarshalJSON implements json.Unmarshaler, as Report does: a result of before a measure existed has NaN for it.
func (o *OfDistribution) UnmarshalJSON(b []byte) error { return unmarshal(b, More, o[:]) }

// moreWidth is the number of sums of More: the measures, then their squares.
const moreWidth = 2 * CountMore

// addMore adds a row to the sums of More.
func addMore(sums []float64, row MoreRow) {
	for i, v := range row {
		sums[i] += v
		sums[CountMore+i] += float64(v * v)
	}
}

// moreFrom reads the sums of n rows.
func moreFrom(n float64, sums []float64) *OfDistribution {
	o := new(OfDistribution)
	for i := range o {
		o[i] = StatOf(n, sums[i], sums[CountMore+i])
	}
	return o
}

// MaxConfusion is the greatest number of classes whose confusion matrix is kept: 80 KB of
// sums, some 25 KB of JSON.
const MaxConfusion = 100

// Classes are the measures of predicted classes: the predicted class of a row is the one of
// the greatest share, of equal ones the lowest. All but the deviation of Accuracy and LogLoss
// over rows come from counts of the rows together, not from rows.
type Classes struct {
	Accuracy Stat `json:"accuracy"`
	// MeanRecall and MeanJaccard are means over the classes that are present in the truth,
	// of TP/(TP + FN) and TP/(TP + FP + FN).
	MeanRecall  Stat `json:"mean_recall"`
	MeanJaccard Stat `json:"mean_jaccard"`
	// LogLoss is the mean of -ln p of the true class, p at least MinPrediction.
	LogLoss Stat `json:"log_loss"`
	// Confusion has the number of rows by true and by predicted class, or the sum of their weights; nil: more than
	// MaxConfusion. Over folds it is the sum.
	Confusion [][]float64 `json:"confusion,omitempty"`
}

// classWidth is the number of sums of C classes: the log loss and its square, rows by true
// class, by predicted class and by both where they are the same, then the matrix.
func classWidth(classes int) int {
	n := 2 + 3*classes
	if classes <= MaxConfusion {
		n += classes * classes
	}
	return n
}

// addClass adds a row to the sums of classes.
func addClass(sums []float64, d, p []float32) {
	n, truth, predicted := len(d), dataset.Greatest(d), dataset.Greatest(p)
	// The log loss is -ln of the true class's probability in p, which is divided by its sum as in OfRow.
	sum := 0.0
	for _, v := range p {
		sum += float64(v)
	}
	share := float64(p[truth])
	if sum > 0 && sum <= math.MaxFloat64 {
		share /= sum
	}
	loss := -num.Log(max(share, MinPrediction))
	sums[0] += loss
	sums[1] += float64(loss * loss)
	counts := sums[2:]
	counts[truth]++
	counts[n+predicted]++
	if truth == predicted {
		counts[2*n+truth]++
	}
	if matrix := counts[3*n:]; len(matrix) > 0 {
		matrix[truth*n+predicted]++
	}
}

// classesFrom reads the sums of so many classes.
func classesFrom(sums []float64, classes int) *Classes {
	counts := sums[2:]
	truth, predicted, hits, matrix := counts[:classes], counts[classes:2*classes], counts[2*classes:3*classes],
		counts[3*classes:]
	n, right, present, recall, jaccard := 0.0, 0.0, 0.0, 0.0, 0.0
	for c, t := range truth {
		n, right = n+t, right+hits[c]
		if t > 0 {
			present++
			recall += hits[c] / t
			jaccard += hits[c] / (t + predicted[c] - hits[c])
		}
	}
	r := &Classes{
		Accuracy: StatOf(n, right, right), LogLoss: StatOf(n, sums[0], sums[1]),
		MeanRecall: Stat{recall / present, math.NaN()}, MeanJaccard: Stat{jaccard / present, math.NaN()},
	}
	for c := 0; c < len(matrix); c += classes {
		r.Confusion = append(r.Confusion, slices.Clone(matrix[c:c+classes]))
	}
	return r
}

// confusionOverFolds returns the sum of the confusion matrices.
func confusionOverFolds(folds []*Added) (sum [][]float64) {
	for _, f := range folds {
		for t, row := range f.Classes.Confusion {
			if len(sum) == t {
				sum = append(sum, make([]float64, len(row)))
			}
			for p, n := range row {
				if p < len(sum[t]) {
					sum[t][p] += n
				}
			}
		}
	}
	return sum
}

// MaxScore is the greatest error that a cumulative score is given for, beside 0 and the whole
// numbers between.
const MaxScore = 10

// scoreSlack is added to an error that a cumulative score allows, for rounding.
const scoreSlack = 1e-9

// Errors are the absolute errors of one predicted number for each row.
type Errors struct {
	MAE Stat `json:"mae"`
	// Scores are the cumulative scores of 0 to MaxScore: the share of rows whose error is
	// at most that, and 1e-9. Over folds they are means.
	Scores []float64 `json:"within"`
}

// OnScale are the errors of three numbers that a predicted distribution over a scale gives.
type OnScale struct {
	Expected Errors `json:"expected"` // Σ y p
	Median   Errors `json:"median"`   // the least y whose cumulative share is a half
	Mode     Errors `json:"mode"`     // the y of the greatest share
}

// OfNumber are the errors of a predicted number, and of the whole number below it.
type OfNumber struct {
	Number  Errors `json:"number"`
	Floored Errors `json:"floored"`
}

// Observed are the errors of the degrees that are not missing.
type Observed struct {
	MAE Stat `json:"mae"`
	// Degrees and Missing are the numbers of degrees that are not missing and that are missing. A degree of a weighted
	// row counts by the weight.
	Degrees float64 `json:"degrees"`
	Missing float64 `json:"missing"`
}

// observedWidth is the number of sums of observed degrees: missing ones, others, the absolute errors of these, and the
// squares of the errors.
const observedWidth = 4

// addObserved adds the degrees of a row to the sums.
func addObserved(sums []float64, d, p []float32) {
	for c, x := range d {
		if x != x {
			sums[0]++
			continue
		}
		e := math.Abs(float64(p[c]) - float64(x))
		sums[1]++
		sums[2] += e
		sums[3] += float64(e * e)
	}
}

// observedFrom reads the sums of observed degrees.
func observedFrom(sums []float64) *Observed {
	return &Observed{MAE: StatOf(sums[1], sums[2], sums[3]), Degrees: sums[1], Missing: sums[0]}
}

// errorWidth is the number of sums of one predicted number: errors, their squares, and rows
// by cumulative score.
const errorWidth = 2 + MaxScore + 1

// addError adds an error to the sums.
func addError(sums []float64, truth, predicted float64) {
	e := math.Abs(predicted - truth)
	sums[0] += e
	sums[1] += float64(e * e)
	for s := range sums[2:] {
		if e <= float64(s)+scoreSlack {
			sums[2+s]++
		}
	}
}

// errorsFrom reads the sums of n rows.
func errorsFrom(n float64, sums []float64) Errors {
	e := Errors{MAE: StatOf(n, sums[0], sums[1])}
	for _, rows := range sums[2:] {
		if n > 0 {
			rows /= n
		}
		e.Scores = append(e.Scores, rows) // 0 of no rows, so that JSON can say it
	}
	return e
}
