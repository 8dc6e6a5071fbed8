// Package plots draws figures of trainings and predictions: learning curves, predicted and true distributions, cumulative
// scores, confusion matrices and colour maps.
package plots

import (
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// Named is a figure with the name of its file.
type Named struct {
	Name   string
	Figure *figure.Figure
}

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

// Figures draws the figures that suit the labels: predicted and true distributions, the cumulative score of numbers, the
// confusion matrix of classes, and a colour map.
func (e *Evaluated) Figures() (all []Named, err error) {
	for _, kind := range []struct {
		name string
		draw func() (*figure.Figure, error)
	}{
		{"distributions", e.distributions}, {"cumulative-score", e.scores}, {"confusion", e.confusion}, {"colours", e.colours},
	} {
		f, err := kind.draw()
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", kind.name, err)
		}
		if f != nil {
			all = append(all, Named{kind.name, f})
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
	return figure.CumulativeScores(e.Title, figure.LabelUnit, names, scores)
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

func (e *Evaluated) colours() (*figure.Figure, error) {
	if e.Map == nil {
		return nil, nil
	}
	return e.Map.Figure()
}

// distributions draws some rows, from the best to the worst prediction. It returns nil if there are no rows.
func (e *Evaluated) distributions() (*figure.Figure, error) {
	r := &e.Rows
	if len(r.Names) == 0 {
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
		d.Rows = append(d.Rows, figure.Compared{Name: name, True: wide(r.True[from:to]), Predicted: [][]float64{wide(r.Predicted[from:to])}})
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
