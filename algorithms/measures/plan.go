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
}

// Added are the measures beside the ten. Each is nil where it does not apply.
type Added struct {
	Classes *Classes  `json:"classes,omitempty"`
	Scale   *OnScale  `json:"scale,omitempty"`
	Number  *OfNumber `json:"number,omitempty"`
}

// None tells whether there are none.
func (a *Added) None() bool { return a == nil || a.Classes == nil && a.Scale == nil && a.Number == nil }

// Width is the number of sums that describe a set of rows: those of the ten (see the
// constant Width), of a number their number of rows alone, then those of classes, of the three
// numbers of a distribution over a scale, or of a number and the number floored.
func (p *Plan) Width() int {
	switch {
	case p.Number:
		return 1 + 2*errorWidth
	case p.Type.Classes:
		return Width + classWidth(p.Labels)
	case p.Type.Scale != nil:
		return Width + 3*errorWidth
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
	Accumulate(dst[:Width], r.Label(i), predicted)
	added := dst[Width:]
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
	r, added := FromSums(sums[:Width]), sums[Width:]
	switch {
	case p.Type.Classes:
		return r, &Added{Classes: classesFrom(added, p.Labels)}
	case p.Type.Scale != nil:
		return r, &Added{Scale: &OnScale{
			Expected: errorsFrom(n, added[:errorWidth]), Median: errorsFrom(n, added[errorWidth:2*errorWidth]), Mode: errorsFrom(n, added[2*errorWidth:]),
		}}
	}
	return r, nil
}

// AddedOverFolds returns the measures beside the ten over folds: means of the folds' means
// with their deviation, and sums of the confusion matrices. nil: a fold has none.
func AddedOverFolds(folds []*Added) *Added {
	var classes []Classes
	var scales []OnScale
	var numbers []OfNumber
	for _, f := range folds {
		switch {
		case f == nil:
		case f.Classes != nil:
			classes = append(classes, *f.Classes)
		case f.Scale != nil:
			scales = append(scales, *f.Scale)
		case f.Number != nil:
			numbers = append(numbers, *f.Number)
		}
	}
	switch len(folds) {
	case 0:
	case len(classes):
		return &Added{Classes: classesOverFolds(classes)}
	case len(scales):
		return &Added{Scale: &OnScale{
			Expected: errorsOverFolds(scales, func(s *OnScale) *Errors { return &s.Expected }),
			Median:   errorsOverFolds(scales, func(s *OnScale) *Errors { return &s.Median }),
			Mode:     errorsOverFolds(scales, func(s *OnScale) *Errors { return &s.Mode }),
		}}
	case len(numbers):
		return &Added{Number: &OfNumber{
			Number:  errorsOverFolds(numbers, func(n *OfNumber) *Errors { return &n.Number }),
			Floored: errorsOverFolds(numbers, func(n *OfNumber) *Errors { return &n.Floored }),
		}}
	}
	return nil
}
