package results

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// measureLine is a line of a table of measures: a measure of the model and of the baseline.
type measureLine struct {
	measure         string
	model, baseline measures.Stat
	higher          bool // true if a higher value is better
}

// Compared is a measure of a model and of its baseline.
type Compared struct {
	Name, Title     string // such as kl and K-L
	Model, Baseline measures.Stat
	HigherIsBetter  bool
}

// Compare lists the measures of a model and of its baseline, in the order of WriteMeasures, and names the baseline.
func Compare(model, mean measures.Report, added *pipeline.Added) (baseline string, all []Compared) {
	baseline, lines := measureLines(model, mean, added)
	names := make(map[string]string)
	for _, m := range slices.Concat(measures.All, measures.More) {
		names[m.Title] = m.Name
	}
	for _, l := range lines {
		name := names[l.measure]
		if name == "" {
			name = strings.NewReplacer(", ", "_", " ", "_", "²", "2").Replace(strings.ToLower(l.measure))
		}
		all = append(all, Compared{Name: name, Title: l.measure, Model: l.model, Baseline: l.baseline,
			HigherIsBetter: l.higher})
	}
	return baseline, all
}

// measureLines returns the lines of a table of measures, and the name of the baseline. A model of numbers has none of
// the ten measures.
func measureLines(model, mean measures.Report, added *pipeline.Added) (beat string, lines []measureLine) {
	beat = "mean baseline"
	if added != nil && added.MedianPredictor != nil {
		beat = "median baseline"
	} else if !gaps(added) {
		for i, m := range measures.All {
			lines = append(lines, measureLine{measure: m.Title, model: model[i], baseline: mean[i], higher: m.HigherIsBetter})
		}
	}
	if added != nil && added.Model != nil && added.Baseline() != nil {
		of := addedLines(added.Model, added.Baseline())
		if added.Model.Targets != nil { // what the model is for comes first
			of, lines = lines, of
		}
		lines = append(lines, of...)
	}
	return beat, lines
}

// WriteMeasures writes a table of the measures of a model and of its baseline.
func WriteMeasures(w io.Writer, title string, model, mean measures.Report, added *pipeline.Added) {
	fmt.Fprintln(w, title)
	beat, lines := measureLines(model, mean, added)
	t := cli.NewTable(w, []string{"", "model", "±", beat, "±", "better is"}, 2, 3, 4, 5)
	for _, l := range lines {
		better := "lower"
		if l.higher {
			better = "higher"
		}
		t.AppendRow(cli.Row(l.measure, cli.Measure(l.model.Mean), cli.Measure(l.model.Std), cli.Measure(l.baseline.Mean),
			cli.Measure(l.baseline.Std), better))
	}
	t.Render()
	if gaps(added) {
		o := added.Model.Observed
		fmt.Fprintf(w, "%s of %s degrees are missing. Measures of distributions need complete labels.\n",
			units.Count(o.Missing), units.Count(o.Missing+o.Degrees))
	}
	if added != nil {
		writeScores(w, added)
		if added.Model != nil && added.Model.Targets != nil {
			fmt.Fprintln(w, "K-L and what follows compare targets as distributions: divided by their sum, or projected.")
		}
	}
}

// gaps reports whether labels have missing degrees, so that there are only the errors of the others.
func gaps(a *pipeline.Added) bool {
	return a != nil && a.Model != nil && a.Model.Observed != nil && a.Model.Observed.Missing > 0
}

// WriteTargets writes a table of the errors of each target, if a model has such. names has the names of the labels; it
// may be empty.
func WriteTargets(w io.Writer, added *pipeline.Added, names []string) {
	if added == nil || added.Model == nil || added.Model.Targets == nil || len(added.Model.Targets.Labels) == 0 {
		return
	}
	fmt.Fprintln(w, "\nErrors of each target, in its unit")
	t := cli.NewTable(w, []string{"", "MAE", "RMSE", "R²"}, 2, 3, 4)
	for i, one := range added.Model.Targets.Labels {
		name := strconv.Itoa(i)
		if i < len(names) {
			name = names[i]
		}
		t.AppendRow(cli.Row(name, cli.Measure(one.MAE.Mean), cli.Measure(one.RMSE.Mean), cli.Measure(one.R2.Mean)))
	}
	t.Render()
}

// WriteAgainst writes a warning if a model is not better than the mean baseline on samples. a may be nil.
func WriteAgainst(w io.Writer, algorithm, on string, a *measures.AgainstBaseline) {
	if !a.Unbeaten() {
		return
	}
	by := "differs by"
	if a.Verdict == measures.Worse {
		by = "is higher by"
	}
	fmt.Fprintf(w, "warning: %s is %s than the mean baseline: its K-L on the %s %s %s (standard error %s).\n",
		algorithm, a.Verdict, on, by, cli.Measure(math.Abs(a.Difference.Mean)), cli.Measure(a.StandardError))
}

// WriteLinear writes the K-L of the linear baseline, if there is one, and a warning if the linear baseline is better
// than the model.
func WriteLinear(w io.Writer, algorithm string, l *pipeline.LinearBaseline, rows pipeline.Counts,
	model measures.Report) {
	if l == nil {
		return
	}
	of := "the " + units.Count(uint64(l.Samples))
	if l.Samples < rows.Train {
		of = fmt.Sprintf("%s of the %s", units.Count(uint64(l.Samples)), units.Count(uint64(rows.Train)))
	}
	fmt.Fprintf(w, "Linear baseline: K-L %s (sa-bfgs, fitted to %s training samples)\n",
		cli.Measure(l.Measures[0].Mean), of)
	if l.Better {
		fmt.Fprintf(w, "warning: the linear baseline has a lower K-L than %s (%s). Try --algorithm sa-bfgs.\n", algorithm,
			cli.Measure(model[0].Mean))
	}
}

