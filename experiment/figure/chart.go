package figure

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// chart shows data between two axes, below a title and a legend. It has one or more panels with the same axes.
type chart struct {
	title  string
	legend legend
	x, y   axis
	panels []panel
	across int       // number of panels in a row
	height vg.Length // height of the data of a panel
}

// panel shows some of the data of a chart.
type panel struct {
	name   string // the text above the data
	layers []layer
}

// layer has points that are drawn in the same style. Layers are drawn in the order in which they are added.
type layer struct {
	style
	x, y        []float64
	deviation   []float64 // half the length of a vertical line through each point; nil if there are none
	left, right float64   // ends of a bar, relative to its x
	number      int       // layers with different numbers have their marks at different points
}

// The distances in a chart, in points.
const (
	axisGap   = vg.Length(5) // from the data to the axes
	textGap   = vg.Length(2) // between texts and ticks
	panelGap  = vg.Length(7) // between panels
	labelRoom = labelSize + 5
)

// newChart returns a chart with one panel without data.
func newChart(title string, x, y Axis) *chart {
	return &chart{title: title, x: newAxis(x), y: newAxis(y), panels: make([]panel, 1), across: 1,
		height: 46 * vg.Millimeter}
}

// add adds a layer to the last panel, and extends the axes to its points.
func (c *chart) add(l layer) {
	c.x.include(l.x...)
	c.y.include(l.y...)
	for i, d := range l.deviation {
		c.y.include(l.y[i]-d, l.y[i]+d)
	}
	if l.fill != nil {
		c.y.include(0)
		c.x.low, c.x.high = min(c.x.low, slices.Min(l.x)+l.left), max(c.x.high, slices.Max(l.x)+l.right)
	}
	last := &c.panels[len(c.panels)-1]
	last.layers = append(last.layers, l)
}

// figure returns the figure of the chart.
func (c *chart) figure() *Figure {
	g := c.layout()
	rows := vg.Length((len(c.panels) + c.across - 1) / c.across)
	height := 2*margin + headHeight(c.title, c.legend) + rows*(g.above+c.height+g.below) + (rows-1)*panelGap + labelRoom
	return &Figure{width: columnWidth, height: height, draw: func(canvas draw.Canvas) {
		canvas = head(draw.Crop(canvas, margin, -margin, margin, -margin), c.title, c.legend)
		for i := range c.panels {
			g.drawPanel(g.data(canvas, i), i)
		}
	}}
}

// layout is a chart with the sizes of its parts.
type layout struct {
	*chart
	xTicks, yTicks            []tick
	xText                     text.Style // style of the texts of xTicks
	nameSize                  vg.Length  // size of the letters of names of panels
	width                     vg.Length  // width of the data of a panel
	left, right, below, above vg.Length  // room around the data of a panel
}

func (c *chart) layout() *layout {
	c.x.finish()
	c.y.finish()
	g := &layout{chart: c, right: axisGap, above: tickSize/2 + 1}
	g.yTicks = c.y.fitted(c.height, textGap, func(string) vg.Length { return tickSize })
	for _, t := range g.yTicks {
		g.left = max(g.left, letters(tickSize, 0, 0).Width(t.text)+axisGap+tickLength+textGap)
	}
	all := columnWidth - 2*margin - labelRoom - vg.Length(c.across-1)*panelGap
	for fits := false; !fits; {
		g.width = all/vg.Length(c.across) - g.left - g.right
		left, right := g.fitX()
		fits = left <= g.left+1e-9 && right <= g.right+1e-9
		g.left, g.right = max(g.left, left), max(g.right, right)
	}
	var names []string
	for _, p := range c.panels {
		if p.name != "" {
			names, g.above = append(names, p.name), tickSize/2+1+labelSize+3
		}
	}
	g.nameSize = max(tickSize-1, fitting(names, all/vg.Length(c.across)))
	return g
}

