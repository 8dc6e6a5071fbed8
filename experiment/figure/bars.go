package figure

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// Bars shows a value for each of several things, such as the importance of features: horizontal bars, with names at the
// left. A bar may be divided into parts, one for each series.
type Bars struct {
	Title  string
	X      Axis
	Names  []string
	Series []BarSeries
}

// BarSeries has a part of each bar. Without a name, it is not in the legend.
type BarSeries struct {
	Name   string
	Values []float64
	// Deviation has half the length of a horizontal line at the end of each bar. Nil means no lines. Only a single series
	// may have lines.
	Deviation []float64
}

// mostBarNames is the maximum number of bars of a figure.
const mostBarNames = 40

// Figure returns the figure. An error wraps ErrData: there are no bars or too many, lengths differ, a value is not
// finite, or several series have negative values or deviations.
func (b *Bars) Figure() (*Figure, error) {
	n := len(b.Names)
	if n == 0 || n > mostBarNames || len(b.Series) == 0 || len(b.Series) > len(seriesColours) {
		return nil, fmt.Errorf("want 1 to %d bars and 1 to %d series, got %d bars and %d series: %w", mostBarNames,
			len(seriesColours), n, len(b.Series), ErrData)
	}
	g := &bars{Bars: b, x: newAxis(b.X), sums: make([]float64, n)}
	g.x.include(0)
	for i := range b.Series {
		s := &b.Series[i]
		if len(s.Values) != n || s.Deviation != nil && (len(s.Deviation) != n || len(b.Series) > 1) {
			return nil, fmt.Errorf("series %q has %d values and %d deviations for %d bars, and there are %d series: %w", s.Name,
				len(s.Values), len(s.Deviation), n, len(b.Series), ErrData)
		}
		if err := finite(fmt.Sprintf("series %q", s.Name), slices.Concat(s.Values, s.Deviation)); err != nil {
			return nil, err
		}
		for j, v := range s.Values {
			if v < 0 && len(b.Series) > 1 {
				return nil, fmt.Errorf("part %q of bar %q is %v, want at least 0: %w", s.Name, b.Names[j], v, ErrData)
			}
			g.sums[j] += v
			g.x.include(g.sums[j])
			if s.Deviation != nil {
				g.x.include(v-s.Deviation[j], v+s.Deviation[j])
			}
		}
		if s.Name != "" {
			g.legend = append(g.legend, entry{s.Name, style{fill: barFill(i, len(b.Series)), line: hairline}})
		}
	}
	g.x.finish()
	style := letters(tickSize, 0, 0)
	for _, name := range b.Names {
		g.names = append(g.names, shortened(printable.Line(name), tickSize, longestName))
		g.left = max(g.left, style.Width(g.names[len(g.names)-1]))
	}
	g.left, g.right = sides(&g.x, g.left+rankGap)
	height := 2*margin + headHeight(b.Title, g.legend) + vg.Length(n)*nameLine + barsBelow
	return &Figure{width: columnWidth, height: height, draw: g.draw}, nil
}

// barsBelow is the height of the axis below the bars, in points.
const barsBelow = axisGap + tickLength + textGap + tickSize + textGap + labelRoom

// bars is a figure of bars with the sizes of its parts.
type bars struct {
	*Bars
	names       []string // shortened
	legend      legend
	x           axis
	sums        []float64 // of the parts of each bar
	left, right vg.Length // room at the left, with the names, and at the right
}

// sides returns the room at the left and at the right of data above an axis, if the names at the left need a width. The
// texts of the axis may extend beyond the data.
func sides(x *axis, names vg.Length) (left, right vg.Length) {
	style, half := letters(tickSize, 0, 0), vg.Length(0)
	for most := 2; most <= mostTicks; most++ {
		for _, t := range x.ticks(most) {
			half = max(half, style.Width(t.text)/2)
		}
	}
	return max(names, half), half
}

// barFill returns the colour of a series of bars. A single series is blue; several go from dark to light.
func barFill(series, of int) color.Color {
	if of == 1 {
		return seriesColours[1]
	}
	return color.Gray{Y: uint8(50 + 190*series/of)}
}

func (g *bars) draw(c draw.Canvas) {
	c = head(draw.Crop(c, margin, -margin, margin, -margin), g.Title, g.legend)
	data := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: c.Min.X + g.left, Y: c.Max.Y - vg.Length(len(g.names))*nameLine},
		Max: vg.Point{X: c.Max.X - g.right, Y: c.Max.Y}}}
	at := func(v float64) vg.Length { return data.X(g.x.at(v)) }
	drawXAxis(data, &g.x)
	done := make([]float64, len(g.names))
	for i := range g.Series {
		s := &g.Series[i]
		for j, v := range s.Values {
			y := data.Max.Y - (vg.Length(j)+0.5)*nameLine
			box(c, vg.Rectangle{Min: vg.Point{X: min(at(done[j]), at(done[j]+v)), Y: y - 0.32*nameLine},
				Max: vg.Point{X: max(at(done[j]), at(done[j]+v)), Y: y + 0.32*nameLine}}, barFill(i, len(g.Series)), hairline)
			done[j] += v
			if s.Deviation != nil && s.Deviation[j] > 0 {
				low, high := at(v-s.Deviation[j]), at(v+s.Deviation[j])
				line := draw.LineStyle{Color: color.Black, Width: 0.9}
				c.StrokeLine2(line, low, y, high, y)
				c.StrokeLine2(line, low, y-2.2, low, y+2.2)
				c.StrokeLine2(line, high, y-2.2, high, y+2.2)
			}
		}
	}
	for j, name := range g.names {
		y := data.Max.Y - (vg.Length(j)+0.5)*nameLine
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: data.Min.X - rankGap/2, Y: y}, name)
	}
	c.StrokeLine2(hairline, at(0), data.Min.Y, at(0), data.Max.Y)
}

