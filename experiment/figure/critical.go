package figure

import (
	"fmt"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// CriticalDifferences is the diagram of Demšar (2006, section 3.2.2). It shows average ranks along an axis, with the
// best at the left. A bar joins models if their ranks differ by less than Difference. All names are at the left, one
// below the other, so that no line crosses a name.
type CriticalDifferences struct {
	Title      string
	Names      []string
	Ranks      []float64 // rank of each name, from 1 to len(Names), ascending
	Difference float64
	// Alike says why pairs are not compared. If it is not empty, one bar joins all models, and this text replaces
	// Difference.
	Alike string
}

// The sizes in the diagram, in points.
const (
	nameLine   = vg.Length(13) // from name to name
	cliqueLine = vg.Length(5)  // from bar to bar
	axisBand   = vg.Length(42) // height of the difference, the numbers and the axis
)

// Figure returns the figure. An error wraps ErrData: there are fewer than two models, or ranks are out of range or do
// not ascend.
func (d *CriticalDifferences) Figure() (*Figure, error) {
	k := len(d.Names)
	if k < 2 || len(d.Ranks) != k || !(d.Difference > 0) && d.Alike == "" {
		return nil, fmt.Errorf("want at least 2 models, a rank for each and a critical difference above 0, unless all are "+
			"alike: got %d models, %d ranks and the difference %v: %w", k, len(d.Ranks), d.Difference, ErrData)
	}
	for i, r := range d.Ranks {
		if !(r >= 1 && r <= float64(k)) || i > 0 && r < d.Ranks[i-1] {
			return nil, fmt.Errorf("%q has the rank %v, want ranks from 1 to %d in ascending order: %w", d.Names[i], r,
				k, ErrData)
		}
	}
	g := &diagram{CriticalDifferences: d, cliques: []statistics.Clique{{First: 0, Last: k - 1}}}
	if d.Alike == "" {
		g.cliques = statistics.Cliques(d.Ranks, d.Difference)
	}
	style := letters(tickSize, 0, 0)
	g.columns = style.Width("critical difference 00.00")
	for i := range d.Names {
		g.names = append(g.names, shortened(d.Names[i], tickSize, longestName))
		g.columns = max(g.columns, style.Width(g.names[i])+rankGap+style.Width(g.rank(i)))
	}
	g.top, g.bars = axisBand+headHeight(d.Title, nil), vg.Length(len(g.cliques)+1)*cliqueLine
	return &Figure{width: columnWidth, height: g.top + g.bars + vg.Length(k)*nameLine + 2*margin, draw: g.draw}, nil
}

// diagram is a diagram with the sizes of its parts.
type diagram struct {
	*CriticalDifferences
	names     []string // shortened
	cliques   []statistics.Clique
	columns   vg.Length // width of the names and ranks, which also have room for the name of the difference
	top, bars vg.Length // height of what is above the axis, and of the bars below it
}

// scale is the axis of ranks on a canvas.
type scale struct {
	from, unit vg.Length // the position of rank 1, and the distance between ranks
	axis       vg.Length // the vertical position of the axis
}

// at returns the horizontal position of a rank.
func (s scale) at(rank float64) vg.Length { return s.from + vg.Length(rank-1)*s.unit }

func (g *diagram) draw(c draw.Canvas) {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	from := c.Min.X + g.columns + 10
	s := scale{from: from, unit: (c.Max.X - 8 - from) / vg.Length(len(g.Ranks)-1), axis: c.Max.Y - g.top}
	head(c, g.Title, nil)
	g.drawAxis(c, s)
	g.drawDifference(c, s)
	for i, clique := range g.cliques {
		y := s.axis - vg.Length(i+1)*cliqueLine
		c.StrokeLine2(draw.LineStyle{Color: hairline.Color, Width: 2.6}, s.at(g.Ranks[clique.First])-3, y,
			s.at(g.Ranks[clique.Last])+3, y)
	}
	// Each model has a name, a rank, and a line from there to the axis.
	right := c.Min.X + g.columns
	apart := g.apart(s)
	for i, name := range g.names {
		x, y := s.at(g.Ranks[i]), s.axis-g.bars-(vg.Length(i)+0.5)*nameLine
		own := x + apart[i]
		c.StrokeLines(hairline, []vg.Point{{X: x, Y: s.axis}, {X: own, Y: s.axis - cliqueLine/2}, {X: own, Y: y},
			{X: right + rankGap/2, Y: y}})
		c.FillText(letters(tickSize, draw.XLeft, draw.YCenter), vg.Point{X: c.Min.X, Y: y}, name)
		c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: right, Y: y}, g.rank(i))
	}
}

