package figure

import (
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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

// height returns the height of the legend if it has a width.
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
			e.drawSample(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - legendLine + 2}, Max: vg.Point{X: x + sampleWidth, Y: y - 2}}})
			x += sampleWidth + sampleGap
			c.FillText(style, vg.Point{X: x, Y: y - legendLine/2}, e.name)
			x += style.Width(e.name) + entryGap
		}
		y -= legendLine
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y)
}

// shortened returns a name in letters of a size, of at most a width. Longer names lack their middle, because names often
// differ at their ends.
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
		height += l.height(columnWidth-2*margin) + headGap
	}
	return height
}
