package measures

import (
	"math"

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

// Width is the number of sums that describe a set of rows: those of the ten (see the
// constant Width), of a number their number of rows alone, then those of More, then those of classes, of the three
// numbers of a distribution over a scale, or of a number and the number floored; then, with Both,
// those of the ten and of More of clipped degrees.
func (p *Plan) Width() int {
	if p.Number || !p.Both {
		return p.plainWidth()
	}
	return p.plainWidth() + Width + moreWidth
}

// plainWidth is Width without what Both adds.
func (p *Plan) plainWidth() int {
	switch {
	case p.Number:
		return 1 + 2*errorWidth
	case p.Type.Classes:
		return p.distributionWidth() + classWidth(p.Labels)
	case p.Type.Scale != nil:
		return p.distributionWidth() + 3*errorWidth
	}
	return p.distributionWidth()
}

// distributionWidth is the number of sums of distributions: of the ten, and of More.
func (p *Plan) distributionWidth() int {
	if p.More {
		return Width + moreWidth
	}
	return Width
}

// Add adds row i of r to the sums dst (Width values); predicted is a distribution, class shares
// or one number.
func (p *Plan) Add(dst []float64, r *dataset.Rows, i int, predicted []float32) {
	if len(dst) != p.Width() {
		panic("measures: sums of the wrong width")
	}
	s := p.Type.Scale
	if p.Number {
		dst[0]++
		truth, v := s.Number(r, i), float64(predicted[0])
		addError(dst[1:1+errorWidth], truth, v)
		addError(dst[1+errorWidth:], truth, math.Floor(v))
		return
	}
	p.addDistribution(dst, r.Label(i), predicted)
	if p.Both {
		clipped := dst[p.plainWidth():]
		accumulate(clipped[:Width], ClippedRow(r.Label(i), predicted, PyLDL))
		addMore(clipped[Width:], MoreOfRow(r.Label(i), predicted, PyLDL))
	}
	added := dst[p.distributionWidth():p.plainWidth()]
	switch {
	case p.Type.Classes:
		addClass(added, r.Label(i), predicted)
	case s != nil:
		truth := s.Number(r, i)
		addError(added[:errorWidth], truth, s.Expected(predicted))
		addError(added[errorWidth:2*errorWidth], truth, s.Median(predicted))
		addError(added[2*errorWidth:], truth, s.Mode(predicted))
	}
}

// addDistribution adds a row to the sums of the ten, and of More.
func (p *Plan) addDistribution(dst []float64, d, predicted []float32) {
	accumulate(dst[:Width], ClippedRow(d, predicted, p.Clip))
	if p.More {
		addMore(dst[Width:], MoreOfRow(d, predicted, p.Clip))
	}
}

// Read returns what sums (Width values) say: the ten, which are NaN where a number is
// predicted, and those beside them; nil: there are none.
func (p *Plan) Read(sums []float64) (Report, *Added) {
	if len(sums) != p.Width() {
		panic("measures: sums of the wrong width")
	}
	n := sums[0]
	if p.Number {
		return FromSums(make([]float64, Width)), &Added{Number: &OfNumber{
			Number: errorsFrom(n, sums[1:1+errorWidth]), Floored: errorsFrom(n, sums[1+errorWidth:]),
		}}
	}
	r, added, a := FromSums(sums[:Width]), sums[p.distributionWidth():p.plainWidth()], new(Added)
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
	clipped := sums[p.plainWidth():]
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
