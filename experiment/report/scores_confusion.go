package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/experiment/figure"
)

// scored are the cumulative scores, by dataset and then by method.
func (g *grid) scored() (all []Scored) {
	for d := range g.table.Datasets {
		for _, method := range g.listed() {
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

// confused returns the confusion matrices, by dataset and then by method. It leaves out a run if its matrix has another size.
func (g *grid) confused() (all []Confused) {
	for d := range g.table.Datasets {
		for _, method := range g.listed() {
			var sum [][]uint64
			for _, c := range g.runs(d, method) {
				if sum == nil {
					for range c.Confusion {
						sum = append(sum, make([]uint64, len(c.Confusion)))
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
				all = append(all, Confused{g.table.Datasets[d].Name, g.table.Methods[method].Name, g.table.Datasets[d].Classes, sum})
			}
		}
	}
	return all
}

// scoreFigures draw the cumulative scores of each dataset, mostLines methods in a figure.
func scoreFigures(scored []Scored) (all []Picture) {
	for _, p := range partsOf(scored, func(a, b *Scored) bool { return a.Dataset == b.Dataset }) {
		var names []string
		var scores [][]float64
		for _, own := range p.items {
			names, scores = append(names, own.Method), append(scores, floatsOf(own.Within))
		}
		dataset := p.items[0].Dataset
		all = append(all, Picture{
			Name: dataset + "-cumulative-score", Caption: "Cumulative score on " + dataset + p.text + ": the fraction of test samples whose predicted number is off by at most the error shown, averaged over folds. A predicted distribution counts by its expected number.",
			draw: func() (*figure.Figure, error) {
				return figure.CumulativeScores(dataset+p.text, figure.LabelUnit, names, scores)
			},
		})
	}
	return all
}

// confusionFigures draw the confusion matrix of the best method of each dataset, by the first measure. Classes without names
// have numbers from 0.
func (s *Summary) confusionFigures() (all []Picture) {
	for d := range s.Datasets {
		set, lines := &s.Datasets[d], s.at(d, 0).Lines
		best := slices.IndexFunc(lines, func(l Line) bool { return l.Place == 1 })
		at := slices.IndexFunc(s.Confusion, func(c Confused) bool { return best >= 0 && c.Dataset == set.Name && c.Method == lines[best].Method })
		if at < 0 {
			continue
		}
		c, names, numbered := &s.Confusion[at], set.Classes, ""
		if len(names) != len(c.Counts) && set.Axis != nil {
			names = set.Axis.Names
		}
		if len(names) != len(c.Counts) {
			names, numbered = nil, " Classes are numbered from 0."
			for class := range c.Counts {
				names = append(names, strconv.Itoa(class))
			}
		}
		all = append(all, Picture{
			Name: c.Dataset + "-confusion", Caption: fmt.Sprintf("Confusion matrix of the best method on %s, %s: numbers of test samples by true and predicted class, over all folds.%s", c.Dataset, c.Method, numbered),
			draw: (&figure.Confusion{Title: c.Dataset + ": " + c.Method, Classes: names, Counts: c.Counts}).Figure,
		})
	}
	return all
}
