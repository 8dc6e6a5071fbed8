// Package local runs experiments in this process, with a folder for their results, and reads them again.
package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/datasets"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrInterrupted is wrapped by the error of Do if its context ends while runs are computed. The results of runs that
// have ended are in the folder.
var ErrInterrupted = errors.New("the runs were interrupted")

// Run is an experiment that is run in this process.
type Run struct {
	Spec   *experiment.Spec
	File   string // of the spec
	Folder string // for the results; runs with a result there are not repeated
	Sets   []*datasets.Set
	Layout *experiment.Layout

	RetryFailed bool // repeat the runs that failed
	RecordAgain bool // repeat the runs that ended without the data that the spec records
	Lanes       int  // runs at a time

	// Note prints a line for the user.
	Note func(text string)
	// Agree returns an error if the user does not agree to a plan by which runs are orphaned.
	Agree func(*protocol.ExperimentPlan) error
	// Show shows how far the runs are, and the lines of a grid that has so many columns and lines.
	Show func(s Status, grid func(columns, lines int) []string)
}

// Check says what Do adds to the results in the folder.
func (r *Run) Check() (*protocol.ExperimentPlan, error) {
	before := new(experiment.FolderContent)
	if experiment.Begun(r.Folder) {
		var err error
		if before, err = experiment.ReadFolder(r.Folder); err != nil {
			return nil, err
		}
	}
	return r.plan(before.Layout, before.Records), nil
}

// plan is Check for a folder with a layout, or nil, and records.
func (r *Run) plan(before *experiment.Layout, records map[string]*experiment.Record) *protocol.ExperimentPlan {
	known := experiment.NewKnown(r.Folder)
	for key, has := range records {
		known.Again[key] = r.repeats(has)
		known.Kept[key] = !known.Again[key]
		known.Lacking[key] = known.Kept[key] && has.Lacks(&r.Spec.Record)
	}
	if before != nil {
		known.Names, known.Numerics = before.Ended(records), before.Numerics
	}
	p := r.Layout.Plan(r.Spec, before, known)
	p.Runs = len(r.Layout.Has()) - p.Kept
	return p
}

// repeats reports whether a run that has ended is repeated.
func (r *Run) repeats(has *experiment.Record) bool {
	return r.RetryFailed && has.Outcome.Error != "" || r.RecordAgain && has.Lacks(&r.Spec.Record)
}

