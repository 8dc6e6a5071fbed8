package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/local"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/remote"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/internal/errtext"
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
		Note: func(text string) {
			a.Note("%s", text)
		}, Agree: func(p *protocol.ExperimentPlan) error {
			return c.agree(a, p)
		}, Show: func(s local.Status, grid func(columns, lines int) []string) {
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
		return cli.Interrupted(fmt.Sprintf("interrupted; the results of runs that ended are in %s, and the same command "+
			"does the other runs", run.Folder))
	}
	if err != nil {
		return err
	}
	noteGaps(a, t)
	if err := c.write(a, t); err != nil {
		return err
	}
	return failedRuns(t)
}

// runThere submits the runs that no job of the experiment has, and waits for the end.
func (c *runCmd) runThere(a *cli.App, s *experiment.Spec) error {
	cl, err := c.ConnectOr(a, "--local runs the experiment in this process")
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
	connect.NotePage(a, cl, "/experiments/"+s.Name)
	return watchAndReport(a, cl, s.Name, c.Spec, &c.ServerFlags, &c.reportFlags)
}

// cellFlags say what is recorded of runs that are run, and which runs that have ended are run again.
type cellFlags struct {
	Record      []string `placeholder:"WORDS" help:"Data to record of each run, for the figures of reports: curve (the learning curve), predictions (of 6 test samples), or both (default: the key record of the spec)."`
	RecordAgain bool     `help:"Repeat the runs that ended without the data of --record."`
	RetryFailed bool     `help:"Repeat the runs that failed."`
	KeepModels  bool     `help:"Keep the model of each run that is trained, as a model of the cluster; with run --local, as models/DIGEST.model in the folder --dir."`
	DryRun      bool     `help:"Only print how many runs are new, kept and orphaned. Nothing is imported or run."`
	Yes         bool     `help:"Go on if the spec has changed and runs of its last version become orphaned: their results are kept, but reports leave them out."`
}

// set takes the flags into a spec.
func (f *cellFlags) set(s *experiment.Spec) error {
	if len(f.Record) > 0 {
		if err := s.SetRecorded(f.Record); err != nil {
			return cli.Usagef("{record}: %v", err)
		}
	}
	if f.RecordAgain && !s.Record.Any() {
		return cli.Usagef("{record-again}: nothing is to be recorded; give {record}, or the key record in the spec")
	}
	return nil
}

// readFor reads the spec with the flags of a command. If the spec has mistakes, the error also lists mistakes in its
// data.
func (s *specArg) readFor(a *cli.App, flags *cellFlags, local bool) (*experiment.Spec, error) {
	of, err := s.read(a.Ctx)
	if of != nil && err != nil {
		m := progress.New(a)
		defer m.Clear()
		return nil, s.reader(a, m, of).WithMistakes(a.Ctx, err, local)
	}
	if err == nil {
		err = flags.set(of)
	}
	return of, err
}

// noExperiment says that a cluster has no experiment of that name.
func noExperiment(name string) error {
	return cli.NotFound(fmt.Errorf("the cluster has no experiment %q; coppice experiment list shows its experiments",
		name))
}

// readThere reads an experiment from a cluster so far. If bare is true, no values are read, but how each run has ended.
// spec is the file of the spec; empty: the command was not given it.
func readThere(a *cli.App, server *connect.ServerFlags, cl *client.Client, name string, bare bool,
	spec string) (*remote.Experiment, error) {
	o := remote.Options{StatesOnly: bare, Spec: spec, Flags: connect.Flags(a, server)}
	e, err := remote.Read(a.Ctx, cl, name, o)
	if errors.Is(err, submission.ErrNone) {
		return nil, noExperiment(name)
	}
	return e, err
}

// noteAll prints notes.
func noteAll(a *cli.App, list []string) {
	for _, text := range list {
		a.Note("note: %s", text)
	}
}

// noteGaps names the runs of a table that are missing, and the methods without a measure.
func noteGaps(a *cli.App, t *tables.Table) {
	for _, text := range experiment.UnmeasuredNotes(t) {
		a.Note("warning: %s", text)
	}
	for _, runs := range experiment.NotRun(t) {
		a.Note("not run: %s", runs)
	}
}

// maxSends is how often the files of an experiment are sent, if the leader changes meanwhile.
const maxSends = 3

