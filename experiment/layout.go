package experiment

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Layout is the table of an experiment without results, and the key of each of its runs: all
// that a report needs beside the records.
type Layout struct {
	Table *result.Table `json:"table"`
	// Keys has the key of each run of the table. It is empty if the run was refused.
	Keys []string `json:"keys"`
	// Skipped lists the datasets without a file.
	Skipped []string `json:"skipped,omitempty"`
	// Clip says whether the measures are of clipped degrees: measures.Clip.
	Clip string `json:"clip,omitempty"`
	// Record says which data the table has of each run, in addition to the outcome.
	Record Recorded `json:"record,omitzero"`
	// Numerics is the round.Numerics by which the runs are computed; 0: not known.
	Numerics int `json:"numerics,omitempty"`
	// Text is the text of the spec.
	Text string `json:"spec_text,omitempty"`
	// Inputs says where the files are that the plans were made from. nil: the plans were made from datasets on a cluster.
	Inputs *Inputs `json:"inputs,omitempty"`
}

// Inputs says where the files are that an experiment was planned from.
type Inputs struct {
	// Data is the absolute path of the folder of the files; empty: the spec's folder.
	Data string `json:"data,omitempty"`
	Spec string `json:"spec,omitempty"` // the absolute path of the spec's folder
}

// Has returns the keys of the layout's runs.
func (l *Layout) Has() map[string]bool {
	known := make(map[string]bool, len(l.Keys))
	for _, key := range l.Keys {
		known[key] = true
	}
	delete(known, "")
	return known
}

// Ended returns the keys of the runs that have a record, by name.
func (l *Layout) Ended(records map[string]*Record) map[result.Name]string {
	ended := make(map[result.Name]string)
	for i := range l.Table.Runs {
		if key := l.Keys[i]; records[key] != nil {
			ended[l.Table.NameOf(&l.Table.Runs[i])] = key
		}
	}
	return ended
}

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

// Count counts the runs of a table.
func Count(t *result.Table) (n Counts) {
	for i := range t.Runs {
		switch t.Runs[i].State {
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
	return n
}

// Record is what is known of a run that ended.
type Record struct {
	Key     string
	Seconds float64 // of computing
	// Attempts is how often the run has ended, in all records of a folder or all jobs of a cluster. It is not recorded.
	Attempts int
	// Outcome is the outcome of the run without the model. It has the learning curve and the predictions if these are
	// recorded.
	Outcome *pipeline.Outcome
}

// Lacks reports whether a run that ended well has not what is recorded.
func (r *Record) Lacks(of *Recorded) bool {
	return r.Outcome.Error == "" && (of.Curve && r.Outcome.Curve == nil || of.Predictions &&
		len(r.Outcome.Predictions) == 0)
}

// BetterThan reports whether a record counts instead of an earlier record of the same run: if the earlier one failed or
// has less.
func (r *Record) BetterThan(before *Record) bool {
	return before == nil || r.content().betterThan(before.content())
}

// content says what a record has of a run.
type content struct{ failed, curve, predictions bool }

func (r *Record) content() content {
	return content{r.Outcome.Error != "", r.Outcome.Curve != nil, len(r.Outcome.Predictions) > 0}
}

func (c content) betterThan(before content) bool {
	has := func(a, b content) bool { return (a.curve || !b.curve) && (a.predictions || !b.predictions) }
	return before.failed || !c.failed && has(c, before) && !has(before, c)
}

// SetRecorded sets the learning curve and the predictions from their encodings, which may be empty.
func (r *Record) SetRecorded(line, predicted []byte) error {
	r.Outcome.Predictions = predicted
	if len(line) == 0 {
		return nil
	}
	c, err := curve.Decode(line)
	if err != nil {
		return err
	}
	r.Outcome.Curve = c
	return nil
}

// Filling fills the table of a layout with one record after the other. It does not keep the outcomes, which take
// several times as much memory as the table.
type Filling struct {
	layout *Layout
	runs   map[string][]int32 // the numbers of the runs with a key
	kept   map[string]filled  // of the runs that have a record
	latest bool               // true if each record counts, also if it has less than an earlier one
}

// Filling returns the table of the layout, which it fills: there is no copy.
func (l *Layout) Filling() *Filling {
	f := &Filling{layout: l, runs: make(map[string][]int32, len(l.Keys)), kept: make(map[string]filled)}
	for i, key := range l.Keys {
		if key != "" {
			f.runs[key] = append(f.runs[key], int32(i))
		}
	}
	return f
}

// Put fills the runs of the table that have the key of a record, unless an earlier record with the key is as good: see
// BetterThan. counts is false then, and has is false if no run has the key.
func (f *Filling) Put(r *Record) (counts, has bool) {
	runs, has := f.runs[r.Key]
	before, again := f.kept[r.Key]
	if counts = f.latest || !again || r.content().betterThan(before.content); counts {
		before.content = r.content()
	}
	before.attempts++
	f.kept[r.Key] = before
	for _, i := range runs {
		c := &f.layout.Table.Runs[i]
		if counts {
			*c = result.Run{Dataset: c.Dataset, Method: c.Method, Repeat: c.Repeat, Fold: c.Fold, State: result.Missing}
			f.layout.fill(c, r)
		}
		if c.State == result.Failed {
			c.Attempts = before.attempts
		}
	}
	return counts, has
}

// filled is the record that fills the runs with a key, and how many records had the key.
type filled struct {
	content
	attempts int
}

// fillRecorded sets the learning curve and the predictions of a record, if the experiment records them.
func fillRecorded(c *result.Run, o *pipeline.Outcome, of *Recorded) {
	if of.Curve && o.Curve != nil && len(o.Curve.Points()) > 0 {
		c.Curve = new(result.Curve)
		for _, p := range o.Curve.Points() {
			c.Curve.Steps, c.Curve.Training, c.Curve.Validation = append(c.Curve.Steps, p.Step), append(c.Curve.Training,
				p.Training), append(c.Curve.Validation, p.Validation)
		}
		if !slices.ContainsFunc(c.Curve.Validation, func(v float64) bool { return !math.IsNaN(v) }) {
			c.Curve.Validation = nil
		}
		if o.RefitSteps > 0 && o.RefitSteps < o.Steps {
			c.Curve.BeforeRefit = o.Steps - o.RefitSteps
		}
	}
	if !of.Predictions || len(o.Predictions) == 0 {
		return
	}
	set, err := predictions.Decode(o.Predictions)
	if err != nil || set.Number || set.Type.Incomplete { // numbers have no distributions, and figures show whole ones
		return
	}
	for i, row := range set.Row {
		c.Predictions = append(c.Predictions, result.Predicted{Row: row, True: set.TruthOf(i), Predicted: set.PredictedOf(i)})
	}
}
