package figure

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Distributions shows true and predicted label distributions, with a panel for each row of data. Few labels have bars,
// more labels have lines. If there are several methods, their predictions are marks on the bars of the true distribution.
type Distributions struct {
	Title  string
	Labels Axis     // what the labels are, such as the age in years
	Names  []string // names of the labels; if empty, labels have their numbers
	From   int      // number of the first label
	// Methods has the names of the methods, at most 3. If it is empty, there is one method without a name.
	Methods []string
	Rows    []Compared
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
		return nil, fmt.Errorf("the figure shows distributions of 1 to %[2]d samples, got %[1]d: %[3]w", len(d.Rows), mostPanels, ErrData)
	}
	if len(d.Methods) > mostMethods {
		return nil, fmt.Errorf("the figure shows distributions of at most %[2]d methods, got %[1]d: %[3]w", len(d.Methods), mostMethods, ErrData)
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
		return fmt.Errorf("sample %q has %d true probabilities and %d predictions, but %d labels and %d methods have names: %w", r.Name, n, len(r.Predicted), len(d.Names), len(d.Methods), ErrData)
	}
	for _, values := range append([][]float64{r.True}, r.Predicted...) {
		if len(values) != n {
			return fmt.Errorf("sample %q has %d probabilities in a distribution, want %d as in the first one: %w", r.Name, len(values), n, ErrData)
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
