package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/protocol"
)

type experimentCmd struct {
	Run    experimentRunCmd    `cmd:"" help:"Run every method of a spec on every dataset and fold, on a cluster or with --local in this process."`
	List   experimentListCmd   `cmd:"" help:"List the experiments of a cluster."`
	Show   experimentShowCmd   `cmd:"" help:"Show the progress of an experiment, and which runs failed and why."`
	Watch  experimentWatchCmd  `cmd:"" help:"Show the progress of an experiment on a cluster until it ends, then print its report."`
	Report experimentReportCmd `cmd:"" help:"Write the report of an experiment: measures, tests, ranks, times."`
	Extend experimentExtendCmd `cmd:"" help:"Submit the new runs of a spec to its experiment on a cluster."`
	Retry  experimentRetryCmd  `cmd:"" help:"Submit the runs of an experiment again that failed or have no result."`
	Pause  experimentPauseCmd  `cmd:"" help:"Pause an experiment; runs that have ended are kept."`
	Resume experimentResumeCmd `cmd:"" help:"Let a paused experiment go on."`
	Cancel experimentCancelCmd `cmd:"" help:"Cancel the jobs of an experiment; the results of runs that have ended are kept."`
	Delete experimentDeleteCmd `cmd:"" help:"Delete an ended experiment from a cluster."`
}

// specArg names the spec of an experiment and where its data is.
type specArg struct {
	Spec string `arg:"" placeholder:"SPEC" help:"Spec of the experiment: a YAML file, or the name of a shipped spec (see experiment list --shipped); docs/reference/experiment-spec.md has the keys."`
	Data string `placeholder:"DIR" help:"Folder with the data files of the spec (default: the folder of the spec; of a shipped spec, this folder)."`

	NoBudget bool `help:"Ignore the budgets of the spec and do all runs."`
}

// read reads the spec. If it has mistakes, their error comes with what could be read.
func (s *specArg) read() (*experiment.Spec, error) {
	text, err := s.specText()
	if err != nil {
		return nil, err
	}
	of, err := experiment.Parse(s.Spec, text)
	if of.Data = s.Data; s.NoBudget {
		of.NoBudgets()
	}
	return of, err
}

// specText returns the text of the spec. A file comes before a shipped spec of the same name.
func (s *specArg) specText() ([]byte, error) {
	info, err := os.Stat(s.Spec)
	if err != nil || info.IsDir() {
		if ships, ok := shipped.Find(s.Spec); ok {
			return ships.Text, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && protocol.CheckName(s.Spec) == nil && !namedAsSpec(s.Spec):
		return nil, fmt.Errorf("%s: there is neither a file nor a shipped spec of this name; coppice experiment list --shipped lists the shipped specs", s.Spec)
	case err != nil:
		return nil, err
	case info.Size() > experiment.MaxBytes:
		return nil, usagef("%s: %s bytes; a spec of an experiment has at most %s", s.Spec, count(info.Size()), count(experiment.MaxBytes))
	}
	return dataset.ReadText(s.Spec)
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
	Dir   string `placeholder:"DIR" help:"With --local: folder for the results of runs. Runs with a result there are not repeated (default: NAME.experiment in the folder of the spec)."`
	Local bool   `help:"Run in this process, without a cluster."`
	cellFlags
	threadsFlag
	reportFlags
	changeFlags
}

// Run implements `coppice experiment run`.
func (c *experimentRunCmd) Run(a *app) error {
	if err := cmp.Or(c.threadsFlag.check(), c.reportFlags.check(c.Spec)); err != nil {
		return err
	}
	if err := a.apartFromCluster("--local", c.Local); err != nil {
		return err
	}
	if !c.Local && (c.Threads != 0 || c.Dir != "") {
		return usagef("--threads and --dir need --local: on a cluster, workers compute and the cluster keeps the results")
	}
	s, err := c.readFor(a, &c.cellFlags, c.Local)
	if err != nil {
		return err
	}
	if !c.Local {
		return c.runThere(a, s)
	}
	if c.Dir == "" {
		c.Dir = folderOf(c.Spec, s.Name)
	}
	if c.DryRun {
		return c.dryRun(a, s)
	}
	t, err := c.runHere(a, s)
	if err != nil {
		return err
	}
	return c.write(a, t)
}

// runThere submits the runs that no job of the experiment has, and waits for the end.
func (c *experimentRunCmd) runThere(a *app, s *experiment.Spec) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	p, err := c.submit(a, cl, s, &c.cellFlags)
	if err != nil {
		return err
	}
	if c.DryRun {
		return a.printPlan(p)
	}
	a.note("%s of experiment %s submitted", plural(p.Runs, "run"), s.Name)
	return watchAndReport(a, cl, s.Name, c.Spec, &c.serverFlags, &c.reportFlags)
}

// printPlan prints what a submission would add.
func (a *app) printPlan(p *protocol.ExperimentPlan) error {
	return a.print(p, func(w io.Writer) {
		for _, line := range planLines(p) {
			fmt.Fprintln(w, line)
		}
	})
}

type experimentShowCmd struct {
	whatArg
	Spec bool `help:"Print the text of the spec: of a shipped spec (see experiment list --shipped), or of the last run of the experiment."`
}

