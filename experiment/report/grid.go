package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// place is a fold of a repeat.
type place struct{ repeat, fold int }

// grid finds runs by dataset, method and fold.
type grid struct {
	table *result.Table
	folds [][]place                 // of each dataset, in order, if any method has a run for it
	done  [][]map[place]*result.Run // by dataset and method
	// divided are the folds of each dataset by division of its rows: a division is one observation,
	// however many folds have it.
	divided [][][]place
}

func newGrid(t *result.Table) *grid {
	g := &grid{table: t, folds: make([][]place, len(t.Datasets)), done: make([][]map[place]*result.Run, len(t.Datasets)), divided: make([][][]place, len(t.Datasets))}
	seen := make([]map[place]bool, len(t.Datasets))
	for d := range t.Datasets {
		seen[d], g.done[d] = make(map[place]bool), make([]map[place]*result.Run, len(t.Methods))
		for method := range t.Methods {
			g.done[d][method] = make(map[place]*result.Run)
		}
	}
	for i := range t.Runs {
		c := &t.Runs[i]
		p := place{c.Repeat, c.Fold}
		if !seen[c.Dataset][p] {
			seen[c.Dataset][p] = true
			g.folds[c.Dataset] = append(g.folds[c.Dataset], p)
		}
		if c.State == result.Done {
			g.done[c.Dataset][c.Method][p] = c
		}
	}
	for d, folds := range g.folds {
		slices.SortFunc(folds, func(a, b place) int { return cmp.Or(cmp.Compare(a.repeat, b.repeat), cmp.Compare(a.fold, b.fold)) })
		// Folds of one division go together, in the order of the first of them.
		set, at := &t.Datasets[d], make(map[int]int)
		for i, p := range folds {
			division := i
			if len(set.Divisions) > 0 {
				division = set.Divisions[p.repeat*set.Folds+p.fold]
			}
			if _, ok := at[division]; !ok {
				at[division], g.divided[d] = len(g.divided[d]), append(g.divided[d], nil)
			}
			g.divided[d][at[division]] = append(g.divided[d][at[division]], p)
		}
	}
	return g
}

// anyDone reports whether a run of a dataset has ended well.
func (g *grid) anyDone(dataset int) bool {
	return slices.ContainsFunc(g.done[dataset], func(runs map[place]*result.Run) bool { return len(runs) > 0 })
}

// allDone reports whether all runs of some methods on a dataset have ended well.
func (g *grid) allDone(dataset int, methods []int) bool {
	return !slices.ContainsFunc(methods, func(method int) bool { return len(g.done[dataset][method]) < len(g.folds[dataset]) })
}

// values returns a method's measure on each division, in order: the mean over its folds. It is NaN if a fold has no value.
func (g *grid) values(dataset, method, measure int) []float64 {
	return g.observed(dataset, true, func(p place) float64 {
		if c := g.done[dataset][method][p]; c != nil {
			return g.value(measure, c.Values[measure])
		}
		return math.NaN()
	})
}

// means returns the mean predictor's measure on each division, from the first method that has it.
func (g *grid) means(dataset, measure int) []float64 {
	return g.observed(dataset, false, func(p place) float64 {
		for _, runs := range g.done[dataset] {
			if c := runs[p]; c != nil && !math.IsNaN(c.Mean[measure]) {
				return g.value(measure, c.Mean[measure])
			}
		}
		return math.NaN()
	})
}

// value returns a value of a measure. It returns 0 for a correlation that differs from 0 only by rounding: it is a mean of
// numbers up to 1 with both signs.
func (g *grid) value(measure int, v float64) float64 {
	if g.table.Measures[measure] == "spearman" && statistics.Equal(1+v, 1) {
		return 0
	}
	return v
}

// observed returns for each division the mean over the folds that have a finite value. It is NaN if no fold has one, or if all
// is true and a fold lacks it.
func (g *grid) observed(dataset int, all bool, of func(place) float64) (values []float64) {
	for _, folds := range g.divided[dataset] {
		var own []float64
		for _, p := range folds {
			own = append(own, of(p))
		}
		finite := finiteOf(own)
		if all && len(finite) < len(own) {
			finite = nil
		}
		values = append(values, statistics.MomentsOf(finite).Mean) // NaN of none
	}
	return values
}

// finiteOf leaves out what is not finite.
func finiteOf(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// ratio is the number of test samples, divided by the number of other samples, over all folds of a dataset.
func (g *grid) ratio(dataset, method int) float64 {
	d, tested, others := &g.table.Datasets[dataset], 0, 0
	for _, c := range g.done[dataset][method] {
		tested, others = tested+c.Rows, others+d.Rows-c.Rows
	}
	if tested <= 0 || others <= 0 {
		return 1 / float64(max(1, d.Folds-1))
	}
	return float64(tested) / float64(others)
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

func (g *grid) listed() []int { return listed(g.table.Methods) }
