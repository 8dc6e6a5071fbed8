package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// layout makes the document of a summary.
func (s *Summary) layout() *document {
	d := &document{title: s.Name}
	d.addConclusion(s)
	d.addOverview(s)
	d.addMeasures(s)
	d.addUnbeaten(s)
	for m := range s.Measures {
		if m == 0 || s.options.AllTests {
			d.addTests(s, m)
		}
	}
	d.addRankings(s)
	d.addFigures("Settings", s.sweepFigures())
	places := make(map[string]int) // of methods, by name: a method has one colour in all figures
	for place, method := range s.listed() {
		places[s.Methods[method].Name] = place
	}
	d.addFigures("Learning curves", learningFigures(s.Curves, places))
	d.addFigures("Predictions", shownFigures(s.Shown, places))
	d.addFigures("Cumulative scores", s.scoreFigures(places))
	d.addFigures("Confusion", s.confusionFigures())
	d.addChoices(s.Choices)
	d.addHyperparameters(s)
	d.addTimes(s)
	d.addProblems(&s.Runs)
	return d
}

// addOverview adds the number of runs, the notes, and the tables of datasets and methods.
func (d *document) addOverview(s *Summary) {
	c := &s.Runs
	text := fmt.Sprintf("%s of %s done", units.Count(c.Done), units.Plural(c.All, "run"))
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Missing, "missing"}, {c.Running, "running"}} {
		if part.n > 0 {
			text += fmt.Sprintf("; %s %s", units.Count(part.n), part.what)
		}
	}
	if c.Done < c.All {
		text += ". Runs that are not done are listed at the end; a method that lacks folds shows how many folds it has, " +
			"and is not compared"
	}
	if s.Spec != nil {
		text += fmt.Sprintf(". Their spec is %s, SHA-256 %.12s", s.Spec.File, s.Spec.Digest)
		if s.Spec.Data != "" {
			text += ". The files are in the folder " + s.Spec.Data + " (--data)"
		}
	}
	d.add(paragraph(text + "."))
	for _, text := range s.Notes {
		d.add(paragraph(text))
	}
	sets := table{caption: "Datasets", header: []string{"dataset", "samples", "features", "labels", "folds", "digest"}}
	masks := ""
	for _, set := range s.Datasets {
		if set.Mask != "" {
			masks += fmt.Sprintf("%s (%s), ", set.Name, set.Mask)
		}
		sets.lines = append(sets.lines, line{cells: plain(set.Name, strconv.Itoa(set.Rows), strconv.Itoa(set.Features),
			strconv.Itoa(set.Labels), strconv.Itoa(set.Folds), set.Digest[:min(12, len(set.Digest))])})
	}
	methods := table{caption: "Methods", header: []string{"method", "algorithm", "preset", "settings"}, texts: true}
	for _, r := range s.Methods {
		var settings []string
		for _, key := range slices.Sorted(maps.Keys(r.Settings)) {
			if key == membersName && len(r.Candidates) > 0 {
				settings = append(settings, "candidates: "+strings.Join(r.Candidates, "; "))
				continue
			}
			settings = append(settings, key+"="+r.Settings[key])
		}
		if r.Same != "" {
			settings = append(settings, "(the same as "+r.Same+")")
		}
		methods.lines = append(methods.lines, line{cells: plain(r.Name, r.Algorithm, cmp.Or(r.Preset, none),
			cmp.Or(strings.Join(settings, " "), none))})
	}
	d.add(sets, methods)
	if masks != "" {
		d.add(paragraph("A mask hides degrees of the training and validation samples: " + strings.TrimSuffix(masks, ", ") +
			". Test samples have all degrees."))
	}
}

// addMeasures adds the tables of all measures, below a text that says what the values mean.
func (d *document) addMeasures(s *Summary) {
	reference := "that is worse than the best"
	if s.options.Against != "" {
		reference = "that is worse than " + s.options.Against + ", and ◦ a method that is better,"
	}
	text := fmt.Sprintf("Values are means over the test samples of a fold, then over folds and repeats with equal "+
		"weights. ± is the %s standard deviation "+
		"over folds. The best value is bold and the second best underlined, by values before rounding. • marks a method "+
		"%s by the corrected resampled t-test (Nadeau and Bengio 2003), Holm-adjusted within a dataset, at the level %v. "+
		"The mean baseline predicts the mean label distribution of the training samples.", s.Deviations, reference, s.Level)
	single := func(l Line) bool { return l.Folds == 1 }
	if slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.MeanPredictor.Folds == 1 || slices.ContainsFunc(r.Lines, single)
	}) {
		text += " A single fold has no standard deviation."
	}
	if s.Clip != "" {
		text += " Probabilities are clipped before they are compared (clip: " + s.Clip + ")."
	}
	d.add(heading("Measures"), paragraph(text))
	weighted := s.weighted()
	for m, name := range s.Measures {
		measure, _ := measures.Find(name)
		direction := "lower is better"
		if measure.HigherIsBetter {
			direction = "higher is better"
		}
		direction += weighted
		t := table{caption: fmt.Sprintf("%s (%s): %s", measure.Title, measure.Formula, direction), header: []string{"method"},
			lines: s.measureLines(m), label: name}
		for _, set := range s.Datasets {
			t.header = append(t.header, set.Name)
		}
		if s.options.Transpose {
			t = t.transposed("dataset")
		}
		d.addWide(t)
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
	d.addWins(s)
}