// tieGap is the distance between the lines of models whose ranks are equal, or nearly equal.
const tieGap = vg.Length(1.8)

// apart returns how far the line of each model is from its rank. Lines that would cover each other are next to each
// other, around the mean of their ranks; the line of the best of them, whose name is the highest, is the leftmost.
func (g *diagram) apart(s scale) []vg.Length {
	by := make([]vg.Length, len(g.Ranks))
	for first := 0; first < len(g.Ranks); {
		end := first + 1
		for end < len(g.Ranks) && s.at(g.Ranks[end])-s.at(g.Ranks[end-1]) < tieGap {
			end++
		}
		middle := (s.at(g.Ranks[first]) + s.at(g.Ranks[end-1])) / 2
		for i := first; i < end; i++ {
			by[i] = middle + tieGap*(vg.Length(i-first)-vg.Length(end-1-first)/2) - s.at(g.Ranks[i])
		}
		first = end
	}
	return by
}

// drawAxis draws the axis of ranks. The numbers do not overlap.
func (g *diagram) drawAxis(c draw.Canvas, s scale) {
	k := len(g.Ranks)
	c.StrokeLine2(hairline, s.at(1), s.axis, s.at(float64(k)), s.axis)
	numbers, every := letters(tickSize, draw.XCenter, draw.YBottom), 1
	for vg.Length(every)*s.unit < numbers.Width("00")*1.4 {
		every++
	}
	for rank := 1; rank <= k; rank++ {
		x := s.at(float64(rank))
		c.StrokeLine2(hairline, x, s.axis, x, s.axis+tickLength)
		if (rank-1)%every == 0 {
			c.FillText(numbers, vg.Point{X: x, Y: s.axis + tickLength + 1}, strconv.Itoa(rank))
		}
	}
	c.FillText(letters(labelSize, draw.XCenter, draw.YBottom), vg.Point{X: (s.at(1) + s.at(float64(k))) / 2, Y: s.axis +
		tickLength + tickSize + 3}, "average rank (1 is best)")
}

// drawDifference draws a bar as long as the critical difference, with its name at the left. If the axis is shorter, it
// draws an arrow as long as the axis.
func (g *diagram) drawDifference(c draw.Canvas, s scale) {
	if g.Alike != "" {
		c.FillText(letters(tickSize, draw.XLeft, draw.YCenter), vg.Point{X: c.Min.X, Y: s.axis + tickLength + tickSize +
			labelSize + 9}, g.Alike)
		return
	}
	y, x0 := s.axis+tickLength+tickSize+labelSize+9, s.at(1)
	x1, text := x0+vg.Length(g.Difference)*s.unit, fmt.Sprintf("critical difference %.2f", g.Difference)
	longest := s.at(float64(len(g.Ranks)))
	beyond := x1 > longest
	x1 = min(x1, longest)
	c.StrokeLine2(draw.LineStyle{Color: hairline.Color, Width: 1.2}, x0, y, x1, y)
	c.StrokeLine2(hairline, x0, y-2.5, x0, y+2.5)
	if beyond {
		c.StrokeLines(hairline, []vg.Point{{X: x1 - 4, Y: y - 2.5}, {X: x1, Y: y}, {X: x1 - 4, Y: y + 2.5}})
	} else {
		c.StrokeLine2(hairline, x1, y-2.5, x1, y+2.5)
	}
	c.FillText(letters(tickSize, draw.XRight, draw.YCenter), vg.Point{X: x0 - 5, Y: y}, text)
}

const (
	longestName = vg.Length(96) // longer names are shortened
	rankGap     = vg.Length(7)  // between a name, its rank and the line of the rank
)

// rank returns the rank of a model as text.
func (g *diagram) rank(i int) string { return strconv.FormatFloat(g.Ranks[i], 'f', 2, 64) }
