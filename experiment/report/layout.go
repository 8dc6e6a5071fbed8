package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/internal/units"
)

// layout makes the document of a summary.
func (s *Summary) layout() *document {
	d := &document{title: s.Name}
	d.add(paragraph(s.runsText()))
	for _, text := range s.Notes {
		d.add(paragraph(text))
	}
	d.add(s.datasetsTable(), s.methodsTable(), heading("Measures"), paragraph(s.explanation()))
	for m := range s.Measures {
		d.addMeasure(s, m)
	}
	d.addUnbeaten(s)
	for m := range s.Measures {
		if m == 0 || s.options.AllTests {
			d.addTests(s, m)
		}
	}
	d.addRankings(s)
	draw, families := drawing{s}, familiesOf(sweepsOf(s.Methods))
	d.addFigures("Settings", draw.sweepFigures(families))
	d.addFigures("Learning curves", draw.learningFigures())
	d.addFigures("Predictions", draw.shownFigures())
	d.addFigures("Cumulative scores", draw.scoreFigures())
	d.addFigures("Confusion", draw.confusionFigures())
	d.addChoices(s.Choices)
	d.addHyperparameters(s)
	d.addTimes(s)
	d.addGrowths(s)
	d.addProblems(&s.Runs)
	d.makePrintable()
	return d
}

// runsText counts the runs.
func (s *Summary) runsText() string {
	c := &s.Runs
	text := fmt.Sprintf("%s of %s done", units.Count(c.Done), count(c.All, "run is", "runs are"))
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Missing, "missing"}, {c.Running, "running"}} {
		if part.n > 0 {
			text += fmt.Sprintf("; %s %s", units.Count(part.n), part.what)
		}
	}
	if c.Done < c.All {
		text += ". Runs that are not done are listed at the end; a method that lacks folds shows how many folds it has, and is not compared"
	}
	if s.Spec != nil {
		text += fmt.Sprintf(". Their spec is %s, SHA-256 %.12s", s.Spec.File, s.Spec.Digest)
		if s.Spec.Data != "" {
			text += ". The files are in the folder " + s.Spec.Data + " (--data)"
		}
	}
	return text + "."
}

// ofOneFold reports whether a figure of a result is of one fold.
func ofOneFold(r Result) bool {
	return r.MeanPredictor.Folds == 1 || slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Folds == 1 })
}

// explanation says what figures mean.
func (s *Summary) explanation() string {
	text := fmt.Sprintf("Values are means over the test samples of a fold, then over folds and repeats with equal weights. ± is the %s standard deviation "+
		"over folds. The best value is bold and the second best underlined, by values before rounding. • marks a method that is worse than the best by the corrected "+
		"resampled t-test (Nadeau and Bengio 2003), Holm-adjusted within a dataset, at the level %v. The mean baseline predicts "+
		"the mean label distribution of the training samples.", s.Deviations, s.Level)
	if slices.ContainsFunc(s.Results, ofOneFold) {
		text += " A single fold has no standard deviation."
	}
	if s.Clip != "" {
		text += " Probabilities are clipped before they are compared (clip: " + s.Clip + ")."
	}
	return text
}

func (s *Summary) datasetsTable() table {
	t := table{caption: "Datasets", header: []string{"dataset", "samples", "features", "labels", "folds", "digest"}}
	for _, d := range s.Datasets {
		t.lines = append(t.lines, line{cells: plain(d.Name, strconv.Itoa(d.Rows), strconv.Itoa(d.Features), strconv.Itoa(d.Labels), strconv.Itoa(d.Folds), d.Digest[:min(12, len(d.Digest))])})
	}
	return t
}