// addWins adds a table with the number of datasets on which the method of Options.Against is better than each other
// method, not different from it, or worse, by measure. Datasets on which one of the two lacks folds count nowhere.
func (d *document) addWins(s *Summary) {
	if s.options.Against == "" {
		return
	}
	t := table{caption: fmt.Sprintf("Wins/ties/losses of %s: the number of datasets on which it is better than a method, "+
		"not different, or worse", s.options.Against), header: []string{"method"}, label: "wins"}
	for _, name := range s.Measures {
		measure, _ := measures.Find(name)
		t.header = append(t.header, measure.Title)
	}
	for _, row := range s.listed() {
		if s.Methods[row].Name == s.options.Against {
			continue
		}
		cells := []string{s.title(row)}
		for m := range s.Measures {
			var win, tie, loss int
			for set := range s.Datasets {
				own := &s.at(set, m).Lines[row]
				switch better, worse := own.differs(s.Level); {
				case own.Against == nil:
				case worse:
					win++
				case better:
					loss++
				default:
					tie++
				}
			}
			cells = append(cells, fmt.Sprintf("%d/%d/%d", win, tie, loss))
		}
		t.lines = append(t.lines, line{cells: plain(cells...)})
	}
	d.addWide(t)
}

// addUnbeaten adds a table of the methods that are not better than the mean baseline, if there are any.
func (d *document) addUnbeaten(s *Summary) {
	if len(s.Unbeaten) == 0 {
		return
	}
	t := table{caption: "Methods that are not better than the mean baseline", header: []string{"dataset", "method",
		"K-L difference", "standard error", "compared with the baseline"}}
	for _, u := range s.Unbeaten {
		t.lines = append(t.lines, line{cells: plain(u.Dataset, u.Method, fmt.Sprintf("%+.6f", u.Difference.Mean),
			fmt.Sprintf("%.6f", u.StandardError), string(u.Verdict))})
	}
	d.add(t, paragraph("The K-L difference is the K-L of the method minus the K-L of the mean baseline, averaged over "+
		"the test samples of all folds. "+
		"A method is not better if the difference is at most one standard error, and worse if its K-L is higher by more."))
}