// submit submits the runs of a spec that no job of its experiment has, and the runs that flags repeat. If shared is
// true, all users may read the results of a new experiment, and its new datasets.
func (s *specArg) submit(a *cli.App, cl *client.Client, of *experiment.Spec, flags *cellFlags,
	shared bool) (p *protocol.ExperimentPlan, err error) {
	r := &protocol.ExperimentRequest{
		File: s.Spec, Spec: of.Source, Data: s.Data, NoBudget: s.NoBudget, Shared: shared,
		Record: flags.Record, RecordAgain: flags.RecordAgain, RetryFailed: flags.RetryFailed, KeepModels: flags.KeepModels,
		LeaveOut: flags.Yes,
	}
	send := cl.Experiments().Submit
	if flags.DryRun {
		send = cl.Experiments().Check
	}
	var refused *client.Error
	for n := 1; ; n++ {
		m := progress.New(a)
		r.Datasets, err = s.reader(a, m, of).Send(a.Ctx, cl, flags.DryRun, shared)
		m.Clear()
		if err != nil {
			return nil, err
		}
		p, err = send(a.Ctx, *r)
		if errors.As(err, &refused) && refused.Plan != nil && !r.LeaveOut && !flags.DryRun {
			if err := flags.agree(a, refused.Plan); err != nil {
				return nil, err
			}
			r.LeaveOut = true
			p, err = send(a.Ctx, *r)
		}
		if n == maxSends || !client.NeedsBlobs(err) {
			break // otherwise another leader does not know that the files were sent
		}
	}
	if flags.DryRun {
		return p, err
	}
	if errors.Is(err, context.Canceled) {
		err = cli.Interrupted("interrupted; the experiment may have been submitted: see coppice experiment list")
	}
	if err != nil {
		return nil, err
	}
	noteAll(a, p.Notes)
	if shared && slices.ContainsFunc(p.Jobs, func(j protocol.JobInfo) bool { return j.Private }) {
		connect.NoteNotShared(a, "experiment", of.Name)
	}
	return p, nil
}

// agree refuses a plan by which runs are orphaned, and prints it, unless --yes agrees.
func (f *cellFlags) agree(a *cli.App, p *protocol.ExperimentPlan) error {
	if f.Yes {
		return nil
	}
	for _, line := range overview.Plan(p) {
		a.Note("%s", line)
	}
	return cli.OfKind("orphans", errtext.Errorf(errtext.WrongRequest,
		"nothing was submitted: the spec lacks %s of experiment %s (%s, %s kept, %s orphaned); {yes} leaves them out of "+
			"reports, another name keeps both",
		units.Plural(p.Orphaned, "run"), p.Name, units.Plural(p.Runs, "new run"), units.Count(p.Kept),
		units.Count(p.Orphaned)))
}

// printPlan prints what a submission would add.
func printPlan(a *cli.App, p *protocol.ExperimentPlan) error {
	return a.Print(p, func(w io.Writer) {
		for _, line := range overview.Plan(p) {
			fmt.Fprintln(w, line)
		}
	})
}

// watchExperiment shows how far an experiment is until all of its jobs have ended, and returns how.
func watchExperiment(a *cli.App, cl *client.Client, name string) (protocol.JobState, error) {
	m, grid := progress.NewLive(a), remote.NewGrid(cl)
	defer m.Clear()
	cl.Faithful = true // the cluster keeps the jobs, however long it is away
	x, err := cl.Experiments().Watch(a.Ctx, name, false, func(x *protocol.ExperimentLine) {
		if x.Ended() {
			return // the report follows
		}
		if m.Live {
			grid.See(a.Ctx, &x.Experiment)
		}
		m.Experiment(progress.Runs{Runs: x.Runs, Done: x.Done, SecondsLeft: x.SecondsLeft, Waiting: x.Waiting})
		m.ShowAll(overview.Line(&x.Experiment), grid.Lines)
	})
	if client.IsNotFound(err) {
		return "", noExperiment(name)
	}
	if errors.Is(err, context.Canceled) {
		return "", cli.Interrupted(fmt.Sprintf("experiment %s continues without this command; to watch it: %s; to cancel "+
			"it: %s", name, a.Command("experiment watch "+name), a.Command("experiment cancel "+name)))
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
func watchAndReport(a *cli.App, cl *client.Client, name, spec string, server *connect.ServerFlags,
	f *reportFlags) error {
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
		return fmt.Errorf("%s of experiment %s missing, because a job failed or was cancelled; coppice experiment run "+
			"submits them again", units.Plural(n, "run"), name)
	}
	noteGaps(a, e.Table)
	return failedRuns(e.Table)
}

// failedRuns returns an error if runs of an experiment whose report is written have failed. Their methods lack
// measures, so scripts must notice.
func failedRuns(t *tables.Table) error {
	n := experiment.Count(t).Failed
	if n == 0 {
		return nil
	}
	return cli.OfKind("runs_failed", errtext.Errorf(errtext.WrongData, "%s of experiment %s failed; the report says why; "+
		"to repeat them: {retry-failed}", units.Plural(n, "run"), t.Name))
}
