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
// data: bars for few labels, lines for more.
type Distributions struct {
	Title  string
	Labels Axis     // what the labels are, such as the age in years
	Names  []string // of the labels; empty: their numbers
	From   int      // number of the first label
	Rows   []Compared
}

// Compared is one row: two distributions over the same labels.
type Compared struct {
	Name            string
	True, Predicted []float64
}

// Bounds of a figure: panels, and labels that are drawn as bars.
const (
	mostPanels = 6
	mostBars   = 12
	panelSize  = 36 * vg.Millimeter
	perLine    = 2             // panels beside each other
	barRoom    = vg.Length(60) // the width of the bars of one panel
)

// Figure returns the figure. Errors wrap ErrData: no rows or too many, or lists of different
// lengths.
func (d *Distributions) Figure() (*Figure, error) {
	if len(d.Rows) == 0 || len(d.Rows) > mostPanels {
		return nil, fmt.Errorf("distributions of %d rows, want 1 to %d: %w", len(d.Rows), mostPanels, ErrData)
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
	if d.bars() {
		return legend{{"true", barSample(0)}, {"predicted", barSample(1)}}
	}
	return legend{{"true", lineSample(0)}, {"predicted", lineSample(2)}}
}

// panel returns the plot of one row.
func (d *Distributions) panel(r *Compared) (*plot.Plot, error) {
	n := len(r.True)
	if n == 0 || len(r.Predicted) != n || len(d.Names) > 0 && len(d.Names) != n {
		return nil, fmt.Errorf("row %q has %d true and %d predicted degrees, and there are %d names: %w", r.Name, n, len(r.Predicted), len(d.Names), ErrData)
	}
	for _, values := range [][]float64{r.True, r.Predicted} {
		if err := finite(fmt.Sprintf("row %q", r.Name), values); err != nil {
			return nil, err
		}
	}
	p := newPlot(d.Labels, Axis{Name: "degree"})
	p.Y.Tick.Marker = ticks{most: fewTicks}
	if !d.bars() {
		return p, d.addLines(p, r)
	}
	return p, d.addBars(p, r)
}

// addBars adds two bars for each label.
func (d *Distributions) addBars(p *plot.Plot, r *Compared) error {
	width := barRoom / vg.Length(2*len(r.True)+1)
	for i, values := range [][]float64{r.True, r.Predicted} {
		bars, err := plotter.NewBarChart(plotter.Values(values), width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle = barSample(i).fill(), hairline
		bars.Offset = width * vg.Length(2*i-1) / 2
		p.Add(bars)
	}
	names := d.Names
	if len(names) == 0 {
		for j := range r.True {
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

// addLines adds a line for each distribution.
func (d *Distributions) addLines(p *plot.Plot, r *Compared) error {
	for i, values := range [][]float64{r.True, r.Predicted} {
		s := Series{Y: values}
		for j := range values {
			s.X = append(s.X, float64(d.From+j))
		}
		if err := addSeries(p, &s, 2*i); err != nil {
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
