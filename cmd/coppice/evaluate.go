package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

type evaluateCmd struct {
	Model     string `required:"" placeholder:"FILE" help:"Model file."`
	Data      string `required:"" placeholder:"FILE" help:"Data file with labels; - for stdin."`
	PerSample bool   `help:"Also write the measures of each sample, as CSV."`
	Confusion bool   `help:"Also print the confusion matrix of a model of classes; -o json always has the matrix."`
	Measures  string `default:"ten" enum:"ten,all" help:"Measures to print. ten: the usual measures; all: also Spearman, Jensen-Shannon, zero-one loss and error probability."`
	Clip      string `default:"none" enum:"none,pyldl" help:"pyldl: clip probabilities at 2.2e-16 in the measures in which PyLDL clips them."`
	Out       string `placeholder:"FILE" help:"Write the measures of --per-sample to FILE: .csv, .csv.gz or .npz; - for stdout (default: stdout, as CSV)."`
	Figures   string `placeholder:"DIR" help:"Draw figures to folder DIR, each as .svg and .png: predicted and true distributions of some samples, and the confusion matrix of classes. Numeric labels add the cumulative score, and three labels on a grid a colour map."`

	formatFlag
	threadsFlag
	unseenFlag
	dataFlags
}

// Help implements kong's HelpProvider.
func (evaluateCmd) Help() string {
	return `Columns are matched with the columns of the model by name, in any order, if both have names. Otherwise they are matched by
position, and the output says so. Label columns with the names of the model's labels are found without --label-columns.

Labels are rounded to float32 before predictions are compared with them, as for training. Therefore measures may differ by
about 1e-8 from measures of the numbers in the file.`
}

// Run implements `coppice evaluate`.
func (c *evaluateCmd) Run(a *app) error {
	if c.Out != "" && !c.PerSample {
		return usagef("--out needs --per-sample")
	}
	if c.Format != "" && c.Out == "" {
		return usagef("--format needs --out")
	}
	if err := notAnInput("--out", c.Out, c.Model, c.Data, c.Names, c.LabelsFile); err != nil {
		return err
	}
	if err := cmp.Or(c.threadsFlag.check(), checkFigures("--figures", c.Figures)); err != nil {
		return err
	}
	m, err := openModel(c.Model)
	if err != nil {
		return err
	}
	m.threads = c.threadsFlag.count()
	o, checks, err := m.reads(&c.fileFlags, &c.dataFlags)
	if err != nil {
		return err
	}
	unseen := c.unseenFlag.count(&o)
	path, err := a.dataFile(c.Data, &o)
	if err != nil {
		return err
	}
	src, matched, err := dataset.OpenFor(path, o, m.schema())
	if err != nil {
		return m.readAs(o.Labels.Kind, err)
	}
	e := &evaluation{ModelDigest: m.file.Digest, Data: c.Data, Matched: matched, Unseen: unseen}
	if err := c.plan(m, e, src.Info()); err != nil {
		return err
	}
	rows, err := c.perRow(a, e, src)
	if err != nil {
		return err
	}
	defer rows.discard()
	if c.Figures != "" {
		e.shown = &shownRows{plane: true}
	}
	progress := newMeter(a.stderr)
	reading := readingFor(a.ctx, "evaluating", checks, progress)
	reading.LeftOut = e.LeftOut.add
	err = m.evaluate(e, src, reading, rows)
	progress.clear()
	if err != nil {
		return err
	}
	if err := c.draw(a, m, e); err != nil {
		return err
	}
	if err := rows.end(); err != nil {
		return err
	}
	a.tell(src)
	e.Notes = src.Info().Said()
	return a.printBeside(c.Out, e, e.text)
}

// draw draws the figures of an evaluation.
func (c *evaluateCmd) draw(a *app, m *model, e *evaluation) error {
	if c.Figures == "" {
		return nil
	}
	all, err := e.shown.figures(m, e)
	if err != nil {
		return err
	}
	return writeFigures(a, c.Figures, all)
}

