package figure

import (
	"cmp"
	"fmt"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Gains shows the gain of each candidate threshold of a feature at a node of a tree, and which
// ones a search visits, as Fig. 5 of Chen et al. 2018.
type Gains struct {
	Title      string
	X          Axis // the feature
	Thresholds []float64
	Gains      []float64 // of each threshold, in nats
	Visited    []bool    // each threshold
}

// headroom is how far above the greatest value the axis ends, so that no mark is cut.
const headroom = 1.05

// visitStyle marks a threshold that is visited.
var visitStyle = draw.GlyphStyle{Color: seriesColours[2], Radius: 1.7, Shape: draw.CircleGlyph{}}

// Figure returns the figure. Errors wrap ErrData: no thresholds, lists of different lengths, or
// values that are not finite.
func (g *Gains) Figure() (*Figure, error) {
	n := len(g.Thresholds)
	if n == 0 || len(g.Gains) != n || len(g.Visited) != n {
		return nil, fmt.Errorf("want as many gains and visits as thresholds, and at least one threshold; got %d thresholds, %d gains and %d visits: %w", n, len(g.Gains), len(g.Visited), ErrData)
	}
	if err := cmp.Or(finite("thresholds", g.Thresholds), finite("gains", g.Gains)); err != nil {
		return nil, err
	}
	all, visited := make(plotter.XYs, n), plotter.XYs{}
	for i := range all {
		all[i] = plotter.XY{X: g.Thresholds[i], Y: g.Gains[i]}
		if g.Visited[i] {
			visited = append(visited, all[i])
		}
	}
	p := newPlot(g.X, Axis{Name: "gain", Unit: "nats"})
	line, err := plotter.NewLine(all)
	if err != nil {
		return nil, err
	}
	line.LineStyle = lineOf(0)
	p.Add(grid(), line)
	entries := legend{{"all thresholds", bareLine{}}}
	if len(visited) > 0 {
		marks, err := plotter.NewScatter(visited)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = visitStyle
		p.Add(marks)
		entries = append(entries, entry{"visited by the adaptive step", markSample{}})
	}
	p.Y.Min, p.Y.Max = min(0, p.Y.Min), headroom*p.Y.Max
	widen(&p.X)
	widen(&p.Y)
	return withLegend(p, g.Title, entries, linesHeight), nil
}

// Visits shows how many thresholds of each feature a search visits, as Fig. 6 of Chen et al. 2018.
type Visits struct {
	Title  string
	Counts []int // by number of the feature
}

// Figure returns the figure. Errors wrap ErrData: there is no feature, or a count below 0.
func (v *Visits) Figure() (*Figure, error) {
	if len(v.Counts) == 0 {
		return nil, fmt.Errorf("there are no features: %w", ErrData)
	}
	p := newPlot(Axis{Name: "feature"}, Axis{Name: "thresholds visited"})
	p.Add(grid())
	for feature, n := range v.Counts {
		if n < 0 {
			return nil, fmt.Errorf("the number of visits is %d at feature %d, want at least 0: %w", n, feature, ErrData)
		}
		if n == 0 {
			continue
		}
		x := float64(feature)
		bar, err := plotter.NewPolygon(plotter.XYs{{X: x - .4}, {X: x - .4, Y: float64(n)}, {X: x + .4, Y: float64(n)}, {X: x + .4}})
		if err != nil {
			return nil, err
		}
		bar.Color, bar.LineStyle.Width = seriesColours[1], 0
		p.Add(bar)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = wholeTicks{}, wholeTicks{}
	p.X.Min, p.X.Max = -.6, float64(len(v.Counts))-.4
	p.Y.Min, p.Y.Max = 0, max(1, headroom*p.Y.Max)
	return withLegend(p, v.Title, nil, linesHeight), nil
}

// bareLine is a sample of a line without marks, markSample of marks without a line.
type (
	bareLine   struct{}
	markSample struct{}
)

// Thumbnail implements plot.Thumbnailer.
func (bareLine) Thumbnail(c *draw.Canvas) {
	c.StrokeLine2(lineOf(0), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
}

// Thumbnail implements plot.Thumbnailer.
func (markSample) Thumbnail(c *draw.Canvas) {
	for _, dx := range []vg.Length{-6, 0, 6} {
		c.DrawGlyph(visitStyle, vg.Point{X: c.Center().X + dx, Y: c.Center().Y})
	}
}
