package statistics

import "math"

// Line is the straight line y = Intercept + Slope·x of least squares through points.
type Line struct {
	Slope, Intercept float64
	// Error is the standard error of Slope; NaN of two points.
	Error float64
	// R2 is the fraction of the variance of y that the line explains. It is NaN if all y are equal.
	R2 float64
}

// LineOf returns the line through points with at least two different x. The lists have the same length.
func LineOf(x, y []float64) Line {
	if len(x) != len(y) {
		panic("statistics: two lists of different lengths")
	}
	mx, my := MomentsOf(x).Mean, MomentsOf(y).Mean
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx, xy, yy = xx+float64(dx*dx), xy+float64(dx*dy), yy+float64(dy*dy)
	}
	l := Line{Slope: xy / xx}
	l.Intercept = my - float64(l.Slope*mx)
	rest := max(0, yy-float64(l.Slope*xy))
	l.R2, l.Error = 1-rest/yy, math.NaN()
	if n := float64(len(x)); n > 2 {
		l.Error = math.Sqrt(rest / (n - 2) / xx)
	}
	return l
}