// drawXAxis draws an axis below the data c with its name, and thin grey lines at its ticks.
func drawXAxis(c draw.Canvas, x *axis) {
	bottom := c.Min.Y - axisGap
	style := letters(tickSize, draw.XCenter, draw.YTop)
	for _, t := range x.fitted(c.Max.X-c.Min.X, 2*textGap, style.Width) {
		place := c.X(x.at(t.value))
		length := tickLength
		if t.text == "" {
			length /= 2
		} else {
			c.StrokeLine2(draw.LineStyle{Color: color.Gray{Y: 215}, Width: 0.4}, place, c.Min.Y, place, c.Max.Y)
		}
		c.StrokeLine2(hairline, place, bottom, place, bottom-length)
		c.FillText(style, vg.Point{X: place, Y: bottom - tickLength - textGap}, t.text)
	}
	c.StrokeLine2(hairline, c.Min.X, bottom, c.Max.X, bottom)
	c.FillText(letters(labelSize, draw.XCenter, draw.YTop), vg.Point{X: c.Center().X, Y: bottom - tickLength - textGap -
		tickSize - textGap}, x.label())
}

// Swarm shows a value for each sample and each of several things, such as the SHAP values of features: a row of points
// for each thing, which are darker where the thing itself has a greater value.
type Swarm struct {
	Title string
	X     Axis
	Names []string
	// Values and Shades have a number for each sample, by name. A shade is from 0, light, to 1, dark.
	Values, Shades [][]float64
}

// Figure returns the figure. An error wraps ErrData: there are no names or too many, lengths differ, or a number is not
// finite.
func (s *Swarm) Figure() (*Figure, error) {
	n := len(s.Names)
	if n == 0 || n > mostBarNames || len(s.Values) != n || len(s.Shades) != n {
		return nil, fmt.Errorf("want 1 to %d rows of points, got %d names, %d lists of values and %d lists of shades: %w",
			mostBarNames, n, len(s.Values), len(s.Shades), ErrData)
	}
	g := &swarm{Swarm: s, x: newAxis(s.X)}
	g.x.include(0)
	style := letters(tickSize, 0, 0)
	for i, values := range s.Values {
		if len(values) == 0 || len(values) != len(s.Shades[i]) {
			return nil, fmt.Errorf("%q has %d values and %d shades: %w", s.Names[i], len(values), len(s.Shades[i]), ErrData)
		}
		if err := finite(fmt.Sprintf("%q", s.Names[i]), slices.Concat(values, s.Shades[i])); err != nil {
			return nil, err
		}
		g.x.include(values...)
		g.names = append(g.names, shortened(printable.Line(s.Names[i]), tickSize, longestName))
		g.left = max(g.left, style.Width(g.names[i]))
	}
	g.x.finish()
	g.left, g.right = sides(&g.x, g.left+rankGap)
	height := 2*margin + headHeight(s.Title, nil) + vg.Length(n)*swarmLine + barsBelow
	return &Figure{width: columnWidth, height: height, draw: g.draw}, nil
}

// swarmLine is the height of a row of points, in points.
const swarmLine = vg.Length(17)

// swarm is a Swarm with the sizes of its parts.
type swarm struct {
	*Swarm
	names       []string // shortened
	x           axis
	left, right vg.Length // room at the left, with the names, and at the right
}

func (g *swarm) draw(c draw.Canvas) {
	c = head(draw.Crop(c, margin, -margin, margin, -margin), g.Title, nil)
	data := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: c.Min.X + g.left, Y: c.Max.Y - vg.Length(len(g.names))*swarmLine},
		Max: vg.Point{X: c.Max.X - g.right, Y: c.Max.Y}}}
	drawXAxis(data, &g.x)
	zero := data.X(g.x.at(0))
	c.StrokeLine2(hairline, zero, data.Min.Y, zero, data.Max.Y)
	const columns = 90 // places along a row: points of the same place are above each other
	for i, values := range g.Values {
		middle := data.Max.Y - (vg.Length(i)+0.5)*swarmLine
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: data.Min.X - rankGap/2, Y: middle}, g.names[i])
		places, most := make(map[int][]int), 0
		for k, v := range values {
			p := int(g.x.at(v) * columns)
			places[p] = append(places[p], k)
			most = max(most, len(places[p]))
		}
		apart := min(1.6, 0.8*swarmLine/vg.Length(max(1, most)))
		for p := range columns + 1 {
			for j, k := range places[p] {
				side := vg.Length((j+1)/2) * apart
				if j%2 == 1 {
					side = -side
				}
				grey := color.NRGBA{R: uint8(205 - 205*g.Shades[i][k]), G: uint8(225 - 165*g.Shades[i][k]),
					B: uint8(245 - 115*g.Shades[i][k]), A: 255}
				c.DrawGlyphNoClip(draw.GlyphStyle{Color: grey, Radius: 1.3, Shape: draw.CircleGlyph{}},
					vg.Point{X: data.X(g.x.at(values[k])), Y: middle + side})
			}
		}
	}
}
