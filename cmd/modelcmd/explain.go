package modelcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/explain"
	"github.com/coppice-ldl/coppice/job/predict"
)

type explainCmd struct {
	Model   string `arg:"" placeholder:"FILE" help:"Model file."`
	Method  string `enum:",importance,permutation,shap,path,splits,weights" default:"" placeholder:"M" help:"importance, permutation, shap, path, splits or weights (default: importance for forests and boosters, splits for ldlf, weights for linear models, and otherwise permutation)."`
	Data    string `placeholder:"FILE" help:"Data file; - for stdin. permutation needs labels in it; weights need no file."`
	Samples int    `default:"10000" placeholder:"N" help:"permutation: maximum number of samples; if the file has more, N are drawn at random (default: 10000). 0: no maximum."`
	Repeats int    `default:"10" placeholder:"N" help:"permutation: number of permutations of each feature (default: 10)."`
	Seed    uint64 `default:"1" placeholder:"N" help:"permutation: seed of the random numbers (default: 1)."`
	Row     string `placeholder:"R" help:"Sample of the file: its name, or its row number, counted from 0, if samples have no names. path needs it; shap then explains only this sample."`
	Tree    int    `default:"0" placeholder:"N" help:"path: number of the tree, counted from 0 (default: 0)."`
	Top     int    `default:"20" placeholder:"N" help:"Number of features or splits in the text; -o json has all (default: 20). 0: all."`
	Out     string `placeholder:"FILE" help:"shap: write the values of each sample to FILE: .npz, .csv or .csv.gz."`
	Figures string `placeholder:"DIR" help:"Draw figures to folder DIR, each as .svg, .png and .pdf."`

	cli.FormatFlag
	cli.ThreadsFlag
	dataflags.UnseenFlag
	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (explainCmd) Help() string {
	return `importance: how much the splits of trees gain by each feature. It needs no data.

permutation: how much the losses rise if the values of a feature are permuted between samples. It is for all models.

shap: how much each feature adds to the prediction of a sample. It is for forests (rf, structrf) and boosters.

path: the path of a sample through a tree.

splits: the splits of ldlf that divide the samples with the most certainty.

weights: the weights of a linear model, in units of the features as the file has them.`
}

// Run implements `coppice model explain`.
func (c *explainCmd) Run(a *cli.App) error {
	if err := c.check(); err != nil {
		return err
	}
	m, err := predict.Open(c.Model)
	if err != nil {
		return err
	}
	m.Threads = c.ThreadsFlag.Number()
	methods := explain.Methods(m)
	method := cmp.Or(c.Method, methods[0])
	if !slices.Contains(methods, method) {
		return cli.Usagef("{method=%s}: a model of %s is explained by {method} %s", method, m.File.Algorithm,
			strings.Join(methods, ", "))
	}
	if err := c.fits(a, method); err != nil {
		return err
	}
	e := &explanation{ModelDigest: m.File.Digest, Algorithm: m.File.Algorithm, Method: method, Data: c.Data,
		Labels: m.Labels(), top: c.Top}
	if m.Output() == algorithms.Number {
		e.Labels = []string{"number"}
	}
	var src dataset.Source
	if c.Data != "" {
		if src, e.checks, err = c.open(a, m, e, method == explain.Permutation); err != nil {
			return err
		}
	}
	if err := c.explain(a, m, e, src); err != nil {
		return err
	}
	if c.Figures != "" {
		all, err := e.figures()
		if err != nil {
			return err
		}
		if err := results.WriteFigures(a, c.Figures, all); err != nil {
			return err
		}
	}
	if src != nil {
		dataflags.Tell(a, src)
		e.Notes = errtext.Strings(src.Info().Said())
	}
	return a.PrintBeside(c.Out, e, e.text)
}

// check refuses values of flags that no method takes.
func (c *explainCmd) check() error {
	switch {
	case c.Repeats < 1 || c.Repeats > mostRepeats:
		return cli.Usagef("{repeats=%d}: want 1 to %d", c.Repeats, mostRepeats)
	case c.Samples < 0 || c.Samples == 1:
		return cli.Usagef("{samples=%d}: want at least 2, or 0 for all samples", c.Samples)
	case c.Top < 0:
		return cli.Usagef("{top=%d}: want 1 or more, or 0 for all", c.Top)
	case c.Tree < 0:
		return cli.Usagef("{tree=%d}: trees are counted from 0", c.Tree)
	case c.Format != "" && c.Out == "":
		return cli.Usagef("{format} needs {out}")
	}
	return cmp.Or(c.ThreadsFlag.Check(), results.CheckFigures("--figures", c.Figures),
		cli.CheckNotInput("--out", c.Out, c.Model, c.Data, c.Names, c.LabelsFile))
}

// mostRepeats is the maximum of --repeats.
const mostRepeats = 10_000

// ofMethods has the flags that only some methods take.
var ofMethods = []struct {
	flags   []string
	methods []string
}{
	{[]string{"samples", "repeats", "seed"}, []string{explain.Permutation}},
	{[]string{"row"}, []string{explain.Path, explain.SHAP}},
	{[]string{"tree"}, []string{explain.Path}},
	{[]string{"out", "format"}, []string{explain.SHAP}},
	{[]string{"top"}, []string{explain.Importance, explain.Permutation, explain.SHAP, explain.Splits, explain.Weights}},
	{[]string{"figures"}, []string{explain.Importance, explain.Permutation, explain.SHAP, explain.Weights}},
	{[]string{"data", "threads"}, []string{explain.Permutation, explain.SHAP, explain.Path, explain.Splits,
		explain.Weights}},
	{[]string{"shape", "sigma", "range", "bounds", "values", "intervals", "groups", "labels-variable", "labels-file",
		"normalize", "tolerance"}, []string{explain.Permutation}},
}

// fits refuses flags that a method does not take, and missing ones that it needs.
func (c *explainCmd) fits(a *cli.App, method string) error {
	for _, o := range ofMethods {
		for _, flag := range o.flags {
			if a.Given(flag) && !slices.Contains(o.methods, method) {
				return cli.Usagef("{%s} is for {method} %s, not for %s", flag, strings.Join(o.methods, ", "), method)
			}
		}
	}
	if given := c.Given(); c.Data == "" && len(given) > 0 {
		return cli.Usagef("%s says how to read samples: give {data=FILE}, or leave it out", cli.FlagText(given[0].Name))
	}
	switch needs := method != explain.Importance && method != explain.Weights; {
	case needs && c.Data == "":
		return cli.Usagef("{method=%s} needs samples: give {data=FILE}", method)
	case method == explain.Path && c.Row == "":
		return cli.Usagef("{method=%s} follows one sample: give its name or its row number with {row}", method)
	case c.Row != "" && c.Out != "":
		return cli.Usagef("{row} explains one sample on the screen; leave {out} out, or leave {row} out")
	}
	return nil
}

// open opens the data file for a model.
func (c *explainCmd) open(a *cli.App, m *predict.Model, e *explanation, labels bool) (dataset.Source, importer.Checks,
	error) {
	of := &c.DataFlags
	if !labels {
		of = nil
	}
	o, checks, err := optionsFor(m, &c.FileFlags, of)
	if err != nil {
		return nil, checks, err
	}
	e.Unseen = c.UnseenFlag.Count(&o)
	path, err := dataflags.File(a, c.Data, &o)
	if err != nil {
		return nil, checks, err
	}
	src, matched, err := read.OpenFor(path, o, m.Schema())
	if err != nil {
		if labels {
			err = labelsError(m, o.Labels.Kind, err)
		}
		return nil, checks, cli.BadData(err)
	}
	e.Matched = matched
	if read.IsNamedArrays(c.Data) {
		e.Data = read.NamedArrays
	}
	return src, checks, nil
}

// explain explains the model by the method of e.
func (c *explainCmd) explain(a *cli.App, m *predict.Model, e *explanation, src dataset.Source) (err error) {
	meter := progress.New(a)
	defer meter.Clear()
	reading := meter.Reading(a.Ctx, "explaining", e.checks)
	reading.LeftOut = e.LeftOut.Add
	switch e.Method {
	case explain.Importance:
		e.Gains, err = explain.NewGains(m)
	case explain.Permutation:
		var mu sync.Mutex
		o := explain.Permuting{Repeats: c.Repeats, Seed: c.Seed, Samples: c.Samples, Progress: func(done, of int) {
			mu.Lock()
			defer mu.Unlock()
			meter.Show(fmt.Sprintf("%3d %%  permuting: %s of %s", 100*done/of, units.Count(done), units.Count(of)))
		}}
		e.Permuted, err = o.Permute(m, src, reading)
	case explain.SHAP:
		err = c.shap(a, m, e, src, reading, meter)
	case explain.Path:
		var found *explain.Block
		if found, err = explain.FindRow(src, c.Row, reading); err == nil {
			if e.Path, err = explain.NewPath(m, found, c.Tree); err != nil {
				err = cli.Usage(err)
			}
		}
	case explain.Splits:
		e.Splits, err = explain.NewSoftSplits(m, src, reading)
	case explain.Weights:
		if e.Weights, err = explain.NewWeights(m); err == nil && src != nil {
			err = e.Weights.AddDeviations(src, reading)
		}
	}
	return err
}

// shap computes SHAP values, of all samples or of one.
func (c *explainCmd) shap(a *cli.App, m *predict.Model, e *explanation, src dataset.Source, reading importer.Options,
	meter *progress.Meter) error {
	x, err := explain.NewExplainer(m)
	if err != nil {
		return err
	}
	e.SHAP = newSHAPSummary(m, x)
	if c.Row != "" {
		found, err := explain.FindRow(src, c.Row, reading)
		if err != nil {
			return err
		}
		return e.SHAP.one(found)
	}
	var sink *shapSink
	if c.Out != "" {
		if sink, err = newSHAPSink(a, c.Out, &c.FormatFlag, m, x, src); err != nil {
			return err
		}
		defer sink.file.Discard()
	}
	var mu sync.Mutex // the file is read and explained at the same time
	work := reading
	work.Progress = nil // reading is ahead of the explanations
	work.Note = func(text errtext.Text) {
		mu.Lock()
		defer mu.Unlock()
		reading.Note(text)
	}
	work.Warn = func(text errtext.Text) {
		mu.Lock()
		defer mu.Unlock()
		reading.Warn(text)
	}
	if err := x.Each(m, src, work, func(b *explain.Explained) error {
		mu.Lock()
		defer mu.Unlock()
		err := e.SHAP.add(b)
		meter.Show(fmt.Sprintf("explaining: %s", units.Plural(e.SHAP.Samples, "sample")))
		if err != nil || sink == nil {
			return err
		}
		return sink.take(b)
	}); err != nil {
		return err
	}
	e.SHAP.finish()
	if sink == nil {
		return nil
	}
	e.Out = c.Out
	return sink.end(reading)
}
