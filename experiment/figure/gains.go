package figure

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg/draw"
)

// Gains shows the gain of each candidate threshold of a feature at a node of a tree, and which thresholds a search
// visits, as Fig. 5 of Chen et al. 2018.
type Gains struct {
	Title      string
	X          Axis // the feature
	Thresholds []float64
	Gains      []float64 // gain of each threshold, in nats
	Visited    []bool    // whether the search visits each threshold
}

// Figure returns the figure. An error wraps ErrData: there are no thresholds, lists have different lengths, or a value
// is not finite.
func (g *Gains) Figure() (*Figure, error) {
	n := len(g.Thresholds)
	if n == 0 || len(g.Gains) != n || len(g.Visited) != n {
		return nil, fmt.Errorf("want as many gains and visits as thresholds, and at least one threshold; got %d thresholds, %d gains and %d visits: %w", n, len(g.Gains), len(g.Visited), ErrData)
	}
	if err := cmp.Or(finite("thresholds", g.Thresholds), finite("gains", g.Gains)); err != nil {
		return nil, err
	}
	c := newChart(g.Title, g.X, Axis{Name: "gain", Unit: "nats"})
	all := layer{style: style{line: styleOf(0).line}, x: g.Thresholds, y: g.Gains}
	visited := layer{style: style{mark: draw.GlyphStyle{Color: seriesColours[2], Radius: 1.7, Shape: draw.CircleGlyph{}}}}
	for i, v := range g.Visited {
		if v {
			visited.x, visited.y = append(visited.x, g.Thresholds[i]), append(visited.y, g.Gains[i])
		}
	}
	c.add(all)
	c.y.include(0)
	c.legend = legend{{"all thresholds", all.style}}
	if len(visited.x) > 0 {
		c.add(visited)
		c.legend = append(c.legend, entry{"visited by the adaptive step", visited.style})
	}
	return c.figure(), nil
}

// Visits shows how many thresholds of each feature a search visits, as Fig. 6 of Chen et al. 2018.
type Visits struct {
	Title  string
	Counts []int // counts by number of the feature
}

// Figure returns the figure. An error wraps ErrData: there is no feature, or a count is below 0.
func (v *Visits) Figure() (*Figure, error) {
	if len(v.Counts) == 0 {
		return nil, fmt.Errorf("there are no features: %w", ErrData)
	}
	if i := slices.IndexFunc(v.Counts, func(n int) bool { return n < 0 }); i >= 0 {
		return nil, fmt.Errorf("the number of visits is %d at feature %d, want at least 0: %w", v.Counts[i], i, ErrData)
	}
	bars := layer{style: style{fill: seriesColours[1]}, left: -.4, right: .4}
	for feature, n := range v.Counts {
		bars.x, bars.y = append(bars.x, float64(feature)), append(bars.y, float64(n))
	}
	c := newChart(v.Title, Axis{Name: "feature"}, Axis{Name: "thresholds visited"})
	c.add(bars)
	c.y.include(1) // if no threshold was visited
	return c.figure(), nil
}
