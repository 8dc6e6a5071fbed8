package figure

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Confusion is a confusion matrix. Counts[i][j] is the number of rows of class i that were predicted as class j, or the
// sum of their weights. The shade of a field shows its fraction of the rows of the true class.
type Confusion struct {
	Title   string
	Classes []string
	Counts  [][]float64
}

const (
	mostClasses  = 100
	mostNumbered = 12 // if there are more classes, fields have no numbers
)

// Figure returns the figure. An error wraps ErrData: there are no classes or more than 100, or the matrix is not
// square.
func (m *Confusion) Figure() (*Figure, error) {
	n := len(m.Classes)
	if n == 0 || n > mostClasses || len(m.Counts) != n {
		return nil, fmt.Errorf("the confusion matrix has %d classes and %d lines, want as many lines as classes, and 1 to "+
			"%d classes: %w", n, len(m.Counts), mostClasses, ErrData)
	}
	for i, line := range m.Counts {
		if len(line) != n {
			return nil, fmt.Errorf("the confusion matrix has %d classes, but its line %d has %d fields: %w", n, i,
				len(line), ErrData)
		}
	}
	g := m.layout()
	return &Figure{width: columnWidth, height: g.height, draw: g.draw}, nil
}

// matrix is a confusion matrix with the sizes of its parts, in points.
type matrix struct {
	*Confusion
	field, names, top, height vg.Length // side of a field, room for names at the left and below, room for the title
	turned                    bool      // the names below run upwards
}

func (m *Confusion) layout() *matrix {
	g, n := &matrix{Confusion: m}, vg.Length(len(m.Classes))
	style := letters(tickSize, 0, 0)
	for _, name := range m.Classes {
		g.names = max(g.names, style.Width(shortened(name, tickSize, longestName)))
	}
	g.top = headHeight(m.Title, nil)
	inner := columnWidth - 2*margin - g.names - labelSize - 10
	g.field = min(inner/n, 28)
	g.turned = g.names+3 > g.field
	below := tickSize
	if g.turned {
		below = g.names
	}
	g.height = 2*margin + g.top + n*g.field + below + 4 + labelSize + 6
	return g
}

func (m *matrix) draw(c draw.Canvas) {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	head(c, m.Title, nil)
	n := vg.Length(len(m.Classes))
	top := c.Max.Y - m.top
	c.Min.X += (c.Max.X - c.Min.X - labelSize - 8 - m.names - n*m.field) / 2 // below the middle of the title
	left := c.Min.X + labelSize + 8 + m.names
	for i, line := range m.Counts {
		m.drawLine(c, line, left, top-vg.Length(i)*m.field)
	}
	box(c, vg.Rectangle{Min: vg.Point{X: left, Y: top - n*m.field}, Max: vg.Point{X: left + n*m.field, Y: top}},
		nil, hairline)
	m.drawNames(c, left, top)
	side := letters(labelSize, draw.XCenter, draw.YTop)
	side.Rotation = quarter
	c.FillText(side, vg.Point{X: c.Min.X, Y: top - n*m.field/2}, "true class")
	c.FillText(letters(labelSize, draw.XCenter, draw.YBottom), vg.Point{X: left + n*m.field/2, Y: c.Min.Y},
		"predicted class")
}

// drawLine draws the fields of a true class, beginning at their upper left corner. A number is white if its field is
// dark.
func (m *matrix) drawLine(c draw.Canvas, counts []float64, x, y vg.Length) {
	sum := 0.0
	for _, v := range counts {
		sum += v
	}
	for _, v := range counts {
		share := 0.0
		if sum > 0 {
			share = v / sum
		}
		if v > 0 {
			box(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - m.field}, Max: vg.Point{X: x + m.field, Y: y}},
				color.Gray{Y: uint8(250 - 210*share)}, draw.LineStyle{})
		}
		if len(counts) <= mostNumbered {
			text := strconv.FormatFloat(v, 'f', -1, 64)
			if v != math.Trunc(v) || v >= 1e15 { // a sum of weights
				text = strconv.FormatFloat(v, 'g', 3, 64)
			}
			style := letters(fitting([]string{text}, m.field-3), draw.XCenter, draw.YCenter)
			if share > 0.5 {
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: x + m.field/2, Y: y - m.field/2}, text)
		}
		x += m.field
	}
}