// Do computes the runs without a result, and the runs that are repeated, and returns the table. The result of each run
// is on the disk once the run has ended. Notes tell what is kept, repeated, left out and failed.
func (r *Run) Do(ctx context.Context) (_ *result.Table, err error) {
	folder, err := experiment.OpenFolder(r.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	l, records, before := r.Layout, folder.Records(), folder.Layout()
	r.notes(damagedNote(r.Folder, folder.Damaged, "their runs are repeated"))
	p := r.plan(before, records)
	r.notes(p.Notes)
	p.Notes = nil // the user has read them
	if p.NeedsConsent() {
		if err := r.Agree(p); err != nil {
			return nil, err
		}
	}
	if err := folder.PutLayout(l); err != nil {
		return nil, err
	}
	var works []*work
	planned := make(map[string]bool)
	for _, s := range r.Sets {
		w, err := r.workOn(s, records, planned)
		if err != nil {
			return nil, err
		}
		if len(w.Runs) > 0 {
			works = append(works, w)
		}
	}
	r.Note(fmt.Sprintf("%s to do, %s ended before", units.Plural(p.Runs, "run"), units.Plural(p.Kept, "run")))
	err = r.runMissing(ctx, works, folder, records)
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	if err != nil {
		return nil, err
	}
	t := l.Fill(folder.Records())
	addCommands(t, l, r.Folder, r.File)
	return t, nil
}

func (r *Run) notes(list []string) {
	for _, text := range list {
		r.Note("note: " + text)
	}
}

// workOn returns what there is to do of a dataset: the runs without a record, and the runs that are repeated. planned
// are the keys of runs that equal methods and datasets have; workOn adds to it.
func (r *Run) workOn(s *datasets.Set, records map[string]*experiment.Record, planned map[string]bool) (*work, error) {
	runs, err := s.Plan.Runs()
	if err != nil {
		return nil, err
	}
	w := &work{planned: s.Plan, Data: s.Data, Ended: make(map[int]experiment.Ended)}
	for _, run := range runs {
		if has := records[run.Key]; has != nil && !r.repeats(has) {
			w.Ended[run.Method] = w.Ended[run.Method].Plus(has)
		} else if !planned[run.Key] {
			planned[run.Key] = true
			w.Runs = append(w.Runs, run)
		}
	}
	return w, nil
}

// runMissing computes runs, puts the record of each into the folder, and shows how far they are. records are of earlier
// runs.
func (r *Run) runMissing(ctx context.Context, works []*work, folder *experiment.Folder,
	records map[string]*experiment.Record) error {
	t := r.Layout.Fill(records)
	g := overview.GridOf(t, r.Layout.Keys)
	var methods []string
	for i := range t.Methods {
		methods = append(methods, t.Methods[i].Name)
	}
	before := func(c *experiment.Run) string { // the state of a run until it begins
		has := records[c.Key]
		switch {
		case has == nil:
			return result.Missing
		case has.Outcome.Error == "":
			return result.Done
		}
		return result.Failed
	}
	told, began := false, time.Now()
	return runAll(ctx, works, sessionOptions{
		Lanes: r.Lanes, Methods: methods, Budgets: budgetsOf(r.Spec, r.Layout.Spent(records)),
		Begin: func(w *work, c *experiment.Run) {
			folder.Begin(c.Key)
			g.Set(c.Key, result.Running)
		},
		Drop: func(w *work, c *experiment.Run) {
			folder.Drop(c.Key)
			g.Set(c.Key, before(c))
		},
		Put: func(w *work, c *experiment.Run, has *experiment.Record) error {
			if has.Outcome.Error == "" {
				g.Set(c.Key, result.Done)
				return folder.Put(has)
			}
			g.Set(c.Key, result.Failed)
			fold := fmt.Sprintf("fold %d", c.Fold)
			if c.Repeat > 0 {
				fold = fmt.Sprintf("repeat %d, %s", c.Repeat, fold)
			}
			r.Note(fmt.Sprintf("failed: %s, %s, %s: %s", w.planned.Dataset.Name, t.Methods[c.Method].Name, fold,
				has.Outcome.Error))
			return folder.Put(has)
		},
		Show: func(s Status) {
			if left := s.Estimate.Seconds; s.Firsts && !told && left > 0 {
				told = true
				r.Note(fmt.Sprintf("about %s in all, estimated from the first run of each method on each dataset",
					units.Duration(time.Since(began).Seconds()+left)))
			}
			r.Show(s, g.Lines)
		},
	})
}

// Experiment is what a folder has of an experiment so far.
type Experiment struct {
	Table  *result.Table
	Layout *experiment.Layout
	Notes  []string // about damaged records
}

// Read reads an experiment from its folder. spec is the file of the spec; empty: it is not known. The error wraps
// fs.ErrNotExist if no experiment was begun in the folder.
func Read(ctx context.Context, folder, spec string) (*Experiment, error) {
	l, damaged, err := experiment.FillFolder(ctx, folder)
	if err != nil {
		return nil, err
	}
	addCommands(l.Table, l, folder, spec)
	return &Experiment{l.Table, l, damagedNote(folder, damaged,
		"coppice experiment run repeats the runs of these lines")}, nil
}

// addCommands adds to the failed runs of a table the commands that train one of them alone. spec is the file of the
// spec, or empty.
func addCommands(t *result.Table, l *experiment.Layout, folder, spec string) {
	base := filepath.Dir(folder)
	switch in := l.Inputs; {
	case in != nil && in.Data != "":
		base = in.Data
	case spec != "":
		base = filepath.Dir(spec)
	case in != nil && in.Spec != "":
		base = in.Spec
	}
	l.AddCommands(t, experiment.Sources{File: experiment.FileIn(base)})
}

// damagedNote names the lines of the records in a folder that cannot be read.
func damagedNote(folder string, lines []int, then string) []string {
	if len(lines) == 0 {
		return nil
	}
	var numbers []string
	for _, n := range lines {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return []string{fmt.Sprintf("%s: line %s of cells.log is damaged and was left out; %s", folder,
		experiment.SomeOf(numbers, ", "), then)}
}
