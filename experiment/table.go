package experiment

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// Layout is the table of an experiment without results, and the key of each of its cells: all
// that a report needs beside the records.
type Layout struct {
	Table *result.Table `json:"table"`
	// Keys are those of the table's cells; empty: a cell that was refused.
	Keys []string `json:"keys"`
	// Skipped are the datasets whose files are not there.
	Skipped []string `json:"skipped,omitempty"`
	// Clip says whether the measures are of clipped degrees: measures.Clip.
	Clip string `json:"clip,omitempty"`
	// Record says what the table has of the cells beside their outcomes.
	Record Recorded `json:"record,omitzero"`
	// Numerics is the round.Numerics by which the cells are computed; 0: not known.
	Numerics int `json:"numerics,omitempty"`
}

// NewLayout puts the plans of a spec together; skipped are the names of datasets without.
func NewLayout(s *Spec, plans []*Plan, skipped []string) (*Layout, error) {
	return NewOutline(s, plans, skipped).Layout()
}

func rowOf(r *Row) result.Row {
	row := result.Row{Name: r.Name, Algorithm: r.Algorithm, Candidates: r.Candidates, Preset: r.Settings["preset"]}
	if r.Budget != nil {
		row.Budget = r.Budget.String()
	}
	for key, value := range r.Settings {
		if key == "preset" {
			continue
		}
		if row.Settings == nil {
			row.Settings = make(map[string]string)
		}
		row.Settings[key] = value
	}
	return row
}

// Record is what is known of a cell that ended.
type Record struct {
	Key     string
	Seconds float64 // of computing
	// Outcome is that of the cell, without the model, and with the learning curve and the
	// predictions where these are recorded.
	Outcome *pipeline.Outcome
}

// recordJSON is a Record as files have it, with what is recorded beside the outcome, encoded.
type recordJSON struct {
	Key         string            `json:"key"`
	Seconds     float64           `json:"seconds,omitempty"`
	Outcome     *pipeline.Outcome `json:"result"`
	Curve       []byte            `json:"curve,omitempty"`
	Predictions []byte            `json:"predictions,omitempty"`
}

// Fill returns the table with the records of cells that ended; running are the keys of those
// that are computed just now.
func (l *Layout) Fill(records map[string]*Record, running map[string]bool) *result.Table {
	t := *l.Table
	t.Cells = append([]result.Cell{}, l.Table.Cells...)
	for i := range t.Cells {
		key := l.Keys[i]
		if r, ok := records[key]; ok && key != "" {
			fill(&t.Cells[i], r, t.Measures, measures.Clip(l.Clip))
			fillRecords(&t.Cells[i], r.Outcome, &l.Record)
			fillScores(&t.Cells[i], r.Outcome, len(t.Rows[t.Cells[i].Row].Candidates))
		} else if running[key] {
			t.Cells[i].State = result.Running
		}
	}
	return &t
}

// fillScores sets what the candidates of a cell that chose among n scored.
func fillScores(c *result.Cell, o *pipeline.Outcome, n int) {
	if c.CandidateKL = scores(o.Mixture, n); c.CandidateKL != nil {
		c.MeanKL = value("kl", o.MeanPredictor, nil)
	}
}

// scores lists the K-L of the candidates of a cell that chose among n; nil: it did not.
func scores(x *algorithms.Mixture, n int) (list []float64) {
	if x == nil || n == 0 || len(x.Members) != n {
		return nil
	}
	for _, m := range x.Members {
		if m.OutOfFoldKL == nil {
			return nil
		}
		list = append(list, *m.OutOfFoldKL)
	}
	return list
}

// fill sets what a record says of a cell.
func fill(c *result.Cell, r *Record, names []string, clip measures.Clip) {
	o := r.Outcome
	c.Seconds = r.Seconds
	if o.Error != "" {
		c.State, c.Error = result.Failed, o.Error
		return
	}
	c.State, c.Digest, c.Rows = result.Done, o.ModelDigest, o.Rows.Test
	var model, baseline *measures.Added
	if o.Added != nil {
		model, baseline = o.Added.Model, o.Added.Baseline()
	}
	fillBeside(c, model)
	ofModel, ofMean := o.Measures, o.MeanPredictor
	if clip != measures.NoClip && o.Clipped != nil {
		ofModel, model = clipped(o.Clipped.Model, model)
		ofMean, baseline = clipped(o.Clipped.MeanPredictor, baseline)
	}
	for _, name := range names {
		c.Values = append(c.Values, value(name, ofModel, model))
		c.Mean = append(c.Mean, value(name, ofMean, baseline))
	}
}

// clipped returns the measures of clipped degrees; those of classes and numbers are not clipped.
func clipped(c *measures.Clipped, a *measures.Added) (measures.Report, *measures.Added) {
	of := new(measures.Added)
	if a != nil {
		*of = *a
	}
	of.Distribution = c.More
	return c.Ten, of
}

// fillBeside sets what figures show of a model's numbers or classes.
func fillBeside(c *result.Cell, a *measures.Added) {
	switch {
	case a == nil:
	case a.Scale != nil:
		c.Scores = a.Scale.Expected.Scores
	case a.Number != nil:
		c.Scores = a.Number.Number.Scores
	case a.Classes != nil && len(a.Classes.Confusion) <= result.MaxConfusion:
		c.Confusion = a.Classes.Confusion
	}
}

// value returns a mean, NaN where the model has no such measure.
func value(name string, r measures.Report, a *measures.Added) float64 {
	v, ok := measures.Value(name, r, a)
	if !ok {
		return math.NaN()
	}
	return v.Mean
}

// Counts are how many cells of a table have which state.
type Counts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
	Missing int `json:"missing"`
}

// Add counts one more cell.
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

// Count counts the cells of a table.
func Count(t *result.Table) (n Counts) {
	for i := range t.Cells {
		n.Add(t.Cells[i].State)
	}
	return n
}

// Has returns the keys of the layout's cells.
func (l *Layout) Has() map[string]bool {
	known := make(map[string]bool, len(l.Keys))
	for _, key := range l.Keys {
		known[key] = true
	}
	delete(known, "")
	return known
}

// Strange counts the records that are of no cell of the layout.
func (l *Layout) Strange(records map[string]*Record) int {
	known, n := l.Has(), 0
	for key := range records {
		if !known[key] {
			n++
		}
	}
	return n
}

// Ended returns the keys of the cells that have a record, by name.
func (l *Layout) Ended(records map[string]*Record) map[result.Name]string {
	ended := make(map[result.Name]string)
	for i := range l.Table.Cells {
		if key := l.Keys[i]; records[key] != nil {
			ended[l.Table.NameOf(&l.Table.Cells[i])] = key
		}
	}
	return ended
}

// Again lists the cells that ended before under another key and have none that ended now, where
// ended tells: of another content of the dataset, other settings, folds or numerics. before are
// the keys of those that ended before, by name.
func (l *Layout) Again(before map[result.Name]string, ended func(key string) bool) (list []result.Name) {
	for i := range l.Table.Cells {
		name := l.Table.NameOf(&l.Table.Cells[i])
		if was, ok := before[name]; ok && l.Keys[i] != "" && was != l.Keys[i] && !ended(l.Keys[i]) {
			list = append(list, name)
		}
	}
	return list
}
