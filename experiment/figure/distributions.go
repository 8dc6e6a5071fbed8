package figure

import (
	"fmt"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Distributions shows predicted label distributions over the true ones, a panel for each row of
// data: bars for few labels, lines for more; of several methods marks over the bars of the true ones.
type Distributions struct {
	Title  string
	Labels Axis     // what the labels are, such as the age in years
	Names  []string // of the labels; empty: their numbers
	From   int      // number of the first label
	// Methods are the names of what predicted, at most 3; empty: of one method without a name.
	Methods []string
	Rows    []Compared
}

// Compared is one row: the true distribution, and what each method predicts over the same labels.
type Compared struct {
	Name      string
	True      []float64
	Predicted [][]float64
}

// Bounds of a figure: panels, and labels that are drawn as bars.
const (
	mostPanels  = 6
	mostMethods = 3
	mostBars    = 8
	panelSize   = 36 * vg.Millimeter
	perLine     = 2             // panels beside each other
	barRoom     = vg.Length(60) // the width of the bars of one panel
)

// Panels returns which of so many things in an order are shown in panels: the first, the last, and those
// at equal distances between them; all where there are few.
func Panels(count int) (places []int) {
	for i := range min(count, mostPanels) {
		if count > mostPanels {
			i = i * (count - 1) / (mostPanels - 1)
		}
		places = append(places, i)
	}
	return places
}

// Figure returns the figure. Errors wrap ErrData: no rows or methods, or too many, or lists of
// different lengths.
func (d *Distributions) Figure() (*Figure, error) {
	if len(d.Rows) == 0 || len(d.Rows) > mostPanels {
		return nil, fmt.Errorf("the figure shows distributions of 1 to %[2]d samples, got %[1]d: %[3]w", len(d.Rows), mostPanels, ErrData)
	}
	if len(d.Methods) > mostMethods {
		return nil, fmt.Errorf("the figure shows distributions of at most %[2]d methods, got %[1]d: %[3]w", len(d.Methods), mostMethods, ErrData)
	}
	plots := make([][]tile, (len(d.Rows)+perLine-1)/perLine)
	for i := range d.Rows {
		p, err := d.panel(&d.Rows[i])
		if err != nil {
			return nil, err
		}
		plots[i/perLine] = append(plots[i/perLine], tile{p, d.Rows[i].Name})
	}
	greatest := 0.0
	for _, line := range plots {
		for _, p := range line {
			greatest = max(greatest, p.Y.Max)
		}
	}
	for _, line := range plots {
		for _, p := range line {
			p.Y.Min, p.Y.Max = 0, greatest // panels can be compared
		}
	}
	return tiled(d.Title, plots, d.legend(), vg.Length(len(plots))*panelSize), nil
}

// bars tells whether there are few enough labels.
func (d *Distributions) bars() bool { return len(d.Rows[0].True) <= mostBars }

func (d *Distributions) legend() legend {
	switch l := (legend{{"true", barSample(1)}}); {
	case len(d.Methods) == 0 && d.bars():
		return legend{{"true", barSample(0)}, {"predicted", barSample(1)}}
	case d.bars():
		for i, name := range d.Methods {
			l = append(l, entry{name, glyphSample(i)})
		}
		return l
	case len(d.Methods) == 0:
		return legend{{"true", lineSample(0)}, {"predicted", lineSample(2)}}
	}
	l := legend{{"true", lineSample(0)}}
	for i, name := range d.Methods {
		l = append(l, entry{name, lineSample(1 + i)})
	}
	return l
}

// panel returns the plot of one row.
func (d *Distributions) panel(r *Compared) (*plot.Plot, error) {
	if err := d.check(r); err != nil {
		return nil, err
	}
	p := newPlot(d.Labels, Axis{Name: "degree"})
	p.Y.Tick.Marker = ticks{most: fewTicks}
	switch {
	case !d.bars():
		return p, d.addLines(p, r)
	case len(d.Methods) == 0:
		err := d.addBars(p, r.True, r.Predicted[0])
		return p, err
	}
	if err := d.addBars(p, r.True); err != nil {
		return nil, err
	}
	return p, d.addMarks(p, r)
}

// check returns an error if a row cannot be drawn.
func (d *Distributions) check(r *Compared) error {
	n := len(r.True)
	if n == 0 || len(d.Names) > 0 && len(d.Names) != n || len(r.Predicted) != max(1, len(d.Methods)) {
		return fmt.Errorf("sample %q has %d true probabilities and %d predictions, but %d labels and %d methods have names: %w", r.Name, n, len(r.Predicted), len(d.Names), len(d.Methods), ErrData)
	}
	for _, values := range append([][]float64{r.True}, r.Predicted...) {
		if len(values) != n {
			return fmt.Errorf("sample %q has %d true and %d predicted probabilities, want as many predicted as true: %w", r.Name, n, len(values), ErrData)
		}
		if err := finite(fmt.Sprintf("sample %q", r.Name), values); err != nil {
			return err
		}
	}
	return nil
}

// addBars adds bars of one or two distributions for each label: those that legend shows.
func (d *Distributions) addBars(p *plot.Plot, all ...[]float64) error {
	labels := len(all[0])
	width := barRoom / vg.Length(2*labels+1)
	for i, values := range all {
		bars, err := plotter.NewBarChart(plotter.Values(values), width)
		if err != nil {
			return err
		}
		bars.LineStyle = hairline
		if bars.Color = barSample(i).fill(); len(all) == 1 {
			bars.Color = barSample(1).fill() // marks can be seen on it
			bars.Width = 1.6 * width
		} else {
			bars.Offset = width * vg.Length(2*i-1) / 2
		}
		p.Add(bars)
	}
	names := d.Names
	if len(names) == 0 {
		for j := range labels {
			names = append(names, strconv.Itoa(d.From+j))
		}
	}
	p.NominalX(names...)
	p.X.Tick.Label.Font.Size = fitting(names, barRoom/vg.Length(len(names)))
	if p.X.Tick.Label.Font.Size < tickSize-2 { // names that are too long to stand beside each other
		p.X.Tick.Label.Font.Size = tickSize - 1
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = quarter, draw.XRight, draw.YCenter
	}
	return nil
}

// addMarks adds a mark of each method at each label, beside each other.
func (d *Distributions) addMarks(p *plot.Plot, r *Compared) error {
	for i, values := range r.Predicted {
		points := make(plotter.XYs, len(values))
		for j, v := range values {
			points[j] = plotter.XY{X: float64(j) + .25*(float64(i)-float64(len(r.Predicted)-1)/2), Y: v}
		}
		marks, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		marks.GlyphStyle = glyphSample(i).glyph()
		p.Add(marks)
	}
	return nil
}

// addLines adds a line for each distribution.
func (d *Distributions) addLines(p *plot.Plot, r *Compared) error {
	for i, values := range append([][]float64{r.True}, r.Predicted...) {
		s := Series{Y: values}
		for j := range values {
			s.X = append(s.X, float64(d.From+j))
		}
		if len(d.Methods) == 0 {
			i *= 2
		}
		if err := addSeries(p, &s, i); err != nil {
			return err
		}
	}
	return nil
}

// quarter turns text to run upwards.
const quarter = 1.5707963267948966

// fitting is the size of letters, at most tickSize, in which each of the names is at most so wide.
func fitting(names []string, width vg.Length) vg.Length {
	style, size := letters(tickSize, 0, 0), tickSize
	for _, name := range names {
		size = min(size, tickSize*width/max(1, style.Width(name)))
	}
	return size
}
