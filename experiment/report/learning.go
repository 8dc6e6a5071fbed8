package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// The losses of a learning curve.
const (
	trainingLoss   = "training"
	validationLoss = "validation"
)

// learned are the learning curves by dataset, by loss, and then by method.
func (g *grid) learned() (all []Learned) {
	for d := range g.table.Datasets {
		for _, loss := range []string{trainingLoss, validationLoss} {
			for _, method := range g.listed() {
				var lines []lossLine
				for _, c := range g.runs(d, method) {
					if line := lineOf(c.Curve, loss); len(line.steps) > 0 {
						lines = append(lines, line)
					}
				}
				own := Learned{Dataset: g.table.Datasets[d].Name, Method: g.table.Methods[method].Name, Loss: loss, Folds: len(lines), Wanted: len(g.folds[d])}
				if own.Steps, own.Losses = meanLine(lines); len(own.Steps) > 0 {
					all = append(all, own)
				}
			}
		}
	}
	return all
}

// lossLine has the steps of a run with a known loss, ascending.
type lossLine struct {
	steps  []uint64
	losses []float64
}

// lineOf is one loss of a curve, which may be nil, up to a refit: that begins again on other rows.
func lineOf(c *result.Curve, loss string) (line lossLine) {
	if c == nil {
		return line
	}
	values := c.Training
	if loss == validationLoss {
		values = c.Validation
	}
	for i, v := range values {
		if c.BeforeRefit > 0 && c.Steps[i] > c.BeforeRefit {
			break
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			line.steps, line.losses = append(line.steps, c.Steps[i]), append(line.losses, v)
		}
	}
	return line
}

// at is the loss at a step between the first and the last one: between two steps that are there, the one
// on the straight line.
func (l *lossLine) at(step uint64) float64 {
	i, found := slices.BinarySearch(l.steps, step)
	if found {
		return l.losses[i]
	}
	share := float64(step-l.steps[i-1]) / float64(l.steps[i]-l.steps[i-1])
	return l.losses[i-1] + share*(l.losses[i]-l.losses[i-1])
}

// meanLine returns the mean of lines at the steps of any line, between the latest first step and the earliest last step.
func meanLine(lines []lossLine) (steps []uint64, losses []number) {
	if len(lines) == 0 {
		return nil, nil
	}
	from, to := uint64(0), uint64(math.MaxUint64)
	for _, l := range lines {
		from, to = max(from, l.steps[0]), min(to, l.steps[len(l.steps)-1])
		steps = append(steps, l.steps...)
	}
	slices.Sort(steps)
	steps = slices.DeleteFunc(slices.Compact(steps), func(step uint64) bool { return step < from || step > to })
	for _, step := range steps {
		sum := 0.0
		for i := range lines {
			sum += lines[i].at(step)
		}
		losses = append(losses, number(sum/float64(len(lines))))
	}
	return steps, losses
}

// wideLosses is the factor between losses beyond which their axis is logarithmic.
const wideLosses = 5

// learningFigures draw the learning curves of each dataset and loss, mostLines methods in a figure. An axis is logarithmic
// if some methods would not be seen on a linear axis next to others.
func learningFigures(curves []Learned) (all []Picture) {
	for _, p := range partsOf(curves, func(a, b *Learned) bool { return a.Dataset == b.Dataset && a.Loss == b.Loss }) {
		dataset, loss := p.items[0].Dataset, p.items[0].Loss
		lines := figure.Lines{Title: dataset + p.text, X: figure.Axis{Name: "step"}, Y: figure.Axis{Name: loss + " loss, K-L", Unit: "nats"}}
		first, shortest, longest := math.Inf(1), math.Inf(1), 0.0
		least, greatest := math.Inf(1), math.Inf(-1)
		for _, l := range p.items {
			s := figure.Series{Name: l.Method, Y: floatsOf(l.Losses)}
			if l.Folds < l.Wanted {
				s.Name = fmt.Sprintf("%s (%d of %d folds)", l.Method, l.Folds, l.Wanted)
			}
			for _, step := range l.Steps {
				s.X = append(s.X, float64(step))
			}
			last := s.X[len(s.X)-1]
			first, shortest, longest = min(first, s.X[0]), min(shortest, last), max(longest, last)
			least, greatest = min(least, slices.Min(s.Y)), max(greatest, slices.Max(s.Y))
			lines.Series = append(lines.Series, s)
		}
		lines.X.Log = first > 0 && longest > wideSweep*shortest
		lines.Y.Log = least > 0 && greatest > wideLosses*least
		all = append(all, Picture{
			Name: dataset + "-" + loss + "-loss",
			Caption: fmt.Sprintf("Learning curves on %s%s: the %s loss by step, averaged over folds, up to the last step that all folds of a method reach. Each algorithm defines its own step.",
				dataset, p.text, loss),
			draw: lines.Figure,
		})
	}
	return all
}