// shownExperiment is an experiment as show prints it in JSON.
type shownExperiment struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"` // on a cluster
	experiment.Counts
	Skipped []string      `json:"skipped,omitempty"` // datasets
	Notes   []string      `json:"notes,omitempty"`   // what a reader must know of the results
	Table   *tables.Table `json:"table"`
}

// Run implements `coppice experiment show`.
func (c *experimentShowCmd) Run(a *app) error {
	if ships, ok := shipped.Find(c.What); ok && c.Spec {
		return printSpec(a, ships.Name, string(ships.Text))
	}
	f, err := c.find(a, !a.json) // text shows no values
	if err != nil {
		return err
	}
	if c.Spec {
		return printSpec(a, f.table.Name, f.text)
	}
	return a.print(shownExperiment{f.table.Name, f.state, experiment.Count(f.table), f.skipped, f.notes, f.table}, func(w io.Writer) {
		f.write(w, c.said(a))
	})
}

// printSpec prints the text of a spec.
func printSpec(a *app, name, text string) error {
	return a.print(struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}{name, text}, func(w io.Writer) { fmt.Fprint(w, text) })
}

func (f *found) write(w io.Writer, what string) {
	t := f.table
	lines := [][2]string{{"experiment", t.Name}, {"runs", cellCounts(experiment.Count(t))}}
	if f.state != "" {
		lines = append(lines, [2]string{"state", f.state})
	}
	if len(f.skipped) > 0 {
		lines = append(lines, [2]string{"skipped", strings.Join(f.skipped, ", ")})
	}
	if t.Spec != nil {
		lines = append(lines, [2]string{"spec", fmt.Sprintf("%s, SHA-256 %.12s", t.Spec.File, t.Spec.Digest)})
		if t.Spec.Data != "" {
			lines = append(lines, [2]string{"data", t.Spec.Data})
		}
	}
	pairs(w, lines)
	for _, text := range f.notes {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	for _, f := range failuresOf(t) {
		fmt.Fprintf(w, "failed: %s\n", f.text)
		switch {
		case f.command != "":
			fmt.Fprintf(w, "  to train a run alone: %s\n", f.command)
		case f.noCommand != "":
			fmt.Fprintf(w, "  no command to train a run alone: %s\n", f.noCommand)
		}
	}
	for _, cells := range experiment.NotRun(t) {
		fmt.Fprintf(w, "missing: %s\n", cells)
	}
	progress := newTable(w, []string{"dataset", "method", "done", "failed", "missing"}, 3, 4, 5)
	for _, r := range rowCounts(t) {
		progress.AppendRow(rowOf(r.dataset, r.row, count(r.Done), count(r.Failed), count(r.Missing+r.Running)))
	}
	fmt.Fprintln(w)
	progress.Render()
	fmt.Fprintf(w, "\nto see the measures: coppice experiment report %s\n", what)
}

// rowCount is how far a row is on a dataset.
type rowCount struct {
	dataset, row string
	experiment.Counts
}

// rowCounts counts the cells of each row on each dataset.
func rowCounts(t *tables.Table) (list []*rowCount) {
	type pair struct{ dataset, row int }
	at := make(map[pair]*rowCount)
	for i := range t.Cells {
		c := &t.Cells[i]
		p := pair{c.Dataset, c.Row}
		if at[p] == nil {
			at[p] = &rowCount{dataset: t.Datasets[c.Dataset].Name, row: t.Rows[c.Row].Name}
			list = append(list, at[p])
		}
		at[p].Add(c.State)
	}
	return list
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

// maxFailures bounds the failures that are named.
const maxFailures = 20

// failedRuns is the failed runs of one method on one dataset with one error.
type failedRuns struct {
	text               string
	command, noCommand string // of the first of them
}

func failuresOf(t *tables.Table) (list []failedRuns) {
	type where struct {
		dataset, row int
		why          string
	}
	type counts struct {
		where
		runs, attempts int
		first          *tables.Cell
	}
	at := make(map[where]*counts)
	var order []*counts
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.State != tables.Failed {
			continue
		}
		own := where{c.Dataset, c.Row, c.Error}
		if at[own] == nil {
			at[own] = &counts{where: own, first: c}
			order = append(order, at[own])
		}
		at[own].runs, at[own].attempts = at[own].runs+1, at[own].attempts+c.Attempts
	}
	for i, n := range order {
		if i == maxFailures {
			return append(list, failedRuns{text: fmt.Sprintf("and %s more; -o json lists all", count(len(order)-i))})
		}
		runs := plural(n.runs, "run")
		if n.attempts > 0 { // otherwise they were refused
			runs += ", " + plural(n.attempts, "attempt")
		}
		list = append(list, failedRuns{
			fmt.Sprintf("%s, %s (%s): %s", t.Datasets[n.dataset].Name, t.Rows[n.row].Name, runs, n.why),
			n.first.Command, n.first.NoCommand,
		})
	}
	return list
}

type experimentReportCmd struct {
	whatArg
	reportFlags
}

// Run implements `coppice experiment report`.
func (c *experimentReportCmd) Run(a *app) error {
	if err := c.reportFlags.check(c.What); err != nil {
		return err
	}
	f, err := c.find(a, false)
	if err != nil {
		return err
	}
	for _, text := range f.notes {
		a.note("note: %s", text)
	}
	c.reportFlags.notes = f.notes
	return c.write(a, f.table)
}
