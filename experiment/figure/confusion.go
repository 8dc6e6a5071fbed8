package figure

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Confusion is a confusion matrix: Counts[i][j] rows of class i were predicted as class j. The
// shade of a field is its share of the rows of the true class.
type Confusion struct {
	Title   string
	Classes []string
	Counts  [][]uint64
}

// Bounds of a matrix: classes, and classes whose fields have numbers.
const (
	mostClasses  = 100
	mostNumbered = 12
)

// Figure returns the figure. Errors wrap ErrData: no classes, more than 100, or a matrix that is not
// square.
func (m *Confusion) Figure() (*Figure, error) {
	n := len(m.Classes)
	if n == 0 || n > mostClasses || len(m.Counts) != n {
		return nil, fmt.Errorf("the confusion matrix has %d classes and %d lines, want as many lines as classes, and 1 to %d classes: %w", n, len(m.Counts), mostClasses, ErrData)
	}
	for i, line := range m.Counts {
		if len(line) != n {
			return nil, fmt.Errorf("the confusion matrix has %d classes, but its line %d has %d fields: %w", n, i, len(line), ErrData)
		}
	}
	g := m.layout()
	return &Figure{width: columnWidth, height: g.height, draw: g.draw}, nil
}

// matrix is a matrix with its measures in points.
type matrix struct {
	*Confusion
	field, names, top, height vg.Length // a field's side, the room for names at the left and below
	size                      vg.Length // of letters of names
	turned                    bool      // the names below run upwards
}

func (m *Confusion) layout() *matrix {
	g, n := &matrix{Confusion: m, size: tickSize}, vg.Length(len(m.Classes))
	style := letters(tickSize, 0, 0)
	for _, name := range m.Classes {
		g.names = max(g.names, style.Width(cut(name)))
	}
	g.top = headHeight(m.Title, nil)
	inner := columnWidth - 2*margin - g.names - labelSize - 10
	g.field = min(inner/n, 28)
	g.size = min(tickSize, g.field)
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
	c.StrokeLines(hairline, []vg.Point{{X: left, Y: top}, {X: left + n*m.field, Y: top}, {X: left + n*m.field, Y: top - n*m.field}, {X: left, Y: top - n*m.field}, {X: left, Y: top}})
	m.drawNames(c, left, top)
	side := letters(labelSize, draw.XCenter, draw.YTop)
	side.Rotation = quarter
	c.FillText(side, vg.Point{X: c.Min.X, Y: top - n*m.field/2}, "true class")
	c.FillText(letters(labelSize, draw.XCenter, draw.YBottom), vg.Point{X: left + n*m.field/2, Y: c.Min.Y}, "predicted class")
}

// drawLine draws the fields of a true class, from their upper left corner.
func (m *matrix) drawLine(c draw.Canvas, counts []uint64, x, y vg.Length) {
	sum := uint64(0)
	for _, v := range counts {
		sum += v
	}
	for _, v := range counts {
		share := 0.0
		if sum > 0 {
			share = float64(v) / float64(sum)
		}
		if v > 0 {
			c.FillPolygon(color.Gray{Y: uint8(250 - 210*share)}, []vg.Point{{X: x, Y: y}, {X: x + m.field, Y: y}, {X: x + m.field, Y: y - m.field}, {X: x, Y: y - m.field}})
		}
		if len(counts) <= mostNumbered {
			m.drawNumber(c, v, share, vg.Point{X: x + m.field/2, Y: y - m.field/2})
		}
		x += m.field
	}
}

// drawNumber writes a count into its field, white where the field is dark.
func (m *matrix) drawNumber(c draw.Canvas, count uint64, share float64, at vg.Point) {
	text := strconv.FormatUint(count, 10)
	style := letters(fitting([]string{text}, m.field-3), draw.XCenter, draw.YCenter)
	if share > 0.5 {
		style.Color = color.White
	}
	c.FillText(style, at, text)
}

// drawNames writes the classes beside and below the fields: each, or as many as there is room for.
func (m *matrix) drawNames(c draw.Canvas, left, top vg.Length) {
	every := 1
	for vg.Length(every)*m.field < tickSize+1 {
		every++
	}
	bottom := top - vg.Length(len(m.Classes))*m.field - 3
	for i := 0; i < len(m.Classes); i += every {
		name, middle := cut(m.Classes[i]), (vg.Length(i)+0.5)*m.field
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: left - 3, Y: top - middle}, name)
		below := letters(tickSize, draw.XCenter, draw.YTop)
		if m.turned {
			below = letters(tickSize, draw.XRight, draw.YCenter)
			below.Rotation = quarter
		}
		c.FillText(below, vg.Point{X: left + middle, Y: bottom}, name)
	}
}
