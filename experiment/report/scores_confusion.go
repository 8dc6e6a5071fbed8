package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// Scored are the cumulative scores of a method on a dataset whose labels are a scale.
type Scored struct {
	Dataset string `json:"dataset"`
	Method  string `json:"method"`
	// Within are shares of rows with an error of at most 0, 1, 2 and so on, as means over folds.
	Within []number `json:"within"`
	Folds  int      `json:"folds"`
}

// Confused is the confusion matrix of a method on a dataset whose labels are classes: sums over folds.
type Confused struct {
	Dataset string     `json:"dataset"`
	Method  string     `json:"method"`
	Classes []string   `json:"classes,omitempty"` // their names, where they have some
	Counts  [][]uint64 `json:"counts"`            // by true and by predicted class
}

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

// confused are the confusion matrices, by dataset and then by method.
func (g *grid) confused() (all []Confused) {
	for d := range g.table.Datasets {
		for _, method := range g.listed() {
			var sum [][]uint64
			for _, c := range g.runs(d, method) {
				sum = added(sum, c)
			}
			if sum != nil {
				all = append(all, Confused{g.table.Datasets[d].Name, g.table.Methods[method].Name, g.table.Datasets[d].Classes, sum})
			}
		}
	}
	return all
}

// added is the sum of a matrix and that of a run; a matrix of another size is left out.
func added(sum [][]uint64, c *result.Run) [][]uint64 {
	if sum == nil && len(c.Confusion) > 0 {
		for range c.Confusion {
			sum = append(sum, make([]uint64, len(c.Confusion)))
		}
	}
	if len(c.Confusion) != len(sum) {
		return sum
	}
	for i, line := range c.Confusion {
		for j, n := range line {
			sum[i][j] += n
		}
	}
	return sum
}

// runs are the done runs of a method on a dataset, by repeat and fold.
func (g *grid) runs(d, method int) (list []*result.Run) {
	for _, p := range g.folds[d] {
		if c := g.done[d][method][p]; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// scoreFigures draw the cumulative scores of each dataset, mostLines methods in a figure.
func (s drawing) scoreFigures() (all []Picture) {
	for _, p := range partsOf(s.Scores, func(a, b *Scored) bool { return a.Dataset == b.Dataset }) {
		all = append(all, scoreFigure(p.items, p.text))
	}
	return all
}

func scoreFigure(list []Scored, part string) Picture {
	var names []string
	var scores [][]float64
	for _, own := range list {
		names, scores = append(names, own.Method), append(scores, floatsOf(own.Within))
	}
	dataset := list[0].Dataset
	return Picture{
		Name: dataset + "-cumulative-score", Caption: "Cumulative score on " + dataset + part + ": the fraction of test samples whose predicted number is off by at most the error shown, averaged over folds. A predicted distribution counts by its expected number.",
		draw: func() (*figure.Figure, error) {
			return figure.CumulativeScores(dataset+part, figure.LabelUnit, names, scores)
		},
	}
}

// confusionFigures draw the confusion matrix of the best method of each dataset, by the first measure.
func (s drawing) confusionFigures() (all []Picture) {
	for d := range s.Datasets {
		lines := s.at(d, 0).Lines
		for i := range s.Confusion {
			c := &s.Confusion[i]
			at := slices.IndexFunc(lines, func(l Line) bool { return l.Place == 1 })
			if at < 0 || c.Dataset != s.Datasets[d].Name || c.Method != lines[at].Method {
				continue
			}
			names, numbered := s.classNames(d, len(c.Counts))
			title := c.Dataset + ": " + c.Method
			all = append(all, Picture{
				Name: c.Dataset + "-confusion", Caption: fmt.Sprintf("Confusion matrix of the best method on %s, %s: numbers of test samples by true and predicted class, over all folds.%s", c.Dataset, c.Method, numbered),
				draw: (&figure.Confusion{Title: title, Classes: names, Counts: c.Counts}).Figure,
			})
		}
	}
	return all
}

// classNames are the names of the classes of a dataset where they are known, else numbers; numbered says so.
func (s drawing) classNames(d, classes int) (names []string, numbered string) {
	if names = s.Datasets[d].Classes; len(names) == classes {
		return names, ""
	}
	if a := s.Datasets[d].Axis; a != nil && len(a.Names) == classes {
		return a.Names, ""
	}
	names = nil
	for class := range classes {
		names = append(names, strconv.Itoa(class))
	}
	return names, " Classes are numbered from 0."
}
