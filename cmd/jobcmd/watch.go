package jobcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/protocol"
)

type watchCmd struct {
	jobArg
	Timeout time.Duration `placeholder:"DURATION" help:"End with an error if the job has not ended after this time. The job continues. A coordinator has at least 1s to answer (default: wait until the job ends)."`
}

func (*watchCmd) Outputs() []string { return []string{cli.JSONL} }

// Run implements `coppice job watch`.
func (c *watchCmd) Run(a *cli.App) error {
	if c.Timeout < 0 {
		return cli.Usagef("{timeout=%v}: want 0 or more", c.Timeout)
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	first, whole, patience := a.Ctx, a.Ctx, protocol.ClientRead
	if c.Timeout > 0 {
		patience = min(patience, max(c.Timeout, firstAnswer))
		asking, answered := context.WithTimeout(a.Ctx, patience)
		defer answered()
		watching, stop := context.WithTimeout(a.Ctx, c.Timeout)
		defer stop()
		first, whole = asking, watching
	}
	a.Cluster.Patient(patience)
	cl.Faithful = true
	j, err := cl.Jobs().Get(first, c.Job) // an unknown job is an error at once
	switch {
	case c.Timeout > 0 && errors.Is(err, context.DeadlineExceeded):
		return cli.OfKind(cli.KindTimeout, fmt.Errorf("no coordinator has answered within %v", patience))
	case patience < protocol.ClientRead && errors.Is(err, client.ErrUnavailable):
		return cli.OfKind(cli.KindTimeout, err)
	}
	if err != nil {
		return jobContinues(a, c.Job, err)
	}
	if !j.State.Final() { // a job that has ended is shown, also after --timeout
		a.Ctx = whole
	}
	if a.Output == cli.JSONL {
		return watchLines(a, cl, j)
	}
	last, err := Watch(a, cl, j)
	if _, limited := a.Ctx.Deadline(); limited && errors.Is(err, context.DeadlineExceeded) {
		return timedOut(a, cmp.Or(last, j))
	}
	if j = last; err != nil {
		return err
	}
	r, _, err := results.Finished(j)
	if err != nil {
		return err
	}
	WarnSuspect(a, j)
	if j.CellCount > 0 {
		return a.Print(j, func(w io.Writer) { cli.WritePairs(w, cellLines(a, j)) })
	}
	r.Model = results.ModelHint(a, j)
	return a.Print(r, r.Text)
}

// firstAnswer is the time in which a coordinator may tell the state of a job, also if --timeout is shorter.
const firstAnswer = time.Second

// changes writes a job as a line of JSON after each change.
type changes struct {
	w    io.Writer
	last []byte // the job without its log index
	err  error
	stop func() // called after an error
}

// see writes the job if it has changed.
func (c *changes) see(j *protocol.JobInfo) {
	same := *j
	same.Index = 0
	now, err := json.Marshal(&same)
	if err != nil || c.err != nil || bytes.Equal(now, c.last) {
		return
	}
	c.last = now
	line, err := json.Marshal(j)
	if err == nil {
		_, err = c.w.Write(append(line, '\n'))
	}
	if err != nil {
		c.err = err
		c.stop()
	}
}

// watchLines writes a job as a line of JSON after each change, until it ends. A job that failed or was cancelled is
// then an error.
func watchLines(a *cli.App, cl *client.Client, j *protocol.JobInfo) error {
	ctx, cancel := context.WithCancel(a.Ctx)
	defer cancel()
	c := &changes{w: printable.NewJSONWriter(a.Data), stop: cancel}
	last, err := cl.Jobs().Watch(ctx, strconv.FormatUint(j.ID, 10), c.see)
	if _, limited := a.Ctx.Deadline(); limited && errors.Is(err, context.DeadlineExceeded) {
		return timedOut(a, cmp.Or(last, j))
	}
	if err = cmp.Or(c.err, jobContinues(a, j.Name, err)); err != nil {
		return err
	}
	_, _, err = results.Finished(last)
	return err
}