// fitX chooses the ticks along x for the width of the data, and the style of their texts. It returns how far texts
// extend beyond the left and right ends of the data.
func (g *layout) fitX() (left, right vg.Length) {
	gap := 2 * textGap
	g.xText = letters(tickSize, draw.XCenter, draw.YTop)
	if len(g.x.names) > 0 {
		gap = textGap
		g.xText.Font.Size = fitting(g.x.names, g.width/vg.Length(g.x.high-g.x.low)-gap)
	}
	size := g.xText.Width
	turned := g.xText.Font.Size < tickSize-2 // the names are too long for one line
	if turned {
		g.xText, gap = letters(tickSize-1, draw.XRight, draw.YCenter), 0
		g.xText.Rotation = quarter
		size = func(string) vg.Length { return g.xText.Font.Size }
	}
	g.xTicks = g.x.fitted(g.width, gap, size)
	longest := g.xText.Font.Size
	for _, t := range g.xTicks {
		if turned {
			longest = max(longest, g.xText.Width(t.text))
		}
		if t.text != "" {
			at, half := vg.Length(g.x.at(t.value)), size(t.text)/2
			left, right = max(left, half-at*g.width), max(right, half-(1-at)*g.width)
		}
	}
	g.below = axisGap + tickLength + textGap + longest
	return left, right
}

// data returns the part of a canvas in which the data of a panel is drawn.
func (g *layout) data(c draw.Canvas, panel int) draw.Canvas {
	column, row := vg.Length(panel%g.across), vg.Length(panel/g.across)
	x := c.Min.X + labelRoom + g.left + column*(g.left+g.width+g.right+panelGap)
	y := c.Max.Y - g.above - row*(g.above+g.chart.height+g.below+panelGap)
	return draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - g.chart.height},
		Max: vg.Point{X: x + g.width, Y: y}}}
}

// drawPanel draws a panel around its data c. Only panels at the left have the name of the vertical axis, and only the
// lowest ones the name of the horizontal axis.
func (g *layout) drawPanel(c draw.Canvas, panel int) {
	p := &g.panels[panel]
	g.drawAxes(c)
	at := func(x, y float64) vg.Point { return vg.Point{X: c.X(g.x.at(x)), Y: c.Y(g.y.at(y))} }
	for i := range p.layers {
		p.layers[i].draw(c, at)
	}
	if p.name != "" {
		style := letters(g.nameSize, draw.XCenter, draw.YBottom)
		name := shortened(p.name, g.nameSize, g.left+g.width+g.right)
		half := style.Width(name) / 2
		x := max(min(c.Center().X, c.Max.X+g.right-half), c.Min.X-g.left+half)
		c.FillText(style, vg.Point{X: x, Y: c.Max.Y + axisGap + 1}, name)
	}
	if panel%g.across == 0 {
		style := letters(labelSize, draw.XCenter, draw.YTop)
		style.Rotation = quarter
		c.FillText(style, vg.Point{X: c.Min.X - g.left - labelRoom, Y: c.Center().Y}, g.y.label())
	}
	if panel+g.across >= len(g.panels) {
		c.FillText(letters(labelSize, draw.XCenter, draw.YTop), vg.Point{X: c.Center().X, Y: c.Min.Y - g.below - textGap},
			g.x.label())
	}
}

