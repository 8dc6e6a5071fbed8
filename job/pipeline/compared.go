package pipeline

import (
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// Compared is a measure of a model and of its baseline.
type Compared struct {
	Name, Title     string // such as kl and K-L
	Model, Baseline measures.Stat
	HigherIsBetter  bool
}

// Beats reports whether the model is better than its baseline by this measure.
func (c *Compared) Beats() bool {
	if c.HigherIsBetter {
		return c.Model.Mean > c.Baseline.Mean
	}
	return c.Model.Mean < c.Baseline.Mean
}

// Compare lists the measures of a model and of its baseline, in the order of tables, and names the baseline. A model of
// numbers has none of the ten measures. added may be nil.
func Compare(model, mean measures.Report, added *Added) (baseline string, all []Compared) {
	baseline = "mean baseline"
	if added != nil && added.MedianPredictor != nil {
		baseline = "median baseline"
	} else if !added.Gaps() {
		for i, m := range measures.All {
			all = append(all, Compared{Name: m.Name, Title: m.Title, Model: model[i], Baseline: mean[i],
				HigherIsBetter: m.HigherIsBetter})
		}
	}
	if added != nil && added.Model != nil && added.Baseline() != nil {
		of := compareAdded(added.Model, added.Baseline())
		if added.Model.Targets != nil { // what the model is for comes first
			of, all = all, of
		}
		all = append(all, of...)
	}
	for i := range all {
		if all[i].Name == "" {
			all[i].Name = strings.NewReplacer(", ", "_", " ", "_", "²", "2").Replace(strings.ToLower(all[i].Title))
		}
	}
	return baseline, all
}

// Gaps reports whether labels have missing degrees, so that there are only the errors of the others.
func (a *Added) Gaps() bool {
	return a != nil && a.Model != nil && a.Model.Observed != nil && a.Model.Observed.Missing > 0
}

// compareAdded lists the measures that follow the ten: measures.More, and the measures of classes, numbers or targets
// if the labels have this type. b is the baseline.
func compareAdded(m, b *measures.Added) (all []Compared) {
	add := func(title string, model, baseline measures.Stat, higher bool) {
		all = append(all, Compared{Title: title, Model: model, Baseline: baseline, HigherIsBetter: higher})
	}
	if m.Distribution != nil && b.Distribution != nil {
		for i, x := range measures.More {
			add(x.Title, m.Distribution[i], b.Distribution[i], x.HigherIsBetter)
			all[i].Name = x.Name
		}
	}
	switch {
	case m.Observed != nil && b.Observed != nil:
		add("MAE, observed degrees", m.Observed.MAE, b.Observed.MAE, false)
	case m.Classes != nil && b.Classes != nil:
		m, b := m.Classes, b.Classes
		add("Accuracy", m.Accuracy, b.Accuracy, true)
		add("Mean recall", m.MeanRecall, b.MeanRecall, true)
		add("Mean Jaccard", m.MeanJaccard, b.MeanJaccard, true)
		add("Log loss", m.LogLoss, b.LogLoss, false)
	case m.Scale != nil && b.Scale != nil:
		m, b := m.Scale, b.Scale
		add("MAE, expected", m.Expected.MAE, b.Expected.MAE, false)
		add("MAE, median", m.Median.MAE, b.Median.MAE, false)
		add("MAE, mode", m.Mode.MAE, b.Mode.MAE, false)
	case m.Targets != nil && b.Targets != nil:
		m, b := m.Targets, b.Targets
		add("MAE", m.MAE, b.MAE, false)
		add("MSE", m.MSE, b.MSE, false)
		add("RMSE", m.RMSE, b.RMSE, false)
		add("R²", m.R2, b.R2, true)
		add("MAE, scaled", m.ScaledMAE, b.ScaledMAE, false)
		add("MSE, scaled", m.ScaledMSE, b.ScaledMSE, false)
	case m.Number != nil && b.Number != nil:
		m, b := m.Number, b.Number
		add("MAE", m.Number.MAE, b.Number.MAE, false)
		add("MAE, floored", m.Floored.MAE, b.Floored.MAE, false)
	}
	return all
}
