package experimentcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/local"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/internal/garbage"

	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

type Cmd struct {
	Run    experimentRunCmd    `cmd:"" help:"Run every method of a spec on every dataset and fold, on a cluster or with --local in this process."`
	List   experimentListCmd   `cmd:"" help:"List the experiments of a cluster."`
	Show   experimentShowCmd   `cmd:"" help:"Show the progress of an experiment, and which runs failed and why."`
	Watch  experimentWatchCmd  `cmd:"" help:"Show the progress of an experiment on a cluster until it ends, then print its report."`
	Report experimentReportCmd `cmd:"" help:"Write the report of an experiment: measures, tests, ranks, times."`
	Extend experimentExtendCmd `cmd:"" help:"Submit the new runs of a spec to its experiment on a cluster."`
	Retry  experimentRetryCmd  `cmd:"" help:"Submit the runs of an experiment again that failed or have no result."`
	Share  experimentShareCmd  `cmd:"" help:"Let all users of a cluster read the results of one of your experiments."`
	Pause  experimentPauseCmd  `cmd:"" help:"Pause an experiment; runs that have ended are kept."`
	Resume experimentResumeCmd `cmd:"" help:"Let a paused experiment go on."`
	Cancel experimentCancelCmd `cmd:"" help:"Cancel the jobs of an experiment; the results of runs that have ended are kept."`
	Delete experimentDeleteCmd `cmd:"" help:"Delete an ended experiment from a cluster."`
}

type experimentRunCmd struct {
	specArg
	Dir   string `placeholder:"DIR" help:"With --local: folder for the results of runs. Runs with a result there are not repeated (default: NAME.experiment in the folder of the spec)."`
	Local bool   `help:"Run in this process, without a cluster."`
	cellFlags
	cli.ThreadsFlag
	reportFlags
	connect.SharedFlag
	connect.ChangeFlags
}

// Outputs implements printer.
func (*experimentRunCmd) Outputs() []string { return []string{cli.JSONL} }

// Run implements `coppice experiment run`.
func (c *experimentRunCmd) Run(a *cli.App) error {
	if err := cmp.Or(c.ThreadsFlag.Check(), c.reportFlags.check(c.Spec)); err != nil {
		return err
	}
	if c.DryRun && a.Output == cli.JSONL {
		return cli.Usagef("{dry-run} prints text or JSON: give -o text or -o json")
	}
	if err := connect.CheckNoCluster(a, cli.FlagText("--local"), c.Local); err != nil {
		return err
	}
	if c.Local && c.Shared {
		return cli.Usagef("{shared} is about users of a cluster and is not allowed with {local}")
	}
	if !c.Local && (c.Threads != 0 || c.Dir != "") {
		return cli.Usagef("{threads} and --dir need {local}: on a cluster, workers compute and the cluster keeps the results")
	}
	s, err := c.readFor(a, &c.cellFlags, c.Local)
	if err != nil {
		return err
	}
	if !c.Local {
		return c.runThere(a, s)
	}
	return c.runHere(a, s)
}

// runHere computes in this process the runs without a result, and reports. For a dry run, it only says which.
func (c *experimentRunCmd) runHere(a *cli.App, s *experiment.Spec) error {
	defer garbage.Frugal.Begin()()
	m := progress.New(a)
	sets, layout, err := c.reader(a, m, s).Load(a.Ctx, c.KeepModels)
	m.Clear()
	if err != nil {
		return err
	}
	live := progress.NewLive(a)
	run := local.Run{
		Spec: s, File: c.Spec, Folder: cmp.Or(c.Dir, folderOf(c.Spec, s.Name)), Sets: sets, Layout: layout,
		RetryFailed: c.RetryFailed, RecordAgain: c.RecordAgain, Lanes: c.ThreadsFlag.Count(),
		Note: func(text string) { a.Note("%s", text) }, Agree: func(p *protocol.ExperimentPlan) error { return c.agree(a, p) }, Show: func(s local.Status, grid func(columns, lines int) []string) {
			live.Experiment(progress.Runs{Runs: s.Runs, Done: s.Done + s.Failed, SecondsLeft: s.Estimate.Seconds})
			live.ShowAll(s.Line(), grid)
		},
	}
	if c.DryRun {
		p, err := run.Check()
		if err != nil {
			return err
		}
		return printPlan(a, p)
	}
	t, err := run.Do(a.Ctx)
	live.Clear()
	if errors.Is(err, local.ErrInterrupted) {
		return cli.Interrupted(fmt.Sprintf("interrupted; the results of runs that ended are in %s, and the same command does the other runs", run.Folder))
	}
	if err != nil {
		return err
	}
	noteGaps(a, t)
	return c.write(a, t)
}

// runThere submits the runs that no job of the experiment has, and waits for the end.
func (c *experimentRunCmd) runThere(a *cli.App, s *experiment.Spec) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	p, err := c.submit(a, cl, s, &c.cellFlags, c.Shared)
	if err != nil {
		return err
	}
	if c.DryRun {
		return printPlan(a, p)
	}
	a.Note("%s of experiment %s submitted", units.Plural(p.Runs, "run"), s.Name)
	return watchAndReport(a, cl, s.Name, c.Spec, &c.ServerFlags, &c.reportFlags)
}

// printPlan prints what a submission would add.
func printPlan(a *cli.App, p *protocol.ExperimentPlan) error {
	return a.Print(p, func(w io.Writer) {
		for _, line := range overview.Plan(p) {
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
func (c *experimentShowCmd) Run(a *cli.App) error {
	if ships, ok := shipped.Find(c.What); ok && c.Spec {
		return printSpec(a, ships.Name, string(ships.Text))
	}
	f, err := c.find(a, !a.Json) // text shows no values
	if err != nil {
		return err
	}
	if c.Spec {
		return printSpec(a, f.table.Name, f.text)
	}
	return a.Print(shownExperiment{f.table.Name, f.state, experiment.Count(f.table), f.skipped, f.notes, f.table}, func(w io.Writer) {
		o := overview.Overview{Table: f.table, State: f.state, Skipped: f.skipped, Notes: f.notes, Report: "coppice experiment report " + c.said(a)}
		o.Write(w)
	})
}

// printSpec prints the text of a spec.
func printSpec(a *cli.App, name, text string) error {
	return a.Print(struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}{name, text}, func(w io.Writer) { fmt.Fprint(w, text) })
}

type experimentReportCmd struct {
	whatArg
	reportFlags
}

// Run implements `coppice experiment report`.
func (c *experimentReportCmd) Run(a *cli.App) error {
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