// measureLines are the lines of a measure: the rows, each with what papers print of it below, then
// the mean predictor, then methods that only papers have.
func (s *Summary) measureLines(m int) (lines []line) {
	published := s.publishedLines(m)
	for _, row := range s.listed() {
		l := line{cells: plain(s.title(row))}
		for d := range s.Datasets {
			r := s.at(d, m)
			own := &r.Lines[row]
			c := cell{value: own.Folds > 0, text: own.text(r.format()), place: own.Place}
			c.better, c.worse = own.differs(s.Level)
			l.cells = append(l.cells, c)
		}
		lines = append(lines, l)
		names := s.names(row)
		for _, p := range published {
			if slices.Contains(names, p.method) {
				lines = append(lines, p.line)
			}
		}
	}
	l := line{rule: true, cells: plain("mean baseline")}
	for d := range s.Datasets {
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
	d.add(heading("Tests against "+cmp.Or(s.options.Against, "the best")+": "+measure.Title),
		paragraph("P-values are two-sided, over the folds that both methods have; values in brackets are Holm-adjusted "+
			"over the "+
			"methods of the table. Read the corrected t-test: folds share training samples, which the paired t-test and "+
			"Wilcoxon's signed-rank test ignore. "+
			"The table has these two because papers print them. The effect size is Cohen's d: the mean of the paired "+
			"differences, divided by their sample standard deviation."))
	for set := range s.Datasets {
		r := s.at(set, m)
		t := table{header: []string{"method", "corrected t", "paired t", "Wilcoxon", "effect size"}}
		for i := range r.Lines {
			if a := r.Lines[i].Against; a != nil {
				t.caption = fmt.Sprintf("%s: against %s", r.Dataset, a.Reference)
				t.lines = append(t.lines, line{cells: plain(r.Lines[i].Method, both(a.CorrectedT, a.CorrectedTHolm),
					both(a.T, a.THolm), both(a.Wilcoxon, a.WilcoxonHolm), effectText(a.EffectSize))})
			}
		}
		if len(t.lines) > 0 {
			d.add(t)
		}
	}
}

// both is a p-value with its adjusted one.
func both(p, adjusted number) string {
	if pText(p) == none {
		return none
	}
	return pText(p) + " (" + pText(adjusted) + ")"
}

// publishedLine are the published figures of one method from one source.
type publishedLine struct {
	method, source string
	line           line
}

// publishedLines are the lines of published figures of a measure, by method and source in the order of the table.
func (s *Summary) publishedLines(m int) (lines []publishedLine) {
	for i := range s.Published {
		p := &s.Published[i]
		column := slices.IndexFunc(s.Datasets, func(d result.Dataset) bool { return d.Name == p.Dataset })
		if p.Measure != s.Measures[m] || column < 0 {
			continue
		}
		at := slices.IndexFunc(lines, func(l publishedLine) bool { return l.method == p.Method && l.source == p.Source })
		if at < 0 {
			at = len(lines)
			name := p.Method + " (published)"
			if p.Source != "" {
				name = p.Method + " (published: " + p.Source + ")"
			}
			lines = append(lines, publishedLine{p.Method, p.Source, line{sparse: true, cells: plain(name)}})
			for range s.Datasets {
				lines[at].line.cells = append(lines[at].line.cells, cell{text: none})
			}
		}
		f := Figure{Mean: number(p.Value), Deviation: number(p.Deviation), Folds: 1}
		own := s.at(column, m).format()
		text := f.text(own)
		if p.Deviation == 0 { // the source prints none
			text = own.text(f.Mean)
		}
		lines[at].line.cells[1+column].text = text
	}
	return lines
}

// mostNamed bounds the runs that a report names one by one; it counts the others.
const mostNamed = 100

// runsOf counts the runs. Without history, failures have no attempts and commands: these differ between two runs of one
// experiment.
func runsOf(t *result.Table, history bool) Runs {
	n := Runs{All: len(t.Runs)}
	for i := range t.Runs {
		c := &t.Runs[i]
		switch c.State {
		case result.Done:
			n.Done++
			continue
		case result.Failed:
			n.Failed++
			if len(n.Failures) < mostNamed {
				f := Failure{Run: t.NameOf(c).String(), Error: c.Error}
				if history {
					f.Attempts, f.Command, f.NoCommand = c.Attempts, c.Command, c.NoCommand
				}
				n.Failures = append(n.Failures, f)
			}
			continue
		case result.Missing:
			n.Missing++
		case result.Running:
			n.Running++
		}
		budget := ""
		if b := t.Methods[c.Method].Budget; b != "" && c.State == result.Missing {
			budget = "; the budget is " + b
		}
		if len(n.Gaps) < mostNamed {
			n.Gaps = append(n.Gaps, t.NameOf(c).String()+" ("+c.State+budget+")")
		}
	}
	return n
}

// timesOf adds up times by method and dataset.
func timesOf(t *result.Table) []Time {
	times := make([]Time, 0, len(t.Methods)*len(t.Datasets))
	for r := range t.Methods {
		for d := range t.Datasets {
			times = append(times, Time{Method: t.Methods[r].Name, Dataset: t.Datasets[d].Name})
		}
	}
	for i := range t.Runs {
		if c := &t.Runs[i]; c.State == result.Done {
			own := &times[c.Method*len(t.Datasets)+c.Dataset]
			own.Runs++
			own.Total += number(c.Seconds)
		}
	}
	return times
}

// addTimes adds the seconds of computing by row.
func (d *document) addTimes(s *Summary) {
	if s.Times == nil {
		return
	}
	d.add(heading("Times"))
	t := table{caption: "Computing time in seconds: the sum over all runs, and the mean of a run by dataset",
		header: []string{"method", "all runs"}}
	for _, set := range s.Datasets {
		t.header = append(t.header, set.Name)
	}
	for _, row := range s.listed() {
		l, total := line{cells: plain(s.title(row), "")}, number(0)
		for _, own := range s.Times[row*len(s.Datasets) : (row+1)*len(s.Datasets)] {
			total += own.Total
			l.cells = append(l.cells, cell{text: fixed(own.Total/number(own.Runs), 2)})
		}
		l.cells[1].text = fixed(total, 1)
		t.lines = append(t.lines, l)
	}
	d.addWide(t)
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
