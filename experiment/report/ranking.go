package report

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// Ranking are the average ranks of rows over datasets by one measure, and the tests of them.
type Ranking struct {
	Measure string `json:"measure"`
	// Datasets are those where every row of Rows has all folds; LeftOut are the others. A dataset that is
	// another one under a second name is in neither list, and no row that is another one in Rows.
	Datasets []string `json:"datasets"`
	LeftOut  []string `json:"left_out,omitempty"`
	Rows     []Ranked `json:"rows"` // the best first
	// Friedman is the test that all rows are equal; nil: fewer than two datasets or rows.
	Friedman *Friedman `json:"friedman,omitempty"`
}

// Ranked is a row with its rank: 1 is best, ties have the mean of their ranks.
type Ranked struct {
	Row  string `json:"row"`
	Rank number `json:"rank"`
}

// Friedman is Friedman's test with Nemenyi's critical difference.
type Friedman struct {
	ChiSquared number `json:"chi_squared"`
	P          number `json:"p"`
	// Exact is true if P counts all ways to rank the rows; else it is that of the χ² distribution. Least
	// is the least P that an exact test of so many rows and datasets can give.
	Exact bool   `json:"exact"`
	Least number `json:"least_p"`
	// CriticalDifference is NaN, and Alike has all rows, where P is not below the level: then the test
	// finds no difference, and pairs are not compared.
	CriticalDifference number `json:"critical_difference"`
	// Alike lists the longest runs of rows, by rank, of which no two differ by more.
	Alike [][]string `json:"alike"`
}

// compared reports whether pairs of rows are compared.
func (f *Friedman) compared() bool { return !f.CriticalDifference.none() }

// ranking ranks the rows that have the measure on any dataset, over the datasets where all of
// these have every fold.
func (s *Summary) ranking(m int) Ranking {
	r := Ranking{Measure: s.Measures[m]}
	var rows []int
	for i := range s.Rows {
		if s.Rows[i].Same == "" && s.hasAny(m, i) {
			rows = append(rows, i)
		}
	}
	var values [][]float64
	for d := range s.Datasets {
		if s.Datasets[d].Same != "" {
			continue
		}
		lines, own := s.at(d, m).Lines, []float64(nil)
		for _, i := range rows {
			if lines[i].Complete() {
				own = append(own, float64(lines[i].Mean))
			}
		}
		if len(own) < len(rows) || len(rows) == 0 {
			r.LeftOut = append(r.LeftOut, s.Datasets[d].Name)
			continue
		}
		r.Datasets, values = append(r.Datasets, s.Datasets[d].Name), append(values, own)
	}
	for i, rank := range statistics.AverageRanks(values, higherIsBetter(s.Measures[m])) {
		r.Rows = append(r.Rows, Ranked{s.Rows[rows[i]].Name, number(rank)})
	}
	slices.SortStableFunc(r.Rows, func(a, b Ranked) int { return compare(a.Rank, b.Rank) })
	r.Friedman = friedman(values, r.Rows, s.Level)
	return r
}

// marked returns the places of the ranked rows, and how their ranks are written.
func (r *Ranking) marked() ([]int, format) {
	var ranks []number
	for _, own := range r.Rows {
		ranks = append(ranks, own.Rank)
	}
	places := statistics.Places(floatsOf(ranks), false)
	return places, format{2, 1}.apart(ranks, places)
}

// hasAny reports whether a row has a measure on any fold.
func (s *Summary) hasAny(m, row int) bool {
	for d := range s.Datasets {
		if s.at(d, m).Lines[row].Folds > 0 {
			return true
		}
	}
	return false
}

// friedman tests the ranks; nil: too few datasets or rows.
func friedman(values [][]float64, rows []Ranked, level float64) *Friedman {
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
		difference = statistics.CriticalDifference(len(rows), len(values), level)
		f.CriticalDifference = number(difference)
	}
	var sorted []float64
	for _, r := range rows {
		sorted = append(sorted, float64(r.Rank))
	}
	for _, c := range statistics.Cliques(sorted, difference) {
		var names []string
		for _, r := range rows[c.First : c.Last+1] {
			names = append(names, r.Row)
		}
		f.Alike = append(f.Alike, names)
	}
	return f
}