// plan finds out which measures there are, and refuses flags about others.
func (c *evaluateCmd) plan(m *model, e *evaluation, info dataset.Info) error {
	t, err := m.typeOf(info)
	if err != nil {
		return usageError{err}
	}
	_, labels := m.Shape()
	if e.plan, err = pipeline.PlanOf(m.file.Algorithm, labels, t); err != nil {
		return err
	}
	if e.plan.More = c.Measures == pipeline.AllMeasures; c.Clip != "none" {
		e.plan.Clip, e.Clip = measures.Clip(c.Clip), c.Clip
	}
	if err := pipeline.CheckPlan(e.plan, m.file.Algorithm); err != nil {
		return usageError{err}
	}
	if c.PerSample && e.plan.Number {
		return usagef("--per-sample needs a model of distributions; this model predicts numbers")
	}
	if !c.Confusion {
		return nil
	}
	switch {
	case !t.Classes:
		return usagef("--confusion needs a model of classes; the labels of this model are %s", t.String(labels))
	case labels > measures.MaxConfusion:
		return usagef("--confusion: the model has %d classes; want at most %d", labels, measures.MaxConfusion)
	}
	e.confusion = m.classes()
	return nil
}

// evaluation is what `coppice evaluate` prints.
type evaluation struct {
	ModelDigest   string            `json:"model_digest"`
	Data          string            `json:"data"`
	Rows          int               `json:"samples"`
	Measures      measures.Report   `json:"measures"`
	MeanPredictor measures.Report   `json:"mean_baseline"`
	Added         *pipeline.Added   `json:"added,omitempty"`
	Clip          string            `json:"clip,omitempty"`
	Matched       *dataset.Matching `json:"matched"`
	PerSample     []rowMeasures     `json:"per_sample,omitempty"`
	LeftOut       leftOut           `json:"left_out,omitempty"` // rows of the file
	Unseen        *unseenLevels     `json:"unseen,omitempty"`   // with --unseen ignore
	Notes         []string          `json:"notes,omitempty"`    // how the file was read
	Out           string            `json:"out,omitempty"`

	plan      *measures.Plan
	shown     *shownRows // what figures show; nil: there are none
	confusion []string   // the names of the classes of a confusion matrix that the text has; nil: none
}

// rowMeasures are the measures of one row, of the model and of the mean predictor.
type rowMeasures struct {
	Row           string             `json:"row"`
	Measures      map[string]float64 `json:"measures"`
	MeanPredictor map[string]float64 `json:"mean_baseline"`
}

func (e *evaluation) text(w io.Writer) {
	title := fmt.Sprintf("Measures of %s on %s: mean and standard deviation over %s%s", short(e.ModelDigest), e.Data, plural(e.Rows, "sample"), clipText(e.Clip))
	writeMeasures(w, title, e.Measures, e.MeanPredictor, e.Added)
	if e.confusion != nil {
		writeConfusion(w, e.Added.Model.Classes, e.confusion)
	}
	if text := e.LeftOut.String(); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	if text := e.Unseen.String(); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	writeMatching(w, e.Matched)
	if e.Out != "" {
		fmt.Fprintf(w, "\nmeasures of each sample: %s\n", outName(e.Out))
	}
}

// evaluate sums the measures of the model and of the mean predictor over src.
func (m *model) evaluate(e *evaluation, src dataset.Source, o dataset.ImportOptions, rows rowSink) error {
	mean, err := m.mean()
	if err != nil {
		return err
	}
	model, baseline := make([]float64, e.plan.Width()), make([]float64, e.plan.Width())
	var ofModel, ofMean []float64
	_, noRow := rows.(noRows)
	err = m.predict(src, o, func(p *predicted) error {
		for i := range p.rows.N {
			e.plan.Add(model, p.rows, i, p.row(i))
			e.plan.Add(baseline, p.rows, i, mean)
			if e.plan.Number {
				continue
			}
			e.shown.take(p, i)
			if noRow {
				continue
			}
			label := p.rows.Label(i)
			ofModel, ofMean = rowValues(ofModel, e.plan, label, p.row(i)), rowValues(ofMean, e.plan, label, mean)
			if err := rows.take(p.name(i), ofModel, ofMean); err != nil {
				return err
			}
		}
		e.Rows += p.rows.N
		return nil
	})
	e.Measures, e.MeanPredictor, e.Added = pipeline.Measured(e.plan, model, baseline)
	return err
}

// mean returns what the model must beat predicts of every row: the mean label distribution,
// or the median where the model predicts a number.
func (m *model) mean() ([]float32, error) {
	if m.output() == algorithms.Number {
		if m.provenance.Median == nil {
			return nil, errors.New("the model file has no median of the training labels, so there is no baseline to compare with")
		}
		return []float32{float32(*m.provenance.Median)}, nil
	}
	mean := make([]float32, len(m.provenance.MeanLabel))
	for i, v := range m.provenance.MeanLabel {
		mean[i] = float32(v)
	}
	if _, labels := m.Shape(); len(mean) != labels {
		return nil, errors.New("the model file has no mean label distribution, so there is no baseline to compare with")
	}
	return mean, nil
}
