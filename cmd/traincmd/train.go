// Package traincmd has the commands that train a model, describe the algorithms, and examine a tree while it grows.
package traincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cmd is `coppice train`.
type Cmd struct {
	jobcmd.SpecFlags
	jobcmd.SubmitFlags
	ModelOut       string `group:"write" placeholder:"FILE" help:"Write the model to FILE. Each fold has a file of its own: with m.model, m-fold0.model, m-fold1.model and so on."`
	PredictionsOut string `group:"write" placeholder:"FILE" help:"Write the predictions of the held-out samples to FILE: .csv, .csv.gz or .npz."`

	CurveOut string `group:"write" placeholder:"FILE.csv" help:"Write the loss of every step to FILE.csv."`
	SplitOut string `group:"write" seldom:"" placeholder:"FILE.csv" help:"Write to FILE.csv which samples are held out. --split FILE.csv holds out the same samples again."`
	Figures  string `group:"write" placeholder:"DIR" help:"Draw the learning curve and the held-out predictions to folder DIR, as .svg, .png and .pdf."`

	Local      bool        `group:"cluster" help:"Train in this process, without a cluster."`
	Memory     units.Bytes `group:"cluster" seldom:"" placeholder:"SIZE" help:"With --local: maximum memory of a task on the whole dataset (an exact fit), such as 8GiB. A job that needs more is refused (default: no limit)."`
	KeptMemory units.Bytes `group:"cluster" seldom:"" default:"256MiB" placeholder:"SIZE" help:"With --local: memory for what tasks keep between rounds (routing probabilities of ldlf, states of winldl and edl-lrl), such as 1GiB. With less memory it is computed again, and the results are the same to the bit."`
	cli.ThreadsFlag

	NoScreen bool `group:"what" seldom:"" help:"Without an algorithm, do not compare the default with small models of other algorithms on the validation samples."`

	CancelInterrupted bool `group:"cluster" seldom:"" help:"If the command is interrupted, cancel the job that it submitted (default: the job continues)."`

	connect.ChangeFlags
	dataflags.DataFlags
	dataflags.ValidationFlag
}

// Outputs implements printer.
func (*Cmd) Outputs() []string { return []string{cli.JSONL} }

// Run implements `coppice train`.
func (c *Cmd) Run(a *cli.App) error {
	switch {
	case c.Local && c.Audit > 0:
		return cli.Usagef("{audit} compares workers of a cluster and is not allowed with {local}")
	case c.Local && c.Shared:
		return cli.Usagef("{shared} is about users of a cluster and is not allowed with {local}")
	case c.Local && c.CancelInterrupted:
		return cli.Usagef("{cancel-interrupted} cancels a job of a cluster and is not allowed with {local}")
	case !c.Local && (c.Threads != 0 || c.Memory != 0 || c.KeptMemory != engine.DerivedLimit):
		return cli.Usagef("{threads}, {memory} and {kept-memory} need {local}; on a cluster, give --slots, --memory and " +
			"--kept-memory to coppice worker")
	}
	if err := cmp.Or(c.ThreadsFlag.Check(), c.ValidationFlag.Check(c.Data), connect.CheckNoCluster(a,
		errtext.Sprintf("{local} and {data}"), c.Local && c.Data != "")); err != nil {
		return err
	}
	file, err := c.Read()
	if err != nil {
		return err
	}
	file.Spec.Screen = file.Algorithm == "" && !c.NoScreen
	out, err := c.createOutputs(file)
	defer out.discard()
	if err != nil {
		return err
	}
	var r *results.Result
	var o *pipeline.Outcome
	if c.Local {
		model := io.Discard
		if out.model != nil {
			model = out.model
		}
		r, o, err = c.trainHere(a, file, model)
	} else {
		r, o, err = c.trainThere(a, file)
	}
	if err != nil {
		return err
	}
	if s := r.Screening; s != nil {
		a.Note("%s", results.ScreeningText(r.Algorithm, s))
	}
	r.Notes = a.Notes
	if err := out.write(c, r, o); err != nil {
		return err
	}
	err = a.PrintResult(r, r.Text)
	return cmp.Or(err, results.DrawResult(a, c.Figures, r, o)) // the result is printed even if a figure cannot be written
}

