package experiment

import (
	"github.com/coppice-ldl/coppice/experiment/result"
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

// Strange counts the records that are of no run of the layout.
func (l *Layout) Strange(records map[string]*Record) int {
	known, n := l.Has(), 0
	for key := range records {
		if !known[key] {
			n++
		}
	}
	return n
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