// drawAxes draws the axes at the left of and below the data c, and thin grey lines at their ticks.
func (g *layout) drawAxes(c draw.Canvas) {
	length := func(t tick) vg.Length {
		if t.text == "" {
			return tickLength / 2
		}
		return tickLength
	}
	behind := draw.LineStyle{Color: color.Gray{Y: 215}, Width: 0.4}
	bottom, left := c.Min.Y-axisGap, c.Min.X-axisGap
	for _, t := range g.xTicks {
		x := c.X(g.x.at(t.value))
		if t.text != "" && len(g.x.names) == 0 {
			c.StrokeLine2(behind, x, c.Min.Y, x, c.Max.Y)
		}
		c.StrokeLine2(hairline, x, bottom, x, bottom-length(t))
		c.FillText(g.xText, vg.Point{X: x, Y: bottom - tickLength - textGap}, t.text)
	}
	for _, t := range g.yTicks {
		y := c.Y(g.y.at(t.value))
		if t.text != "" {
			c.StrokeLine2(behind, c.Min.X, y, c.Max.X, y)
		}
		c.StrokeLine2(hairline, left, y, left-length(t), y)
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: left - tickLength - textGap, Y: y}, t.text)
	}
	c.StrokeLine2(hairline, c.Min.X, bottom, c.Max.X, bottom)
	c.StrokeLine2(hairline, left, c.Min.Y, left, c.Max.Y)
}

// mostMarks is the maximum number of marks on a line.
const mostMarks = 12

// draw draws the layer on a canvas. The function at returns the position of a point.
func (l *layer) draw(c draw.Canvas, at func(x, y float64) vg.Point) {
	points := make([]vg.Point, len(l.x))
	for i := range points {
		points[i] = at(l.x[i], l.y[i])
		if l.fill != nil {
			box(c, vg.Rectangle{Min: at(l.x[i]+l.left, 0), Max: at(l.x[i]+l.right, l.y[i])}, l.fill, l.line)
		}
	}
	thin := draw.LineStyle{Color: l.mark.Color, Width: hairline.Width}
	for i, d := range l.deviation {
		low, high := at(l.x[i], l.y[i]-d), at(l.x[i], l.y[i]+d)
		c.StrokeLines(thin, []vg.Point{low, high}, []vg.Point{{X: low.X - 2.5, Y: low.Y}, {X: low.X + 2.5, Y: low.Y}},
			[]vg.Point{{X: low.X - 2.5, Y: high.Y}, {X: low.X + 2.5, Y: high.Y}})
	}
	if l.fill != nil {
		return
	}
	every := 1
	if l.line.Width > 0 {
		c.StrokeLines(l.line, points)
		every = (len(points) + mostMarks - 1) / mostMarks
	}
	for i := (l.number*every/4 + every/2) % every; i < len(points); i += every {
		c.DrawGlyphNoClip(l.mark, points[i])
	}
}

// quarter is the rotation of texts that run upwards.
const quarter = math.Pi / 2

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
	color.NRGBA{R: 0, G: 0, B: 0, A: 255}, color.NRGBA{R: 0, G: 90, B: 160, A: 255}, color.NRGBA{R: 200, G: 70,
		B: 0, A: 255},
	color.NRGBA{R: 0, G: 140, B: 100, A: 255}, color.NRGBA{R: 190, G: 110, B: 160, A: 255}, color.NRGBA{R: 80, G: 170,
		B: 220, A: 255},
}

// seriesDashes and seriesMarks distinguish series without colours.
var (
	seriesDashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {6, 2, 1.5, 2}, {4, 1.5, 4, 1.5, 1, 1.5}}
	seriesMarks  = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{},
		draw.CrossGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}}
)

// style says how points are drawn in a chart and in its legend.
type style struct {
	line draw.LineStyle  // a line through the points, or the border of bars; there is none if its width is 0
	mark draw.GlyphStyle // a mark at each point; there is none without a shape
	fill color.Color     // bars of this colour; nil if there are none
}

// StylesOf returns the styles of the series of a figure, from their places among the series of all figures. So a series
// has the same colour in each figure, if no series before it in another place has this colour. If truth is true, the
// figure also shows true values, whose style no series has.
func StylesOf(places []int, truth bool) []int {
	order, styles := make([]int, len(places)), make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(places[a], places[b]) })
	taken := make([]bool, len(seriesColours))
	taken[0] = truth
	for _, i := range order {
		style := (1 + places[i]) % len(taken)
		for tries := 0; taken[style] && tries < len(taken); tries++ {
			style = (style + 1) % len(taken)
		}
		taken[style], styles[i] = true, style+1
	}
	return styles
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

