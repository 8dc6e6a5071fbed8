package jobcmd

import (
	"cmp"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

type predictionsCmd struct {
	Job string `arg:"" help:"Number or name of the job."`
	Out string `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz or .npz; - for stdout."`

	Figures string `placeholder:"DIR" help:"Also draw figures to folder DIR, each as .svg and .png: predicted and true distributions of some samples, the cumulative score of numeric labels, and the confusion matrix of classes."`

	cli.FormatFlag
	connect.ServerFlags
}

// Run implements `coppice job predictions`.
func (c *predictionsCmd) Run(a *cli.App) error {
	format, err := c.FormatOf(c.Out)
	if err = cmp.Or(err, results.CheckFigures("--figures", c.Figures)); err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	j, err := cl.Jobs().Get(a.Ctx, c.Job)
	if err != nil {
		return err
	}
	if j.Experiment != "" {
		return errtext.Errorf(errtext.WrongRequest, "job %s is part of experiment %s, and experiments do not keep the predictions for all held-out samples. With {record=predictions}, an experiment keeps predictions for 6 test samples of each run "+
			"(coppice experiment report %s -o json). With {keep-models}, it keeps the model of each run for coppice predict (coppice model download %s/DIGEST --out FILE)",
			j.Name, j.Experiment, j.Experiment, j.Name)
	}
	r, o, err := results.Finished(j)
	if err != nil {
		return err
	}
	if j.Predictions == nil {
		return NoPredictions("job "+j.Name, o)
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	out = cli.Compressed(out, format)
	defer out.Discard()
	b, err := cl.Blobs().Get(a.Ctx, j.Predictions.Blob)
	if err != nil {
		return client.Withheld(err, "job", j.Name, j.Ownership)
	}
	set, err := predictions.Decode(b)
	if err != nil {
		return err
	}
	if err := predict.WriteHeldOut(out, format, set); err != nil { // an incomplete file is discarded
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	o.Predictions = b
	if err := results.DrawResult(a, c.Figures, r, o); err != nil {
		return err
	}
	shown := struct {
		Job         string `json:"job"`
		ModelDigest string `json:"model_digest"`
		Rows        int    `json:"samples"`
		Out         string `json:"out"`
	}{j.Name, r.ModelDigest, len(set.Row), c.Out}
	return a.PrintBeside(c.Out, shown, func(w io.Writer) {
		fmt.Fprintf(w, "predictions for %s held out by job %s: %s\n", units.Plural(shown.Rows, "sample"), j.Name, cli.OutputName(c.Out))
	})
}

// NoPredictions says why a job has no predictions.
func NoPredictions(job string, o *pipeline.Outcome) error {
	if o.Rows.Test == 0 {
		return errtext.Errorf(errtext.WrongRequest, "%s held out no samples for testing: train with {test-fraction}, {folds} or {split}", job)
	}
	return fmt.Errorf("%s kept no predictions: they are larger than its setting keep_predictions", job)
}
