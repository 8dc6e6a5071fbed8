package modelcmd

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/job/explain"
)

// mostFigureBars is the number of features in a figure.
const mostFigureBars = 15

// mostFigureLabels is the number of labels with a figure of their own.
const mostFigureLabels = 6

// figures draws the figures of the explanation.
func (e *explanation) figures() (all []figure.Named, err error) {
	add := func(name string, f interface {
		Figure() (*figure.Figure, error)
	}) {
		if err != nil {
			return
		}
		var drawn *figure.Figure
		if drawn, err = f.Figure(); err == nil {
			all = append(all, figure.Named{Name: name, Figure: drawn})
		}
	}
	switch {
	case e.Gains != nil:
		add("importance", e.gainBars())
	case e.Permuted != nil:
		add("permutation", e.permutedBars())
	case e.SHAP != nil && e.SHAP.Samples > 0:
		add("shap", e.shapBars())
		if e.SHAP.Number != nil {
			add("shap-number", e.swarm(-1))
			break
		}
		for c := range e.Labels[:min(len(e.Labels), mostFigureLabels)] {
			add(fmt.Sprintf("shap-label-%d", c), e.swarm(c))
		}
	case e.Weights != nil:
		for c := range e.Labels[:min(len(e.Labels), mostFigureLabels)] {
			add(fmt.Sprintf("weights-label-%d", c), e.weightBars(c))
		}
	}
	return all, err
}

// first returns the first things of an order that a figure shows.
func first(order []int) []int { return order[:min(len(order), mostFigureBars)] }

func (e *explanation) gainBars() *figure.Bars {
	g, b := e.Gains, &figure.Bars{Title: e.Algorithm + ": importance", X: figure.Axis{Name: "fraction of all gains"}}
	s := figure.BarSeries{}
	total := 0.0
	for i := range g.Features {
		total += g.Features[i].Gain
	}
	for _, i := range first(explain.Order(len(g.Features), func(i int) float64 { return g.Features[i].Gain })) {
		x := &g.Features[i]
		b.Names, s.Values = append(b.Names, x.Feature), append(s.Values, x.Importance)
		if x.StandardError != nil && total > 0 {
			s.Deviation = append(s.Deviation, *x.StandardError/total)
		}
	}
	b.Series = []figure.BarSeries{s}
	return b
}

func (e *explanation) permutedBars() *figure.Bars {
	p := e.Permuted
	b := &figure.Bars{Title: e.Algorithm + ": permutation importance",
		X: figure.Axis{Name: "rise of the mean absolute error"}}
	if p.KL != nil {
		b.X = figure.Axis{Name: "rise of the K-L divergence", Unit: "nats"}
	}
	s := figure.BarSeries{}
	for _, i := range first(explain.Order(len(p.Features), func(i int) float64 { return p.Features[i].Rise() })) {
		x := &p.Features[i]
		m := &x.MAE
		if x.KL != nil {
			m = x.KL
		}
		b.Names, s.Values = append(b.Names, x.Feature), append(s.Values, m.Mean)
		if m.StandardError != nil {
			s.Deviation = append(s.Deviation, *m.StandardError)
		}
	}
	b.Series = []figure.BarSeries{s}
	return b
}

// shapOrder lists the features that figures of SHAP values show.
func (e *explanation) shapOrder() []int {
	return first(explain.Order(len(e.SHAP.Features), func(i int) float64 { return e.SHAP.Features[i].Mean }))
}

func (e *explanation) shapBars() *figure.Bars {
	s := e.SHAP
	b := &figure.Bars{Title: e.Algorithm + ": mean |SHAP value|", X: figure.Axis{Name: "mean |SHAP value|"}}
	order := e.shapOrder()
	for _, i := range order {
		b.Names = append(b.Names, s.Features[i].Feature)
	}
	if len(e.Labels) == 1 || len(e.Labels) > mostFigureLabels {
		one := figure.BarSeries{}
		for _, i := range order {
			one.Values = append(one.Values, s.Features[i].Mean)
		}
		b.Series = []figure.BarSeries{one}
		return b
	}
	for c, name := range e.Labels {
		part := figure.BarSeries{Name: name}
		for _, i := range order {
			part.Values = append(part.Values, s.Features[i].Labels[c])
		}
		b.Series = append(b.Series, part)
	}
	return b
}

// swarm shows the SHAP values of a label, or of the expected number with -1.
func (e *explanation) swarm(label int) *figure.Swarm {
	s := e.SHAP
	w := &figure.Swarm{Title: e.Algorithm + ": expected number", X: figure.Axis{Name: "SHAP value"}}
	if label >= 0 {
		w.Title = e.Algorithm + ": " + e.Labels[label]
	}
	features, labels := len(s.Features), len(e.Labels)
	for _, f := range e.shapOrder() {
		w.Names = append(w.Names, s.Features[f].Feature)
		values, shades := make([]float64, s.drawn.n), make([]float64, s.drawn.n)
		low, high := math.Inf(1), math.Inf(-1)
		for i := range values {
			own := s.drawn.values[(i*features+f)*labels:][:labels]
			if label < 0 {
				values[i] = s.number(own)
			} else {
				values[i] = own[label]
			}
			shades[i] = float64(s.drawn.x[i*features+f])
			low, high = min(low, shades[i]), max(high, shades[i])
		}
		for i, v := range shades {
			if shades[i] = 0.5; high > low {
				shades[i] = (v - low) / (high - low)
			}
		}
		w.Values, w.Shades = append(w.Values, values), append(w.Shades, shades)
	}
	return w
}

// weightBars shows the weights of a label, times the standard deviations of the features if they are known.
func (e *explanation) weightBars(label int) *figure.Bars {
	l := e.Weights
	b := &figure.Bars{Title: e.Algorithm + ": " + e.Labels[label], X: figure.Axis{Name: "weight"}}
	s := figure.BarSeries{}
	for _, i := range first(explain.Order(len(l.Features), l.Size)) {
		x := &l.Features[i]
		v := x.Weights[label]
		if x.Deviation != nil {
			b.X.Name = "weight times standard deviation"
			v *= *x.Deviation
		}
		b.Names, s.Values = append(b.Names, x.Feature), append(s.Values, v)
	}
	b.Series = []figure.BarSeries{s}
	return b
}
