package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

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

// methodsShown returns the methods with predictions, the best by the first measure, at most mostShown. They have predictions of
// the same samples.
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
			r.Predicted, r.KL = append(r.Predicted, numbersOf(p.Predicted)), append(r.KL, number(measures.OfRow(p.True, p.Predicted)[klIndex]))
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
func shownFigures(shown []Shown) (all []Picture) {
	for i := range shown {
		of := &shown[i]
		f := &figure.Distributions{Title: of.Dataset, Labels: figure.Axis{Name: "label"}, Methods: of.Methods}
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
			Caption: fmt.Sprintf("Predicted and true distributions of test samples of %s, drawn by the seed of the folds and sorted by the K-L of %s, smallest first. Each sample was tested in one fold: %s.",
				of.Dataset, of.Methods[0], strings.Join(folds, ", ")),
			draw: f.Figure,
		})
	}
	return all
}
