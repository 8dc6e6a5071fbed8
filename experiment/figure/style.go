package figure

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The sizes of letters. If the figure is printed 60 mm wide, the smallest are 6 points high.
const (
	titleSize = vg.Length(10)
	labelSize = vg.Length(9)
	tickSize  = vg.Length(8.5)
)

// tickLength is the length of a tick with a number, in points.
const tickLength = vg.Length(4)

// hairline is a thin black line.
var hairline = draw.LineStyle{Color: color.Black, Width: 0.6}

// seriesColours go from dark to light, so that they also differ in grey.
var seriesColours = []color.Color{
	color.NRGBA{0, 0, 0, 255}, color.NRGBA{0, 90, 160, 255}, color.NRGBA{200, 70, 0, 255},
	color.NRGBA{0, 140, 100, 255}, color.NRGBA{190, 110, 160, 255}, color.NRGBA{80, 170, 220, 255},
}

// seriesDashes and seriesMarks distinguish series without colours.
var (
	seriesDashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {6, 2, 1.5, 2}, {4, 1.5, 4, 1.5, 1, 1.5}}
	seriesMarks  = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}}
)

// style says how points are drawn in a chart and in its legend.
type style struct {
	line draw.LineStyle  // a line through the points, or the border of bars; there is none if its width is 0
	mark draw.GlyphStyle // a mark at each point; there is none without a shape
	fill color.Color     // bars of this colour; nil if there are none
}

// styleOf returns the style of the series with number i.
func styleOf(i int) style {
	colour := seriesColours[i%len(seriesColours)]
	return style{
		line: draw.LineStyle{Color: colour, Width: 1.2, Dashes: seriesDashes[i%len(seriesDashes)]},
		mark: draw.GlyphStyle{Color: colour, Radius: 2.4, Shape: seriesMarks[i%len(seriesMarks)]},
	}
}

// drawSample draws a sample of the style.
func (s style) drawSample(c draw.Canvas) {
	switch {
	case s.fill != nil:
		c.Min.X, c.Max.X = c.Min.X+4, c.Max.X-4
		box(c, c.Rectangle, s.fill, s.line)
		return
	case s.line.Width > 0:
		c.StrokeLine2(s.line, c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
	}
	c.DrawGlyphNoClip(s.mark, c.Center())
}

// box draws a rectangle with a border. Without a color it is not filled; a border of width 0 is not drawn.
func box(c draw.Canvas, r vg.Rectangle, fill color.Color, border draw.LineStyle) {
	if fill != nil {
		c.SetColor(fill)
		c.Fill(r.Path())
	}
	if border.Width > 0 {
		c.SetLineStyle(border)
		c.Stroke(r.Path())
	}
}

// diamond is a diamond with a border, which is white if it is not filled.
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