// trainThere trains on a cluster and waits for the end.
func (c *Cmd) trainThere(a *cli.App, file *spec.File) (*results.Result, *pipeline.Outcome, error) {
	cl, err := c.ConnectOr(a, "--local trains in this process")
	if err != nil {
		return nil, nil, err
	}
	grace := time.Duration(0)
	if c.CancelInterrupted {
		grace = jobcmd.SubmitGrace
	}
	submitted, made, err := jobcmd.Submit(a, cl, &c.SpecFlags, jobcmd.Input{Data: &c.DataFlags,
		Validation: c.ValidationFlag}, file, c.SubmitFlags, c.PredictionsOut != "", grace)
	if err != nil {
		return nil, nil, err
	}
	if !submitted.State.Final() {
		connect.NotePage(a, cl, fmt.Sprintf("/jobs/%d", submitted.ID))
	}
	cl.Faithful = true // the cluster keeps the job, however long it is away
	job, err := jobcmd.Watch(a, cl, submitted)
	if made && c.CancelInterrupted && errors.Is(err, context.Canceled) {
		err = jobcmd.Withdraw(a, cl, submitted, c.Wait)
	}
	if err != nil {
		return nil, nil, err
	}
	r, o, err := results.Finished(job)
	if err != nil {
		return nil, nil, err
	}
	jobcmd.WarnSuspect(a, job)
	r.Advise(a, job)
	if c.ModelOut != "" {
		if job.ModelDeleted != 0 {
			return nil, nil, fmt.Errorf("the model of job %s was deleted; delete the job, or choose another name, to train it "+
				"again", job.Name)
		}
		if len(o.Folds) == 0 {
			if o.Model, err = cl.Blobs().Get(a.Ctx, job.Models[0].Blob); err != nil {
				return nil, nil, err
			}
		}
		for i, f := range o.Folds {
			if f.Model, err = cl.Blobs().Get(a.Ctx, job.Models[i].Blob); err != nil {
				return nil, nil, err
			}
		}
	}
	if (c.PredictionsOut != "" || c.Figures != "") && job.Predictions != nil {
		if o.Predictions, err = cl.Blobs().Get(a.Ctx, job.Predictions.Blob); err != nil {
			return nil, nil, err
		}
	}
	if err := jobcmd.AddDataset(a, cl, r, job, c.SplitOut != ""); err != nil {
		return nil, nil, err
	}
	if c.CurveOut != "" || c.Figures != "" {
		r.Line, err = cl.Jobs().Curve(a.Ctx, strconv.FormatUint(job.ID, 10))
	}
	return r, o, err
}

// trainHere trains in this process, and writes the model of a job without folds to out.
func (c *Cmd) trainHere(a *cli.App, file *spec.File, out io.Writer) (*results.Result, *pipeline.Outcome, error) {
	defer garbage.Frugal.Begin()()
	m := progress.New(a)
	m.Quiet = a.JSON
	defer m.Clear()
	name, data, j, err := c.load(a, m, file)
	if err != nil {
		return nil, nil, err
	}
	if c.PredictionsOut != "" {
		if err := jobcmd.CheckKept(j, data.Manifest, data.Assigned); err != nil {
			return nil, nil, err
		}
	}
	m.Targets = j.Bounds != nil
	start, shown := time.Now(), progress.StartPulse(m)
	o, err := local.Run(a.Ctx, j, data, local.Options{Lanes: c.ThreadsFlag.Number(), Memory: int64(c.Memory),
		Kept: engine.NewDerivedMemory(int(c.KeptMemory)), Spend: true, Progress: shown.Training, Model: out,
		Points: curve.JobPoints, Timed: true})
	shown.Stop()
	if err != nil {
		return nil, nil, err
	}
	job := file.Name
	if job == "" {
		job = "local"
	}
	r := results.New(job, name, j, o, time.Since(start).Seconds())
	if len(o.Predictions) > 0 {
		r.Predictions = ""
	}
	r.Line = lineOf(o)
	r.SetDataset(data.Manifest)
	if c.SplitOut != "" {
		r.Division, err = jobcmd.Division(j, data.Manifest.Rows, data.Assigned)
	}
	return r, o, err
}

