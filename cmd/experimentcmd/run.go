package experimentcmd

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/local"
	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

type runCmd struct {
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
func (*runCmd) Outputs() []string { return []string{cli.JSONL} }

// Run implements `coppice experiment run`.
func (c *runCmd) Run(a *cli.App) error {
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
func (c *runCmd) runHere(a *cli.App, s *experiment.Spec) error {
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
		RetryFailed: c.RetryFailed, RecordAgain: c.RecordAgain, Lanes: c.ThreadsFlag.Number(),
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
func (c *runCmd) runThere(a *cli.App, s *experiment.Spec) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
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
