package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/statistics"
	"github.com/coppice-ldl/coppice/internal/units"
)

// compared reports whether pairs of methods are compared.
func (f *Friedman) compared() bool { return !f.CriticalDifference.none() }

// ranking ranks the methods that have a measure on any dataset, over the datasets on which all of them have every fold.
// Each method and each dataset counts once.
func (s *Summary) ranking(g *grid, measure int) Ranking {
	methods := slices.DeleteFunc(s.listed(), func(method int) bool {
		for d := range s.Datasets {
			if s.at(d, measure).Lines[method].Folds > 0 {
				return false
			}
		}
		return true
	})
	all := Ranking{Measure: s.Measures[measure]}
	var values [][]float64
	for d := range s.Datasets {
		if s.Datasets[d].Same != "" {
			continue
		}
		name, r, own := s.Datasets[d].Name, s.at(d, measure), []float64(nil)
		for _, method := range methods {
			if l := &r.Lines[method]; l.Complete() {
				own = append(own, float64(l.Mean))
			}
		}
		switch {
		case len(methods) > 0 && len(own) == len(methods):
			all.Datasets, values = append(all.Datasets, name), append(values, own)
		case r.NotMeasured:
			all.NotMeasured = append(all.NotMeasured, name)
		case g.anyDone(d) && g.allDone(d, methods):
			all.NoValue = append(all.NoValue, name)
		default:
			all.LeftOut = append(all.LeftOut, name)
		}
	}
	for i, rank := range statistics.AverageRanks(values, higherIsBetter(all.Measure)) {
		all.Methods = append(all.Methods, Ranked{s.Methods[methods[i]].Name, number(rank)})
	}
	slices.SortStableFunc(all.Methods, func(a, b Ranked) int { return cmp.Compare(a.Rank, b.Rank) })
	all.Friedman = friedman(values, all.Methods, s.Level)
	return all
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

// addRankings adds the average ranks by all measures, and the tests of each.
func (d *document) addRankings(s *Summary) {
	if len(s.Datasets) < 2 || len(s.listed()) < 2 {
		return
	}
	d.add(heading("Ranks over datasets"), paragraph("The best method has rank 1; tied methods share the mean of their "+
		"ranks. Friedman's test checks whether the methods differ at all. "+
		"If Friedman's test finds a difference, two methods differ if their average ranks are farther apart than Nemenyi's "+
		"critical difference."), s.ranksTable())
	for m := range s.Rankings {
		r := &s.Rankings[m]
		d.add(paragraph(r.text(s.Level)))
		if r.Friedman == nil || m > 0 && !s.options.AllTests {
			continue
		}
		measure, _ := measures.Find(r.Measure)
		caption := fmt.Sprintf("Average ranks by %s. A bar joins methods that do not differ at the level %v.",
			measure.Title, s.Level)
		if !r.Friedman.compared() {
			caption = fmt.Sprintf("Average ranks by %s. Friedman's test finds no difference at the level %v.",
				measure.Title, s.Level)
		}
		d.addFigure(&Picture{Name: "ranks-" + r.Measure, Caption: caption, Draw: r.figure})
	}
}

// ranksTable has a line for each method and a column for each measure.
func (s *Summary) ranksTable() table {
	t := table{caption: "Average ranks", header: []string{"method"}}
	for _, method := range s.listed() {
		t.lines = append(t.lines, line{cells: plain(s.title(method))})
	}
	for m, name := range s.Measures {
		measure, _ := measures.Find(name)
		t.header = append(t.header, measure.Title)
		ranked := s.Rankings[m].Methods
		var ranks []number
		for _, own := range ranked {
			ranks = append(ranks, own.Rank)
		}
		places := statistics.Places(floatsOf(ranks), false)
		f := format{2, 1}.apart(ranks, places)
		for i, method := range s.listed() {
			own := cell{text: none}
			if at := slices.IndexFunc(ranked, func(r Ranked) bool { return r.Method == s.Methods[method].Name }); at >= 0 {
				own = cell{text: f.text(ranks[at]), place: places[at]}
			}
			t.lines[i].cells = append(t.lines[i].cells, own)
		}
	}
	return t
}

// fewDatasets is the number of datasets up to which the χ² distribution is called rough.
const fewDatasets = 10

// text says what the tests of ranks say.
func (r *Ranking) text(level float64) string {
	measure, _ := measures.Find(r.Measure)
	text := fmt.Sprintf("%s: over %s", measure.Title, units.Plural(len(r.Datasets), "dataset"))
	var others []string
	for _, left := range []struct {
		why   string
		names []string
	}{
		{"methods lack folds there", r.LeftOut}, {"it is not a measure of these labels", r.NotMeasured},
		{"methods have no value there", r.NoValue},
	} {
		if len(left.names) > 0 {
			others = append(others, fmt.Sprintf("because %s: %s", left.why, strings.Join(left.names, ", ")))
		}
	}
	if len(others) > 0 {
		text += " (left out, " + strings.Join(others, "; ") + ")"
	}
	f := r.Friedman
	if f == nil {
		return text + "; Friedman's test needs at least two datasets and two methods."
	}
	how := "by the χ² distribution"
	switch {
	case f.Exact && len(r.Methods) == 2:
		how = "exact: the sign test"
	case f.Exact:
		how = "exact"
	case len(r.Datasets) <= fewDatasets:
		how = "by the χ² distribution, which is inaccurate for few datasets"
	}
	text += fmt.Sprintf(", Friedman's χ² is %s (%s, %s).", fixed(f.ChiSquared, 2), pIs(f.P), how)
	if f.Least >= number(level) {
		text += fmt.Sprintf(" For %s on %s, p is at least %s, so the test cannot find a difference at the level %v.",
			units.Plural(len(r.Methods), "method"), units.Plural(len(r.Datasets), "dataset"), pText(f.Least), level)
	}
	if !f.compared() {
		return text + fmt.Sprintf(" The test finds no difference at the level %v, so pairs of methods are not compared.",
			level)
	}
	text += fmt.Sprintf(" Nemenyi's critical difference is %s.", fixed(f.CriticalDifference, 2))
	switch {
	case len(f.Alike) == 0:
		return text + " Every two methods differ."
	case len(f.Alike) == 1 && len(f.Alike[0]) == len(r.Methods):
		return text + " No two methods are farther apart, so the test does not say which methods differ."
	}
	var runs []string
	for _, names := range f.Alike {
		runs = append(runs, strings.Join(names, ", "))
	}
	return text + " Methods that do not differ: " + strings.Join(runs, "; ") + "."
}

// figure draws the ranks.
func (r *Ranking) figure() (*figure.Figure, error) {
	d := figure.CriticalDifferences{Difference: float64(r.Friedman.CriticalDifference)}
	if !r.Friedman.compared() {
		d.Difference, d.Alike = 0, fmt.Sprintf("no difference found, %s", pIs(r.Friedman.P))
	}
	for _, row := range r.Methods {
		d.Names, d.Ranks = append(d.Names, row.Method), append(d.Ranks, float64(row.Rank))
	}
	return d.Figure()
}
