package experiment

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/round"
)

// Layout is the table of an experiment without results, and the key of each of its cells: all
// that a report needs beside the records.
type Layout struct {
	Table *result.Table `json:"table"`
	// Keys are those of the table's cells; empty: a cell that was refused.
	Keys []string `json:"keys"`
	// Skipped are the datasets whose files are not there.
	Skipped []string `json:"skipped,omitempty"`
}

// Outline is an experiment without its cells: what the jobs of a cluster keep of it, so that a
// report needs them alone.
type Outline struct {
	Table *result.Table `json:"table"` // without cells
	Sets  []Set         `json:"sets"`  // of the table's datasets
	// Skipped are the datasets whose files are not there.
	Skipped []string `json:"skipped,omitempty"`
}

// Set says of a dataset which cells each row has.
type Set struct {
	Repeats int `json:"repeats"`
	// Refused says, by the number of a row, why it does not go with the dataset.
	Refused map[int]string `json:"refused,omitempty"`
}

// NewOutline puts the plans of a spec together; skipped are the names of datasets without.
func NewOutline(s *Spec, plans []*Plan, skipped []string) *Outline {
	o := &Outline{Table: &result.Table{Name: s.Name, Measures: s.Measures, Cells: []result.Cell{}}, Skipped: skipped}
	for i := range s.Rows {
		o.Table.Rows = append(o.Table.Rows, rowOf(&s.Rows[i]))
	}
	for _, p := range plans {
		m := p.Manifest
		o.Table.Datasets = append(o.Table.Datasets, result.Dataset{Name: p.Dataset.Name, Rows: m.Rows, Features: m.Features, Labels: m.Labels, Folds: p.Folds, Digest: m.Digest()})
		o.Sets = append(o.Sets, Set{p.Repeats, p.Refused})
		for _, f := range s.Published {
			if f.Dataset == p.Dataset.Name {
				o.Table.Published = append(o.Table.Published, f.Published)
			}
		}
	}
	return o
}

// Place is which cell a cell is, by the numbers of dataset and row in the table.
type Place struct{ Dataset, Row, Repeat, Fold int }

// Layout returns the layout whose cells have the given keys.
func (o *Outline) Layout(keys map[Place]string) (*Layout, error) {
	t := *o.Table
	l := &Layout{Table: &t, Skipped: o.Skipped}
	if len(o.Sets) != len(t.Datasets) {
		return nil, fmt.Errorf("%w: %d datasets and %d sets of cells", ErrFolder, len(t.Datasets), len(o.Sets))
	}
	cells := 0
	for d, set := range o.Sets {
		if cells += max(0, set.Repeats) * max(0, t.Datasets[d].Folds) * len(t.Rows); set.Repeats > round.MaxCells || t.Datasets[d].Folds > round.MaxCells || cells > round.MaxCells {
			return nil, fmt.Errorf("%w: more than %d cells", ErrFolder, round.MaxCells)
		}
		for row := range t.Rows {
			l.addRow(Place{Dataset: d, Row: row}, &set, keys)
		}
	}
	return l, l.Table.Validate()
}

// addRow adds the cells of a row on a dataset: by repeat, then by fold.
func (l *Layout) addRow(at Place, set *Set, keys map[Place]string) {
	why, refused := set.Refused[at.Row]
	for at.Repeat = range max(0, set.Repeats) {
		for at.Fold = range max(0, l.Table.Datasets[at.Dataset].Folds) {
			c := result.Cell{Dataset: at.Dataset, Row: at.Row, Repeat: at.Repeat, Fold: at.Fold, State: result.Missing}
			if refused {
				c.State, c.Error = result.Failed, why
			}
			l.Table.Cells = append(l.Table.Cells, c)
			l.Keys = append(l.Keys, keys[at])
		}
	}
}

// NewLayout puts the plans of a spec together; skipped are the names of datasets without.
func NewLayout(s *Spec, plans []*Plan, skipped []string) (*Layout, error) {
	keys := make(map[Place]string)
	for i, p := range plans {
		cells, err := p.Cells()
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			keys[Place{i, c.Row, c.Repeat, c.Fold}] = c.Key
		}
	}
	return NewOutline(s, plans, skipped).Layout(keys)
}

func rowOf(r *Row) result.Row {
	row := result.Row{Name: r.Name, Algorithm: r.Algorithm, Preset: r.Settings["preset"]}
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
	Key     string  `json:"key"`
	Seconds float64 `json:"seconds,omitempty"` // of computing
	// Outcome is that of the cell, without the model.
	Outcome *pipeline.Outcome `json:"result"`
}

// Fill returns the table with the records of cells that ended; running are the keys of those
// that are computed just now.
func (l *Layout) Fill(records map[string]*Record, running map[string]bool) *result.Table {
	t := *l.Table
	t.Cells = append([]result.Cell{}, l.Table.Cells...)
	for i := range t.Cells {
		key := l.Keys[i]
		if r, ok := records[key]; ok && key != "" {
			fill(&t.Cells[i], r, t.Measures)
		} else if running[key] {
			t.Cells[i].State = result.Running
		}
	}
	return &t
}

// fill sets what a record says of a cell.
func fill(c *result.Cell, r *Record, names []string) {
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
	for _, name := range names {
		c.Values = append(c.Values, value(name, o.Measures, model))
		c.Mean = append(c.Mean, value(name, o.MeanPredictor, baseline))
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

// Strange counts the records that are of no cell of the layout.
func (l *Layout) Strange(records map[string]*Record) int {
	known := make(map[string]bool)
	for _, key := range l.Keys {
		known[key] = true
	}
	n := 0
	for key := range records {
		if !known[key] {
			n++
		}
	}
	return n
}
