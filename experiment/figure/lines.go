package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
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
	// Style is the style from StylesOf; 0: of the place in the figure.
	Style int
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
		if s.Style > 0 {
			style = styleOf(s.Style - 1)
		}
		if s.Marks {
			style.line.Width, style.mark = 0, draw.GlyphStyle{Color: styleOf(s.Line).mark.Color, Radius: 4,
				Shape: diamond{filled: s.Line%2 == 1}}
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
		return fmt.Errorf("%s has %d x values and %d y values, want as many y values as x values, and at least one: %w", what,
			len(s.X), len(s.Y), ErrData)
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
			return fmt.Errorf("%s: point %d reaches down to x=%v, y=%v, but a logarithmic axis shows only numbers above 0: %w",
				what, i, s.X[i], low, ErrData)
		}
	}
	return nil
}

// CumulativeScores returns a figure of the percentages of rows with errors of at most 0, 1, 2 and so on. Each list of
// scores has fractions from 0 to 1.
// styles are from StylesOf; nil: each list has the style of its place.
func CumulativeScores(title string, names []string, scores [][]float64, styles []int) (*Figure, error) {
	if len(names) != len(scores) {
		return nil, fmt.Errorf("want as many names as lists of scores, got %d names and %d lists: %w", len(names),
			len(scores), ErrData)
	}
	l := Lines{Title: title, X: Axis{Name: "largest error", Unit: "label units"}, Y: Axis{Name: "samples", Unit: "%"}}
	for i, list := range scores {
		s := Series{Name: names[i]}
		if styles != nil {
			s.Style = styles[i]
		}
		for most, share := range list {
			s.X, s.Y = append(s.X, float64(most)), append(s.Y, 100*share)
		}
		l.Series = append(l.Series, s)
	}
	return l.Figure()
}

// Gains shows the gain of each candidate threshold of a feature at a node of a tree, and which thresholds a search
// visits, as Fig. 5 of Chen et al. 2018.
type Gains struct {
	Title      string
	X          Axis // the feature
	Thresholds []float64
	Gains      []float64 // gain of each threshold, in nats
	Visited    []bool    // whether the search visits each threshold
}

// Figure returns the figure. An error wraps ErrData: there are no thresholds, lists have different lengths, or a value
// is not finite.
func (g *Gains) Figure() (*Figure, error) {
	n := len(g.Thresholds)
	if n == 0 || len(g.Gains) != n || len(g.Visited) != n {
		return nil, fmt.Errorf("want as many gains and visits as thresholds, and at least one threshold; got %d "+
			"thresholds, %d gains and %d visits: %w", n, len(g.Gains), len(g.Visited), ErrData)
	}
	if err := cmp.Or(finite("thresholds", g.Thresholds), finite("gains", g.Gains)); err != nil {
		return nil, err
	}
	c := newChart(g.Title, g.X, Axis{Name: "gain", Unit: "nats"})
	all := layer{style: style{line: styleOf(0).line}, x: g.Thresholds, y: g.Gains}
	visited := layer{style: style{mark: draw.GlyphStyle{Color: seriesColours[2], Radius: 1.7, Shape: draw.CircleGlyph{}}}}
	for i, v := range g.Visited {
		if v {
			visited.x, visited.y = append(visited.x, g.Thresholds[i]), append(visited.y, g.Gains[i])
		}
	}
	c.add(all)
	c.y.include(0)
	c.legend = legend{{"all thresholds", all.style}}
	if len(visited.x) > 0 {
		c.add(visited)
		c.legend = append(c.legend, entry{"visited by the adaptive step", visited.style})
	}
	return c.figure(), nil
}

// Visits shows how many thresholds of each feature a search visits, as Fig. 6 of Chen et al. 2018.
type Visits struct {
	Title  string
	Counts []int // counts by number of the feature
}

// Figure returns the figure. An error wraps ErrData: there is no feature, or a count is below 0.
func (v *Visits) Figure() (*Figure, error) {
	if len(v.Counts) == 0 {
		return nil, fmt.Errorf("there are no features: %w", ErrData)
	}
	if i := slices.IndexFunc(v.Counts, func(n int) bool { return n < 0 }); i >= 0 {
		return nil, fmt.Errorf("the number of visits is %d at feature %d, want at least 0: %w", v.Counts[i], i, ErrData)
	}
	bars := layer{style: style{fill: seriesColours[1]}, left: -.4, right: .4}
	for feature, n := range v.Counts {
		bars.x, bars.y = append(bars.x, float64(feature)), append(bars.y, float64(n))
	}
	c := newChart(v.Title, Axis{Name: "feature"}, Axis{Name: "thresholds visited"})
	c.add(bars)
	c.y.include(1) // if no threshold was visited
	return c.figure(), nil
}

// Distributions shows true and predicted label distributions, with a panel for each row of data. Few labels have bars,
// more labels have lines. If there are several methods, their predictions are marks on the bars of the true
// distribution.
type Distributions struct {
	Title  string
	Labels Axis     // what the labels are, such as the age in years
	Names  []string // names of the labels; if empty, labels have their numbers
	From   int      // number of the first label
	// Methods has the names of the methods, at most 3. If it is empty, there is one method without a name.
	Methods []string
	// Styles has the style of each method, from StylesOf; nil: each has the style of its place.
	Styles []int
	Rows   []Compared
}

