package experiment

import (
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
	// Text is that of the spec.
	Text string `json:"spec_text,omitempty"`
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
