package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/datasets"
	"github.com/coppice-ldl/coppice/experiment/grid"
	"github.com/coppice-ldl/coppice/experiment/overview"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/runner"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// load reads the datasets and makes the layout of the spec.
func (c *experimentRunCmd) load(a *app, s *experiment.Spec) ([]*datasets.Set, *experiment.Layout, error) {
	m := newMeter(a.stderr)
	defer m.clear()
	return c.reader(a, m, s).Load(a.ctx, c.KeepModels)
}

// planHere says what a run in this process adds to the results of an earlier run. before is its layout, or nil.
func (c *experimentRunCmd) planHere(s *experiment.Spec, before, l *experiment.Layout, records map[string]*experiment.Record) *protocol.ExperimentPlan {
	o := l.OrphansOf(before, func(key string) bool { return records[key] != nil })
	p := &protocol.ExperimentPlan{Name: s.Name, Orphaned: o.Count, Orphans: o.List, Refused: submission.Refusals(l.Table), Jobs: []protocol.JobInfo{}}
	for key := range l.Has() {
		if r := records[key]; r == nil || c.cellFlags.wants(r, &s.Record) {
			p.Runs++
		} else {
			p.Kept++
		}
	}
	if before != nil {
		_, p.Changes = s.Compare(before)
	}
	return p
}

// dryRun prints what a run in this process would add.
func (c *experimentRunCmd) dryRun(a *app, s *experiment.Spec) error {
	_, layout, err := c.load(a, s)
	if err != nil {
		return err
	}
	before := new(experiment.FolderContent)
	if experiment.Begun(c.Dir) {
		if before, err = experiment.ReadFolder(c.Dir); err != nil {
			return err
		}
	}
	return a.printPlan(c.planHere(s, before.Layout, layout, before.Records))
}

// runHere runs in this process the cells that have no record, and returns the table.
func (c *experimentRunCmd) runHere(a *app, s *experiment.Spec) (_ *tables.Table, err error) {
	defer frugal()()
	sets, layout, err := c.load(a, s)
	if err != nil {
		return nil, err
	}
	folder, err := experiment.OpenFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	noteDamaged(a, c.Dir, folder.Damaged, "their runs are repeated")
	records := folder.Records()
	if n := layout.Strange(records); n > 0 {
		a.note("%s in %s not used: their runs are not in this spec, or another arithmetic version computed them", plural(n, "record"), c.Dir)
	}
	a.noteAll(experiment.SameNotes(layout.Table))
	before := folder.Layout()
	if p := c.planHere(s, before, layout, records); p.NeedsConsent() && !c.Yes {
		if err := a.agree(p); err != nil {
			return nil, err
		}
	}
	if before != nil {
		a.noteAll(experiment.OtherNote(s, before, c.Dir))
		a.noteAll(experiment.AgainNote(layout.Again(before.Ended(records), func(key string) bool { return records[key] != nil }), before.Numerics))
	}
	if err := folder.PutLayout(layout); err != nil {
		return nil, err
	}
	works, err := c.works(a, sets, records, &s.Record)
	if err != nil {
		return nil, err
	}
	err = c.compute(a, layout.Fill(records, nil), works, folder, runner.Budgets(s, layout.Spent(records)))
	if errors.Is(err, context.Canceled) {
		return nil, interrupted{fmt.Sprintf("interrupted; the results of runs that ended are in %s, and the same command does the other runs", c.Dir)}
	}
	if err != nil {
		return nil, err
	}
	t := layout.Fill(folder.Records(), nil)
	addCommandsHere(t, layout, c.Dir, c.Spec)
	for _, cells := range experiment.NotRun(t) {
		a.note("not run: %s", cells)
	}
	return t, nil
}

// works lists what there is to do.
func (c *experimentRunCmd) works(a *app, sets []*datasets.Set, records map[string]*experiment.Record, of *experiment.Recorded) ([]*runner.Work, error) {
	var works []*runner.Work
	todo, kept, lacking := 0, 0, 0
	for _, l := range sets {
		w, err := runner.NewWork(l.Plan, l.Data, records, func(r *experiment.Record) bool { return c.cellFlags.wants(r, of) })
		if err != nil {
			return nil, err
		}
		todo, kept = todo+len(w.Cells), kept+len(w.Kept)
		for _, r := range w.Kept {
			if r.Lacks(of) {
				lacking++
			}
		}
		if len(w.Cells) > 0 {
			works = append(works, w)
		}
	}
	a.note("%s to do, %s", plural(todo, "run"), endedBefore(kept))
	a.noteAll(experiment.LackingNote(lacking))
	return works, nil
}

func endedBefore(n int) string {
	if n == 1 {
		return "1 run ended before"
	}
	return count(n) + " runs ended before"
}

// compute runs cells and records each that ends.
func (c *experimentRunCmd) compute(a *app, t *tables.Table, works []*runner.Work, folder *experiment.Folder, budgets []*runner.Budget) error {
	m := a.newLiveMeter()
	defer m.clear()
	g, sets := grid.Of(t), make(map[string]int)
	for i := range t.Datasets {
		sets[t.Datasets[i].Name] = i
	}
	again := againOf(works, folder.Records())
	var methods []string
	for i := range t.Rows {
		methods = append(methods, t.Rows[i].Name)
	}
	told, began := false, time.Now()
	return runner.Run(a.ctx, works, runner.Options{
		Lanes: c.threadsFlag.count(), Methods: methods, Budgets: budgets,
		Begin: func(w *runner.Work, cell *experiment.Cell) {
			g.Move(cell.Row, sets[w.Plan.Dataset.Name], again[cell.Key], tables.Running)
		},
		Drop: func(w *runner.Work, cell *experiment.Cell) {
			g.Move(cell.Row, sets[w.Plan.Dataset.Name], tables.Running, again[cell.Key])
		},
		Put: func(w *runner.Work, cell *experiment.Cell, r *experiment.Record) error {
			ended := tables.Done
			if r.Outcome.Error != "" {
				ended = tables.Failed
			}
			g.Move(cell.Row, sets[w.Plan.Dataset.Name], tables.Running, ended)
			if r.Outcome.Error != "" {
				a.note("failed: %s, %s, %s: %s", w.Plan.Dataset.Name, t.Rows[cell.Row].Name, foldOf(cell), r.Outcome.Error)
			}
			return folder.Put(r)
		},
		Show: func(s runner.Status) {
			if left := s.Estimate.Seconds; s.Firsts && !told && left > 0 {
				told = true
				a.note("about %s in all, estimated from the first run of each method on each dataset", duration(time.Since(began).Seconds()+left))
			}
			m.showAll(overview.LocalLine(s), g.Lines)
		},
	})
}

// againOf tells by key which state the cells to be run have: those that are run again have ended.
func againOf(works []*runner.Work, records map[string]*experiment.Record) map[string]string {
	states := make(map[string]string)
	for _, w := range works {
		for _, cell := range w.Cells {
			states[cell.Key] = tables.Missing
			switch r := records[cell.Key]; {
			case r != nil && r.Outcome.Error == "":
				states[cell.Key] = tables.Done
			case r != nil:
				states[cell.Key] = tables.Failed
			}
		}
	}
	return states
}

func foldOf(c *experiment.Cell) string {
	if c.Repeat > 0 {
		return fmt.Sprintf("repeat %d, fold %d", c.Repeat, c.Fold)
	}
	return fmt.Sprintf("fold %d", c.Fold)
}