// The sizes in a legend, in points.
const (
	sampleWidth = vg.Length(20)
	sampleGap   = vg.Length(4)  // between a sample and its name
	entryGap    = vg.Length(12) // between entries
	legendLine  = vg.Length(12) // height of a line
)

// entry is an entry of a legend: a name, with a sample of its style.
type entry struct {
	name string
	style
}

// legend is a list of entries above a chart.
type legend []entry

// rows divides the entries into lines of at most a width.
func (l legend) rows(width vg.Length) (rows []legend) {
	style, used := letters(tickSize, 0, 0), vg.Length(0)
	for _, e := range l {
		e.name = shortened(e.name, tickSize, width-sampleWidth-sampleGap)
		own := sampleWidth + sampleGap + style.Width(e.name) + entryGap
		if len(rows) == 0 || used+own > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += own
	}
	return rows
}

// drawAbove draws the legend at the top of the canvas and returns the canvas below it.
func (l legend) drawAbove(c draw.Canvas) draw.Canvas {
	style := letters(tickSize, draw.XLeft, draw.YCenter)
	y := c.Max.Y
	for _, row := range l.rows(c.Max.X - c.Min.X) {
		x := c.Min.X
		for _, e := range row {
			e.drawSample(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - legendLine + 2},
				Max: vg.Point{X: x + sampleWidth, Y: y - 2}}})
			x += sampleWidth + sampleGap
			c.FillText(style, vg.Point{X: x, Y: y - legendLine/2}, e.name)
			x += style.Width(e.name) + entryGap
		}
		y -= legendLine
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y)
}

// shortened returns a name in letters of a size, of at most a width. Longer names lack their middle, because names
// often differ at their ends.
func shortened(name string, size, width vg.Length) string {
	style, letter := letters(size, 0, 0), []rune(name)
	for text, left := name, len(letter)-1; ; left-- {
		if left < 2 || style.Width(text) <= width {
			return text
		}
		text = string(letter[:(left+1)/2]) + "…" + string(letter[len(letter)-left/2:])
	}
}

// fitting returns the size of letters, at most tickSize, in which each of the names has at most a width.
func fitting(names []string, width vg.Length) vg.Length {
	style, size := letters(tickSize, 0, 0), tickSize
	for _, name := range names {
		size = min(size, tickSize*width/max(1, style.Width(name)))
	}
	return size
}

// margin is the width of the white edge of a figure, in points.
const margin = vg.Length(4)

// titleLines divides a title into lines between its words.
func titleLines(title string) (lines []string) {
	style, used := letters(titleSize, 0, 0), ""
	for _, word := range strings.Fields(title) {
		if used != "" && style.Width(used+" "+word) > columnWidth-2*margin {
			lines, used = append(lines, used), ""
		}
		used = strings.TrimSpace(used + " " + word)
	}
	if used != "" {
		lines = append(lines, used)
	}
	return lines
}

// head draws a title and a legend at the top of a canvas and returns the canvas below them.
func head(c draw.Canvas, title string, l legend) draw.Canvas {
	for _, line := range titleLines(title) {
		c.FillText(letters(titleSize, draw.XCenter, draw.YTop), vg.Point{X: c.Center().X, Y: c.Max.Y}, line)
		c = draw.Crop(c, 0, 0, 0, -titleLine)
	}
	if len(l) > 0 {
		c = draw.Crop(l.drawAbove(c), 0, 0, 0, -headGap)
	}
	return c
}

const (
	headGap   = vg.Length(5)        // below a title or a legend
	titleLine = titleSize + headGap // height of a line of a title
)

// headHeight returns the height of a title and a legend.
func headHeight(title string, l legend) vg.Length {
	height := vg.Length(len(titleLines(title))) * titleLine
	if len(l) > 0 {
		height += vg.Length(len(l.rows(columnWidth-2*margin)))*legendLine + headGap
	}
	return height
}
