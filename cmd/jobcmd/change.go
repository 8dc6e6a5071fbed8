package jobcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/protocol"
)

// jobArg names one job.
type jobArg struct {
	Job string `arg:"" help:"Number or name of the job."`

	connect.ServerFlags
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
