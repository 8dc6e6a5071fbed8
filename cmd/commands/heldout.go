package commands

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
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

// writeHeldOut writes the true and the predicted distribution of each sample. w compresses if the format says so.
func writeHeldOut(w io.Writer, f dataset.Format, s *predictions.Set) error {
	names := s.LabelNames
	if len(names) == 0 {
		names = defaultLabels(s.Labels)
	}
	if f == dataset.NPZ {
		return heldOutNPZ(w, s, names)
	}
	return heldOutCSV(w, s, names)
}

// heldOutCSV writes the columns row, name and fold, if samples have names and folds. Then it writes true_ and
// predicted_ columns for each label (or the predicted number), the true class or number, and what is derived from the
// prediction.
func heldOutCSV(w io.Writer, s *predictions.Set, names []string) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffer)
	record, derived := heldOutHeader(s, names), heldOutDerivation(s, names)
	if err := out.Write(record); err != nil {
		return err
	}
	for i, row := range s.Row {
		record = append(record[:0], strconv.FormatUint(uint64(row), 10))
		if len(s.Names) > 0 {
			record = append(record, s.Names[i])
		}
		if len(s.Fold) > 0 {
			record = append(record, strconv.Itoa(int(s.Fold[i])))
		}
		for _, of := range [][]float32{s.TruthOf(i), s.PredictedOf(i)} {
			for _, v := range of {
				record = append(record, valueText(v))
			}
		}
		if s.Type.Classes {
			record = append(record, names[dataset.Greatest(s.TruthOf(i))])
		}
		if len(s.True) > 0 {
			record = append(record, units.InFull(s.True[i]))
		}
		if err := out.Write(derived.fields(record, s.PredictedOf(i))); err != nil {
			return err
		}
	}
	out.Flush()
	return cmp.Or(out.Error(), buffer.Flush())
}

func heldOutHeader(s *predictions.Set, names []string) []string {
	names = columnNames(names, []string{"class", "number"}) // labels of these names would have the same columns
	header := []string{"row"}
	if len(s.Names) > 0 {
		header = append(header, "name")
	}
	if len(s.Fold) > 0 {
		header = append(header, "fold")
	}
	for _, name := range names {
		header = append(header, "true_"+name)
	}
	if s.Number {
		header = append(header, "number")
	} else {
		for _, name := range names {
			header = append(header, "predicted_"+name)
		}
	}
	if s.Type.Classes {
		header = append(header, "true_class")
	}
	if len(s.True) > 0 {
		header = append(header, "true_number")
	}
	return append(header, heldOutDerivation(s, names).columns()...)
}

// heldOutDerivation says what is derived from the predictions of a set.
func heldOutDerivation(s *predictions.Set, names []string) *derivation {
	if s.Number {
		return &derivation{}
	}
	return &derivation{of: s.Type, labels: names}
}

// heldOutNPZ writes the arrays "rows" and "folds" (int64), "labels" and "predictions" (float32, samples x labels), the
// arrays of heldOutTruth, "label_names" and "row_names".
func heldOutNPZ(w io.Writer, s *predictions.Set, names []string) error {
	z := npy.NewArchive(w)
	err := writeInts(z, "rows", s.Row)
	if err == nil && len(s.Fold) > 0 {
		err = writeInts(z, "folds", s.Fold)
	}
	err = cmp.Or(err,
		writeFloats(z, "labels", s.Truth, s.Labels), writeFloats(z, "predictions", s.Predicted, s.Width()),
		heldOutTruth(z, s, names),
		z.List("label_names", names),
	)
	if err == nil && len(s.Names) > 0 {
		err = z.List("row_names", s.Names)
	}
	return cmp.Or(err, z.Close())
}

// heldOutTruth writes the true classes (true_class, int64) or the true numbers (true_number, float32), and what is
// derived from the predictions.
func heldOutTruth(z *npy.Archive, s *predictions.Set, names []string) error {
	derived := derivedArrays{derivation: heldOutDerivation(s, names)}
	var classes []int32
	var numbers []float32
	for i := range s.Row {
		derived.add(s.PredictedOf(i))
		if s.Type.Classes {
			classes = append(classes, int32(dataset.Greatest(s.TruthOf(i))))
		}
		if len(s.True) > 0 {
			numbers = append(numbers, float32(s.True[i]))
		}
	}
	var err error
	if s.Type.Classes {
		err = writeInts(z, "true_class", classes)
	}
	if err == nil && numbers != nil {
		err = writeFloats(z, "true_number", numbers, 1)
	}
	return cmp.Or(err, derived.write(z))
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
