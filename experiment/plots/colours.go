package plots

import (
	"cmp"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/figure"
)

// Points has rows with two features and three labels. A colour map can show them if they are all points of a grid.
type Points struct {
	list []planePoint
}

type planePoint struct {
	x, y            float32
	true, predicted [3]float64
}

// Add appends a row with its first two features and three degrees.
func (p *Points) Add(x, y float32, truth, predicted []float32) {
	point := planePoint{x: x, y: y}
	for c := range 3 {
		point.true[c], point.predicted[c] = float64(truth[c]), float64(predicted[c])
	}
	p.list = append(p.list, point)
}

// leastGrid is the minimum number of points of a grid along each axis.
const leastGrid = 3

// Map returns the colour map of the true and the predicted degrees. It returns nil if the rows are not a grid.
func (p *Points) Map(title, x, y string) *figure.ColourMap {
	list := slices.Clone(p.list)
	slices.SortStableFunc(list, func(a, b planePoint) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	columns := 0
	for columns < len(list) && list[columns].y == list[0].y {
		columns++
	}
	if columns < leastGrid || len(list)%columns != 0 || len(list)/columns < leastGrid {
		return nil
	}
	m := &figure.ColourMap{
		Title: title, X: figure.Axis{Name: x}, Y: figure.Axis{Name: y}, Columns: columns, Lines: len(list) / columns,
		FromX: float64(list[0].x), ToX: float64(list[columns-1].x), FromY: float64(list[0].y), ToY: float64(list[len(list)-1].y),
		Maps: []figure.Map{{Name: "true"}, {Name: "predicted"}},
	}
	for i, point := range list {
		line := i / columns * columns
		if point.x != list[i%columns].x || point.y != list[line].y || i > 0 && point.x == list[i-1].x && point.y == list[i-1].y {
			return nil
		}
		m.Maps[0].Degrees, m.Maps[1].Degrees = append(m.Maps[0].Degrees, point.true), append(m.Maps[1].Degrees, point.predicted)
	}
	if !(m.FromX < m.ToX) || !(m.FromY < m.ToY) {
		return nil
	}
	return m
}
