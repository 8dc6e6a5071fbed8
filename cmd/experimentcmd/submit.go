package experimentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/remote"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// cellFlags say what is recorded of runs that are run, and which runs that have ended are run again.
type cellFlags struct {
	Record      []string `placeholder:"WORDS" help:"Data to record of each run, for the figures of reports: curve (the learning curve), predictions (of 6 test samples), or both (default: the key record of the spec)."`
	RecordAgain bool     `help:"Repeat the runs that ended without the data of --record."`
	RetryFailed bool     `help:"Repeat the runs that failed."`
	KeepModels  bool     `help:"Keep the model of each run that is trained, as a model of the cluster; with run --local, as models/DIGEST.model in the folder --dir."`
	DryRun      bool     `help:"Only print how many runs are new, kept and orphaned. Nothing is imported or run."`
	Yes         bool     `help:"Do not ask if the spec has changed and runs of its last version become orphaned: their results are kept, but reports leave them out."`
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

// readFor reads the spec with the flags of a command. If the spec has mistakes, the error also lists mistakes in its data.
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
	return cli.NotFound(fmt.Errorf("the cluster has no experiment %q; coppice experiment list shows its experiments", name))
}

// readThere reads an experiment from a cluster so far. If bare is true, no values are read, but how each run has ended. spec is
// the file of the spec; empty: the command was not given it.
func readThere(a *cli.App, server *connect.ServerFlags, cl *client.Client, name string, bare bool, spec string) (*remote.Experiment, error) {
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

// submit submits the runs of a spec that no job of its experiment has, and the runs that flags repeat. If shared is true, all
// users may read the results of a new experiment, and its new datasets.
func (s *specArg) submit(a *cli.App, cl *client.Client, of *experiment.Spec, flags *cellFlags, shared bool) (p *protocol.ExperimentPlan, err error) {
	r := &protocol.ExperimentRequest{
		File: s.Spec, Spec: of.Source, Data: s.Data, NoBudget: s.NoBudget, Shared: shared,
		Record: flags.Record, RecordAgain: flags.RecordAgain, RetryFailed: flags.RetryFailed, KeepModels: flags.KeepModels, LeaveOut: flags.Yes,
	}
	ask := cl.Experiments().Submit
	if flags.DryRun {
		ask = cl.Experiments().Check
	}
	var refused *client.Error
	for n := 1; ; n++ {
		m := progress.New(a)
		r.Datasets, err = s.reader(a, m, of).Send(a.Ctx, cl, flags.DryRun, shared)
		m.Clear()
		if err != nil {
			return nil, err
		}
		p, err = ask(a.Ctx, *r)
		if errors.As(err, &refused) && refused.Plan != nil && !r.LeaveOut && !flags.DryRun {
			if err := flags.agree(a, refused.Plan); err != nil {
				return nil, err
			}
			r.LeaveOut = true
			p, err = ask(a.Ctx, *r)
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

// agree asks on a terminal whether runs may be orphaned, unless --yes says so.
func (f *cellFlags) agree(a *cli.App, p *protocol.ExperimentPlan) error {
	if f.Yes {
		return nil
	}
	for _, line := range overview.Plan(p) {
		a.Note("%s", line)
	}
	refused := cli.OfKind("orphans", errtext.Errorf(errtext.WrongRequest, "nothing was submitted: the spec lacks %s of experiment %s (%s, %s kept, %s orphaned); {yes} leaves them out of reports, another name keeps both",
		units.Plural(p.Orphaned, "run"), p.Name, units.Plural(p.Runs, "new run"), units.Count(p.Kept), units.Count(p.Orphaned)))
	in, ok := a.Stdin.(*os.File)
	if !ok || !cli.IsTerminal(in) || !cli.IsTerminal(a.Stderr) {
		return refused
	}
	fmt.Fprint(a.Stderr, "The results of orphaned runs are kept, but reports leave them out. Continue? [y/N] ")
	answered := make(chan string, 1)
	go func() { // an interrupt does not end the read
		var answer string
		fmt.Fscanln(in, &answer)
		answered <- answer
	}()
	select {
	case answer := <-answered:
		if slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
			return nil
		}
		return refused
	case <-a.Ctx.Done():
		fmt.Fprintln(a.Stderr)
		return cli.Interrupted("interrupted; nothing was submitted")
	}
}

// printPlan prints what a submission would add.
func printPlan(a *cli.App, p *protocol.ExperimentPlan) error {
	return a.Print(p, func(w io.Writer) {
		for _, line := range overview.Plan(p) {
			fmt.Fprintln(w, line)
		}
	})
}