func (s *Summary) methodsTable() table {
	t := table{caption: "Methods", header: []string{"method", "algorithm", "preset", "settings"}, texts: true}
	for _, r := range s.Methods {
		var settings []string
		for _, key := range slices.Sorted(maps.Keys(r.Settings)) {
			if key == "members" && len(r.Candidates) > 0 {
				settings = append(settings, "candidates: "+strings.Join(r.Candidates, "; "))
				continue
			}
			settings = append(settings, key+"="+r.Settings[key])
		}
		if r.Same != "" {
			settings = append(settings, "(the same as "+r.Same+")")
		}
		t.lines = append(t.lines, line{cells: plain(r.Name, r.Algorithm, orNone(r.Preset), orNone(strings.Join(settings, " ")))})
	}
	return t
}

// addMeasure adds the tables of one measure.
func (d *document) addMeasure(s *Summary, m int) {
	measure, _ := measures.Find(s.Measures[m])
	direction := "lower is better"
	if measure.HigherIsBetter {
		direction = "higher is better"
	}
	for from := 0; from < len(s.Datasets); from += columns {
		to := min(from+columns, len(s.Datasets))
		t := table{caption: fmt.Sprintf("%s (%s): %s", measure.Title, measure.Formula, direction), header: []string{"method"}}
		if from > 0 {
			t.caption += ", continued"
		}
		for _, set := range s.Datasets[from:to] {
			t.header = append(t.header, set.Name)
		}
		t.lines = s.measureLines(m, from, to)
		d.add(t)
	}
	var others []string
	for set := range s.Datasets {
		if s.at(set, m).NotMeasured {
			others = append(others, s.Datasets[set].Name)
		}
	}
	if len(others) > 0 {
		d.add(paragraph(fmt.Sprintf("%s is not a measure of the labels of %s.", measure.Title, strings.Join(others, ", "))))
	}
}

// addUnbeaten adds a table of the methods that are not better than the mean baseline, if there are any.
func (d *document) addUnbeaten(s *Summary) {
	if len(s.Unbeaten) == 0 {
		return
	}
	t := table{caption: "Methods that are not better than the mean baseline", header: []string{"dataset", "method", "K-L difference", "standard error", "compared with the baseline"}}
	for _, u := range s.Unbeaten {
		t.lines = append(t.lines, line{cells: plain(u.Dataset, u.Method, fmt.Sprintf("%+.6f", u.Difference.Mean), fmt.Sprintf("%.6f", u.StandardError), string(u.Verdict))})
	}
	d.add(t, paragraph("The K-L difference is the K-L of the method minus the K-L of the mean baseline, averaged over the test samples of all folds. "+
		"A method is not better if the difference is at most one standard error, and worse if its K-L is higher by more."))
}

// measureLines are the lines of a measure: the rows, each with what papers print of it below, then
// the mean predictor, then methods that only papers have.
func (s *Summary) measureLines(m, from, to int) (lines []line) {
	published := s.publishedLines(m, from, to)
	for _, row := range s.listed() {
		l := line{cells: plain(s.title(row))}
		for d := from; d < to; d++ {
			r := s.at(d, m)
			own := &r.Lines[row]
			l.cells = append(l.cells, cell{value: own.Folds > 0, text: own.text(r.format()), place: own.Place, worse: own.worse(s.Level)})
		}
		lines = append(append(lines, l), publishedOf(s.names(row), published)...)
	}
	l := line{rule: true, cells: plain("mean baseline")}
	for d := from; d < to; d++ {
		r := s.at(d, m)
		l.cells = append(l.cells, cell{value: r.MeanPredictor.Folds > 0, text: r.MeanPredictor.text(r.format())})
	}
	lines = append(lines, l)
	for _, p := range published {
		if !s.hasMethod(p.method) {
			lines = append(lines, p.line)
		}
	}
	return lines
}

