package figure

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Confusion is a confusion matrix. Counts[i][j] is the number of rows of class i that were predicted as class j. The shade
// of a field shows its fraction of the rows of the true class.
type Confusion struct {
	Title   string
	Classes []string
	Counts  [][]uint64
}

const (
	mostClasses  = 100
	mostNumbered = 12 // if there are more classes, fields have no numbers
)

// Figure returns the figure. An error wraps ErrData: there are no classes or more than 100, or the matrix is not square.
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
	box(c, vg.Rectangle{Min: vg.Point{X: left, Y: top - n*m.field}, Max: vg.Point{X: left + n*m.field, Y: top}}, nil, hairline)
	m.drawNames(c, left, top)
	side := letters(labelSize, draw.XCenter, draw.YTop)
	side.Rotation = quarter
	c.FillText(side, vg.Point{X: c.Min.X, Y: top - n*m.field/2}, "true class")
	c.FillText(letters(labelSize, draw.XCenter, draw.YBottom), vg.Point{X: left + n*m.field/2, Y: c.Min.Y}, "predicted class")
}

// drawLine draws the fields of a true class, beginning at their upper left corner. A number is white if its field is
// dark.
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
			box(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - m.field}, Max: vg.Point{X: x + m.field, Y: y}}, color.Gray{Y: uint8(250 - 210*share)}, draw.LineStyle{})
		}
		if len(counts) <= mostNumbered {
			text := strconv.FormatUint(v, 10)
			style := letters(fitting([]string{text}, m.field-3), draw.XCenter, draw.YCenter)
			if share > 0.5 {
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: x + m.field/2, Y: y - m.field/2}, text)
		}
		x += m.field
	}
}

// drawNames writes the names of classes at the left of and below the fields. Without room for all names, it writes every
// second, every third and so on.
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
