package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/local"
	"github.com/coppice-ldl/coppice/experiment/overview"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

type listCmd struct {
	Shipped bool     `help:"List the specs that are part of this program instead; experiment run takes their names."`
	State   []string `placeholder:"STATES" help:"List only experiments in these states: queued, paused, running, done, failed, cancelled."`
	connect.ListFlags
	Sort string `placeholder:"KEY" help:"Order of the list: newest, submitted, name or state. A - before the word sorts in descending order; the default is --sort=-newest."`

	connect.ServerFlags
}

// Run implements `coppice experiment list`.
func (c *listCmd) Run(a *cli.App) error {
	if c.Shipped {
		return listShipped(a)
	}
	var q protocol.ExperimentQuery
	if err := c.Query(&q.ListQuery, q.Params(), c.Sort); err != nil {
		return err
	}
	var err error
	if q.States, err = protocol.ParseJobStates(strings.Join(c.State, ",")); err != nil {
		return cli.Usagef("{state}: %w", err)
	}
	return connect.Ask(a, c, func(cl *client.Client) ([]protocol.Experiment, error) {
		return cl.Experiments().Choose(a.Ctx, q)
	}, func(w io.Writer, all []protocol.Experiment) {
		owner := func(p protocol.Experiment) string { return cli.Owner(p.Owner, p.Private) }
		cli.WriteOwned(w, []string{"experiment", "state", "runs", "done", "jobs", "submitted"}, all, owner,
			func(p protocol.Experiment) []string {
				return []string{p.Name, string(p.State), units.Count(p.Runs), units.Count(p.Done), units.Count(p.Jobs),
					cli.Time(p.Submitted)}
			}, 3, 4, 5)
	})
}

type showCmd struct {
	whatArg
	Spec bool `help:"Print the text of the spec: of a shipped spec (see experiment list --shipped), or of the last run of the experiment."`
}

// Run implements `coppice experiment show`.
func (c *showCmd) Run(a *cli.App) error {
	if ships, ok := shipped.Find(c.What); ok && c.Spec {
		return printSpec(a, ships.Name, string(ships.Text))
	}
	f, err := c.find(a, !a.JSON) // text shows no values
	if err != nil {
		return err
	}
	if c.Spec {
		return printSpec(a, f.table.Name, f.text)
	}
	return a.Print(shownExperiment{Name: f.table.Name, State: f.state, Counts: experiment.Count(f.table),
		Skipped: f.skipped, Notes: f.notes, Table: f.table}, func(w io.Writer) {
		o := overview.Overview{Table: f.table, State: f.state, Skipped: f.skipped, Notes: f.notes,
			Report: "coppice experiment report " + c.said(a)}
		o.Write(w)
	})
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

// printSpec prints the text of a spec.
func printSpec(a *cli.App, name, text string) error {
	return a.Print(struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}{name, text}, func(w io.Writer) { fmt.Fprint(w, text) })
}

type reportCmd struct {
	whatArg
	reportFlags
	Forms forms `embed:""`
}

// Run implements `coppice experiment report`.
func (c *reportCmd) Run(a *cli.App) error {
	c.reportFlags.forms = c.Forms
	if err := c.reportFlags.check(c.What); err != nil {
		return err
	}
	f, err := c.find(a, false)
	if err != nil {
		return err
	}
	for _, text := range f.notes {
		a.Note("note: %s", text)
	}
	c.reportFlags.notes = f.notes
	return c.write(a, f.table)
}

// whatArg names an experiment that was begun, and the place to read it from.
type whatArg struct {
	What  string `arg:"" name:"experiment" placeholder:"EXPERIMENT" help:"Spec of the experiment (a file, or the name of a shipped spec), the folder of its runs, or its name on the cluster."`
	Local bool   `help:"Read the results of a run with --local from NAME.experiment in the folder of the spec, not from a cluster. If that folder exists and --server is not given, this is the default."`
	Dir   string `placeholder:"DIR" help:"Read the results of a run with --local --dir from this folder, not from a cluster."`
	connect.ChangeFlags
}

// argument is what the argument of a command is.
type argument int

const (
	isName argument = iota
	isFolder
	isSpec
)

// whereabouts are the places that may have an experiment.
type whereabouts struct {
	is   argument
	dir  string           // of a run with --local
	name string           // on a cluster; "": there is none of that name
	spec *experiment.Spec // that the argument names; nil: it names none
}

// whereabouts looks at the argument.
func (w *whatArg) whereabouts(ctx context.Context) (*whereabouts, error) {
	info, err := os.Stat(w.What)
	_, ships := shipped.Find(w.What)
	switch {
	case ships && (err != nil || info.IsDir() && !experiment.Begun(w.What)):
		// Also an experiment with another spec may have the name: it is not compared with the shipped one.
		return &whereabouts{is: isSpec, dir: cmp.Or(w.Dir, folderOf(w.What, w.What)), name: w.What, spec: nil}, nil
	case err == nil && !info.IsDir():
		s, err := (&specArg{Spec: w.What}).read(ctx)
		if err != nil {
			return nil, err
		}
		return &whereabouts{is: isSpec, dir: cmp.Or(w.Dir, folderOf(w.What, s.Name)), name: s.Name, spec: s}, nil
	case err != nil && (protocol.CheckName(w.What) != nil || namedAsSpec(w.What)):
		return nil, err
	case err != nil:
		return &whereabouts{is: isName, dir: cmp.Or(w.Dir, folderOf(w.What, w.What)), name: w.What, spec: nil}, nil
	case w.Dir != "":
		return nil, cli.Usagef("--dir %s: %s is a folder, too; give only one folder", w.Dir, w.What)
	case protocol.CheckName(w.What) != nil:
		return &whereabouts{is: isFolder, dir: w.What, name: "", spec: nil}, nil
	}
	return &whereabouts{is: isFolder, dir: w.What, name: w.What, spec: nil}, nil
}

