package contract

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
)

// onScale is a source whose labels are the numbers from scaleLow on, for algorithms that
// predict numbers.
type onScale struct {
	dataset.Source
	truth     dataset.Truth
	intervals bool
}

const scaleLow = 10

// Info implements dataset.Source.
func (s onScale) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType = dataset.LabelType{Scale: &dataset.Scale{Low: scaleLow, True: s.truth}}
	info.HasValues, info.HasIntervals = s.truth == dataset.TrueValue, s.intervals
	return info
}

// Scan implements dataset.Source. The exact number of a row is the expected value of its
// labels; that of every third row is whole.
func (s onScale) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		expected := float64(scaleLow)
		for i, v := range r.Labels {
			expected += float64(i) * v
		}
		if r.Number%3 == 0 {
			expected = math.Floor(expected)
		}
		r.Value, r.Interval = expected, [2]float64{expected - 0.25, expected + float64(r.Number%4)/4}
		return f(r)
	})
}
