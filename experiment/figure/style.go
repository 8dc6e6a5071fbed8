package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The sizes of letters: at 60 mm, five sevenths of columnWidth, the smallest are 6 points high.
const (
	titleSize = vg.Length(10)
	labelSize = vg.Length(9)
	tickSize  = vg.Length(8.5)
)

// seriesColours are from dark to light, so that they differ in grey as well.
var seriesColours = []color.Color{
	color.NRGBA{0, 0, 0, 255}, color.NRGBA{0, 90, 160, 255}, color.NRGBA{200, 70, 0, 255},
	color.NRGBA{0, 140, 100, 255}, color.NRGBA{190, 110, 160, 255}, color.NRGBA{80, 170, 220, 255},
}

// seriesDashes and seriesGlyphs tell series apart without colour.
var (
	seriesDashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {6, 2, 1.5, 2}, {4, 1.5, 4, 1.5, 1, 1.5}}
	seriesGlyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}}
)

// lineOf and glyphOf are how series i is drawn.
func lineOf(i int) draw.LineStyle {
	return draw.LineStyle{Color: seriesColours[i%len(seriesColours)], Width: 1.2, Dashes: seriesDashes[i%len(seriesDashes)]}
}

func glyphOf(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: seriesColours[i%len(seriesColours)], Radius: 2.4, Shape: seriesGlyphs[i%len(seriesGlyphs)]}
}

// diamond is a white diamond with a border; of every second line it is filled.
type diamond struct{ filled bool }

// DrawGlyph implements draw.GlyphDrawer.
func (d diamond) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius
	corners := []vg.Point{{X: at.X - r, Y: at.Y}, {X: at.X, Y: at.Y + r}, {X: at.X + r, Y: at.Y}, {X: at.X, Y: at.Y - r}}
	fill := color.Color(color.White)
	if d.filled {
		fill = style.Color
	}
	c.FillPolygon(fill, corners)
	c.StrokeLines(draw.LineStyle{Color: style.Color, Width: 1.2}, append(corners, corners[0], corners[1]))
}

// diamondOf is how marks that go with line i are drawn.
func diamondOf(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: seriesColours[i%len(seriesColours)], Radius: 4, Shape: diamond{filled: i%2 == 1}}
}

// hairline is a thin black line.
var hairline = draw.LineStyle{Color: color.Black, Width: 0.6}

// Axis is what an axis of a figure says. Name has no unit; an empty Unit is a pure number.
type Axis struct {
	Name, Unit string
	Log        bool // a logarithmic scale, for values above 0
	Zero       bool // with Log: 0 has a place of its own at the left
}

// Has reports whether a value has a place on the axis.
func (a Axis) Has(v float64) bool { return !a.Log || v > 0 || a.Zero && v == 0 }

// label is the text along the axis.
func (a Axis) label() string {
	if a.Unit == "" {
		return a.Name
	}
	return a.Name + " (" + a.Unit + ")"
}

// newPlot returns an empty plot in the style of all figures, without a title.
func newPlot(x, y Axis) *plot.Plot {
	p := plot.New()
	for _, a := range []struct {
		axis *plot.Axis
		says Axis
	}{{&p.X, x}, {&p.Y, y}} {
		a.axis.Label.Text = a.says.label()
		a.axis.Label.TextStyle.Font = letters(labelSize, 0, 0).Font
		a.axis.Tick.Label.Font = letters(tickSize, 0, 0).Font
		a.axis.Label.TextStyle.Handler, a.axis.Tick.Label.Handler = ownText, ownText
		a.axis.Label.Padding, a.axis.Padding = 2, 3
		a.axis.Tick.Marker = ticks{log: a.says.Log, most: mostTicks}
		if a.says.Log {
			a.axis.Scale = plot.LogScale{}
		}
	}
	return p
}

// pale is a grey that stands behind data.
var pale = color.Gray{Y: 215}