// load reads the data into memory, from a file or from a cluster, and makes the job. The groups of the samples are the
// folds of a split by groups.
func (c *Cmd) load(a *cli.App, m *progress.Meter, file *spec.File) (name string, data *local.Data, j *round.Job,
	err error) {
	if name = file.Dataset; c.Data == "" {
		data, err = c.fetch(a, name)
	} else {
		name = dataflags.DatasetName(c.Data)
		if err := jobcmd.CheckLabels(file.Algorithm, &c.DataFlags); err != nil {
			return "", nil, nil, err
		}
		data, err = c.readFile(a, m)
	}
	if err != nil {
		return "", nil, nil, err
	}
	r, err := c.Resolve(a, nil, file, data.Manifest)
	if err != nil {
		return "", nil, nil, err
	}
	data.Weights, data.Assigned = r.Weights, r.Assigned
	if data.Assigned == nil {
		data.Assigned = data.Groups
	}
	return name, data, r.Job, nil
}

// readFile reads the data file.
func (c *Cmd) readFile(a *cli.App, m *progress.Meter) (*local.Data, error) {
	src, checks, err := c.OpenWith(a, c.Data, c.ValidationFlag)
	if err != nil {
		return nil, err
	}
	data := new(local.Data)
	options := m.Reading(a.Ctx, "reading data", checks)
	options.Groups = func(groups []uint16) { data.Groups = groups }
	data.Manifest, data.Shards, err = importer.Build(src, options)
	a.Notes = m.Notes
	return data, err
}

// fetch reads a cluster's dataset into memory.
func (c *Cmd) fetch(a *cli.App, name string) (*local.Data, error) {
	var cl *client.Client
	var err error
	if a.Given("wait") {
		cl, err = c.Connect(a)
	} else {
		cl, err = connect.Try(a, &c.ServerFlags)
	}
	if err != nil {
		return nil, err
	}
	d, err := cl.Datasets().Get(a.Ctx, name)
	if err != nil {
		return nil, err
	}
	shards, err := cl.Datasets().Shards(a.Ctx, d.Manifest)
	data := &local.Data{Manifest: d.Manifest, Shards: shards}
	if g := d.Manifest.Groups; g != nil && err == nil {
		var b []byte
		if b, err = cl.Blobs().Get(a.Ctx, g.Digest); err == nil {
			data.Groups, err = dataset.DecodeFolds(b, d.Manifest.Divided().Rows)
		}
	}
	return data, err
}

// lineOf returns the curve of a job that ran in this process.
func lineOf(o *pipeline.Outcome) *protocol.JobCurve {
	line := &protocol.JobCurve{Points: []curve.Point{}}
	if o.Curve != nil {
		line.Points = o.Curve.Points()
	}
	for _, f := range o.Folds {
		points := []curve.Point{}
		if f.Curve != nil {
			points = f.Curve.Points()
		}
		line.Folds = append(line.Folds, points)
	}
	return line
}

// trainOut has the files of --model-out, --predictions-out, --curve-out and --split-out. A file is nil if its flag is
// not given.
type trainOut struct {
	model, predictions, curve, split *cli.File

	format write.Format // of the predictions
}

