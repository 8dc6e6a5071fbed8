// Package report makes reports of experiments from their tables: measures with their deviations,
// tests, ranks, times and what failed, as text, Markdown, CSV, JSON, LaTeX or HTML. A report is a
// function of the table and the options: equal tables give equal bytes, and without times so do
// two runs of one experiment.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/protocol"
)

// writers are the formats.
var writers = map[string]func(io.Writer, *Summary) error{
	"table": writeText, "md": writeMarkdown, "csv": writeCSV, "latex": writeLaTeX, "html": writeHTML,
	"fragment": writeFragment,
	"json": func(w io.Writer, s *Summary) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(s)
	},
}

// Formats lists the names of formats, in the order of help texts.
func Formats() []string { return protocol.ReportFormats }

// Write writes a report. The error wraps ErrOptions or result.ErrTable, or is the writer's.
func Write(w io.Writer, t *result.Table, format string, o Options) error {
	if err := Check(format, o); err != nil {
		return err
	}
	s, err := Summarize(t, o)
	if err != nil {
		return err
	}
	if format != "csv" && format != "json" {
		w = printable.NewWriter(w) // names and errors are what users and other machines wrote
	}
	return writers[format](w, s)
}

// Check returns the error that Write would return for the format or the level, whatever the table is.
func Check(format string, o Options) error {
	if _, ok := writers[format]; !ok {
		return fmt.Errorf("unknown format %q: want one of %s: %w", format, strings.Join(Formats(), ", "), ErrOptions)
	}
	if o.Bare && format != "latex" {
		return fmt.Errorf("bare tables are of the format latex, not %s: %w", format, ErrOptions)
	}
	return o.checkLevel()
}

// Figures lists the pictures of a report, at most 60, in the order of its page. Errors are those
// of Write.
func Figures(t *result.Table, o Options) ([]Picture, error) {
	s, err := Summarize(t, o)
	if err != nil {
		return nil, err
	}
	var all []Picture
	for _, b := range s.layout().blocks {
		if f, ok := b.(picture); ok && f.Picture != nil {
			all = append(all, *f.Picture)
		}
	}
	return all, nil
}

// Summarize computes what a report says. It returns the same errors as Write.
func Summarize(t *result.Table, o Options) (*Summary, error) {
	o, err := o.check(t)
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Name: t.Name, Spec: t.Spec, Deviations: "population", Level: o.Level, Datasets: t.Datasets, Methods: t.Methods,
		Measures: t.Measures, Clip: t.Clip, Published: t.Published,
		Runs: runsOf(t, !o.NoTimes), options: o,
	}
	if o.Sample {
		s.Deviations = "sample"
	}
	s.Published = slices.Clone(t.Published)
	for i := range s.Published {
		s.Published[i].Value += 0 // no -0
	}
	g := newGrid(t)
	s.Scores, s.Confusion = g.scored(), g.confused()
	for d := range t.Datasets {
		for m := range t.Measures {
			s.Results = append(s.Results, s.result(g, d, m))
		}
	}
	s.Unbeaten = g.unbeaten()
	for m := range t.Measures {
		s.Rankings = append(s.Rankings, s.ranking(g, m))
	}
	s.Notes = slices.Concat(o.Notes, t.Notes())
	s.Hyperparameters, s.hyperparameters = usedOf(t), t.Hyperparameters
	s.Choices, s.Curves, s.Shown = choicesOf(g), g.learned(), s.shown(g)
	if !o.NoTimes {
		s.Times = timesOf(t)
	}
	return s, nil
}
