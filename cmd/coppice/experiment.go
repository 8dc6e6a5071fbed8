package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
)

type experimentCmd struct {
	Run    experimentRunCmd    `cmd:"" help:"Run every dataset, row and fold of a spec, on a cluster or with --local in this process."`
	Show   experimentShowCmd   `cmd:"" help:"Show how far an experiment is, which cells failed and why, and its table."`
	Report experimentReportCmd `cmd:"" help:"Write the table of an experiment."`
}

// specArg names the spec of an experiment and where its data is.
type specArg struct {
	Spec string `arg:"" placeholder:"SPEC.yaml" help:"Spec of the experiment; docs/experiments.md has the keys."`
	Data string `placeholder:"DIR" help:"Folder that the spec's files are in (default: the folder of the spec)."`
}

// read reads the spec.
func (s *specArg) read() (*experiment.Spec, error) {
	info, err := os.Stat(s.Spec)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > experiment.MaxBytes:
		return nil, usagef("%s: %d bytes; a spec of an experiment has at most %d", s.Spec, info.Size(), experiment.MaxBytes)
	}
	b, err := os.ReadFile(s.Spec)
	if err != nil {
		return nil, err
	}
	return experiment.Parse(s.Spec, b)
}

// path returns where a file of the spec is.
func (s *specArg) path(file string) string {
	switch {
	case filepath.IsAbs(file):
		return file
	case s.Data != "":
		return filepath.Join(s.Data, file)
	}
	return filepath.Join(filepath.Dir(s.Spec), file)
}

// folderOf is the default folder of an experiment.
func folderOf(specFile, name string) string {
	return filepath.Join(filepath.Dir(specFile), name+".experiment")
}

type experimentRunCmd struct {
	specArg
	Dir         string `placeholder:"DIR" help:"With --local: folder of the cells that have ended; a run goes on with those (default: NAME.experiment beside the spec)."`
	Local       bool   `help:"Run in this process, without a cluster."`
	RetryFailed bool   `help:"Run the cells again that failed."`
	KeepModels  bool   `help:"Keep the model of each cell."`
	threadsFlag
	reportFlags
}

// Run implements `coppice experiment run`.
func (c *experimentRunCmd) Run(a *app) error {
	if err := c.threadsFlag.check(); err != nil {
		return err
	}
	if !c.Local {
		return usagef("give --local")
	}
	s, err := c.read()
	if err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = folderOf(c.Spec, s.Name)
	}
	t, err := c.runHere(a, s)
	if err != nil {
		return err
	}
	return c.write(a, t)
}

// whatArg names an experiment that was begun.
type whatArg struct {
	What string `arg:"" placeholder:"EXPERIMENT" help:"Spec of the experiment, or the folder of its cells."`
}

// table reads the experiment.
func (w *whatArg) table() (*tables.Table, []string, error) {
	dir := w.What
	if info, err := os.Stat(dir); err != nil {
		return nil, nil, err
	} else if !info.IsDir() {
		s, err := (&specArg{Spec: w.What}).read()
		if err != nil {
			return nil, nil, err
		}
		dir = folderOf(w.What, s.Name)
	}
	l, records, err := experiment.ReadFolder(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: no experiment was begun there: %w", dir, err)
	}
	if err != nil {
		return nil, nil, err
	}
	return l.Fill(records, nil), l.Skipped, nil
}

type experimentShowCmd struct{ whatArg }

// shownExperiment is an experiment as show prints it in JSON.
type shownExperiment struct {
	Name string `json:"name"`
	experiment.Counts
	Skipped []string      `json:"skipped,omitempty"` // datasets
	Table   *tables.Table `json:"table"`
}

// Run implements `coppice experiment show`.
func (c *experimentShowCmd) Run(a *app) error {
	t, skipped, err := c.table()
	if err != nil {
		return err
	}
	return a.print(shownExperiment{t.Name, experiment.Count(t), skipped, t}, func(w io.Writer) {
		writeExperiment(w, t, skipped)
	})
}

func writeExperiment(w io.Writer, t *tables.Table, skipped []string) {
	n := experiment.Count(t)
	lines := [][2]string{{"experiment", t.Name}, {"cells", cellCounts(n)}}
	if len(skipped) > 0 {
		lines = append(lines, [2]string{"skipped", strings.Join(skipped, ", ")})
	}
	pairs(w, lines)
	writeFailures(w, t)
	fmt.Fprintln(w)
	writeTable(w, t)
}

func cellCounts(n experiment.Counts) string {
	text := fmt.Sprintf("%s done", count(n.Done))
	for _, more := range []struct {
		n    int
		word string
	}{{n.Running, "running"}, {n.Failed, "failed"}, {n.Missing, "missing"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %s %s", count(more.n), more.word)
		}
	}
	return text
}

// writeFailures names the cells that failed, those of one row on one dataset with one error
// together.
func writeFailures(w io.Writer, t *tables.Table) {
	for _, f := range failuresOf(t) {
		fmt.Fprintf(w, "failed: %s\n", f)
	}
}

// maxFailures bounds the failures that are named.
const maxFailures = 20

func failuresOf(t *tables.Table) []string {
	type where struct {
		dataset, row int
		why          string
	}
	counts := make(map[where]int)
	var order []where
	for _, c := range t.Cells {
		if c.State != tables.Failed {
			continue
		}
		at := where{c.Dataset, c.Row, c.Error}
		if counts[at]++; counts[at] == 1 {
			order = append(order, at)
		}
	}
	var list []string
	for i, at := range order {
		if i == maxFailures {
			return append(list, fmt.Sprintf("and %d more; -o json names all", len(order)-i))
		}
		list = append(list, fmt.Sprintf("%s, %s (%s): %s", t.Datasets[at.dataset].Name, t.Rows[at.row].Name, plural(counts[at], "cell"), at.why))
	}
	return list
}

type experimentReportCmd struct {
	whatArg
	reportFlags
}

// Run implements `coppice experiment report`.
func (c *experimentReportCmd) Run(a *app) error {
	t, _, err := c.table()
	if err != nil {
		return err
	}
	return c.write(a, t)
}
