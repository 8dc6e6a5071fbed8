package commands

import (
	"cmp"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

type jobPredictionsCmd struct {
	Job string `arg:"" help:"Number or name of the job."`
	Out string `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz or .npz; - for stdout."`

	Figures string `placeholder:"DIR" help:"Also draw figures to folder DIR, each as .svg and .png: predicted and true distributions of some samples, the cumulative score of numeric labels, and the confusion matrix of classes."`

	formatFlag
	serverFlags
}

// Run implements `coppice job predictions`.
func (c *jobPredictionsCmd) Run(a *app) error {
	format, err := c.of(c.Out)
	if err = cmp.Or(err, checkFigures("--figures", c.Figures)); err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	j, err := cl.Job(a.ctx, c.Job)
	if err != nil {
		return err
	}
	if j.Experiment != "" {
		return noneOfCells(j)
	}
	r, o, err := finished(j)
	if err != nil {
		return err
	}
	if j.Predictions == nil {
		return noPredictions("job "+j.Name, o)
	}
	out, err := a.createOutput(c.Out)
	if err != nil {
		return err
	}
	out = compressed(out, format)
	defer out.discard()
	b, err := cl.Blob(a.ctx, j.Predictions.Blob)
	if err != nil {
		return client.Withheld(err, "job", j.Name, j.Ownership)
	}
	set, err := predictions.Decode(b)
	if err != nil {
		return err
	}
	if err := writeHeldOut(out, format, set); err != nil { // an incomplete file is discarded
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	o.Predictions = b
	if err := drawResult(a, c.Figures, r, o); err != nil {
		return err
	}
	shown := struct {
		Job         string `json:"job"`
		ModelDigest string `json:"model_digest"`
		Rows        int    `json:"samples"`
		Out         string `json:"out"`
	}{j.Name, r.ModelDigest, len(set.Row), c.Out}
	return a.printBeside(c.Out, shown, func(w io.Writer) {
		fmt.Fprintf(w, "predictions for %s held out by job %s: %s\n", units.Plural(shown.Rows, "sample"), j.Name, outName(c.Out))
	})
}

// noPredictions says why a job has no predictions.
func noPredictions(job string, o *pipeline.Outcome) error {
	if o.Rows.Test == 0 {
		return errtext.Errorf(errtext.WrongRequest, "%s held out no samples for testing: train with {test-fraction}, {folds} or {split}", job)
	}
	return fmt.Errorf("%s kept no predictions: they are larger than its setting keep_predictions", job)
}

// noneOfCells says what an experiment has instead of the predictions of all held-out samples.
func noneOfCells(j *protocol.JobInfo) error {
	return errtext.Errorf(errtext.WrongRequest, "job %s is part of experiment %s, and experiments do not keep the predictions for all held-out samples. With {record=predictions}, an experiment keeps predictions for 6 test samples of each run "+
		"(coppice experiment report %s -o json). With {keep-models}, it keeps the model of each run for coppice predict (coppice model download %s/DIGEST --out FILE)",
		j.Name, j.Experiment, j.Experiment, j.Name)
}

// divisionOf returns what --split-out writes of a job: its folds or overlapping splits, or else one split with its test
// samples. assigned is the list that j.Split.Assigned names.
func divisionOf(j *round.Job, rows int, assigned []uint16) (*dataset.SplitList, error) {
	s := j.Split
	switch {
	case j.Folds > 0 && s.Assigned != "":
		list := &dataset.SplitList{Assigned: assigned, Folds: s.Folds, Overlap: s.Overlap}
		return list.Disjoint(), nil
	case j.Folds > 0:
		return &dataset.SplitList{Assigned: s.Divide(rows), Folds: s.Folds}, nil
	}
	roles, err := s.Assign(rows, assigned)
	if err != nil {
		return nil, err
	}
	tests := make([]uint16, rows)
	for row, role := range roles {
		if role == dataset.Test {
			tests[row] = 1
		}
	}
	return &dataset.SplitList{Assigned: tests, Folds: 1, Overlap: true}, nil
}

// addDataset adds the manifest of a job's dataset to the result and, if divide is true, the job's division. If the
// dataset was deleted, the manifest is not known, and the division is an error.
func (r *result) addDataset(a *app, cl *client.Client, j *protocol.JobInfo, divide bool) error {
	set, err := cl.Dataset(a.ctx, j.Dataset)
	if err == nil && set.Digest == j.Job.Dataset {
		r.setDataset(set.Manifest)
	}
	switch {
	case !divide:
		return nil
	case client.IsNotFound(err) || err == nil && r.On == nil:
		return errtext.Errorf(errtext.WrongRequest, "{split-out}: dataset %s was deleted, together with the row numbers of its file; import the file again under this name, and repeat the command", j.Dataset)
	case err != nil:
		return err
	}
	assigned, err := assignedFolds(a, cl, j.Job, set.Manifest)
	if err != nil {
		return err
	}
	r.Division, err = divisionOf(j.Job, set.Manifest.Rows, assigned)
	return err
}
