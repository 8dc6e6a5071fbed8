// Package plots draws figures of what was trained: learning curves, and, of predictions,
// distributions beside true ones, cumulative scores, confusion matrices and colour maps.
package plots

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// Named is a figure with a name for its file.
type Named struct {
	Name   string
	Figure *figure.Figure
}

// Evaluated is predictions and the measures of them that figures show.
type Evaluated struct {
	Title string // of each figure
	Type  dataset.LabelType
	// LabelNames are those of the labels; empty: they have none.
	LabelNames []string
	// Rows are those with predicted distributions; empty: there are none to show.
	Rows Rows
	// Model and Baseline are the measures beside the ten; nil: there are none.
	Model, Baseline *measures.Added
	// BaselineName is what Baseline is of, such as "mean predictor".
	BaselineName string
	// Map is the colour map of the predictions; nil: the rows are no points of a plane.
	Map *figure.ColourMap
}

// Figures draws what goes with the labels: predicted beside true distributions, the cumulative
// score of numbers, the confusion matrix of classes, and a colour map.
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

// scores draws the cumulative scores of predicted numbers; nil: there are none.
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

// confusion draws the confusion matrix; nil: the labels are no classes, or too many.
func (e *Evaluated) confusion() (*figure.Figure, error) {
	if e.Model == nil || e.Model.Classes == nil || e.Model.Classes.Confusion == nil {
		return nil, nil
	}
	return (&figure.Confusion{Title: e.Title, Classes: e.names(), Counts: e.Model.Classes.Confusion}).Figure()
}

// names are the names of the labels, or their numbers from 0.
func (e *Evaluated) names() []string {
	if len(e.LabelNames) > 0 {
		return e.LabelNames
	}
	var names []string
	for i := range e.Rows.Labels {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

func (e *Evaluated) colours() (*figure.Figure, error) {
	if e.Map == nil {
		return nil, nil
	}
	return e.Map.Figure()
}