// drawNames writes the names of classes at the left of and below the fields. Without room for all names, it writes
// every second, every third and so on.
func (m *matrix) drawNames(c draw.Canvas, left, top vg.Length) {
	every := 1
	for vg.Length(every)*m.field < tickSize+1 {
		every++
	}
	bottom := top - vg.Length(len(m.Classes))*m.field - 3
	for i := 0; i < len(m.Classes); i += every {
		name, middle := shortened(m.Classes[i], tickSize, longestName), (vg.Length(i)+0.5)*m.field
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: left - 3, Y: top - middle}, name)
		below := letters(tickSize, draw.XCenter, draw.YTop)
		if m.turned {
			below = letters(tickSize, draw.XRight, draw.YCenter)
			below.Rotation = quarter
		}
		c.FillText(below, vg.Point{X: left + middle, Y: bottom}, name)
	}
}

// ColourMap shows label distributions over two features, as Geng 2016 shows the artificial set. Each map has a row of
// pictures. In the first picture, red, green and blue are the degrees of the three labels. The others show one label
// each, in grey. The least degree of a label in the first map is black, and the greatest is white.
type ColourMap struct {
	Title          string
	X, Y           Axis
	FromX, ToX     float64
	FromY, ToY     float64
	Columns, Lines int // points along X and along Y
	Maps           []Map
}

// Map is one of the maps. Degrees has three degrees for each point. It begins at the least X and Y, and X varies
// fastest.
type Map struct {
	Name    string
	Degrees [][3]float64
}

// The sizes in a colour map, in points.
const (
	mapGap     = vg.Length(8)  // between pictures
	mapSide    = vg.Length(30) // for the axes at the left of and below the pictures
	mapName    = labelSize + 6 // for the name above a picture
	mapColumns = 4             // pictures of a map
)

// Figure returns the figure; nil if m is nil. An error wraps ErrData: there are no maps or more than 4, the area is
// empty, or a map has a wrong number of points.
func (m *ColourMap) Figure() (*Figure, error) {
	if m == nil {
		return nil, nil
	}
	if len(m.Maps) == 0 || len(m.Maps) > 4 || m.Columns < 2 || m.Lines < 2 || !(m.FromX < m.ToX) || !(m.FromY < m.ToY) {
		return nil, fmt.Errorf("want 1 to 4 colour maps of at least 2 x 2 points and an area above 0, got %d of %d x %d: %w",
			len(m.Maps), m.Columns, m.Lines, ErrData)
	}
	for i := range m.Maps {
		if n := len(m.Maps[i].Degrees); n != m.Columns*m.Lines {
			return nil, fmt.Errorf("colour map %q has %d points, want %d: %w", m.Maps[i].Name, n, m.Columns*m.Lines, ErrData)
		}
		for _, d := range m.Maps[i].Degrees {
			if err := finite(fmt.Sprintf("colour map %q", m.Maps[i].Name), d[:]); err != nil {
				return nil, err
			}
		}
	}
	g := &colours{ColourMap: m, side: (columnWidth - 2*margin - mapSide - (mapColumns-1)*mapGap - 6) / mapColumns}
	g.low, g.high = m.Maps[0].Degrees[0], m.Maps[0].Degrees[0]
	for _, d := range m.Maps[0].Degrees {
		for c := range d {
			g.low[c], g.high[c] = min(g.low[c], d[c]), max(g.high[c], d[c])
		}
	}
	height := 2*margin + headHeight(m.Title, nil) + vg.Length(len(m.Maps))*(mapName+g.side+mapGap) + mapSide - 4
	return &Figure{width: columnWidth, height: height, draw: g.draw}, nil
}

