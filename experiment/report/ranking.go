package report

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// compared reports whether pairs of methods are compared.
func (f *Friedman) compared() bool { return !f.CriticalDifference.none() }

// ranker compares the methods that have a measure on any dataset, each method once.
type ranker struct {
	*Summary
	measure int
	methods []int
}

func (s *Summary) ranker(measure int) *ranker {
	r := &ranker{Summary: s, measure: measure}
	for _, i := range s.listed() {
		for d := range s.Datasets {
			if s.at(d, measure).Lines[i].Folds > 0 {
				r.methods = append(r.methods, i)
				break
			}
		}
	}
	return r
}

// ranking ranks the methods over the datasets where all of them have every fold.
func (r *ranker) ranking(g *grid) Ranking {
	all := Ranking{Measure: r.Measures[r.measure]}
	var values [][]float64
	for d := range r.Datasets {
		if r.Datasets[d].Same != "" {
			continue
		}
		name, own := r.Datasets[d].Name, r.means(d)
		_, again := r.sameValues(d)
		switch {
		case again:
		case own != nil:
			all.Datasets, values = append(all.Datasets, name), append(values, own)
		case r.at(d, r.measure).NotMeasured:
			all.NotMeasured = append(all.NotMeasured, name)
		case g.anyDone(d) && g.allDone(d, r.methods):
			all.NoValue = append(all.NoValue, name)
		default:
			all.LeftOut = append(all.LeftOut, name)
		}
	}
	for i, rank := range statistics.AverageRanks(values, higherIsBetter(all.Measure)) {
		all.Methods = append(all.Methods, Ranked{r.Methods[r.methods[i]].Name, number(rank)})
	}
	slices.SortStableFunc(all.Methods, func(a, b Ranked) int { return compare(a.Rank, b.Rank) })
	all.Friedman = friedman(values, all.Methods, r.Level)
	return all
}

// means returns the figures of the methods on a dataset; nil: a method lacks folds, or there are no methods.
func (r *ranker) means(d int) (values []float64) {
	for _, i := range r.methods {
		l := &r.at(d, r.measure).Lines[i]
		if !l.Complete() {
			return nil
		}
		values = append(values, float64(l.Mean))
	}
	return values
}

// sameValues returns the first dataset with the samples, labels and folds of dataset d by which all methods have the same
// figures; false: there is none before d.
func (r *ranker) sameValues(d int) (before int, ok bool) {
	own := r.means(d)
	for before = range d {
		if own != nil && r.Datasets[before].Same == "" && sameData(r.Datasets, before, d) && slices.EqualFunc(own, r.means(before), statistics.Equal) {
			return before, true
		}
	}
	return 0, false
}

// marked returns the places of the ranked methods, and how their ranks are written.
func (r *Ranking) marked() ([]int, format) {
	var ranks []number
	for _, own := range r.Methods {
		ranks = append(ranks, own.Rank)
	}
	places := statistics.Places(floatsOf(ranks), false)
	return places, format{2, 1}.apart(ranks, places)
}

// friedman tests the ranks; nil: too few datasets or methods.
func friedman(values [][]float64, methods []Ranked, level float64) *Friedman {
	test, err := statistics.Friedman(values)
	if err != nil {
		return nil
	}
	f := &Friedman{
		ChiSquared: number(test.Statistic), P: number(test.P), Exact: test.Exact, Least: number(test.Least),
		CriticalDifference: number(math.NaN()), Alike: [][]string{},
	}
	if !test.Exact {
		f.Least = number(math.NaN())
	}
	difference := math.Inf(1)
	if test.P < level {
		difference = statistics.CriticalDifference(len(methods), len(values), level)
		f.CriticalDifference = number(difference)
	}
	var sorted []float64
	for _, r := range methods {
		sorted = append(sorted, float64(r.Rank))
	}
	for _, c := range statistics.Cliques(sorted, difference) {
		var names []string
		for _, r := range methods[c.First : c.Last+1] {
			names = append(names, r.Method)
		}
		f.Alike = append(f.Alike, names)
	}
	return f
}
