package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Calibration shows mean observations over mean predictions, with a panel for each curve. A grey line shows where both
// are equal.
type Calibration struct {
	Title  string
	X, Y   Axis
	Curves []Series // at most 6
}

// MostCurves is the maximum number of curves of a Calibration.
const MostCurves = mostPanels

// Figure returns the figure. An error wraps ErrData: there are no curves, too many curves, or no points in a curve, or
// a value is not finite.
func (k *Calibration) Figure() (*Figure, error) {
	if len(k.Curves) == 0 || len(k.Curves) > MostCurves {
		return nil, fmt.Errorf("the figure shows 1 to %[2]d calibration curves, got %[1]d: %[3]w", len(k.Curves), MostCurves,
			ErrData)
	}
	lines := Lines{X: k.X, Y: k.Y}
	c := newChart(k.Title, k.X, k.Y)
	c.panels, c.across = nil, min(2, len(k.Curves))
	if c.across == 2 {
		c.height = 28 * vg.Millimeter
	}
	equal := style{line: draw.LineStyle{Color: color.Gray{Y: 140}, Width: 1, Dashes: []vg.Length{3, 2}}}
	curve := styleOf(0)
	curve.line.Color, curve.mark.Color = seriesColours[1], seriesColours[1]
	for i := range k.Curves {
		s := &k.Curves[i]
		if err := lines.check(s); err != nil {
			return nil, err
		}
		c.x.include(s.X...)
		c.y.include(s.Y...)
	}
	low, high := min(c.x.low, c.y.low), max(c.x.high, c.y.high)
	for _, s := range k.Curves {
		c.panels = append(c.panels, panel{name: s.Name})
		c.add(layer{style: equal, x: []float64{low, high}, y: []float64{low, high}})
		c.add(layer{style: curve, x: s.X, y: s.Y})
	}
	c.legend = legend{{"mean of a bin", curve}, {"prediction = observation", equal}}
	return c.figure(), nil
}
