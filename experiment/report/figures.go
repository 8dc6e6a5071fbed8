package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// The losses of a learning curve.
const (
	trainingLoss   = "training"
	validationLoss = "validation"
)

// learned are the learning curves by dataset, by loss, and then by method: means at the steps that all folds have.
func (g *grid) learned() (all []Learned) {
	for d := range g.table.Datasets {
		for _, loss := range []string{trainingLoss, validationLoss} {
			for _, method := range listed(g.table.Methods) {
				own := Learned{Dataset: g.table.Datasets[d].Name, Method: g.table.Methods[method].Name, Loss: loss,
					Wanted: len(g.folds[d])}
				sums, counts := make(map[uint64]float64), make(map[uint64]int) // by step
				for _, c := range g.runs(d, method) {
					if addLosses(c.Curve, loss, sums, counts) {
						own.Folds++
					}
				}
				for _, step := range slices.Sorted(maps.Keys(sums)) {
					if counts[step] == own.Folds {
						own.Steps, own.Losses = append(own.Steps, step), append(own.Losses, number(sums[step]/float64(own.Folds)))
					}
				}
				if len(own.Steps) > 0 {
					all = append(all, own)
				}
			}
		}
	}
	return all
}

// addLosses adds one loss of a curve, which may be nil, up to a refit: that begins again on other rows. It reports
// whether there is any.
func addLosses(c *result.Curve, loss string, sums map[uint64]float64, counts map[uint64]int) (found bool) {
	if c == nil {
		return false
	}
	values := c.Training
	if loss == validationLoss {
		values = c.Validation
	}
	for i, v := range values {
		step := c.Steps[i]
		if c.BeforeRefit > 0 && step > c.BeforeRefit {
			break
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sums[step], counts[step], found = sums[step]+v, counts[step]+1, true
		}
	}
	return found
}

// learningFigures draw the learning curves of each dataset and loss, mostLines methods in a figure. An axis is
// logarithmic if some methods would not be seen on a linear axis next to others.
func learningFigures(curves []Learned, places map[string]int) (all []Picture) {
	for _, p := range partsOf(curves, func(a, b *Learned) bool { return a.Dataset == b.Dataset && a.Loss == b.Loss }) {
		dataset, loss := p.items[0].Dataset, p.items[0].Loss
		lines := figure.Lines{Title: dataset + p.text, X: figure.Axis{Name: "step"}, Y: figure.Axis{Name: loss + " loss, K-L",
			Unit: "nats", Wide: figure.WideLosses}}
		first, shortest, longest := math.Inf(1), math.Inf(1), 0.0
		var methods []int
		for _, l := range p.items {
			methods = append(methods, places[l.Method])
		}
		styles := figure.StylesOf(methods, false)
		for i, l := range p.items {
			s := figure.Series{Name: l.Method, Y: floatsOf(l.Losses), Style: styles[i]}
			if l.Folds < l.Wanted {
				s.Name = fmt.Sprintf("%s (%d of %d folds)", l.Method, l.Folds, l.Wanted)
			}
			for _, step := range l.Steps {
				s.X = append(s.X, float64(step))
			}
			last := s.X[len(s.X)-1]
			first, shortest, longest = min(first, s.X[0]), min(shortest, last), max(longest, last)
			lines.Series = append(lines.Series, s)
		}
		lines.X.Log = first > 0 && longest > wideSweep*shortest
		all = append(all, Picture{
			Name: dataset + "-" + loss + "-loss",
			Caption: fmt.Sprintf("Learning curves on %s%s: the %s loss by step, averaged over folds, at the steps that all "+
				"folds of a method have. Each algorithm defines its own step.",
				dataset, p.text, loss),
			Draw: lines.Figure,
		})
	}
	return all
}

// mostShown bounds the methods of the table that stand in one figure.
const mostShown = 3

// shown are the predictions of each dataset that has some.
func (s *Summary) shown(g *grid) (all []Shown) {
	for d := range s.Datasets {
		methods := s.methodsShown(g, d)
		if len(methods) == 0 {
			continue
		}
		own := Shown{Dataset: s.Datasets[d].Name, axis: s.Datasets[d].Axis}
		for _, method := range methods {
			own.Methods = append(own.Methods, s.Methods[method].Name)
		}
		tested := g.tested(d, methods)
		slices.SortStableFunc(tested, func(a, b ShownSample) int { return cmp.Compare(a.KL[0], b.KL[0]) })
		for _, place := range figure.Panels(len(tested)) {
			own.Tested = append(own.Tested, tested[place])
		}
		all = append(all, own)
	}
	return all
}

