package plots

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// mostFolds bounds the folds whose curves are shown.
const mostFolds = 10

// wideLosses is the factor between losses from which their axis is logarithmic.
const wideLosses = 5

// Curve draws a learning curve: the training loss and, where there is one, the validation loss by
// step. For a job of folds points is empty, and each fold has a line: the validation loss, or the
// training loss where no fold has one. What a loss is depends on the algorithm, so the axis has no unit. The error says that nothing was recorded, or wraps figure.ErrData.
func Curve(title string, points []curve.Point, folds [][]curve.Point) (*figure.Figure, error) {
	lines := figure.Lines{Title: title, X: figure.Axis{Name: "step"}, Y: figure.Axis{Name: "loss"}}
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

func training(p *curve.Point) float64   { return p.Training }
func validation(p *curve.Point) float64 { return p.Validation }

// seriesOf has the points whose loss is finite.
func seriesOf(name string, points []curve.Point, of func(*curve.Point) float64) figure.Series {
	s := figure.Series{Name: name}
	for i := range points {
		if v := of(&points[i]); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.X, s.Y = append(s.X, float64(points[i].Step)), append(s.Y, v)
		}
	}
	return s
}

// isWide reports whether losses are above 0 and so far apart that their axis should be logarithmic.
func isWide(list []figure.Series) bool {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, s := range list {
		for _, v := range s.Y {
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	return least > 0 && greatest > wideLosses*least
}