// createOutputs checks the names of all files to write, and creates the files. The caller discards them, also after an
// error.
func (c *Cmd) createOutputs(file *spec.File) (out *trainOut, err error) {
	out = &trainOut{}
	inputs := []string{c.Data, c.Validation, c.Split, c.Spec, c.LabelsFile, c.Names, jobcmd.InitFrom(file)}
	model, held, curve, split := cli.OutputFlag{Flag: "--model-out", Path: c.ModelOut},
		cli.OutputFlag{Flag: "--predictions-out", Path: c.PredictionsOut}, cli.OutputFlag{Flag: "--curve-out",
			Path: c.CurveOut}, cli.OutputFlag{Flag: "--split-out", Path: c.SplitOut}
	err = cmp.Or(cli.CheckDistinct(model, held, curve, split), c.BelongTo(c.Data),
		results.CheckFigures("--figures", c.Figures))
	for _, f := range []cli.OutputFlag{model, held, curve, split} {
		err = cmp.Or(err, cli.CheckNotInput(f.Flag, f.Path, inputs...))
	}
	holds := file.Folds > 0 || file.TestFraction > 0 || file.GroupFolds || c.Split != ""
	for _, f := range []cli.OutputFlag{held, split} {
		if err == nil && f.Path != "" && !holds {
			err = cli.Usagef("%s: no samples are held out for testing; give {test-fraction}, {folds} or {split}",
				cli.FlagText(f.Flag))
		}
	}
	if err != nil {
		return out, err
	}
	if c.ModelOut != "" {
		if out.model, err = cli.Create(c.ModelOut); err != nil {
			return out, err
		}
	}
	if c.PredictionsOut != "" {
		if out.format, err = new(cli.FormatFlag).FormatOf(c.PredictionsOut); err != nil {
			return out, err
		}
		if out.predictions, err = cli.Create(c.PredictionsOut); err != nil {
			return out, err
		}
	}
	if out.curve, err = curve.CreateCSV("a learning curve"); err == nil {
		out.split, err = split.CreateCSV("a split file")
	}
	return out, err
}

// discard removes the files that are not complete.
func (t *trainOut) discard() {
	for _, f := range []*cli.File{t.model, t.predictions, t.curve, t.split} {
		if f != nil {
			f.Discard()
		}
	}
}

// write writes the files, and notes in r their names. A streamed model is already in its file. A job of folds has a
// model for each fold.
func (t *trainOut) write(c *Cmd, r *results.Result, o *pipeline.Outcome) error {
	switch {
	case t.model == nil:
	case len(o.Folds) == 0:
		r.Model = c.ModelOut
		if _, err := t.model.Write(o.Model); err != nil {
			return err
		}
		if err := t.model.Commit(); err != nil {
			return err
		}
	default:
		var paths []string
		for i, f := range o.Folds {
			path := foldPath(c.ModelOut, i)
			if err := cli.WriteFile(path, f.Model); err != nil {
				for _, written := range paths {
					err = errors.Join(err, os.Remove(written))
				}
				return err
			}
			paths = append(paths, path)
		}
		r.Model = strings.Join(paths, ", ")
	}
	if t.predictions != nil {
		if len(o.Predictions) == 0 {
			return jobcmd.NoPredictions("job "+r.Job, o)
		}
		set, err := predictions.Decode(o.Predictions)
		if err != nil {
			return err
		}
		r.Predictions = c.PredictionsOut
		file := cli.Compressed(t.predictions, t.format)
		if err := predict.WriteHeldOut(file, t.format, set); err != nil {
			return err
		}
		if err := file.Commit(); err != nil {
			return err
		}
	}
	if t.curve != nil {
		r.Curve = c.CurveOut
		if err := jobcmd.WriteCurve(t.curve, r.Line.Points, r.Line.Folds); err != nil {
			return err
		}
		if err := t.curve.Commit(); err != nil {
			return err
		}
	}
	if t.split == nil {
		return nil
	}
	r.SplitFile = c.SplitOut
	if err := read.WriteSplit(r.On[0].Divided(), t.split, r.Division); err != nil {
		return err
	}
	return t.split.Commit()
}

// foldPath returns the name of the model of a fold: model.ldl becomes model-fold3.ldl.
func foldPath(path string, fold int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-fold%d%s", strings.TrimSuffix(path, ext), fold, ext)
}
