package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Series is a line of a figure. Deviation, where it is there, has a bar for each point, of this
// much up and down.
type Series struct {
	Name            string
	X, Y, Deviation []float64
	// Marks draws the points alone, as diamonds in the colour of the line with the number Line:
	// figures that were not measured here.
	Marks bool
	Line  int
}

// Lines is a figure of lines: learning curves (steps against a loss), sweeps (a setting against a
// measure, with deviations over folds), or cumulative scores.
type Lines struct {
	Title  string
	X, Y   Axis
	Series []Series // at most 30
}

// mostSeries bounds the lines of a figure; mostGlyphs the marks on one of them.
const (
	mostSeries = 30
	mostGlyphs = 12
)

const linesHeight = 62 * vg.Millimeter

// Figure returns the figure. Errors wrap ErrData: there is no series or point, lengths differ, a
// value is not finite, or not above 0 on a logarithmic axis.
func (l *Lines) Figure() (*Figure, error) {
	if len(l.Series) == 0 || len(l.Series) > mostSeries {
		return nil, fmt.Errorf("want 1 to %[2]d series, got %[1]d: %[3]w", len(l.Series), mostSeries, ErrData)
	}
	p := newPlot(l.X, l.Y)
	p.Add(grid())
	var entries legend
	for i := range l.Series {
		s := &l.Series[i]
		if err := l.check(s); err != nil {
			return nil, err
		}
		if err := addSeries(p, s, i); err != nil {
			return nil, err
		}
		if s.Marks {
			entries = append(entries, entry{s.Name, diamondSample(s.Line)})
			continue
		}
		entries = append(entries, entry{s.Name, lineSample(i)})
	}
	l.scaleX(p)
	widen(&p.X)
	widen(&p.Y)
	return withLegend(p, l.Title, entries, linesHeight), nil
}

// scaleX gives the horizontal axis a place for 0 next to a logarithmic scale, and whole numbers to whole values.
func (l *Lines) scaleX(p *plot.Plot) {
	least, whole := math.Inf(1), true
	for i := range l.Series {
		for _, x := range l.Series[i].X {
			if whole = whole && x == math.Trunc(x); x > 0 && x < least {
				least = x
			}
		}
	}
	switch {
	case l.X.Log && l.X.Zero && p.X.Min == 0 && p.X.Max > 0:
		p.X.Scale, p.X.Tick.Marker = zeroScale{least}, zeroTicks{least}
	case !l.X.Log && whole:
		p.X.Tick.Marker = wholeTicks{}
	}
}

// zeroScale is a logarithmic scale from the least value above 0 on, with 0 at the left of it.
type zeroScale struct{ least float64 }

// zeroRoom is the part of the axis from 0 to the least value above.
const zeroRoom = 0.15

// Normalize implements plot.Normalizer.
func (s zeroScale) Normalize(_, greatest, x float64) float64 {
	switch {
	case x < s.least:
		return 0
	case greatest <= s.least:
		return 1
	}
	return zeroRoom + (1-zeroRoom)*math.Log(x/s.least)/math.Log(greatest/s.least)
}

// LabelUnit is the unit of numbers whose own is not known.
const LabelUnit = "label units"

// CumulativeScores returns a figure of the share of rows, in percent, whose error is at most 0, 1,
// 2 and so on; each list of scores holds shares from 0 to 1.
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

// addSeries adds a line with some glyphs, and bars where there are deviations.
func addSeries(p *plot.Plot, s *Series, i int) error {
	points := make(plotter.XYs, len(s.X))
	for j := range points {
		points[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
	}
	if s.Deviation != nil {
		if err := addDeviations(p, s, points, i); err != nil {
			return err
		}
	}
	if s.Marks {
		marks, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		marks.GlyphStyle = diamondOf(s.Line)
		p.Add(marks)
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = lineOf(i)
	marks, err := plotter.NewScatter(marked(points, i))
	if err != nil {
		return err
	}
	marks.GlyphStyle = glyphOf(i)
	p.Add(line, marks)
	return nil
}

// addDeviations adds a bar for each point, behind it.
func addDeviations(p *plot.Plot, s *Series, points plotter.XYs, i int) error {
	if s.Marks {
		i = s.Line
	}
	bars := make(plotter.YErrors, len(points))
	for j, d := range s.Deviation {
		bars[j].Low, bars[j].High = d, d
	}
	errorBars, err := plotter.NewYErrorBars(struct {
		plotter.XYer
		plotter.YErrorer
	}{points, bars})
	if err != nil {
		return err
	}
	errorBars.LineStyle = hairline
	errorBars.LineStyle.Color = lineOf(i).Color
	p.Add(errorBars)
	return nil
}

// marked picks at most mostGlyphs points, other ones for each series.
func marked(points plotter.XYs, i int) plotter.XYs {
	step := (len(points) + mostGlyphs - 1) / mostGlyphs
	var picked plotter.XYs
	for j := 0; j < len(points); j++ {
		if step == 1 || j%step == (i*step/4+step/2)%step {
			picked = append(picked, points[j])
		}
	}
	return picked
}

// grid are thin grey lines at the ticks.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = pale, pale
	g.Horizontal.Width, g.Vertical.Width = 0.4, 0.4
	return g
}

// widen gives an axis whose values are all the same, but for rounding, some room.
func widen(a *plot.Axis) {
	if a.Max-a.Min > 1e-12*max(math.Abs(a.Min), math.Abs(a.Max)) {
		return
	}
	if _, log := a.Scale.(plot.LogScale); log {
		a.Min, a.Max = a.Min/2, a.Max*2
		return
	}
	a.Min, a.Max = a.Min-1, a.Max+1
}
