// Package experimentcmd has the commands of experiments, which run in this process or on a cluster.
package experimentcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cmd is `coppice experiment`.
type Cmd struct {
	Run    runCmd    `cmd:"" help:"Run every method of a spec on every dataset and fold, on a cluster or with --local in this process."`
	List   listCmd   `cmd:"" help:"List the experiments of a cluster."`
	Show   showCmd   `cmd:"" help:"Show the progress of an experiment, and which runs failed and why."`
	Watch  watchCmd  `cmd:"" help:"Show the progress of an experiment on a cluster until it ends, then print its report."`
	Report reportCmd `cmd:"" help:"Write the report of an experiment: measures, tests, ranks, times."`
	Folds  foldsCmd  `cmd:"" help:"Write which samples each fold of a spec tests, for other programs."`
	Extend extendCmd `cmd:"" help:"Submit the new runs of a spec to its experiment on a cluster."`
	Retry  retryCmd  `cmd:"" help:"Submit the runs of an experiment again that failed or have no result."`
	Share  shareCmd  `cmd:"" help:"Let all users of a cluster read the results of one of your experiments."`
	Pause  pauseCmd  `cmd:"" help:"Pause an experiment; runs that have ended are kept."`
	Resume resumeCmd `cmd:"" help:"Let a paused experiment go on."`
	Cancel cancelCmd `cmd:"" help:"Cancel the jobs of an experiment; the results of runs that have ended are kept."`
	Delete deleteCmd `cmd:"" help:"Delete an ended experiment from a cluster."`
}

// ask is connect.Ask about an experiment.
func ask[T any](a *cli.App, c *changedExperiment, request func(client.Experiments) (T, error),
	text func(io.Writer, T)) error {
	return connect.Ask(a, c, func(cl *client.Client) (T, error) {
		answer, err := request(cl.Experiments())
		if client.IsNotFound(err) {
			err = noExperiment(c.Name)
		}
		return answer, err
	}, text)
}

// change sends a request about the jobs that have not ended, and prints its answer.
func (c *changedExperiment) change(a *cli.App, change func(client.Experiments, context.Context,
	string) (*protocol.ExperimentChange, error), done, purpose, then string) error {
	return ask(a, c, func(all client.Experiments) (*protocol.ExperimentChange, error) {
		return change(all, a.Ctx, c.Name)
	}, func(w io.Writer, x *protocol.ExperimentChange) {
		if len(x.Changed) == 0 {
			fmt.Fprintf(w, "experiment %s is %s; no job was %s\n", c.Name, x.State, done)
			return
		}
		if purpose != "" {
			purpose += ": " + a.Command("experiment "+then+" "+c.Name)
		}
		fmt.Fprintf(w, "experiment %s is %s; %s %s%s\n", c.Name, x.State, units.Plural(len(x.Changed), "job"), done, purpose)
	})
}

type cancelCmd struct{ changedExperiment }

// Run implements `coppice experiment cancel`.
func (c *cancelCmd) Run(a *cli.App) error {
	return c.change(a, client.Experiments.Cancel, "cancelled", "", "")
}

type shareCmd struct{ changedExperiment }

// Run implements `coppice experiment share`.
func (c *shareCmd) Run(a *cli.App) error {
	return c.change(a, client.Experiments.Share, "shared", "", "")
}

type pauseCmd struct{ changedExperiment }

// Run implements `coppice experiment pause`.
func (c *pauseCmd) Run(a *cli.App) error {
	return c.change(a, client.Experiments.Pause, "paused", "; to go on", "resume")
}

type resumeCmd struct{ changedExperiment }

// Run implements `coppice experiment resume`.
func (c *resumeCmd) Run(a *cli.App) error {
	return c.change(a, client.Experiments.Resume, "resumed", "; to watch it", "watch")
}

type retryCmd struct {
	changedExperiment
	Failed bool `help:"Repeat only runs that failed (default: also submit runs without a result that no job will do)."`
}

// Run implements `coppice experiment retry`.
func (c *retryCmd) Run(a *cli.App) error {
	return ask(a, &c.changedExperiment, func(all client.Experiments) (submitted, error) {
		p, err := all.Retry(a.Ctx, c.Name, c.Failed)
		if err != nil {
			return submitted{}, err
		}
		return submitted{c.Name, p.Runs}, nil
	}, func(w io.Writer, p submitted) {
		if p.Runs == 0 {
			fmt.Fprintf(w, "experiment %s has no run to repeat\n", c.Name)
			return
		}
		fmt.Fprintf(w, "%s submitted; to watch them: %s\n", units.Plural(p.Runs, "run"),
			a.Command("experiment watch "+c.Name))
	})
}

// submitted says how many runs were submitted, as JSON has it.
type submitted struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
}

type deleteCmd struct{ changedExperiment }

// Run implements `coppice experiment delete`.
func (c *deleteCmd) Run(a *cli.App) error {
	return ask(a, &c.changedExperiment, func(all client.Experiments) (*protocol.Deletion, error) {
		return all.Delete(a.Ctx, c.Name)
	}, func(w io.Writer, d *protocol.Deletion) {
		fmt.Fprintf(w, "experiment %s was deleted, with %s\n", c.Name, units.Plural(len(d.Jobs), "job"))
		fmt.Fprintln(w, connect.Freed(d))
	})
}

type extendCmd struct {
	specArg
	cellFlags
	connect.ChangeFlags
}

// Run implements `coppice experiment extend`.
func (c *extendCmd) Run(a *cli.App) error {
	s, err := c.readFor(a, &c.cellFlags, false)
	if err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	if _, err := cl.Experiments().Show(a.Ctx, s.Name); client.IsNotFound(err) {
		return noExperiment(s.Name)
	} else if err != nil {
		return err
	}
	p, err := c.submit(a, cl, s, &c.cellFlags, false)
	if err != nil {
		return err
	}
	if c.DryRun {
		return printPlan(a, p)
	}
	return a.Print(submitted{s.Name, p.Runs}, func(w io.Writer) {
		fmt.Fprintf(w, "%s added; to watch them: %s\n", units.Plural(p.Runs, "run"), a.Command("experiment watch "+s.Name))
	})
}
