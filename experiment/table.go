package experiment

import (
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

// NewLayout puts the plans of a spec together; skipped are the names of datasets without.
func NewLayout(s *Spec, plans []*Plan, skipped []string) (*Layout, error) {
	l := &Layout{Table: &result.Table{Name: s.Name, Measures: s.Measures}, Skipped: skipped}
	for i := range s.Rows {
		l.Table.Rows = append(l.Table.Rows, rowOf(&s.Rows[i]))
	}
	for i, p := range plans {
		m := p.Manifest
		l.Table.Datasets = append(l.Table.Datasets, result.Dataset{Name: p.Dataset.Name, Rows: m.Rows, Features: m.Features, Labels: m.Labels, Folds: p.Folds, Digest: m.Digest()})
		if err := l.add(s, i, p); err != nil {
			return nil, err
		}
		for _, f := range s.Published {
			if f.Dataset == p.Dataset.Name {
				l.Table.Published = append(l.Table.Published, f.Published)
			}
		}
	}
	return l, l.Table.Validate()
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

// add adds the cells of a plan: by row, then by repeat and fold.
func (l *Layout) add(s *Spec, dataset int, p *Plan) error {
	cells, err := p.Cells()
	if err != nil {
		return err
	}
	keys := make(map[round.Cell]string)
	for _, c := range cells {
		keys[round.Cell{Row: c.Row, Repeat: c.Repeat, Fold: c.Fold}] = c.Key
	}
	for row := range s.Rows {
		for at := range p.Repeats * p.Folds {
			c := result.Cell{Dataset: dataset, Row: row, Repeat: at / p.Folds, Fold: at % p.Folds, State: result.Missing}
			if why, refused := p.Refused[row]; refused {
				c.State, c.Error = result.Failed, why
			}
			l.Table.Cells = append(l.Table.Cells, c)
			l.Keys = append(l.Keys, keys[round.Cell{Row: row, Repeat: c.Repeat, Fold: c.Fold}])
		}
	}
	return nil
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
func fill(c *result.Cell, r *Record, measures []string) {
	o := r.Outcome
	c.Seconds = r.Seconds
	if o.Error != "" {
		c.State, c.Error = result.Failed, o.Error
		return
	}
	c.State, c.Digest, c.Rows = result.Done, o.ModelDigest, o.Rows.Test
	for _, name := range measures {
		model, _ := o.Measures.Get(name)
		mean, _ := o.MeanPredictor.Get(name)
		c.Values, c.Mean = append(c.Values, model.Mean), append(c.Mean, mean.Mean)
	}
}

// Counts are how many cells of a table have which state.
type Counts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
	Missing int `json:"missing"`
}

// Count counts the cells of a table.
func Count(t *result.Table) (n Counts) {
	for i := range t.Cells {
		switch t.Cells[i].State {
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
