package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// tile is a plot with its name, which stands above its data.
type tile struct {
	*plot.Plot
	name string
}

// tileName is the room for the name of a tile.
const tileName = labelSize + 8

// tiled returns a figure of lines of plots, below a title and a legend.
func tiled(title string, tiles [][]tile, l legend, height vg.Length) *Figure {
	return &Figure{width: columnWidth, height: height + headHeight(title, l) + 2*margin, draw: func(c draw.Canvas) {
		c = head(draw.Crop(c, margin, -margin, margin, -margin), title, l)
		drawTiles(draw.Crop(c, 0, 0, 0, -tileName), tiles)
	}}
}

// drawTiles draws the plots so that their axes are in line, and the name of each above its data.
func drawTiles(c draw.Canvas, tiles [][]tile) {
	plots := make([][]*plot.Plot, len(tiles))
	for i, line := range tiles {
		plots[i] = make([]*plot.Plot, len(tiles[0])) // those that the last line lacks are nil
		for j := range line {
			plots[i][j] = line[j].Plot
		}
	}
	shape := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: 6, PadY: tileName + 2}
	canvases := plot.Align(plots, shape, c)
	for y, line := range tiles {
		for x, t := range line {
			t.Draw(canvases[y][x])
			data, room := t.DataCanvas(canvases[y][x]), canvases[y][x]
			style := letters(labelSize, draw.XCenter, draw.YBottom)
			half := style.Width(t.name) / 2 // the name stays within its tile
			at := max(min(data.Center().X, room.Max.X-half), room.Min.X+half)
			c.FillText(style, vg.Point{X: at, Y: data.Max.Y + 7}, t.name)
		}
	}
}

// barSample is a filled box: black for the first, a light grey for the second.
type barSample int

func (s barSample) fill() color.Color {
	return []color.Color{color.Gray{Y: 60}, color.Gray{Y: 205}}[s]
}

// Thumbnail implements plot.Thumbnailer.
func (s barSample) Thumbnail(c *draw.Canvas) {
	points := []vg.Point{{X: c.Min.X + 4, Y: c.Min.Y}, {X: c.Min.X + 4, Y: c.Max.Y}, {X: c.Max.X - 4, Y: c.Max.Y}, {X: c.Max.X - 4, Y: c.Min.Y}}
	c.FillPolygon(s.fill(), points)
	c.StrokeLines(hairline, append(points, points[0]))
}
