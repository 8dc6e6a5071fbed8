package results

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// WriteMeasures writes a table of the measures of a model and of its baseline.
func WriteMeasures(w io.Writer, title string, model, mean measures.Report, added *pipeline.Added) {
	fmt.Fprintln(w, title)
	beat, lines := pipeline.Compare(model, mean, added)
	t := cli.NewTable(w, []string{"", "model", "±", beat, "±", "better is"}, 2, 3, 4, 5)
	for _, l := range lines {
		better := "lower"
		if l.HigherIsBetter {
			better = "higher"
		}
		t.AppendRow(cli.Row(l.Title, cli.Measure(l.Model.Mean), cli.Measure(l.Model.Std), cli.Measure(l.Baseline.Mean),
			cli.Measure(l.Baseline.Std), better))
	}
	t.Render()
	if added.Gaps() {
		o := added.Model.Observed
		fmt.Fprintf(w, "%s of %s degrees are missing. Measures of distributions need complete labels.\n",
			countText(o.Missing), countText(o.Missing+o.Degrees))
	}
	if added != nil {
		writeScores(w, added)
		if added.Model != nil && added.Model.Targets != nil {
			fmt.Fprintln(w, "K-L and what follows compare targets as distributions: divided by their sum, or projected.")
		}
	}
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

// countText writes a number of things, or a sum of weights that need not be whole.
func countText(n float64) string {
	if n == math.Trunc(n) && n < 1<<53 {
		return units.Count(int64(n))
	}
	return strconv.FormatFloat(n, 'g', 6, 64)
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
			cells = append(cells, countText(n))
		}
		t.AppendRow(cli.Row(cells...))
	}
	t.Render()
}
