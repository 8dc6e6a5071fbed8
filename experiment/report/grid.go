package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// place is a fold of a repeat.
type place struct{ repeat, fold int }

// grid finds cells by dataset, row and fold.
type grid struct {
	table *result.Table
	folds [][]place                  // of each dataset, in order: those that any row has a cell for
	done  [][]map[place]*result.Cell // by dataset and row
}

func newGrid(t *result.Table) *grid {
	g := &grid{table: t, folds: make([][]place, len(t.Datasets)), done: make([][]map[place]*result.Cell, len(t.Datasets))}
	seen := make([]map[place]bool, len(t.Datasets))
	for d := range t.Datasets {
		seen[d], g.done[d] = make(map[place]bool), make([]map[place]*result.Cell, len(t.Rows))
		for row := range t.Rows {
			g.done[d][row] = make(map[place]*result.Cell)
		}
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		p := place{c.Repeat, c.Fold}
		if !seen[c.Dataset][p] {
			seen[c.Dataset][p] = true
			g.folds[c.Dataset] = append(g.folds[c.Dataset], p)
		}
		if c.State == result.Done {
			g.done[c.Dataset][c.Row][p] = c
		}
	}
	for _, folds := range g.folds {
		slices.SortFunc(folds, func(a, b place) int { return cmp.Or(cmp.Compare(a.repeat, b.repeat), cmp.Compare(a.fold, b.fold)) })
	}
	return g
}

// values returns a row's measure on each fold, in order; NaN where there is none.
func (g *grid) values(dataset, row, measure int) []float64 {
	values := make([]float64, len(g.folds[dataset]))
	for i, p := range g.folds[dataset] {
		values[i] = math.NaN()
		if c := g.done[dataset][row][p]; c != nil {
			values[i] = c.Values[measure]
		}
	}
	return values
}

// means returns the mean predictor's measure on each fold, from the first row that has it.
func (g *grid) means(dataset, measure int) []float64 {
	values := make([]float64, len(g.folds[dataset]))
	for i, p := range g.folds[dataset] {
		values[i] = math.NaN()
		for _, cells := range g.done[dataset] {
			if c := cells[p]; c != nil && !math.IsNaN(c.Mean[measure]) {
				values[i] = c.Mean[measure]
				break
			}
		}
	}
	return values
}

// finiteOf leaves out what is not finite.
func finiteOf(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// ratio is the number of test rows over that of the other rows, over the folds of a dataset.
func (g *grid) ratio(dataset, row int) float64 {
	d, tested, others := &g.table.Datasets[dataset], 0, 0
	for _, c := range g.done[dataset][row] {
		tested, others = tested+c.Rows, others+d.Rows-c.Rows
	}
	if tested <= 0 || others <= 0 {
		return 1 / float64(max(1, d.Folds-1))
	}
	return float64(tested) / float64(others)
}
