package figure

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The measures of a legend, in points.
const (
	sampleWidth = vg.Length(20)
	sampleGap   = vg.Length(4)
	entryGap    = vg.Length(12)
	legendLine  = vg.Length(12)
)

// entry is one line of a legend: a name, and a sample of how it is drawn.
type entry struct {
	name   string
	sample plot.Thumbnailer
}

// legend is a list of entries in lines above a plot, where they cover no data.
type legend []entry

// rows divides the entries into lines of at most the width.
func (l legend) rows(width vg.Length) (rows []legend) {
	style, used := letters(tickSize, 0, 0), vg.Length(0)
	for _, e := range l {
		e.name = shortened(e.name, width-sampleWidth-sampleGap)
		own := sampleWidth + sampleGap + style.Width(e.name) + entryGap
		if len(rows) == 0 || used+own > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += own
	}
	return rows
}

// height is that of the legend in a figure of a width.
func (l legend) height(width vg.Length) vg.Length {
	return vg.Length(len(l.rows(width))) * legendLine
}

// drawAbove draws the legend at the top of the canvas and returns the canvas below it.
func (l legend) drawAbove(c draw.Canvas) draw.Canvas {
	style := letters(tickSize, draw.XLeft, draw.YCenter)
	y := c.Max.Y
	for _, row := range l.rows(c.Max.X - c.Min.X) {
		x := c.Min.X
		for _, e := range row {
			box := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - legendLine + 2}, Max: vg.Point{X: x + sampleWidth, Y: y - 2}}}
			e.sample.Thumbnail(&box)
			x += sampleWidth + sampleGap
			c.FillText(style, vg.Point{X: x, Y: y - legendLine/2}, e.name)
			x += style.Width(e.name) + entryGap
		}
		y -= legendLine
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y)
}

// lineSample is a piece of a line with its glyph.
type lineSample int

// Thumbnail implements plot.Thumbnailer.
func (s lineSample) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(lineOf(int(s)), c.Min.X, y, c.Max.X, y)
	c.DrawGlyph(glyphOf(int(s)), c.Center())
}

// glyphSample is a glyph without a line: black, in a shape of its own.
type glyphSample int

func (s glyphSample) glyph() draw.GlyphStyle {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.CrossGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{}, draw.SquareGlyph{}, draw.RingGlyph{}}
	return draw.GlyphStyle{Color: color.Black, Radius: 2.2, Shape: shapes[int(s)%len(shapes)]}
}

// Thumbnail implements plot.Thumbnailer.
func (s glyphSample) Thumbnail(c *draw.Canvas) { c.DrawGlyph(s.glyph(), c.Center()) }

// diamondSample is the diamond of a line.
type diamondSample int

// Thumbnail implements plot.Thumbnailer.
func (s diamondSample) Thumbnail(c *draw.Canvas) { c.DrawGlyph(diamondOf(int(s)), c.Center()) }

// shortened is a name of at most so much width: of a longer one the middle is left out.
func shortened(name string, width vg.Length) string {
	style, letter := letters(tickSize, 0, 0), []rune(name)
	for text, left := name, len(letter)-1; ; left-- {
		if left < 2 || style.Width(text) <= width {
			return text
		}
		text = string(letter[:(left+1)/2]) + "…" + string(letter[len(letter)-left/2:])
	}
}

// margin is the white edge of a figure, in points.
const margin = vg.Length(4)

// titleLines breaks a title into lines between its words.
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

// head draws a title and a legend at the top of the canvas and returns what is left below.
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

// headGap is the room below a title or a legend; titleLine is that of a line of a title.
const (
	headGap   = vg.Length(5)
	titleLine = titleSize + headGap
)

// headHeight is the height of what head draws.
func headHeight(title string, l legend) vg.Length {
	height := vg.Length(len(titleLines(title))) * titleLine
	if len(l) > 0 {
		height += l.height(columnWidth-2*margin) + headGap
	}
	return height
}

// withLegend returns a figure of a plot below its title and its legend.
func withLegend(p *plot.Plot, title string, l legend, height vg.Length) *Figure {
	return &Figure{width: columnWidth, height: height + headHeight(title, l), draw: func(c draw.Canvas) {
		p.Draw(head(draw.Crop(c, margin, -margin, margin, -margin), title, l))
	}}
}