// Compared is a row of data: its true distribution, and the distribution that each method predicts.
type Compared struct {
	Name      string
	True      []float64
	Predicted [][]float64
}

const (
	mostPanels  = 6 // rows in a figure
	mostMethods = 3
	mostBars    = 8 // labels with bars
)

// methodMarks are the marks of the methods on bars.
var methodMarks = [mostMethods]draw.GlyphDrawer{draw.CircleGlyph{}, draw.CrossGlyph{}, draw.TriangleGlyph{}}

// Panels returns which of count rows, in their order, are shown in panels. If there are too many, it returns the
// first, the last, and rows at equal distances between them.
func Panels(count int) (places []int) {
	for i := range min(count, mostPanels) {
		if count > mostPanels {
			i = i * (count - 1) / (mostPanels - 1)
		}
		places = append(places, i)
	}
	return places
}

// Figure returns the figure. An error wraps ErrData: there are no rows, too many rows or methods, or lists of different
// lengths.
func (d *Distributions) Figure() (*Figure, error) {
	if len(d.Rows) == 0 || len(d.Rows) > mostPanels {
		return nil, fmt.Errorf("the figure shows distributions of 1 to %[2]d samples, got %[1]d: %[3]w", len(d.Rows),
			mostPanels, ErrData)
	}
	if d.Styles != nil && len(d.Styles) != len(d.Methods) {
		return nil, fmt.Errorf("want a style for each of %d methods, got %d: %w", len(d.Methods), len(d.Styles), ErrData)
	}
	if len(d.Methods) > mostMethods {
		return nil, fmt.Errorf("the figure shows distributions of at most %[2]d methods, got %[1]d: %[3]w", len(d.Methods),
			mostMethods, ErrData)
	}
	c := newChart(d.Title, d.Labels, Axis{Name: "degree"})
	c.panels, c.across, c.height = nil, min(2, len(d.Rows)), 18*vg.Millimeter
	names := append([]string{"true"}, d.Methods...)
	if len(d.Methods) == 0 {
		names = append(names, "predicted")
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		if err := d.check(r); err != nil {
			return nil, err
		}
		c.panels = append(c.panels, panel{name: r.Name})
		c.legend = nil // it is the same for all rows
		for j, values := range append([][]float64{r.True}, r.Predicted...) {
			l := d.layer(j, values)
			c.add(l)
			c.legend = append(c.legend, entry{names[j], l.style})
		}
	}
	c.y.include(0)
	if d.bars() {
		c.x.names = d.Names
		for i := len(d.Names); i < len(d.Rows[0].True); i++ {
			c.x.names = append(c.x.names, strconv.Itoa(d.From+i))
		}
	}
	return c.figure(), nil
}

// check returns an error if a row cannot be drawn.
func (d *Distributions) check(r *Compared) error {
	n := len(d.Rows[0].True)
	if n == 0 || len(d.Names) > 0 && len(d.Names) != n || len(r.Predicted) != max(1, len(d.Methods)) {
		return fmt.Errorf("sample %q has %d true probabilities and %d predictions, but %d labels and %d methods have "+
			"names: %w", r.Name, n, len(r.Predicted), len(d.Names), len(d.Methods), ErrData)
	}
	for _, values := range append([][]float64{r.True}, r.Predicted...) {
		if len(values) != n {
			return fmt.Errorf("sample %q has %d probabilities in a distribution, want %d as in the first one: %w", r.Name,
				len(values), n, ErrData)
		}
		if err := finite(fmt.Sprintf("sample %q", r.Name), values); err != nil {
			return err
		}
	}
	return nil
}

// bars reports whether the labels have bars.
func (d *Distributions) bars() bool { return len(d.Rows[0].True) <= mostBars }

// layer returns a distribution of a row in its style.
func (d *Distributions) layer(i int, values []float64) layer {
	l, dark, light := layer{y: values}, color.Gray{Y: 60}, color.Gray{Y: 205}
	shift := 0.0
	switch several := len(d.Methods) > 0; {
	case !d.bars():
		if shift = float64(d.From); !several {
			i *= 2 // these colours differ more
		}
		l.style, l.number = styleOf(i), i
		if i > 0 && several && d.Styles != nil {
			l.style = styleOf(d.Styles[i-1] - 1)
		}
	case several && i == 0: // marks are visible on a light bar
		l.style, l.left, l.right = style{fill: light, line: hairline}, -.4, .4
	case several:
		l.mark = draw.GlyphStyle{Color: color.Black, Radius: 2.2, Shape: methodMarks[i-1]}
		shift = .25 * (float64(i-1) - float64(len(d.Methods)-1)/2)
	case i == 0:
		l.style, l.left = style{fill: dark, line: hairline}, -.4
	default:
		l.style, l.right = style{fill: light, line: hairline}, .4
	}
	for j := range values {
		l.x = append(l.x, float64(j)+shift)
	}
	return l
}