// onCluster decides whether the cluster is asked: begun tells whether a run with --local began in the
// folder, here and there whether flags of the command line name a folder or a cluster.
func (w *whereabouts) onCluster(begun, here, there bool) bool {
	switch {
	case here || there:
		return there
	case w.is == isSpec:
		return !begun
	}
	return w.is == isName
}

// found is an experiment that was begun.
type found struct {
	table   *tables.Table
	skipped []string // datasets
	state   string   // on a cluster; "": it is read from a folder
	text    string   // of the spec
	notes   []string // what a reader must know of the results
}

// said writes the argument and the flags that name the place of the experiment.
func (w *whatArg) said(a *cli.App) string {
	switch {
	case w.Dir != "":
		return w.What + " --dir " + w.Dir
	case w.Local:
		return w.What + " --local"
	}
	return strings.Join(append([]string{w.What}, connect.Flags(a, &w.ServerFlags)...), " ")
}

// find reads the experiment: from a folder or from the cluster. bare: a table of the cluster has how each run has
// ended, and no values.
func (w *whatArg) find(a *cli.App, bare bool) (*found, error) {
	flag := "--local"
	if w.Dir != "" {
		flag = "--dir"
	}
	here := w.Local || w.Dir != ""
	if err := connect.CheckNoCluster(a, cli.FlagText(flag), here); err != nil {
		return nil, err
	}
	at, err := w.whereabouts(a.Ctx)
	if err != nil {
		return nil, err
	}
	begun := experiment.Begun(at.dir)
	if !at.onCluster(begun, here, connect.Named(a, &w.ServerFlags) != nil) {
		if at.is == isSpec && !here && len(w.Server) > 0 {
			a.Note("the experiment was read from %s; --server reads it from the cluster", at.dir)
		}
		return w.here(a, at)
	}
	if at.name == "" {
		return nil, cli.Usagef("{server}: %s is a folder of this machine; give the name that the experiment has on the "+
			"cluster", w.What)
	}
	f, err := w.there(a, at, bare)
	switch {
	case err == nil || connect.Named(a, &w.ServerFlags) != nil:
	case at.is == isSpec:
		err = errtext.Errorf(errtext.WrongRequest, "%s: there is no run with {local} (--dir names another folder); on the "+
			"cluster: %w", at.dir, err)
	case begun:
		err = errtext.Errorf(errtext.WrongRequest, "%w; a run with {local} has results in %s: read them with {local}",
			err, at.dir)
	}
	return f, err
}

// runAgain is the command that runs the spec of an experiment in its folder.
func (w *whatArg) runAgain(at *whereabouts) string {
	if at.is != isSpec {
		return "coppice experiment run SPEC --local --dir " + at.dir + ", with the experiment's spec for SPEC,"
	}
	command := "coppice experiment run " + w.What + " --local"
	if w.Dir != "" {
		command += " --dir " + w.Dir
	}
	return command
}

// here reads the experiment from the folder of its runs.
func (w *whatArg) here(a *cli.App, at *whereabouts) (*found, error) {
	spec := ""
	if at.is == isSpec && at.spec != nil { // a shipped spec has no folder
		spec = w.What
	}
	e, err := local.Read(a.Ctx, at.dir, spec)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.NotFound(fmt.Errorf("%s: no experiment was started in this folder", at.dir))
	case errors.Is(err, experiment.ErrNoPlan):
		return nil, fmt.Errorf("%w; %s writes the plan again and keeps the results of runs that ended", err, w.runAgain(at))
	case err != nil:
		return nil, err
	}
	notes, err := kinOf(at.spec, e.Layout, at.dir, "coppice experiment report "+at.dir)
	if err != nil {
		return nil, err
	}
	noteAll(a, e.Notes)
	return &found{table: e.Table, skipped: e.Layout.Skipped, text: e.Layout.Text, notes: notes}, nil
}

// kinOf says if the results of a layout, which are in a place, are of an earlier text of a spec, and refuses them if
// they are of another spec; other is the command that prints them in any case.
func kinOf(spec *experiment.Spec, l *experiment.Layout, place, other string) ([]string, error) {
	if spec == nil {
		return nil, nil
	}
	kinship, changes := spec.Compare(l)
	what := strings.Join(changes, "; ")
	switch kinship {
	case experiment.OtherSpec:
		return nil, cli.Usagef("%s has the results of another spec, %s, with the same name (%s); to print them: %s; to get "+
			"results of this spec, give it another name, or run it",
			place, l.Table.Spec.File, what, other)
	case experiment.EditedSpec:
		return []string{fmt.Sprintf("The spec %s has changed since these results were computed. Changed: %s. To get "+
			"results of the new spec, run the experiment again.", l.Table.Spec.File, what)}, nil
	}
	return nil, nil
}

// there reads the experiment from the cluster.
func (w *whatArg) there(a *cli.App, at *whereabouts, bare bool) (*found, error) {
	cl, err := w.Connect(a)
	if err != nil {
		return nil, err
	}
	spec := ""
	if at.is == isSpec {
		spec = w.What
	}
	e, err := readThere(a, &w.ServerFlags, cl, at.name, bare, spec)
	if err != nil {
		return nil, err
	}
	other := a.Command("experiment report " + at.name)
	notes, err := kinOf(at.spec, e.Layout, "the cluster", other)
	if err != nil {
		return nil, err
	}
	noteAll(a, e.Notes)
	return &found{table: e.Table, skipped: e.Layout.Skipped, state: string(e.State), text: e.Layout.Text,
		notes: notes}, nil
}
