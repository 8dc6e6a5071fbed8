// Package jobcmd has the commands of jobs: they submit, list, show, watch, change and delete jobs of a cluster.
package jobcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cmd is `coppice job`.
type Cmd struct {
	Submit submitCmd `cmd:"" help:"Submit a job and return at once."`
	List   listCmd   `cmd:"" help:"List jobs."`
	Show   showCmd   `cmd:"" help:"Describe a job."`
	Watch  watchCmd  `cmd:"" help:"Show a job's progress until it ends, then its result."`

	Curve       curveCmd       `cmd:"" help:"Show a job's losses step by step, as text, CSV or JSON."`
	Predictions predictionsCmd `cmd:"" help:"Write the predictions of a done job for the samples that it held out."`

	Share  shareCmd  `cmd:"" help:"Let all users of a cluster read the models and predictions of one of your jobs."`
	Pause  pauseCmd  `cmd:"" help:"Pause a job; its last checkpoint is kept."`
	Resume resumeCmd `cmd:"" help:"Resume a paused job from its last checkpoint."`
	Cancel cancelCmd `cmd:"" help:"Cancel a job; it will have no model."`
	Delete deleteCmd `cmd:"" help:"Delete jobs that have ended, with their models."`
	Prune  pruneCmd  `cmd:"" help:"Delete jobs that ended before a certain time."`
}

// changedJob names one job that a command changes.
type changedJob struct {
	Job string `arg:"" help:"Number or name of the job."`

	connect.ChangeFlags
}

// ask asks for the change and prints the job after it.
func (c *changedJob) ask(a *cli.App, what wish, say func(w io.Writer, j *protocol.JobInfo)) error {
	return connect.Ask(a, c, func(cl *client.Client) (*protocol.JobInfo, error) {
		return what(cl.Jobs(), a.Ctx, c.Job)
	}, say)
}

// wish is a change of a job that a user asks for.
type wish func(client.Jobs, context.Context, string) (*protocol.JobInfo, error)

type cancelCmd struct{ changedJob }

// Run implements `coppice job cancel`.
func (c *cancelCmd) Run(a *cli.App) error {
	return c.ask(a, client.Jobs.Cancel, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s\n", j.Name, j.State)
	})
}

type shareCmd struct{ changedJob }

// Run implements `coppice job share`.
func (c *shareCmd) Run(a *cli.App) error {
	return c.ask(a, client.Jobs.Share, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "all users may read the models and predictions of job %s\n", j.Name)
	})
}

type pauseCmd struct{ changedJob }

// Run implements `coppice job pause`.
func (c *pauseCmd) Run(a *cli.App) error {
	return c.ask(a, client.Jobs.Pause, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s; to resume it: %s\n", j.Name, j.State, a.Command("job resume "+j.Name))
	})
}

type resumeCmd struct{ changedJob }

// Run implements `coppice job resume`.
func (c *resumeCmd) Run(a *cli.App) error {
	return c.ask(a, client.Jobs.Resume, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s; to watch it: %s\n", j.Name, j.State, a.Command("job watch "+j.Name))
	})
}

type deleteCmd struct {
	Jobs []string `arg:"" name:"job" help:"Numbers or names of jobs."`

	connect.ChangeFlags
}

// Run implements `coppice job delete`.
func (c *deleteCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) (*protocol.Deletion, error) {
		return cl.Jobs().Delete(a.Ctx, c.Jobs...)
	}, func(w io.Writer, d *protocol.Deletion) {
		for _, j := range d.Jobs {
			was := "was deleted"
			if j.Before {
				was = "had been deleted before"
			}
			fmt.Fprintf(w, "job %d (%s) %s\n", j.ID, j.Name, was)
		}
		fmt.Fprintln(w, connect.Freed(d))
	})
}

type pruneCmd struct {
	OlderThan units.Age `required:"" placeholder:"AGE" help:"Delete jobs that ended at least this long ago, such as 30d, 12h or 1d12h. 0: all jobs that have ended."`
	State     []string  `placeholder:"STATES" help:"Delete only jobs in these states: done, failed or cancelled (default: all three)."`
	DryRun    bool      `help:"Only list the jobs that would be deleted."`

	connect.ChangeFlags
}

// Run implements `coppice job prune`.
func (c *pruneCmd) Run(a *cli.App) error {
	states, err := protocol.ParseJobStates(strings.Join(c.State, ","))
	if err != nil {
		return cli.Usagef("--state: %w", err)
	}
	r := protocol.PruneRequest{OlderThan: c.OlderThan.Seconds(), States: states, DryRun: c.DryRun}
	if err := r.Check(); err != nil {
		return cli.Usagef("--state: %w", err)
	}
	return connect.Ask(a, c, func(cl *client.Client) (*protocol.Deletion, error) {
		return cl.Jobs().Prune(a.Ctx, r)
	}, writePruned)
}

// writePruned lists the jobs that were deleted or would be deleted, and their size.
func writePruned(w io.Writer, d *protocol.Deletion) {
	if len(d.Jobs) == 0 {
		fmt.Fprintln(w, "no job that has ended is old enough and in one of the states")
		return
	}
	var bytes uint64
	t := cli.NewTable(w, []string{"job", "name", "state", "ended", "size"}, 1, 5)
	for _, j := range d.Jobs {
		t.AppendRow(cli.Row(fmt.Sprint(j.ID), j.Name, string(j.State), cli.Time(j.Ended), units.Format(int64(j.Bytes))))
		bytes += j.Bytes
	}
	t.Render()
	did := "deleted"
	if d.DryRun {
		did = "would be deleted"
	}
	fmt.Fprintf(w, "%s %s, together with models and predictions of %s\n", units.Plural(len(d.Jobs), "job"), did,
		units.Format(int64(bytes)))
	fmt.Fprintln(w, connect.Freed(d))
}