// methodsShown returns the methods with predictions, the best by the first measure, at most mostShown. They have
// predictions of the same samples.
func (s *Summary) methodsShown(g *grid, d int) (methods []int) {
	for _, method := range s.listed() {
		if len(g.tested(d, []int{method})) > 0 {
			methods = append(methods, method)
		}
	}
	means := make([]float64, len(s.Methods)) // the least is best
	for method, l := range s.at(d, 0).Lines {
		if means[method] = float64(l.Mean); higherIsBetter(s.Measures[0]) {
			means[method] = -means[method]
		}
		if l.Mean.none() {
			means[method] = math.Inf(1)
		}
	}
	means = statistics.Merged(means)
	slices.SortStableFunc(methods, func(a, b int) int { return cmp.Compare(means[a], means[b]) })
	methods = methods[:min(len(methods), mostShown)]
	for len(methods) > 1 && len(g.tested(d, methods)) == 0 {
		methods = methods[:len(methods)-1]
	}
	return methods
}

// tested are the test samples that each of some methods has predictions of, each once: of the
// first repeat and fold.
func (g *grid) tested(d int, methods []int) (list []ShownSample) {
	seen := make(map[uint32]bool)
	for _, p := range g.folds[d] {
		first := g.done[d][methods[0]][p]
		if first == nil {
			continue
		}
		for i := range first.Predictions {
			of := &first.Predictions[i]
			own := ShownSample{Number: of.Row, Repeat: p.repeat, Fold: p.fold, True: numbersOf(of.True)}
			for _, method := range methods {
				own.add(g.done[d][method][p], of.Row)
			}
			if len(own.Predicted) == len(methods) && !seen[of.Row] {
				seen[of.Row] = true
				list = append(list, own)
			}
		}
	}
	return list
}

// add adds what a run predicts of a row, if it is there.
func (r *ShownSample) add(c *result.Run, row uint32) {
	if c == nil {
		return
	}
	for i := range c.Predictions {
		if p := &c.Predictions[i]; p.Row == row {
			r.Predicted, r.KL = append(r.Predicted, numbersOf(p.Predicted)),
				append(r.KL, number(measures.OfRow(p.True, p.Predicted)[klIndex]))
			return
		}
	}
}

// klIndex is the place of the K-L among the measures of a method.
var klIndex = slices.IndexFunc(measures.All, func(m measures.Measure) bool { return m.Name == "kl" })

func numbersOf(values []float32) (list []number) {
	for _, v := range values {
		list = append(list, number(v))
	}
	return list
}

// shownFigures draw the predictions of each dataset.
func shownFigures(shown []Shown, places map[string]int) (all []Picture) {
	for i := range shown {
		of := &shown[i]
		var methods []int
		for _, method := range of.Methods {
			methods = append(methods, places[method])
		}
		f := &figure.Distributions{Title: of.Dataset, Labels: figure.Axis{Name: "label"}, Methods: of.Methods,
			Styles: figure.StylesOf(methods, true)}
		if a := of.axis; a != nil {
			f.Names = a.Names
			switch {
			case a.Scale:
				f.Names, f.From, f.Labels = nil, a.First, figure.Axis{Name: "number"}
			case a.Classes:
				f.Labels.Name = "class"
			}
		}
		var folds []string
		for _, r := range of.Tested {
			c := figure.Compared{Name: fmt.Sprintf("sample %d", r.Number), True: floatsOf(r.True)}
			for _, p := range r.Predicted {
				c.Predicted = append(c.Predicted, floatsOf(p))
			}
			f.Rows = append(f.Rows, c)
			fold := fmt.Sprintf("sample %d: fold %d", r.Number, r.Fold)
			if r.Repeat > 0 {
				fold += fmt.Sprintf(" of repeat %d", r.Repeat)
			}
			folds = append(folds, fold)
		}
		all = append(all, Picture{
			Name: of.Dataset + "-predictions",
			Caption: fmt.Sprintf("Predicted and true distributions of test samples of %s, drawn by the seed of the folds and "+
				"sorted by the K-L of %s, smallest first. Each sample was tested in one fold: %s.",
				of.Dataset, of.Methods[0], strings.Join(folds, ", ")),
			Draw: f.Figure,
		})
	}
	return all
}

