// Package overview describes experiments in text: how far the runs are, in a grid, in a line or as a list, which runs
// failed and why, and what a submission adds.
package overview

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxListed bounds the failures of an overview, and the orphaned runs of a plan.
const maxListed = 20

// wideGrid is the width of a grid that has room for all datasets.
const wideGrid = 1 << 20

// Overview is how far an experiment is.
type Overview struct {
	Table   *result.Table
	State   string   // on a cluster; empty: it was not read from a cluster
	Skipped []string // datasets
	Notes   []string // what a reader must know of the results
	Report  string   // the command that writes the report
}

// Write writes an overview with a grid of all methods and datasets.
func (o *Overview) Write(w io.Writer) {
	t := o.Table
	n := experiment.Count(t)
	runs := fmt.Sprintf("%s done", units.Count(n.Done))
	for _, more := range []struct {
		n    int
		word string
	}{{n.Running, "running"}, {n.Failed, "failed"}, {n.Missing, "missing"}} {
		if more.n > 0 {
			runs += fmt.Sprintf(", %s %s", units.Count(more.n), more.word)
		}
	}
	lines := [][2]string{{"experiment", t.Name}, {"runs", runs}}
	if o.State != "" {
		lines = append(lines, [2]string{"state", o.State})
	}
	if len(o.Skipped) > 0 {
		lines = append(lines, [2]string{"skipped", strings.Join(o.Skipped, ", ")})
	}
	if t.Spec != nil {
		lines = append(lines, [2]string{"spec", fmt.Sprintf("%s, SHA-256 %.12s", t.Spec.File, t.Spec.Digest)})
		if t.Spec.Data != "" {
			lines = append(lines, [2]string{"data", t.Spec.Data})
		}
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-10s  %s\n", l[0], l[1])
	}
	for _, text := range o.Notes {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	writeFailures(w, t)
	for _, runs := range experiment.NotRun(t) {
		fmt.Fprintf(w, "missing: %s\n", runs)
	}
	fmt.Fprintln(w)
	for _, line := range GridOf(t, nil).Lines(wideGrid, len(t.Methods)+leastHeight) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "\nto see the measures: %s\n", o.Report)
}

// writeFailures writes the failed runs, together for each method, dataset and error.
func writeFailures(w io.Writer, t *result.Table) {
	type where struct {
		dataset, method int
		why             string
	}
	type failures struct {
		where
		runs, attempts int
		first          *result.Run
	}
	at := make(map[where]*failures)
	var order []*failures
	for i := range t.Runs {
		c := &t.Runs[i]
		if c.State != result.Failed {
			continue
		}
		own := where{c.Dataset, c.Method, c.Error}
		if at[own] == nil {
			at[own] = &failures{where: own, first: c}
			order = append(order, at[own])
		}
		at[own].runs, at[own].attempts = at[own].runs+1, at[own].attempts+c.Attempts
	}
	for i, f := range order {
		if i == maxListed {
			fmt.Fprintf(w, "failed: and %s more; -o json lists all\n", units.Count(len(order)-i))
			return
		}
		runs := units.Plural(f.runs, "run")
		if f.attempts > 0 { // otherwise they were refused
			runs += ", " + units.Plural(f.attempts, "attempt")
		}
		fmt.Fprintf(w, "failed: %s, %s (%s): %s\n", t.Datasets[f.dataset].Name, t.Methods[f.method].Name, runs, f.why)
		switch {
		case f.first.Command != "":
			fmt.Fprintf(w, "  to train a run alone: %s\n", f.first.Command)
		case f.first.NoCommand != "":
			fmt.Fprintf(w, "  no command to train a run alone: %s\n", f.first.NoCommand)
		}
	}
}

// Line describes in one line how far an experiment on a cluster is.
func Line(x *protocol.Experiment) string {
	text := fmt.Sprintf("%3.0f %%  %s of %s runs", 100*float64(x.Done)/float64(max(1, x.Runs)), units.Count(x.Done),
		units.Count(x.Runs))
	if x.NotRun > 0 {
		text += fmt.Sprintf(", %s not run", units.Count(x.NotRun))
	}
	text += state.Estimate{Seconds: x.SecondsLeft, From: x.EstimatedFrom}.Text()
	if len(x.Phases) > 0 {
		text += "  " + x.Phases[0]
	}
	if len(x.Phases) > 1 {
		text += fmt.Sprintf(" and %s more", units.Count(len(x.Phases)-1))
	}
	if x.State == protocol.Paused {
		text += "  paused; to go on: coppice experiment resume " + x.Name
	}
	if x.Waiting != "" {
		text += "  waits: " + x.Waiting
	}
	return text
}

// Plan lists what a submission adds to an experiment.
func Plan(p *protocol.ExperimentPlan) []string {
	list := []string{fmt.Sprintf("experiment %s: %s, %s kept, %s orphaned", p.Name, units.Plural(p.Runs, "new run"),
		units.Count(p.Kept), units.Count(p.Orphaned))}
	for _, change := range p.Changes {
		list = append(list, "changed: "+change)
	}
	for i, orphans := range p.Orphans {
		if i == maxListed {
			list = append(list, fmt.Sprintf("orphaned: %s more; -o json lists all", units.Count(len(p.Orphans)-i)))
			break
		}
		list = append(list, "orphaned: "+orphans)
	}
	for _, refused := range p.Refused {
		list = append(list, "refused: "+refused)
	}
	return slices.Concat(list, p.Notes)
}
