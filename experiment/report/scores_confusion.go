package report

import (
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/result"
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
