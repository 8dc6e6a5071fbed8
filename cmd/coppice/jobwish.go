package main

import (
	"context"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

// changedJob names one job that a command changes.
type changedJob struct {
	Job string `arg:"" help:"Number or name of the job."`

	changeFlags
}

// wish is what a user asks of one job.
type wish func(*client.Client, context.Context, string) (*protocol.JobInfo, error)

// ask asks it, and prints what the job is then.
func (c *changedJob) ask(a *app, what wish, say func(w io.Writer, j *protocol.JobInfo)) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	j, err := what(cl, a.ctx, c.Job)
	if err != nil {
		return err
	}
	return a.print(j, func(w io.Writer) { say(w, j) })
}

type jobCancelCmd struct{ changedJob }

// Run implements `coppice job cancel`.
func (c *jobCancelCmd) Run(a *app) error {
	return c.ask(a, (*client.Client).Cancel, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s\n", j.Name, j.State)
	})
}

type jobPauseCmd struct{ changedJob }

// Run implements `coppice job pause`.
func (c *jobPauseCmd) Run(a *app) error {
	return c.ask(a, (*client.Client).Pause, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s; to resume it: coppice job resume %s\n", j.Name, j.State, j.Name)
	})
}

type jobResumeCmd struct{ changedJob }

// Run implements `coppice job resume`.
func (c *jobResumeCmd) Run(a *app) error {
	return c.ask(a, (*client.Client).Resume, func(w io.Writer, j *protocol.JobInfo) {
		fmt.Fprintf(w, "job %s is %s; to watch it: coppice job watch %s\n", j.Name, j.State, j.Name)
	})
}