// addedLines returns the measures that follow the ten: measures.More, and the measures of classes, numbers or targets
// if the labels have this type. b is the baseline.
func addedLines(m, b *measures.Added) (lines []measureLine) {
	if m.Distribution != nil && b.Distribution != nil {
		for i, x := range measures.More {
			lines = append(lines, measureLine{measure: x.Title, model: m.Distribution[i], baseline: b.Distribution[i],
				higher: x.HigherIsBetter})
		}
	}
	switch {
	case m.Observed != nil && b.Observed != nil:
		lines = append(lines, measureLine{measure: "MAE, observed degrees", model: m.Observed.MAE, baseline: b.Observed.MAE,
			higher: false})
	case m.Classes != nil && b.Classes != nil:
		m, b := m.Classes, b.Classes
		lines = append(lines, []measureLine{
			{measure: "Accuracy", model: m.Accuracy, baseline: b.Accuracy, higher: true}, {measure: "Mean recall",
				model: m.MeanRecall, baseline: b.MeanRecall, higher: true},
			{measure: "Mean Jaccard", model: m.MeanJaccard, baseline: b.MeanJaccard, higher: true},
			{measure: "Log loss", model: m.LogLoss, baseline: b.LogLoss, higher: false},
		}...)
	case m.Scale != nil && b.Scale != nil:
		m, b := m.Scale, b.Scale
		lines = append(lines, []measureLine{
			{measure: "MAE, expected", model: m.Expected.MAE, baseline: b.Expected.MAE, higher: false}, {measure: "MAE, median",
				model: m.Median.MAE, baseline: b.Median.MAE, higher: false},
			{measure: "MAE, mode", model: m.Mode.MAE, baseline: b.Mode.MAE, higher: false},
		}...)
	case m.Targets != nil && b.Targets != nil:
		m, b := m.Targets, b.Targets
		lines = append(lines, []measureLine{
			{measure: "MAE", model: m.MAE, baseline: b.MAE, higher: false},
			{measure: "MSE", model: m.MSE, baseline: b.MSE, higher: false},
			{measure: "RMSE", model: m.RMSE, baseline: b.RMSE, higher: false},
			{measure: "R²", model: m.R2, baseline: b.R2, higher: true},
			{measure: "MAE, scaled", model: m.ScaledMAE, baseline: b.ScaledMAE, higher: false},
			{measure: "MSE, scaled", model: m.ScaledMSE, baseline: b.ScaledMSE, higher: false},
		}...)
	case m.Number != nil && b.Number != nil:
		m, b := m.Number, b.Number
		lines = append(lines, measureLine{measure: "MAE", model: m.Number.MAE, baseline: b.Number.MAE, higher: false},
			measureLine{measure: "MAE, floored", model: m.Floored.MAE, baseline: b.Floored.MAE, higher: false})
	}
	return lines
}

// scoresOf returns the cumulative scores of each predicted number, and their titles.
func scoresOf(a *measures.Added) (titles []string, scores [][]float64) {
	switch {
	case a == nil:
	case a.Scale != nil:
		return []string{"expected", "median", "mode"}, [][]float64{a.Scale.Expected.Scores, a.Scale.Median.Scores,
			a.Scale.Mode.Scores}
	case a.Number != nil:
		return []string{"number", "floored"}, [][]float64{a.Number.Number.Scores, a.Number.Floored.Scores}
	}
	return nil, nil
}

// writeScores writes a table of cumulative scores, if there are any.
func writeScores(w io.Writer, a *pipeline.Added) {
	header, right := []string{"cumulative score"}, []int(nil)
	for s := range measures.MaxScore + 1 {
		header, right = append(header, strconv.Itoa(s)), append(right, s+2)
	}
	t, rows := cli.NewTable(w, header, right...), 0
	for _, side := range []struct {
		name string
		of   *measures.Added
	}{{"model", a.Model}, {"mean baseline", a.MeanPredictor}, {"median baseline", a.MedianPredictor}} {
		titles, scores := scoresOf(side.of)
		for i, title := range titles {
			cells := []string{side.name + ", " + title}
			for _, v := range scores[i] {
				cells = append(cells, strconv.FormatFloat(v, 'f', 3, 64))
			}
			t.AppendRow(cli.Row(cells...))
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintln(w)
		t.Render()
	}
}

// WriteConfusion writes the confusion matrix of classes. names has the names of the classes.
func WriteConfusion(w io.Writer, c *measures.Classes, names []string) {
	header, right := []string{"true"}, []int(nil)
	for i := range c.Confusion {
		header, right = append(header, names[i]), append(right, i+2)
	}
	fmt.Fprintln(w, "\nConfusion matrix: one line per true class, one column per predicted class")
	t := cli.NewTable(w, header, right...)
	for i, counts := range c.Confusion {
		cells := []string{names[i]}
		for _, n := range counts {
			cells = append(cells, units.Count(n))
		}
		t.AppendRow(cli.Row(cells...))
	}
	t.Render()
}
