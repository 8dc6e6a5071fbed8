package plots

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// mostFolds is the maximum number of folds in a figure.
const mostFolds = 10

// wideLosses is the factor between the least and the greatest loss above which their axis is logarithmic.
const wideLosses = 5

// Curve draws a learning curve: the training loss and the validation loss by step, if they exist. For a job with folds,
// points is empty, and each fold has a line. The line shows the validation loss, or the training loss if no fold has a
// validation loss. The axis has no unit, because losses depend on the algorithm. An error wraps figure.ErrData.
func Curve(title string, points []curve.Point, folds [][]curve.Point) (*figure.Figure, error) {
	lines := figure.Lines{Title: title, X: figure.Axis{Name: "step"}, Y: figure.Axis{Name: "loss"}}
	training := func(p *curve.Point) float64 { return p.Training }
	validation := func(p *curve.Point) float64 { return p.Validation }
	add := func(name string, points []curve.Point, of func(*curve.Point) float64) {
		if s := seriesOf(name, points, of); len(s.X) > 0 {
			lines.Series = append(lines.Series, s)
		}
	}
	if len(folds) == 0 {
		add("training", points, training)
		add("validation", points, validation)
	} else {
		if len(folds) > mostFolds {
			lines.Title += fmt.Sprintf(", the first %d of %d folds", mostFolds, len(folds))
			folds = folds[:mostFolds]
		}
		of, what := training, "training "
		for _, points := range folds {
			if len(seriesOf("", points, validation).X) > 0 {
				of, what = validation, "validation "
			}
		}
		lines.Y.Name = what + lines.Y.Name
		for fold, points := range folds {
			add(fmt.Sprint("fold ", fold), points, of)
		}
	}
	if len(lines.Series) == 0 {
		return nil, fmt.Errorf("the learning curve has no losses: %w", figure.ErrData)
	}
	lines.Y.Log = isWide(lines.Series)
	return lines.Figure()
}

// seriesOf returns the points with a finite loss.
func seriesOf(name string, points []curve.Point, of func(*curve.Point) float64) figure.Series {
	s := figure.Series{Name: name}
	for i := range points {
		if v := of(&points[i]); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.X, s.Y = append(s.X, float64(points[i].Step)), append(s.Y, v)
		}
	}
	return s
}

// isWide reports whether the axis of the losses should be logarithmic.
func isWide(list []figure.Series) bool {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, s := range list {
		for _, v := range s.Y {
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	return least > 0 && greatest > wideLosses*least
}
