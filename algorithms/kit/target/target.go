// Package target is what algorithms that predict numbers learn of a row: its number on the scale
// of the labels, or the interval of the numbers that it may have. A job has the scale in two
// settings, since the type of labels is not part of a dataset's digest.
package target

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// The names of the settings.
const (
	lowName  = "scale_low"
	trueName = "scale_true"
)

// mostLow bounds the first number of a scale.
const mostLow = 1 << 23

// ErrNoScale says that a dataset has no numbers to learn.
var ErrNoScale = errtext.Errorf(errtext.WrongData,
	"the algorithm predicts numbers, but the labels are not numeric: read the data with {range=LOW:HIGH}, or with "+
		"{values} for exact numbers")

// Scale is the scale of a job's labels. It is a field of an algorithm's Config.
type Scale struct {
	Low  int    // the number of label 0
	True string // a dataset.Truth
}

// Settings lists the settings of the field that scale returns.
func Settings[C any](scale func(*C) *Scale) param.Table[C] {
	return param.Table[C]{
		param.Int(lowName, "number of the first label, such as 0 for ages from 0 to 69; must be the first number of the "+
			"dataset's --range", -mostLow, mostLow, 0,
			func(c *C) *int { return &scale(c).Low }).Says("the value of the dataset"),
		param.Word(trueName, "number of a sample: its exact value, or the mode or the expected value of its labels; must "+
			"be as in the dataset",
			func(c *C) *string {
				return &scale(c).True
			}, string(dataset.TrueValue), string(dataset.TrueMode), string(dataset.TrueExpected)).
			Says("the value of the dataset"),
	}
}

// Fill sets what was not given to the scale of a dataset.
func (s *Scale) Fill(given param.Values, m *dataset.Manifest) {
	of := m.LabelType.Scale
	if of == nil {
		return
	}
	if !given.Has(lowName) {
		s.Low = of.Low
	}
	if !given.Has(trueName) {
		s.True = string(of.True)
	}
}

// Fits returns an error where a dataset has another scale, which is a *param.Error, or none,
// which wraps ErrNoScale; algorithm is whose job it is.
func (s *Scale) Fits(m *dataset.Manifest, algorithm string) error {
	switch of := m.LabelType.Scale; {
	case of == nil:
		return fmt.Errorf("%s: %w", algorithm, ErrNoScale)
	case s.Low != of.Low:
		return param.Errorf(lowName, "got %d, want %d, the first number of the dataset's {range}", s.Low, of.Low)
	case s.True != string(of.True):
		return param.Errorf(trueName, "got %q, want %q as in the dataset", s.True, of.True)
	}
	return nil
}

func (s *Scale) scale() dataset.Scale {
	return dataset.Scale{Low: s.Low, True: dataset.Truth(s.True)}
}

// Number returns the number of row i of r.
func (s *Scale) Number(r *dataset.Rows, i int) float64 {
	of := s.scale()
	return of.Number(r, i)
}

// Interval returns the least and the greatest number that row i of r may have.
func (s *Scale) Interval(r *dataset.Rows, i int) (low, high float64) {
	of := s.scale()
	return of.Interval(r, i)
}

// Ends returns the first and the last number of a scale of so many labels.
func (s *Scale) Ends(labels int) []float64 {
	return []float64{float64(s.Low), float64(s.Low + labels - 1)}
}

// CheckEnds returns an error unless a scale of so many labels can have these ends.
func CheckEnds(ends []float64, labels int) error {
	if low := ends[0]; !(low >= -mostLow && low <= mostLow) || low != math.Floor(low) || ends[1] != low+float64(labels-1) {
		return fmt.Errorf("the numeric labels from %v to %v do not fit the number of labels, %d", ends[0], ends[1], labels)
	}
	return nil
}

// Float32 returns the finite float32 that is nearest to a prediction; of NaN, which only features
// beyond all measure give, 0.
func Float32(v float64) float32 {
	if math.IsNaN(v) {
		return 0
	}
	return float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
}

// Graph returns what Float32 does of a number for each sample (float64, samples×1). If clip is true, the number is cut
// to the ends of the scale first.
func Graph(b *graph.Builder, v graph.Value, clip bool, ends []float64) graph.Value {
	within := []float64{-math.MaxFloat32, math.MaxFloat32}
	if clip {
		within = ends
	}
	v = b.Op("Min", b.Op("Max", v, b.Number(within[0])), b.Number(within[1]))
	return b.Cast(v, graph.Float32)
}