// scored are the cumulative scores, by dataset and then by method.
func (g *grid) scored() (all []Scored) {
	for d := range g.table.Datasets {
		for _, method := range listed(g.table.Methods) {
			own := Scored{Dataset: g.table.Datasets[d].Name, Method: g.table.Methods[method].Name}
			for _, c := range g.runs(d, method) {
				if len(c.Scores) == 0 {
					continue
				}
				own.Folds++
				for i, v := range c.Scores {
					if i == len(own.Within) {
						own.Within = append(own.Within, 0)
					}
					own.Within[i] += number(v)
				}
			}
			for i := range own.Within {
				own.Within[i] /= number(own.Folds)
			}
			if own.Folds > 0 {
				all = append(all, own)
			}
		}
	}
	return all
}

// confused returns the confusion matrices, by dataset and then by method. It leaves out a run if its matrix has another
// size.
func (g *grid) confused() (all []Confused) {
	for d := range g.table.Datasets {
		for _, method := range listed(g.table.Methods) {
			var sum [][]float64
			for _, c := range g.runs(d, method) {
				if sum == nil {
					for range c.Confusion {
						sum = append(sum, make([]float64, len(c.Confusion)))
					}
				}
				if len(c.Confusion) != len(sum) {
					continue
				}
				for i, line := range c.Confusion {
					for j, n := range line {
						sum[i][j] += n
					}
				}
			}
			if sum != nil {
				all = append(all, Confused{Dataset: g.table.Datasets[d].Name, Method: g.table.Methods[method].Name,
					Classes: g.table.Datasets[d].Classes, Counts: sum})
			}
		}
	}
	return all
}

// scoreFigures draw the cumulative scores of each dataset, mostLines methods in a figure.
func (s *Summary) scoreFigures(places map[string]int) (all []Picture) {
	for _, p := range partsOf(s.Scores, func(a, b *Scored) bool { return a.Dataset == b.Dataset }) {
		var names []string
		var scores [][]float64
		var methods []int
		for _, own := range p.items {
			methods = append(methods, places[own.Method])
			names, scores = append(names, own.Method), append(scores, floatsOf(own.Within))
		}
		dataset := p.items[0].Dataset
		all = append(all, Picture{
			Name: dataset + "-cumulative-score", Caption: "Cumulative score on " + dataset + p.text +
				": the fraction of test samples whose predicted number is off by at most the error shown, averaged over folds. A " +
				"predicted distribution counts by its expected number." + s.weights(dataset),
			Draw: func() (*figure.Figure, error) {
				return figure.CumulativeScores(dataset+p.text, names, scores, figure.StylesOf(methods, false))
			},
		})
	}
	return all
}

// confusionFigures draw the confusion matrix of the best method of each dataset, by the first measure. Classes without
// names have numbers from 0.
func (s *Summary) confusionFigures() (all []Picture) {
	for d := range s.Datasets {
		set, lines := &s.Datasets[d], s.at(d, 0).Lines
		best := slices.IndexFunc(lines, func(l Line) bool { return l.Place == 1 })
		at := slices.IndexFunc(s.Confusion, func(c Confused) bool {
			return best >= 0 && c.Dataset == set.Name && c.Method == lines[best].Method
		})
		if at < 0 {
			continue
		}
		c, names, numbered := &s.Confusion[at], set.Classes, ""
		if len(names) != len(c.Counts) {
			names, numbered = nil, " Classes are numbered from 0."
			for class := range c.Counts {
				names = append(names, strconv.Itoa(class))
			}
		}
		all = append(all, Picture{
			Name: c.Dataset + "-confusion", Caption: fmt.Sprintf(
				"Confusion matrix of the best method on %s, %s: numbers of test samples by true and predicted class, over all "+
					"folds.%s%s", c.Dataset, c.Method, numbered, s.weights(c.Dataset)),
			Draw: (&figure.Confusion{Title: c.Dataset + ": " + c.Method, Classes: names, Counts: c.Counts}).Figure,
		})
	}
	return all
}
