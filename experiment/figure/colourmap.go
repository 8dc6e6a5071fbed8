package figure

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// ColourMap shows label distributions over two features, as Geng 2016 shows the artificial set: a
// line for each map, with a picture whose red, green and blue are the degrees of the three labels,
// and a grey picture for each label, which can be read without colour. A degree is black at the
// least of the first map and white at its greatest, label by label.
type ColourMap struct {
	Title          string
	X, Y           Axis
	FromX, ToX     float64
	FromY, ToY     float64
	Columns, Lines int // points along X and along Y
	Maps           []Map
}

// Map is one of the maps. Degrees has three for each point: along X first, from the least X and Y.
type Map struct {
	Name    string
	Degrees [][3]float64
}

// mapSize is the height of a line of pictures.
const mapSize = 26 * vg.Millimeter

// Figure returns the figure. Errors wrap ErrData: no maps or more than 4, no area, or a map with
// another number of points.
func (m *ColourMap) Figure() (*Figure, error) {
	if len(m.Maps) == 0 || len(m.Maps) > 4 || m.Columns < 2 || m.Lines < 2 || !(m.FromX < m.ToX) || !(m.FromY < m.ToY) {
		return nil, fmt.Errorf("%d maps of %d x %d points: %w", len(m.Maps), m.Columns, m.Lines, ErrData)
	}
	for i := range m.Maps {
		if n := len(m.Maps[i].Degrees); n != m.Columns*m.Lines {
			return nil, fmt.Errorf("map %q has %d points, want %d: %w", m.Maps[i].Name, n, m.Columns*m.Lines, ErrData)
		}
		for _, d := range m.Maps[i].Degrees {
			if err := finite(fmt.Sprintf("map %q", m.Maps[i].Name), d[:]); err != nil {
				return nil, err
			}
		}
	}
	low, high := m.limits()
	var plots [][]tile
	for i := range m.Maps {
		plots = append(plots, m.line(i, low, high))
	}
	return tiled(m.Title, plots, nil, vg.Length(len(plots))*mapSize+20), nil
}

// limits returns the least and the greatest degree of each label in the first map.
func (m *ColourMap) limits() (low, high [3]float64) {
	low, high = m.Maps[0].Degrees[0], m.Maps[0].Degrees[0]
	for _, d := range m.Maps[0].Degrees {
		for c := range d {
			low[c], high[c] = min(low[c], d[c]), max(high[c], d[c])
		}
	}
	return low, high
}

// line returns the pictures of one map: in colour, and one for each label.
func (m *ColourMap) line(i int, low, high [3]float64) (tiles []tile) {
	byte8 := func(d [3]float64, c int) uint8 {
		if high[c] == low[c] {
			return 128
		}
		return uint8(math.Round(255 * min(max((d[c]-low[c])/(high[c]-low[c]), 0), 1)))
	}
	for picture := range 4 {
		x, y := Axis{}, Axis{}
		title := m.Maps[i].Name
		if picture > 0 {
			title = fmt.Sprintf("label %d", picture)
		}
		if i == len(m.Maps)-1 {
			x = m.X
		}
		if picture == 0 {
			y = m.Y
		}
		p := newPlot(x, y)
		p.X.Padding, p.Y.Padding = 0, 0
		p.X.Tick.Marker, p.Y.Tick.Marker = endTicks(m.FromX, m.ToX, i == len(m.Maps)-1), endTicks(m.FromY, m.ToY, picture == 0)
		p.Add(plotter.NewImage(m.picture(&m.Maps[i], func(d [3]float64) color.Color {
			if picture == 0 {
				return color.NRGBA{byte8(d, 0), byte8(d, 1), byte8(d, 2), 255}
			}
			return color.Gray{Y: byte8(d, picture-1)}
		}), m.FromX, m.FromY, m.ToX, m.ToY))
		tiles = append(tiles, tile{p, title})
	}
	return tiles
}

// picture returns a map as an image, with the greatest Y at the top. Points are repeated so that
// readers who smooth pictures show squares.
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

// endTicks are at both ends and in the middle, with labels only where asked for.
func endTicks(from, to float64, labels bool) plot.ConstantTicks {
	var all plot.ConstantTicks
	for _, v := range []float64{from, (from + to) / 2, to} {
		t := plot.Tick{Value: v, Label: ""}
		if labels {
			t.Label = fmt.Sprintf("%.3g", v)
		}
		all = append(all, t)
	}
	return all
}
