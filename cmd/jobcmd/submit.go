package jobcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// SubmitFlags say how a job is submitted.
type SubmitFlags struct {
	Shared bool      `seldom:"" group:"cluster" help:"Let all users of the cluster read the data, models and predictions (default: only you and admins)."`
	Audit  auditRate `group:"cluster" seldom:"" placeholder:"RATE" help:"Fraction of the tasks, 0 to 1, that two workers compute, so that their results can be compared. A worker with a wrong result is reported and quarantined (default: 0)."`
}

// Input says how the data files of a job are read.
type Input struct {
	Data       *dataflags.DataFlags
	Validation dataflags.ValidationFlag
}

// Submit imports the data file, if there is one, checks the spec against the dataset, so that errors name lines of the
// spec, and submits the job. If it is interrupted during the submission, its error says that there may be a job. keep
// refuses a job that would not keep its predictions. An interrupted request has grace more time for its answer. made is
// true if there was no such job before.
func Submit(a *cli.App, cl *client.Client, s *SpecFlags, in Input, file *spec.File, flags SubmitFlags,
	keep bool, grace time.Duration) (job *protocol.JobInfo, made bool, err error) {
	set, err := s.dataset(a, cl, in, file, flags.Shared)
	if err != nil {
		return nil, false, err
	}
	file.Spec.Dataset = set.Name
	r, err := s.Resolve(a, cl, file, set.Manifest)
	if err != nil {
		return nil, false, err
	}
	sent := slices.DeleteFunc([][]byte{r.folds, r.Weights}, func(b []byte) bool { return b == nil })
	if keep {
		if r.Assigned == nil {
			if r.Assigned, err = assignedFolds(a, cl, r.Job, set.Manifest); err != nil {
				return nil, false, err
			}
		}
		if err := CheckKept(r.Job, set.Manifest, r.Assigned); err != nil {
			return nil, false, err
		}
	}
	// The submission refuses a wrong name.
	before := uint64(0) // the number of the job that has the name
	if protocol.CheckName(file.Spec.Name) == nil {
		switch j, err := cl.Jobs().Get(a.Ctx, file.Spec.Name); {
		case err == nil:
			before = j.ID
		case !client.IsNotFound(err):
			return nil, false, err
		}
	}
	ctx, stop := lasting(a.Ctx, grace)
	defer stop()
	err = cl.Blobs().Sending(ctx, sent, func() error {
		job, err = cl.Jobs().SubmitRequest(ctx, protocol.SubmitRequest{Spec: file.Spec, Audit: float64(flags.Audit),
			Shared: flags.Shared})
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil, false, cli.Interrupted("interrupted; the job may have been submitted: see " + a.Command("job list"))
	}
	made = err == nil && before != job.ID
	if err == nil && !made && job.ModelDeleted == 0 {
		if text := wasThere(job); job.State != protocol.Done || !cli.ToLibrary(a.Stderr, "note", text) {
			a.Note("%s", text)
		}
	}
	if err == nil && flags.Shared && job.Private {
		connect.NoteNotShared(a, "job", job.Name)
	}
	return job, made, err
}

// wasThere says that a submission made no new job.
func wasThere(j *protocol.JobInfo) errtext.Text {
	if j.State == protocol.Done {
		return errtext.Sprintf("job %s with the same spec is already done (%s), so nothing was trained; to train again, "+
			"give another {name}", j.Name, cli.Time(j.Ended))
	}
	return errtext.Sprintf("job %s with the same spec was already submitted (%s) and is %s; no new job was made", j.Name,
		cli.Time(j.Submitted), j.State)
}

// dataset returns the dataset to train on. It imports a data file, and if shared is true, all users may read that.
func (s *SpecFlags) dataset(a *cli.App, cl *client.Client, in Input, file *spec.File,
	shared bool) (*protocol.Dataset, error) {
	if s.Data == "" {
		return cl.Datasets().Get(a.Ctx, file.Spec.Dataset)
	}
	if err := CheckLabels(file.Algorithm, in.Data); err != nil {
		return nil, err
	}
	src, checks, err := in.Data.OpenWith(a, s.Data, in.Validation)
	if err != nil {
		return nil, err
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	defer m.Clear()
	set, err := cl.Datasets().ImportFree(a.Ctx, protocol.DatasetPut{Name: dataflags.DatasetName(s.Data), Shared: shared},
		src, m.Reading(a.Ctx, "reading data", checks))
	a.Notes = m.Notes
	if err == nil && shared && set.Private {
		connect.NoteNotShared(a, "dataset", set.Name)
	}
	return set, err
}

// CheckLabels returns an error, before a data file is read, if an algorithm predicts targets and the flags do not read
// the labels as targets. Otherwise the error would be about the sum of the labels.
func CheckLabels(algorithm string, d *dataflags.DataFlags) error {
	if _, _, err := d.Options(); err != nil || d.Labels == string(dataset.Bounded) {
		return err
	}
	if err := registry.CheckTargets(algorithm, false, cmp.Or(d.Labels, "distributions")); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// CheckKept returns an error if the predictions of a job would not be kept.
func CheckKept(j *round.Job, m *dataset.Manifest, assigned []uint16) error {
	tests, err := j.Split.Tests(m.Rows, assigned)
	if err != nil {
		return err
	}
	n := 0
	for _, tested := range tests {
		if tested {
			n++
		}
	}
	switch bytes := pipeline.PredictionBytes(j, m, n); {
	case bytes > spec.MaxPredictions:
		return cli.Usagef("{predictions-out}: the predictions take %s bytes; at most %s are possible", units.Count(bytes),
			units.Count(spec.MaxPredictions))
	case bytes > j.Predictions:
		return cli.Usagef("{predictions-out}: the predictions take %s bytes, more than the setting keep_predictions; give "+
			"{set=keep_predictions=%d}", units.Count(bytes), bytes)
	}
	return nil
}

// assignedFolds reads the list of folds of a job; nil if it has none.
func assignedFolds(a *cli.App, cl *client.Client, j *round.Job, m *dataset.Manifest) ([]uint16, error) {
	if j.Split.Assigned == "" {
		return nil, nil
	}
	b, err := cl.Blobs().Get(a.Ctx, j.Split.Assigned)
	if err != nil {
		return nil, err
	}
	return j.Split.Decode(b, m.Rows)
}

// Watch shows the progress of a job until it ends, also if the leader changes or the cluster does not answer for a
// while. If it is interrupted, its error says that the job continues.
func Watch(a *cli.App, cl *client.Client, j *protocol.JobInfo) (*protocol.JobInfo, error) {
	m := progress.New(a)
	last, err := cl.Jobs().Watch(a.Ctx, strconv.FormatUint(j.ID, 10), m.Job)
	m.Clear()
	return last, jobContinues(a, j.Name, err)
}

// left replaces the error of an interrupted command by an error that says that the job continues.
func jobContinues(a *cli.App, job string, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return cli.Interrupted(fmt.Sprintf("job %s continues without this command; to watch it: %s; to cancel it: %s", job,
		a.Command("job watch "+job), a.Command("job cancel "+job)))
}

// SubmitGrace is how long the answer to an interrupted submission is awaited. It is less than endWithin.
const SubmitGrace = time.Second

// lasting returns a context that ends a while after ctx.
func lasting(ctx context.Context, while time.Duration) (longer context.Context, stop func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() { unlink(); cancel() }
}

// Withdraw cancels a job of an interrupted command, and returns an error that says what became of the job.
func Withdraw(a *cli.App, cl *client.Client, j *protocol.JobInfo, within time.Duration) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(a.Ctx), within)
	defer stop()
	if _, err := cl.Jobs().Cancel(ctx, strconv.FormatUint(j.ID, 10)); err != nil {
		return cli.Interrupted(fmt.Sprintf("interrupted, but job %s could not be cancelled: %s; to cancel it: %s", j.Name,
			cli.Message(err), a.Command("job cancel "+j.Name)))
	}
	return cli.Interrupted(fmt.Sprintf("interrupted; job %s was cancelled", j.Name))
}

// timedOut says in which state a job is after the wait.
func timedOut(a *cli.App, j *protocol.JobInfo) error {
	text := fmt.Sprintf("job %s is still %s", j.Name, j.State)
	switch {
	case a.Cluster.IsSilent():
		text = fmt.Sprintf("the cluster does not answer; when it last did, job %s was %s", j.Name, j.State)
	case j.State == protocol.Paused:
		text += "; to resume it: " + a.Command("job resume "+j.Name)
	case j.Waiting != "":
		text += " and waits: " + j.Waiting
	}
	return cli.OfKind(cli.KindTimeout, errors.New(text))
}

// WarnSuspect warns that the result of a job may be wrong.
func WarnSuspect(a *cli.App, j *protocol.JobInfo) {
	if j.Suspect != "" {
		a.Note("warning: the model of job %s may be wrong: %s", j.Name, j.Suspect)
	}
}

// AddDataset adds the manifest of a job's dataset to the result and, if divide is true, the job's division. If the
// dataset was deleted, the manifest is not known, and the division is an error.
func AddDataset(a *cli.App, cl *client.Client, r *results.Result, j *protocol.JobInfo, divide bool) error {
	set, err := cl.Datasets().Get(a.Ctx, j.Dataset)
	if err == nil && set.Digest == j.Job.Dataset {
		r.SetDataset(set.Manifest)
	}
	switch {
	case !divide:
		return nil
	case client.IsNotFound(err) || err == nil && r.On == nil:
		return errtext.Errorf(errtext.WrongRequest, "{split-out}: dataset %s was deleted, together with the row numbers of "+
			"its file; import the file again under this name, and repeat the command", j.Dataset)
	case err != nil:
		return err
	}
	assigned, err := assignedFolds(a, cl, j.Job, set.Manifest)
	if err != nil {
		return err
	}
	r.Division, err = Division(j.Job, set.Manifest.Rows, assigned)
	return err
}

// Division returns what --split-out writes of a job: its folds or overlapping splits, or else one split with its test
// samples. assigned is the list that j.Split.Assigned names.
func Division(j *round.Job, rows int, assigned []uint16) (*dataset.SplitList, error) {
	s := j.Split
	switch {
	case j.Folds > 0 && s.Assigned != "":
		list := &dataset.SplitList{Assigned: assigned, Folds: s.Folds, Overlap: s.Overlap}
		return list.Disjoint(), nil
	case j.Folds > 0:
		return &dataset.SplitList{Assigned: s.Divide(rows), Folds: s.Folds}, nil
	}
	tests, err := s.Tests(rows, assigned)
	if err != nil {
		return nil, err
	}
	list := make([]uint16, len(tests))
	for row, tested := range tests {
		if tested {
			list[row] = 1
		}
	}
	return &dataset.SplitList{Assigned: list, Folds: 1, Overlap: true}, nil
}

type submitCmd struct {
	SpecFlags
	SubmitFlags

	connect.ChangeFlags
	dataflags.DataFlags
	dataflags.ValidationFlag
}

// Run implements `coppice job submit`.
func (c *submitCmd) Run(a *cli.App) error {
	file, err := c.Read()
	if err != nil {
		return err
	}
	if err := cmp.Or(c.BelongTo(c.Data), c.ValidationFlag.Check(c.Data)); err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	job, _, err := Submit(a, cl, &c.SpecFlags, Input{&c.DataFlags, c.ValidationFlag}, file, c.SubmitFlags, false, 0)
	if err != nil {
		return err
	}
	return a.Print(job, func(w io.Writer) {
		fmt.Fprintf(w, "job %s is %s; to watch it: %s\n", job.Name, job.State, a.Command("job watch "+job.Name))
	})
}

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
	r.Advise(a, j)
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
