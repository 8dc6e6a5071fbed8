package measures

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// Plan says which measures there are of predictions: the ten of distributions, and those
// beside them that the type of the labels and what is predicted allow.
type Plan struct {
	Labels int
	Type   dataset.LabelType
	Number bool // a number is predicted; otherwise a distribution or class shares
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
	Classes *Classes  `json:"classes,omitempty"`
	Scale   *OnScale  `json:"scale,omitempty"`
	Number  *OfNumber `json:"number,omitempty"`
	// Distribution are those that a job has where its spec asks for all measures.
	Distribution *OfDistribution `json:"distribution,omitempty"`
}

// None tells whether there are none.
func (a *Added) None() bool {
	return a == nil || a.Classes == nil && a.Scale == nil && a.Number == nil && a.Distribution == nil
}

// Width is the number of sums that describe a set of rows.
func (p *Plan) Width() int {
	_, _, width := p.ends()
	return width
}

// ends returns where the parts of the sums end. The first part has the ten (see the constant Width) and More, or the number
// of rows if a number is predicted. The second part has classes, the three numbers of a distribution over a scale, or a
// number and the number floored. With Both, the third part has the ten and More of clipped degrees.
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
	}
	if all = plain; p.Both {
		all += Width + moreWidth
	}
	return distribution, plain, all
}

// Add adds row i of r to the sums dst (Width values); predicted is a distribution, class shares
// or one number. It returns the K-L divergence of the row, or 0 if a number is predicted.
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
	added := dst[distribution:plain]
	switch {
	case p.Type.Classes:
		addClass(added, d, predicted)
	case s != nil:
		truth := s.Number(r, i)
		addError(added[:errorWidth], truth, s.Expected(predicted))
		addError(added[errorWidth:2*errorWidth], truth, s.Median(predicted))
		addError(added[2*errorWidth:], truth, s.Mode(predicted))
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
	n := sums[0]
	if p.Number {
		return FromSums(make([]float64, Width)), &Added{Number: &OfNumber{
			Number: errorsFrom(n, sums[1:1+errorWidth]), Floored: errorsFrom(n, sums[1+errorWidth:]),
		}}
	}
	r, added, a := FromSums(sums[:Width]), sums[distribution:plain], new(Added)
	if p.More {
		a.Distribution = moreFrom(n, sums[Width:])
	}
	switch {
	case p.Type.Classes:
		a.Classes = classesFrom(added, p.Labels)
	case p.Type.Scale != nil:
		a.Scale = &OnScale{
			Expected: errorsFrom(n, added[:errorWidth]), Median: errorsFrom(n, added[errorWidth:2*errorWidth]), Mode: errorsFrom(n, added[2*errorWidth:]),
		}
	}
	if a.None() {
		return r, nil
	}
	return r, a
}

// ReadClipped returns what sums (Width values) say of clipped degrees; nil: the plan has not both.
func (p *Plan) ReadClipped(sums []float64) *Clipped {
	if p.Number || !p.Both {
		return nil
	}
	_, plain, _ := p.ends()
	clipped := sums[plain:]
	return &Clipped{FromSums(clipped[:Width]), moreFrom(clipped[0], clipped[Width:])}
}

// AddedOverFolds returns the measures beside the ten over folds: means of the folds' means
// with their deviation, and sums of the confusion matrices. nil: a fold has none.
func AddedOverFolds(folds []*Added) *Added {
	all := new(Added)
	if of := of(folds, func(a *Added) *OfDistribution { return a.Distribution }); of != nil {
		all.Distribution = moreOverFolds(of)
	}
	if of := of(folds, func(a *Added) *Classes { return a.Classes }); of != nil {
		all.Classes = classesOverFolds(of)
	}
	if of := of(folds, func(a *Added) *OnScale { return a.Scale }); of != nil {
		all.Scale = &OnScale{
			Expected: errorsOverFolds(of, func(s *OnScale) *Errors { return &s.Expected }),
			Median:   errorsOverFolds(of, func(s *OnScale) *Errors { return &s.Median }),
			Mode:     errorsOverFolds(of, func(s *OnScale) *Errors { return &s.Mode }),
		}
	}
	if of := of(folds, func(a *Added) *OfNumber { return a.Number }); of != nil {
		all.Number = &OfNumber{
			Number:  errorsOverFolds(of, func(n *OfNumber) *Errors { return &n.Number }),
			Floored: errorsOverFolds(of, func(n *OfNumber) *Errors { return &n.Floored }),
		}
	}
	if all.None() {
		return nil
	}
	return all
}

// of returns a part of each fold's measures; nil: a fold has it not, or there are no folds.
func of[T any](folds []*Added, part func(*Added) *T) (all []T) {
	for _, f := range folds {
		if f == nil || part(f) == nil {
			return nil
		}
		all = append(all, *part(f))
	}
	return all
}

// Other is a measure of predicted classes or numbers, which has no function of two
// distributions.
type Other struct {
	Measure // without Func
	of      func(*Added) *Stat
}

// Others lists the measures of Added beside More, in the order of tables.
var Others = []Other{
	{of: func(a *Added) *Stat { return &a.Classes.Accuracy }, Measure: Measure{"accuracy", "Accuracy", "fraction of samples with the right predicted class", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.MeanRecall }, Measure: Measure{"mean_recall", "Mean recall", "TP/(TP+FN), averaged over true classes", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.MeanJaccard }, Measure: Measure{"mean_jaccard", "Mean Jaccard", "TP/(TP+FP+FN), averaged over true classes", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.LogLoss }, Measure: Measure{"log_loss", "Log loss", "-ln p of the true class", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Expected.MAE }, Measure: Measure{"mae_expected", "MAE, expected", "|Σ y p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Median.MAE }, Measure: Measure{"mae_median", "MAE, median", "|median of p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Mode.MAE }, Measure: Measure{"mae_mode", "MAE, mode", "|mode of p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Number.Number.MAE }, Measure: Measure{"mae", "MAE", "|predicted number - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Number.Floored.MAE }, Measure: Measure{"mae_floored", "MAE, floored", "|floor of the predicted number - true number|", false, nil}},
}

// Find returns the measure of a name, one of All, More or Others.
func Find(name string) (Measure, bool) {
	for _, m := range slices.Concat(All, More) {
		if m.Name == name {
			return m, true
		}
	}
	for _, o := range Others {
		if o.Name == name {
			return o.Measure, true
		}
	}
	return Measure{}, false
}

// Names lists the names that Find knows, in the order of tables.
func Names() (names []string) {
	for _, m := range slices.Concat(All, More) {
		names = append(names, m.Name)
	}
	for _, o := range Others {
		names = append(names, o.Name)
	}
	return names
}

// Value returns the measure of a name: one of the ten from r, another from a, which may be nil.
// false: r and a have it not, as a model of distributions has no accuracy.
func Value(name string, r Report, a *Added) (Stat, bool) {
	if s, ok := r.Get(name); ok || a == nil {
		return s, ok
	}
	if a.Distribution != nil {
		for i, s := range a.Distribution.Stats() {
			if More[i].Name == name {
				return *s, true
			}
		}
	}
	for i, o := range Others {
		if o.Name == name && a.has(i) {
			return *o.of(a), true
		}
	}
	return Stat{}, false
}

// has tells whether a has the measure i of Others.
func (a *Added) has(i int) bool {
	switch {
	case i < 4:
		return a.Classes != nil
	case i < 7:
		return a.Scale != nil
	}
	return a.Number != nil
}
