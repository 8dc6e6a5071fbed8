// Package plots draws figures of trainings and predictions: learning curves, predicted and true distributions,
// cumulative scores, confusion matrices and colour maps.
package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// Evaluated has predictions, and measures of them that figures show.
type Evaluated struct {
	Title      string // title of each figure
	Type       dataset.LabelType
	LabelNames []string // names of the labels; empty if they have none
	Rows       Rows     // rows with predicted distributions, if there are any
	// Model and Baseline have the measures beyond the ten of every job. They may be nil.
	Model, Baseline *measures.Added
	BaselineName    string            // name of Baseline, such as "mean predictor"
	Map             *figure.ColourMap // colour map of the predictions; nil if the rows are not points of a grid
}

// Figures draws the figures that suit the labels: predicted and true distributions, the cumulative score of numbers,
// the confusion matrix of classes, and a colour map.
func (e *Evaluated) Figures() (all []figure.Named, err error) {
	for _, kind := range []struct {
		name string
		draw func() (*figure.Figure, error)
	}{{"distributions", e.distributions}, {"cumulative-score", e.scores}, {"confusion", e.confusion},
		{"colours", e.Map.Figure}} {
		f, err := kind.draw()
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", kind.name, err)
		}
		if f != nil {
			all = append(all, figure.Named{Name: kind.name, Figure: f})
		}
	}
	return all, nil
}

// scores draws the cumulative scores of predicted numbers. It returns nil if there are none.
func (e *Evaluated) scores() (*figure.Figure, error) {
	var names []string
	var scores [][]float64
	add := func(name string, of *measures.Errors) {
		names, scores = append(names, name), append(scores, of.Scores)
	}
	switch m, b := e.Model, e.Baseline; {
	case m == nil || m.Scale == nil && m.Number == nil:
		return nil, nil
	case m.Number != nil:
		add("number", &m.Number.Number)
		add("floored", &m.Number.Floored)
		if b != nil && b.Number != nil {
			add(e.BaselineName, &b.Number.Number)
		}
	default:
		add("expected", &m.Scale.Expected)
		add("median", &m.Scale.Median)
		add("mode", &m.Scale.Mode)
		if b != nil && b.Scale != nil {
			add(e.BaselineName+", median", &b.Scale.Median)
		}
	}
	return figure.CumulativeScores(e.Title, names, scores, nil)
}

// confusion draws the confusion matrix. It returns nil if the labels are not classes, or if there are too many. Classes
// without names have numbers from 0.
func (e *Evaluated) confusion() (*figure.Figure, error) {
	if e.Model == nil || e.Model.Classes == nil || e.Model.Classes.Confusion == nil {
		return nil, nil
	}
	names := e.LabelNames
	for i := len(names); i < e.Rows.Labels; i++ {
		names = append(names, fmt.Sprint(i))
	}
	return (&figure.Confusion{Title: e.Title, Classes: names, Counts: e.Model.Classes.Confusion}).Figure()
}

// distributions draws some rows, from the best to the worst prediction. It returns nil if there are no rows, and for
// targets in bounds, which may have different units.
func (e *Evaluated) distributions() (*figure.Figure, error) {
	r := &e.Rows
	if len(r.Names) == 0 || e.Type.Bounds != nil {
		return nil, nil
	}
	d := figure.Distributions{Title: e.Title, Labels: figure.Axis{Name: "label"}}
	switch {
	case e.Type.Scale != nil:
		d.Labels.Name, d.From = "number", e.Type.Scale.Low
	case e.Type.Classes:
		d.Labels.Name = "class"
	}
	if e.Type.Scale == nil {
		d.Names = e.LabelNames
	}
	for _, i := range r.chosen() {
		from, to := i*r.Labels, (i+1)*r.Labels
		name := fmt.Sprintf("%s: K-L %s", r.Names[i], strconv.FormatFloat(r.kl(i), 'g', 2, 64))
		d.Rows = append(d.Rows, figure.Compared{Name: name, True: wide(r.True[from:to]),
			Predicted: [][]float64{wide(r.Predicted[from:to])}})
	}
	return d.Figure()
}

func wide(values []float32) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = float64(v)
	}
	return list
}

// mostFolds is the maximum number of folds in a figure.
const mostFolds = 10

// Curve draws a learning curve: the training loss and the validation loss by step, if they exist. For a job with folds,
// points is empty, and each fold has a line. The line shows the validation loss, or the training loss if no fold has a
// validation loss. The axis has no unit, because losses depend on the algorithm. An error wraps figure.ErrData.
func Curve(title string, points []curve.Point, folds [][]curve.Point) (*figure.Figure, error) {
	lines := figure.Lines{Title: title, X: figure.Axis{Name: "step"},
		Y: figure.Axis{Name: "loss", Wide: figure.WideLosses}}
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

// Rows are rows with their true and predicted distributions.
type Rows struct {
	Labels          int
	Names           []string  // names of the rows
	True, Predicted []float32 // rows x Labels, row-major
}

// Add appends a row. It copies the slices.
func (r *Rows) Add(name string, truth, predicted []float32) {
	r.Labels = len(truth)
	if dataset.CountMissing(truth) > 0 { // figures show whole distributions
		return
	}
	r.Names = append(r.Names, name)
	r.True, r.Predicted = append(r.True, truth...), append(r.Predicted, predicted...)
}

// kl returns the K-L of row i.
func (r *Rows) kl(i int) float64 {
	from, to := i*r.Labels, (i+1)*r.Labels
	return measures.OfRow(r.True[from:to], r.Predicted[from:to])[klIndex]
}

// klIndex is the index of K-L among the measures of a row.
var klIndex = slices.IndexFunc(measures.All, func(m measures.Measure) bool { return m.Name == "kl" })

// chosen returns rows for the panels, sorted by K-L, at equal distances in this order.
func (r *Rows) chosen() []int {
	order, kl := make([]int, len(r.Names)), make([]float64, len(r.Names))
	for i := range order {
		order[i], kl[i] = i, r.kl(i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(kl[a], kl[b]) })
	var some []int
	for _, place := range figure.Panels(len(order)) {
		some = append(some, order[place])
	}
	return some
}

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
	if dataset.CountMissing(truth) > 0 {
		return
	}
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
		FromX: float64(list[0].x), ToX: float64(list[columns-1].x), FromY: float64(list[0].y),
		ToY:  float64(list[len(list)-1].y),
		Maps: []figure.Map{{Name: "true"}, {Name: "predicted"}},
	}
	for i, point := range list {
		line := i / columns * columns
		if point.x != list[i%columns].x || point.y != list[line].y || i > 0 && point.x == list[i-1].x &&
			point.y == list[i-1].y {
			return nil
		}
		m.Maps[0].Degrees, m.Maps[1].Degrees = append(m.Maps[0].Degrees, point.true), append(m.Maps[1].Degrees,
			point.predicted)
	}
	if !(m.FromX < m.ToX) || !(m.FromY < m.ToY) {
		return nil
	}
	return m
}
