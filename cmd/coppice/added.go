package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// measureLine is a measure beside the ten, of the model and of what it must beat.
type measureLine struct {
	title       string
	model, mean measures.Stat
	higher      bool
}

// addedLines lists the measures beside the ten that are lines of the table.
func addedLines(a *pipeline.Added) (lines []measureLine) {
	if a == nil {
		return nil
	}
	m, b := a.Model, a.Baseline()
	if m == nil || b == nil {
		return nil
	}
	if m.Distribution != nil && b.Distribution != nil {
		of, mean := m.Distribution.Stats(), b.Distribution.Stats()
		for i, x := range measures.More {
			lines = append(lines, measureLine{x.Title, *of[i], *mean[i], x.HigherIsBetter})
		}
	}
	return append(lines, byTypeLines(m, b)...)
}

// byTypeLines lists the measures that the type of the labels allows.
func byTypeLines(m, b *measures.Added) []measureLine {
	switch {
	case m.Classes != nil && b.Classes != nil:
		m, b := m.Classes, b.Classes
		return []measureLine{
			{"Accuracy", m.Accuracy, b.Accuracy, true}, {"Mean recall", m.MeanRecall, b.MeanRecall, true},
			{"Mean Jaccard", m.MeanJaccard, b.MeanJaccard, true}, {"Log loss", m.LogLoss, b.LogLoss, false},
		}
	case m.Scale != nil && b.Scale != nil:
		m, b := m.Scale, b.Scale
		return []measureLine{
			{"MAE, expected", m.Expected.MAE, b.Expected.MAE, false}, {"MAE, median", m.Median.MAE, b.Median.MAE, false},
			{"MAE, mode", m.Mode.MAE, b.Mode.MAE, false},
		}
	case m.Number != nil && b.Number != nil:
		m, b := m.Number, b.Number
		return []measureLine{{"MAE", m.Number.MAE, b.Number.MAE, false}, {"MAE, floored", m.Floored.MAE, b.Floored.MAE, false}}
	}
	return nil
}

// scoresOf lists the cumulative scores of each predicted number, with their titles.
func scoresOf(a *measures.Added) (titles []string, scores [][]float64) {
	switch {
	case a == nil:
	case a.Scale != nil:
		return []string{"expected", "median", "mode"}, [][]float64{a.Scale.Expected.Scores, a.Scale.Median.Scores, a.Scale.Mode.Scores}
	case a.Number != nil:
		return []string{"number", "floored"}, [][]float64{a.Number.Number.Scores, a.Number.Floored.Scores}
	}
	return nil, nil
}

// writeScores writes a table of cumulative scores, where there are some.
func writeScores(w io.Writer, a *pipeline.Added) {
	if a == nil {
		return
	}
	header, right := []string{"cumulative score"}, []int(nil)
	for s := range measures.MaxScore + 1 {
		header, right = append(header, strconv.Itoa(s)), append(right, s+2)
	}
	t, rows := newTable(w, header, right...), 0
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
			t.AppendRow(rowOf(cells...))
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintln(w)
		t.Render()
	}
}

// writeConfusion writes the confusion matrix of predicted classes, which names calls.
func writeConfusion(w io.Writer, c *measures.Classes, names []string) {
	header, right := []string{"true"}, []int(nil)
	for i := range c.Confusion {
		header, right = append(header, names[i]), append(right, i+2)
	}
	fmt.Fprintln(w, "\nConfusion matrix: one line per true class, one column per predicted class")
	t := newTable(w, header, right...)
	for i, counts := range c.Confusion {
		cells := []string{names[i]}
		for _, n := range counts {
			cells = append(cells, count(n))
		}
		t.AppendRow(rowOf(cells...))
	}
	t.Render()
}