// colours is a colour map with the sizes of its parts.
type colours struct {
	*ColourMap
	side      vg.Length  // side of a picture
	low, high [3]float64 // the least and the greatest degree of each label in the first map
}

func (g *colours) draw(c draw.Canvas) {
	c = head(draw.Crop(c, margin, -margin, margin, -margin), g.Title, nil)
	y := c.Max.Y
	for i := range g.Maps {
		y -= mapName + g.side
		for picture := range mapColumns {
			x := c.Min.X + mapSide + vg.Length(picture)*(g.side+mapGap)
			g.drawPicture(c, i, picture, vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + g.side, Y: y + g.side}})
		}
		g.drawAxes(c, y, i == len(g.Maps)-1)
		y -= mapGap
	}
}

// drawPicture draws a picture of map i, with its name above. Picture 0 has colours, the others show one label each.
func (g *colours) drawPicture(c draw.Canvas, i, picture int, at vg.Rectangle) {
	name := g.Maps[i].Name
	if picture > 0 {
		name = fmt.Sprintf("label %d", picture)
	}
	c.DrawImage(at, g.picture(&g.Maps[i], func(d [3]float64) color.Color {
		if picture == 0 {
			return color.NRGBA{R: g.shade(d, 0), G: g.shade(d, 1), B: g.shade(d, 2), A: 255}
		}
		return color.Gray{Y: g.shade(d, picture-1)}
	}))
	box(c, at, nil, hairline)
	c.FillText(letters(labelSize, draw.XCenter, draw.YBottom), vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: at.Max.Y + 2},
		name)
}

// shade returns the shade of a degree of a label, from 0 to 255.
func (g *colours) shade(d [3]float64, label int) uint8 {
	low, high := g.low[label], g.high[label]
	if high == low {
		return 128
	}
	return uint8(math.Round(255 * min(max((d[label]-low)/(high-low), 0), 1)))
}

// drawAxes writes the name and the ends of Y at the left of a row of pictures. Below the last row, it also writes the
// name and the ends of X.
func (g *colours) drawAxes(c draw.Canvas, y vg.Length, last bool) {
	endText := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	right := c.Min.X + mapSide - 3
	c.FillText(letters(tickSize, draw.XRight, draw.YBottom), vg.Point{X: right, Y: y}, endText(g.FromY))
	c.FillText(letters(tickSize, draw.XRight, draw.YTop), vg.Point{X: right, Y: y + g.side}, endText(g.ToY))
	name := letters(labelSize, draw.XCenter, draw.YTop)
	name.Rotation = quarter
	c.FillText(name, vg.Point{X: c.Min.X, Y: y + g.side/2}, g.Y.label())
	if !last {
		return
	}
	for picture := range mapColumns {
		x := c.Min.X + mapSide + vg.Length(picture)*(g.side+mapGap)
		c.FillText(letters(tickSize, draw.XLeft, draw.YTop), vg.Point{X: x, Y: y - 3}, endText(g.FromX))
		c.FillText(letters(tickSize, draw.XRight, draw.YTop), vg.Point{X: x + g.side, Y: y - 3}, endText(g.ToX))
		c.FillText(letters(labelSize, draw.XCenter, draw.YTop), vg.Point{X: x + g.side/2, Y: y - 5 - tickSize}, g.X.label())
	}
}

// picture returns a map as an image, with the greatest Y at the top. Each point is a square of several pixels, so that
// points stay sharp if a program smooths the image.
func (m *ColourMap) picture(of *Map, shade func([3]float64) color.Color) image.Image {
	times := max(1, 200/max(m.Columns, m.Lines))
	img := image.NewNRGBA(image.Rect(0, 0, m.Columns*times, m.Lines*times))
	for y := range m.Lines * times {
		for x := range m.Columns * times {
			img.Set(x, m.Lines*times-1-y, shade(of.Degrees[y/times*m.Columns+x/times]))
		}
	}
	return img
}
