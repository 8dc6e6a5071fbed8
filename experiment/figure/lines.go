package figure

import (
	"fmt"

	"gonum.org/v1/plot/vg/draw"
)

// Series is a series of points in a figure, which a line joins.
type Series struct {
	Name string
	X, Y []float64
	// Deviation has half the length of a vertical line through each point. Nil means no lines.
	Deviation []float64
	// Marks draws the points as diamonds without a line, in the colour of the series with the number Line.
	// Diamonds are for published values.
	Marks bool
	Line  int
}

// Lines is a figure of lines, such as learning curves, sweeps over a setting, or cumulative scores.
type Lines struct {
	Title  string
	X, Y   Axis
	Series []Series // at most 30
}

// mostSeries is the maximum number of series in a figure.
const mostSeries = 30

// Figure returns the figure. An error wraps ErrData: there is no series or no point, lengths differ, a value is not
// finite, or a value on a logarithmic axis is not above 0.
func (l *Lines) Figure() (*Figure, error) {
	if len(l.Series) == 0 || len(l.Series) > mostSeries {
		return nil, fmt.Errorf("want 1 to %[2]d series, got %[1]d: %[3]w", len(l.Series), mostSeries, ErrData)
	}
	c := newChart(l.Title, l.X, l.Y)
	for i := range l.Series {
		s := &l.Series[i]
		if err := l.check(s); err != nil {
			return nil, err
		}
		style := styleOf(i)
		if s.Marks {
			style.line.Width, style.mark = 0, draw.GlyphStyle{Color: styleOf(s.Line).mark.Color, Radius: 4, Shape: diamond{filled: s.Line%2 == 1}}
		}
		c.add(layer{style: style, x: s.X, y: s.Y, deviation: s.Deviation, number: i})
		c.legend = append(c.legend, entry{s.Name, style})
	}
	return c.figure(), nil
}

// check returns an error if a series cannot be drawn.
func (l *Lines) check(s *Series) error {
	what := fmt.Sprintf("series %q", s.Name)
	switch {
	case len(s.X) == 0 || len(s.X) != len(s.Y):
		return fmt.Errorf("%s has %d x values and %d y values, want as many y values as x values, and at least one: %w", what, len(s.X), len(s.Y), ErrData)
	case s.Deviation != nil && len(s.Deviation) != len(s.X):
		return fmt.Errorf("%s has %d points, but %d standard deviations: %w", what, len(s.X), len(s.Deviation), ErrData)
	}
	for _, values := range [][]float64{s.X, s.Y, s.Deviation} {
		if err := finite(what, values); err != nil {
			return err
		}
	}
	for i := range s.X {
		low := s.Y[i]
		if s.Deviation != nil {
			low -= s.Deviation[i]
		}
		if !l.X.Has(s.X[i]) || !l.Y.Has(low) {
			return fmt.Errorf("%s: point %d reaches down to x=%v, y=%v, but a logarithmic axis shows only numbers above 0: %w", what, i, s.X[i], low, ErrData)
		}
	}
	return nil
}

// LabelUnit is the unit of numbers without a known unit.
const LabelUnit = "label units"

// CumulativeScores returns a figure of the percentages of rows with errors of at most 0, 1, 2 and so on. Each list of
// scores has fractions from 0 to 1.
func CumulativeScores(title, unit string, names []string, scores [][]float64) (*Figure, error) {
	if len(names) != len(scores) {
		return nil, fmt.Errorf("want as many names as lists of scores, got %d names and %d lists: %w", len(names), len(scores), ErrData)
	}
	l := Lines{Title: title, X: Axis{Name: "largest error", Unit: unit}, Y: Axis{Name: "samples", Unit: "%"}}
	for i, list := range scores {
		s := Series{Name: names[i]}
		for most, share := range list {
			s.X, s.Y = append(s.X, float64(most)), append(s.Y, 100*share)
		}
		l.Series = append(l.Series, s)
	}
	return l.Figure()
}
