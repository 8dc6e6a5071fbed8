package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/remote"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// watchExperiment shows how far an experiment is until all of its jobs have ended, and returns how.
func watchExperiment(a *cli.App, cl *client.Client, name string) (protocol.JobState, error) {
	m, grid := progress.NewLive(a), remote.NewGrid(cl, name)
	defer m.Clear()
	cl.Faithful = true // the cluster keeps the jobs, however long it is away
	x, err := cl.Experiments().Watch(a.Ctx, name, m.Live, func(x *protocol.ExperimentLine) {
		if x.Ended() {
			return // the report follows
		}
		if m.Live {
			grid.See(a.Ctx, x)
		}
		m.Experiment(progress.Runs{Runs: x.Runs, Done: x.Done, SecondsLeft: x.SecondsLeft, Waiting: x.Waiting})
		m.ShowAll(overview.Line(&x.Experiment), grid.Lines)
	})
	if client.IsNotFound(err) {
		return "", noExperiment(name)
	}
	if errors.Is(err, context.Canceled) {
		return "", cli.Interrupted(fmt.Sprintf("experiment %s continues without this command; to watch it: %s; to cancel it: %s", name, a.Command("experiment watch "+name), a.Command("experiment cancel "+name)))
	}
	if err != nil {
		return "", err
	}
	for _, text := range x.Errors {
		a.Note("%s", text)
	}
	return x.State, nil
}

type watchCmd struct {
	nameArg
	reportFlags
	connect.ServerFlags
}

// Run implements `coppice experiment watch`.
func (c *watchCmd) Run(a *cli.App) error {
	if err := cmp.Or(c.nameArg.check(), c.reportFlags.check()); err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	a.Cluster.Patient(protocol.ClientRead)
	return watchAndReport(a, cl, c.Name, "", &c.ServerFlags, &c.reportFlags)
}

// watchAndReport waits for the end of an experiment and reports it as readThere reads it.
func watchAndReport(a *cli.App, cl *client.Client, name, spec string, server *connect.ServerFlags, f *reportFlags) error {
	end, err := watchExperiment(a, cl, name)
	if err != nil {
		return err
	}
	e, err := readThere(a, server, cl, name, false, spec)
	if err != nil {
		return err
	}
	noteAll(a, e.Notes)
	if err := f.write(a, e.Table); err != nil {
		return err
	}
	if n := experiment.Count(e.Table).Missing; n > 0 && end != protocol.Done {
		return fmt.Errorf("%s of experiment %s missing, because a job failed or was cancelled; coppice experiment run submits them again", units.Plural(n, "run"), name)
	}
	noteGaps(a, e.Table)
	return nil
}