// addTests adds a table of tests for each dataset.
func (d *document) addTests(s *Summary, m int) {
	measure, _ := measures.Find(s.Measures[m])
	d.add(heading("Tests against the best: "+measure.Title), paragraph("P-values are two-sided, over the folds that both methods have; values in brackets are Holm-adjusted over the "+
		"methods of the table. Read the corrected t-test: folds share training samples, which the paired t-test and Wilcoxon's signed-rank test ignore. "+
		"The table has these two because papers print them. The effect size is Cohen's d: the mean of the paired differences, divided by their sample standard deviation."))
	few := make(map[int][]string) // by number of values: the datasets for which Wilcoxon's test can find nothing
	for set := range s.Datasets {
		r := s.at(set, m)
		t := table{header: []string{"method", "corrected t", "paired t", "Wilcoxon", "effect size"}}
		for i := range r.Lines {
			if a := r.Lines[i].Against; a != nil {
				t.caption = fmt.Sprintf("%s: against %s", r.Dataset, a.Best)
				t.lines = append(t.lines, line{cells: plain(r.Lines[i].Method, both(a.CorrectedT, a.CorrectedTHolm), both(a.T, a.THolm), both(a.Wilcoxon, a.WilcoxonHolm), effectText(a.EffectSize))})
			}
		}
		if len(t.lines) > 0 {
			d.add(t)
			if r.LeastWilcoxon >= number(s.Level) {
				n := r.observations()
				few[n] = append(few[n], r.Dataset)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(few)) {
		d.add(paragraph(fmt.Sprintf("%s: with %s, the p-value of Wilcoxon's test is at least %s, so the test cannot find a difference at the level %v.",
			strings.Join(few[n], ", "), count(n, "value", "values"), pText(leastWilcoxon(n)), s.Level)))
	}
}

// both is a p-value with its adjusted one.
func both(p, adjusted number) string {
	if pText(p) == none {
		return none
	}
	return pText(p) + " (" + pText(adjusted) + ")"
}

// addRankings adds the average ranks by all measures, and the tests of each.
func (d *document) addRankings(s *Summary) {
	if len(s.Datasets) < 2 || len(s.listed()) < 2 {
		return
	}
	d.add(heading("Ranks over datasets"), paragraph("The best method has rank 1; tied methods share the mean of their ranks. Friedman's test checks whether the methods differ at all. "+
		"If Friedman's test finds a difference, two methods differ if their average ranks are farther apart than Nemenyi's critical difference."), s.ranksTable())
	for m := range s.Rankings {
		r := &s.Rankings[m]
		d.add(paragraph(r.text(s.Level)))
		if r.Friedman == nil || m > 0 && !s.options.AllTests {
			continue
		}
		measure, _ := measures.Find(r.Measure)
		caption := fmt.Sprintf("Average ranks by %s. A bar joins methods that do not differ at the level %v.", measure.Title, s.Level)
		if !r.Friedman.compared() {
			caption = fmt.Sprintf("Average ranks by %s. Friedman's test finds no difference at the level %v.", measure.Title, s.Level)
		}
		d.addFigure(&Picture{Name: "ranks-" + r.Measure, Caption: caption, draw: r.draw})
	}
}

// ranksTable has the average ranks: a line for each row, a column for each measure.
func (s *Summary) ranksTable() table {
	t := table{caption: "Average ranks", header: []string{"method"}}
	for _, name := range s.Measures {
		measure, _ := measures.Find(name)
		t.header = append(t.header, measure.Title)
	}
	for _, row := range s.listed() {
		l := line{cells: plain(s.title(row))}
		for m := range s.Rankings {
			l.cells = append(l.cells, s.Rankings[m].cell(s.Methods[row].Name))
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// cell is a row's rank.
func (r *Ranking) cell(row string) cell {
	places, f := r.marked()
	for i, own := range r.Methods {
		if own.Method == row {
			return cell{text: f.text(own.Rank), place: places[i]}
		}
	}
	return cell{text: none}
}

// fewDatasets is the number of datasets up to which the χ² distribution is called rough.
const fewDatasets = 10

// text says what the tests of ranks say.
func (r *Ranking) text(level float64) string {
	measure, _ := measures.Find(r.Measure)
	text := fmt.Sprintf("%s: over %s", measure.Title, count(len(r.Datasets), "dataset", "datasets"))
	var others []string
	for _, left := range []struct {
		why   string
		names []string
	}{
		{"methods lack folds there", r.LeftOut}, {"it is not a measure of these labels", r.NotMeasured}, {"methods have no value there", r.NoValue},
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
	text += fmt.Sprintf(", Friedman's χ² is %s (%s, %s).", fixed(f.ChiSquared, 2), pIs(f.P), r.how())
	if f.Least >= number(level) {
		text += fmt.Sprintf(" For %s on %s, p is at least %s, so the test cannot find a difference at the level %v.",
			count(len(r.Methods), "method", "methods"), count(len(r.Datasets), "dataset", "datasets"), pText(f.Least), level)
	}
	if !f.compared() {
		return text + fmt.Sprintf(" The test finds no difference at the level %v, so pairs of methods are not compared.", level)
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

// how says how p was computed.
func (r *Ranking) how() string {
	switch {
	case r.Friedman.Exact && len(r.Methods) == 2:
		return "exact: the sign test"
	case r.Friedman.Exact:
		return "exact"
	case len(r.Datasets) <= fewDatasets:
		return "by the χ² distribution, which is inaccurate for few datasets"
	}
	return "by the χ² distribution"
}

// draw draws the ranks.
func (r *Ranking) draw() (*figure.Figure, error) {
	d := figure.CriticalDifferences{Difference: float64(r.Friedman.CriticalDifference)}
	if !r.Friedman.compared() {
		d.Difference, d.Alike = 0, fmt.Sprintf("no difference found, %s", pIs(r.Friedman.P))
	}
	for _, row := range r.Methods {
		d.Names, d.Ranks = append(d.Names, row.Method), append(d.Ranks, float64(row.Rank))
	}
	return d.Figure()
}

// addHyperparameters adds the values of hyperparameters that the runs have.
func (d *document) addHyperparameters(s *Summary) {
	var titles, datasets []string
	for row := range s.Methods {
		titles = append(titles, s.title(row))
	}
	for i := range s.Datasets {
		datasets = append(datasets, s.Datasets[i].Name)
	}
	d.add(heading("Hyperparameters"))
	d.add(s.Hyperparameters.blocks(s.Methods, titles, datasets)...)
}

// addTimes adds the seconds of computing by row.
func (d *document) addTimes(s *Summary) {
	if s.Times == nil {
		return
	}
	d.add(heading("Times"))
	for from := 0; from < len(s.Datasets); from += columns {
		to := min(from+columns, len(s.Datasets))
		t := table{caption: "Computing time in seconds: the mean of a run by dataset, and the sum over all runs", header: []string{"method"}}
		for _, set := range s.Datasets[from:to] {
			t.header = append(t.header, set.Name)
		}
		t.header = append(t.header, "all runs")
		for _, row := range s.listed() {
			l, total := line{cells: plain(s.title(row))}, number(0)
			for i, own := range s.Times[row*len(s.Datasets) : (row+1)*len(s.Datasets)] {
				if total += own.Total; i >= from && i < to {
					l.cells = append(l.cells, cell{text: fixed(own.Total/number(own.Runs), 2)})
				}
			}
			l.cells = append(l.cells, cell{text: fixed(total, 1)})
			t.lines = append(t.lines, l)
		}
		d.add(t)
	}
}

// addProblems names the runs without measures.
func (d *document) addProblems(c *Runs) {
	if c.Failed > 0 {
		var names list
		for _, f := range c.Failures {
			names = append(names, f.Run+": "+f.Error)
		}
		d.add(heading("Failed runs"), further(names, c.Failed))
	}
	if n := c.Missing + c.Running; n > 0 {
		d.add(heading("Missing and running runs"), further(c.Gaps, n))
	}
}

// further says how many of n are not in a list.
func further(names list, n int) list {
	if n > len(names) {
		return append(names, fmt.Sprintf("and %d more", n-len(names)))
	}
	return names
}
