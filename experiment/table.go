package experiment

import (
	"math"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// Fill returns the table with the records of runs that have ended.
func (l *Layout) Fill(records map[string]*Record) *result.Table {
	t := *l.Table
	t.Runs = append([]result.Run{}, l.Table.Runs...)
	for i := range t.Runs {
		key := l.Keys[i]
		if r, ok := records[key]; ok && key != "" {
			l.fill(&t.Runs[i], r)
		}
	}
	return &t
}

// fill sets what a record says of a run.
func (l *Layout) fill(c *result.Run, r *Record) {
	o := r.Outcome
	c.Seconds = r.Seconds
	if o.Error != "" {
		c.State, c.Error, c.Attempts = result.Failed, o.Error, r.Attempts
		return
	}
	c.State, c.Digest, c.Rows, c.Against = result.Done, o.ModelDigest, o.Rows.Test, o.Against
	var model, baseline *measures.Added
	if o.Added != nil {
		model, baseline = o.Added.Model, o.Added.Baseline()
	}
	switch { // what figures show of numbers or classes
	case model == nil:
	case model.Scale != nil:
		c.Scores = model.Scale.Expected.Scores
	case model.Number != nil:
		c.Scores = model.Number.Number.Scores
	case model.Classes != nil && len(model.Classes.Confusion) <= result.MaxConfusion:
		c.Confusion = model.Classes.Confusion
	}
	ofModel, ofMean := o.Measures, o.MeanPredictor
	if measures.Clip(l.Clip) != measures.NoClip && o.Clipped != nil {
		ofModel, model = clipped(o.Clipped.Model, model)
		ofMean, baseline = clipped(o.Clipped.MeanPredictor, baseline)
	}
	c.Values, c.Mean = make([]float64, 0, len(l.Table.Measures)), make([]float64, 0, len(l.Table.Measures))
	for _, name := range l.Table.Measures {
		c.Values = append(c.Values, value(name, ofModel, model))
		c.Mean = append(c.Mean, value(name, ofMean, baseline))
	}
	fillRecorded(c, o, &l.Record)
	if n := len(l.Table.Methods[c.Method].Candidates); n > 0 && o.Mixture != nil && len(o.Mixture.Members) == n {
		var scores []float64
		for _, m := range o.Mixture.Members {
			if m.OutOfFoldKL != nil {
				scores = append(scores, *m.OutOfFoldKL)
			}
		}
		if len(scores) == n {
			c.CandidateKL, c.MeanKL = scores, value("kl", o.MeanPredictor, nil)
		}
	}
}

// clipped returns the measures of clipped degrees. Measures of classes and numbers are not clipped.
func clipped(c *measures.Clipped, a *measures.Added) (measures.Report, *measures.Added) {
	of := new(measures.Added)
	if a != nil {
		*of = *a
	}
	of.Distribution = c.More
	return c.Ten, of
}

// value returns a mean, or NaN if the model has no such measure.
func value(name string, r measures.Report, a *measures.Added) float64 {
	v, ok := measures.Value(name, r, a)
	if !ok {
		return math.NaN()
	}
	return v.Mean
}

// Counts are how many runs of a table have which state.
type Counts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
	Missing int `json:"missing"`
}

// Add counts one more run.
func (n *Counts) Add(state string) {
	switch state {
	case result.Done:
		n.Done++
	case result.Failed:
		n.Failed++
	case result.Running:
		n.Running++
	default:
		n.Missing++
	}
}

// Count counts the runs of a table.
func Count(t *result.Table) (n Counts) {
	for i := range t.Runs {
		n.Add(t.Runs[i].State)
	}
	return n
}
