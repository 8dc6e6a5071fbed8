package modelcmd

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/experiment/plots"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

// EvaluateCmd is `coppice evaluate`.
type EvaluateCmd struct {
	Model            string `required:"" placeholder:"FILE" help:"Model file."`
	Data             string `required:"" placeholder:"FILE" help:"Data file with labels; - for stdin."`
	PerSample        bool   `help:"Also write the measures of each sample, as CSV."`
	Confusion        bool   `help:"Also print the confusion matrix of a model of classes; -o json always has the matrix."`
	Measures         string `default:"ten" enum:"ten,all" help:"Measures to print. ten: the usual measures; all: also Spearman, Jensen-Shannon, zero-one loss and error probability."`
	Clip             string `default:"none" enum:"none,pyldl" help:"pyldl: clip probabilities at 2.2e-16 in the measures in which PyLDL clips them."`
	WeightedMeasures bool   `help:"Weight the measures by the weights of the samples (see --weights)."`
	Out              string `placeholder:"FILE" help:"Write the measures of --per-sample to FILE: .csv, .csv.gz or .npz; - for stdout (default: stdout, as CSV)."`
	Figures          string `placeholder:"DIR" help:"Draw figures to folder DIR, each as .svg, .png and .pdf: predicted and true distributions of some samples, and the confusion matrix of classes. Numeric labels add the cumulative score, and three labels on a grid a colour map."`

	calibrationFlags
	cli.FormatFlag
	cli.ThreadsFlag
	dataflags.UnseenFlag
	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (EvaluateCmd) Help() string {
	return `Columns are matched with the columns of the model by name, in any order, if both have names. Otherwise they are matched by
position, and the output says so. Label columns with the names of the model's labels are found without --label-columns.

Labels are rounded to float32 before predictions are compared with them, as for training. Therefore measures may differ by
about 1e-8 from measures of the numbers in the file.`
}

// Run implements `coppice evaluate`.
func (c *EvaluateCmd) Run(a *cli.App) error {
	if c.Out != "" && !c.PerSample {
		return cli.Usagef("{out} needs {per-sample}")
	}
	if c.Format != "" && c.Out == "" {
		return cli.Usagef("{format} needs {out}")
	}
	if c.WeightedMeasures && c.Weights == "" {
		return cli.Usagef("{weighted-measures} needs {weights}, which names the column with the weights")
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Model, c.Data, c.Names, c.LabelsFile); err != nil {
		return err
	}
	if err := cmp.Or(c.ThreadsFlag.Check(), c.calibrationFlags.check(a),
		results.CheckFigures("--figures", c.Figures)); err != nil {
		return err
	}
	m, err := predict.Open(c.Model)
	if err != nil {
		return err
	}
	m.Threads = c.ThreadsFlag.Number()
	o, checks, err := optionsFor(m, &c.FileFlags, &c.DataFlags)
	if err != nil {
		return err
	}
	unseen := c.UnseenFlag.Count(&o)
	path, err := dataflags.File(a, c.Data, &o)
	if err != nil {
		return err
	}
	src, matched, err := read.OpenFor(path, o, m.Schema())
	if err != nil {
		return cli.BadData(labelsError(m, o.Labels.Kind, err))
	}
	e := &evaluation{measuring: measuring{WeightedMeasures: c.WeightedMeasures}, algorithm: m.File.Algorithm,
		labels: m.Labels(), ModelDigest: m.File.Digest, Data: c.Data,
		Matched: matched, Unseen: unseen}
	if read.IsNamedArrays(c.Data) {
		e.Data = read.NamedArrays
	}
	if err := c.plan(m, e, src.Info()); err != nil {
		return err
	}
	rows, err := c.perRow(a, e, src)
	if err != nil {
		return err
	}
	if rows != nil {
		defer rows.discard()
	}
	if c.Figures != "" {
		e.shown = &shownRows{plane: true}
	}
	progress := progress.New(a)
	reading := progress.Reading(a.Ctx, "evaluating", checks)
	reading.LeftOut = e.LeftOut.Add
	err = e.measure(m, src, reading, rows)
	progress.Clear()
	if err != nil {
		return err
	}
	if k := e.Calibration; k != nil {
		k.CalibrationCurve = k.pairs.Curve(c.Bins)
	}
	if c.Figures != "" {
		all, err := e.shown.figures(m, e)
		if err != nil {
			return err
		}
		if err := results.WriteFigures(a, c.Figures, all); err != nil {
			return err
		}
	}
	if rows != nil {
		if err := rows.end(); err != nil {
			return err
		}
	}
	dataflags.Tell(a, src)
	e.Notes = errtext.Strings(src.Info().Said())
	return a.PrintBeside(c.Out, e, e.text)
}

// plan chooses the measures, and refuses flags about other measures.
func (c *EvaluateCmd) plan(m *predict.Model, e *evaluation, info dataset.Info) error {
	t, err := m.TypeOf(info)
	if err != nil {
		return cli.Usage(err)
	}
	_, labels := m.Shape()
	bounds, err := m.TargetBounds()
	if err != nil {
		return err
	}
	if e.plan, err = pipeline.PlanOf(m.File.Algorithm, labels, t); err != nil {
		return err
	}
	e.plan.Bounds = bounds
	if e.plan.More = c.Measures == pipeline.AllMeasures; c.Clip != "none" {
		e.plan.Clip, e.Clip = measures.Clip(c.Clip), c.Clip
	}
	if err := pipeline.CheckPlan(e.plan, m.File.Algorithm); err != nil {
		return cli.Usage(err)
	}
	if c.Calibration {
		e.Calibration = new(calibration)
		if e.Calibration.pairs, err = m.NewPairs(t); err != nil {
			return err
		}
	}
	if c.PerSample && e.plan.Number {
		return cli.Usagef("{per-sample} needs a model of distributions; this model predicts numbers")
	}
	if !c.Confusion {
		return nil
	}
	switch {
	case !t.Classes:
		return cli.Usagef("{confusion} needs a model of classes; the labels of this model are %s", t.String(labels))
	case labels > measures.MaxConfusion:
		return cli.Usagef("{confusion}: the model has %d classes; want at most %d", labels, measures.MaxConfusion)
	}
	e.confusion = m.Labels()
	return nil
}

// evaluation is what `coppice evaluate` prints.
type evaluation struct {
	ModelDigest   string          `json:"model_digest"`
	Data          string          `json:"data"`
	Rows          int             `json:"samples"`
	Measures      measures.Report `json:"measures"`
	MeanPredictor measures.Report `json:"mean_baseline"`
	Added         *pipeline.Added `json:"added,omitempty"`
	// Against compares the model with the mean baseline; nil: a number or targets are predicted.
	Against     *measures.AgainstBaseline `json:"against_mean_baseline,omitempty"`
	Calibration *calibration              `json:"calibration,omitempty"`
	measuring
	Matched   *read.Matching    `json:"matched"`
	PerSample []rowMeasures     `json:"per_sample,omitempty"`
	LeftOut   dataflags.LeftOut `json:"left_out,omitempty"` // rows of the file
	Unseen    *dataflags.Unseen `json:"unseen,omitempty"`   // with --unseen ignore
	Notes     []string          `json:"notes,omitempty"`    // how the file was read
	Out       string            `json:"out,omitempty"`

	algorithm string
	labels    []string
	plan      *measures.Plan
	shown     *shownRows // what figures show; nil without figures
	confusion []string   // class names of the confusion matrix in the text; nil without it
}

// measuring says how measures are computed.
type measuring struct {
	Clip string `json:"clip,omitempty"`
	// WeightedMeasures is true if measures are weighted by the weights of the samples.
	WeightedMeasures bool `json:"weighted_measures,omitempty"`
}

// rowMeasures are the measures of one sample, for the model and for the mean baseline.
type rowMeasures struct {
	Row           string             `json:"row"`
	Measures      map[string]float64 `json:"measures"`
	MeanPredictor map[string]float64 `json:"mean_baseline"`
}

func (e *evaluation) text(w io.Writer) {
	title := fmt.Sprintf("Measures of %s on %s: mean and standard deviation over %s%s", cli.ShortDigest(e.ModelDigest),
		e.Data, units.Plural(e.Rows, "sample"), results.HowText(e.Clip, e.WeightedMeasures))
	results.WriteMeasures(w, title, e.Measures, e.MeanPredictor, e.Added)
	results.WriteTargets(w, e.Added, e.labels)
	results.WriteAgainst(w, e.algorithm, "samples", e.Against)
	e.Calibration.text(w)
	if e.confusion != nil {
		results.WriteConfusion(w, e.Added.Model.Classes, e.confusion)
	}
	if text := e.LeftOut.String(); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	if text := e.Unseen.String(); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	writeMatching(w, e.Matched)
	if e.Out != "" {
		fmt.Fprintf(w, "\nmeasures of each sample: %s\n", cli.OutputName(e.Out))
	}
}

// measure sums the measures of the model and of the baseline over src. rows may be nil.
func (e *evaluation) measure(m *predict.Model, src dataset.Source, o importer.Options, rows rowSink) error {
	mean, err := m.Mean()
	if err != nil {
		return err
	}
	model, baseline := make([]float64, e.plan.Width()), make([]float64, e.plan.Width())
	differences := make([]float64, measures.DifferenceWidth)
	var ofModel, ofMean []float64
	add := e.plan.Add
	if e.WeightedMeasures {
		one := make([]float64, e.plan.Width())
		add = func(dst []float64, r *dataset.Rows, i int, predicted []float32) float64 {
			return e.plan.AddWeighted(dst, one, r, i, predicted)
		}
	}
	err = m.PredictAll(src, o, func(p *predict.Block) error {
		for i := range p.Rows.N {
			if err := e.Calibration.add(p, i); err != nil {
				return err
			}
			kl := add(model, p.Rows, i, p.Row(i))
			measures.AddDifference(differences, kl-add(baseline, p.Rows, i, mean))
			if e.plan.Number {
				continue
			}
			e.shown.take(p, i)
			if rows == nil {
				continue
			}
			label := p.Rows.Label(i)
			ofModel, ofMean = rowValues(ofModel, e.plan, label, p.Row(i)), rowValues(ofMean, e.plan, label, mean)
			if err := rows.take(p.Name(i), ofModel, ofMean); err != nil {
				return err
			}
		}
		e.Rows += p.Rows.N
		return nil
	})
	if err == nil && e.Rows > 0 && model[0] == 0 {
		err = dataset.Errorf(dataset.ErrFormat, "%sthe weights of all samples are zero, so there are no weighted measures",
			dataset.Prefix(src.Info().File))
	}
	e.Measures, e.MeanPredictor, e.Added = pipeline.Measured(e.plan, model, baseline)
	if !e.plan.Number && !e.plan.Gaps(model) && e.plan.Bounds == nil {
		e.Against = measures.CompareWithBaseline(e.Rows, differences)
	}
	return err
}

// mostShown bounds the label values of the samples that figures choose from. Of a longer file, figures show the first
// samples only.
const mostShown = 16 << 20

// shownRows collects what figures show of evaluated samples. A nil *shownRows collects nothing.
type shownRows struct {
	rows   plots.Rows
	points plots.Points
	plane  bool // true if samples may be points of a plane: three labels, and dense features
	taken  int  // label values
}

// take adds sample i of a block.
func (s *shownRows) take(p *predict.Block, i int) {
	if s == nil || s.taken >= mostShown {
		return
	}
	label := p.Rows.Label(i)
	s.taken += len(label)
	name := p.Name(i)
	if p.Names == nil {
		name = "row " + name
	}
	s.rows.Add(name, label, p.Row(i))
	if s.plane = s.plane && len(label) == 3 && !p.Rows.Sparse && p.Rows.Features >= 2; s.plane {
		at := i * p.Rows.Features
		s.points.Add(p.Rows.X[at], p.Rows.X[at+1], label, p.Row(i))
	}
}

// figures draws the figures of an evaluation of a model.
func (s *shownRows) figures(m *predict.Model, e *evaluation) ([]figure.Named, error) {
	v := &plots.Evaluated{Title: dataflags.DatasetName(e.Data) + ": " + m.File.Algorithm, Type: e.plan.Type,
		LabelNames: m.Provenance.LabelNames, Rows: s.rows}
	_, v.Rows.Labels = m.Shape()
	results.SetBeside(v, e.Added)
	if s.plane && s.taken < mostShown {
		x, y := "feature 0", "feature 1"
		if names := m.Schema().FeatureNames; len(names) > 1 {
			x, y = names[0], names[1]
		}
		v.Map = s.points.Map(v.Title, x, y)
	}
	all, err := v.Figures()
	if err != nil || e.Calibration == nil {
		return all, err
	}
	f, err := e.Calibration.figure(v.Title, e.plan)
	if f != nil {
		all = append(all, figure.Named{Name: "calibration", Figure: f})
	}
	return all, err
}

// rowSink takes the measures of each sample.
type rowSink interface {
	take(row string, model, mean []float64) error // in the order of rowNames
	end() error
	discard() // after end it does nothing
}

// perRow returns the sink for the measures of each sample: the JSON value, stdout or a file. It returns nil without
// --per-sample.
func (c *EvaluateCmd) perRow(a *cli.App, e *evaluation, src dataset.Source) (rowSink, error) {
	switch {
	case !c.PerSample:
		return nil, nil
	case c.Out == "" && a.JSON:
		return &jsonRows{e: e}, nil
	case c.Out == "":
		return newCSVRows(tableFollows{a.Stdout}, rowColumns(e.plan)), nil
	}
	format, err := c.FormatOf(c.Out)
	if err != nil {
		return nil, err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return nil, err
	}
	e.Out = c.Out
	if format != write.NPZ {
		return newCSVRows(cli.Compressed(out, format), rowColumns(e.plan)), nil
	}
	r, err := newNPZRows(out, src, rowColumns(e.plan))
	if err != nil {
		out.Discard()
		return nil, err
	}
	return r, nil
}

// tableFollows is an output after which a table follows: it ends with an empty line.
type tableFollows struct{ io.Writer }

func (t tableFollows) Commit() error {
	_, err := io.WriteString(t, "\n")
	return err
}

func (tableFollows) Discard() {}

// jsonRows puts the measures into the JSON value.
type jsonRows struct {
	e *evaluation
}

func (*jsonRows) end() error { return nil }

func (*jsonRows) discard() {}

func (r *jsonRows) take(row string, model, mean []float64) error {
	names := rowNames(r.e.plan)
	r.e.PerSample = append(r.e.PerSample, rowMeasures{row, byName(names, model), byName(names, mean)})
	return nil
}

func byName(names []string, values []float64) map[string]float64 {
	m := make(map[string]float64, len(values))
	for i, v := range values {
		m[names[i]] = v
	}
	return m
}

// rowNames returns the names of the measures of a sample: the usual ten, and all if the plan has more.
func rowNames(p *measures.Plan) (names []string) {
	all := measures.All
	if p.More {
		all = slices.Concat(all, measures.More)
	}
	for _, m := range all {
		names = append(names, m.Name)
	}
	if p.Bounds != nil {
		names = append(names, measures.TargetNames[:]...)
	}
	return names
}

// rowValues puts the measures of a sample, in the order of rowNames, into dst, and returns it. If degrees are missing,
// they are NaN.
func rowValues(dst []float64, p *measures.Plan, label, predicted []float32) []float64 {
	if dataset.CountMissing(label) > 0 {
		dst = dst[:0]
		for range rowNames(p) {
			dst = append(dst, math.NaN())
		}
		return dst
	}
	if p.Bounds == nil {
		return shareValues(dst, p, label, predicted)
	}
	dst = shareValues(dst, p, measures.AsDistribution(label), measures.AsDistribution(predicted))
	of := measures.OfTargetRow(label, predicted)
	return append(dst, of[:]...)
}

// shareValues is rowValues for distributions.
func shareValues[T float32 | float64](dst []float64, p *measures.Plan, label, predicted []T) []float64 {
	ten := measures.ClippedRow(label, predicted, p.Clip)
	dst = append(dst[:0], ten[:]...)
	if p.More {
		more := measures.MoreOfRow(label, predicted, p.Clip)
		dst = append(dst, more[:]...)
	}
	return dst
}

// rowColumns returns the columns of a sample: the measures of the model, then of the baseline with the prefix mean_.
func rowColumns(p *measures.Plan) []string {
	names := rowNames(p)
	columns := slices.Clone(names)
	for _, name := range names {
		columns = append(columns, "mean_"+name)
	}
	return columns
}

// csvRows writes a line for each sample.
type csvRows struct {
	buffer *bufio.Writer
	out    *csv.Writer
	record []string
	file   cli.Output
}

func newCSVRows(file cli.Output, columns []string) *csvRows {
	buffer := bufio.NewWriter(file)
	r := &csvRows{buffer: buffer, out: csv.NewWriter(buffer), file: file}
	r.out.Write(append([]string{"row"}, columns...)) // end returns its error
	return r
}

func (r *csvRows) take(row string, model, mean []float64) error {
	r.record = append(r.record[:0], row)
	for _, of := range [][]float64{model, mean} {
		for _, v := range of {
			r.record = append(r.record, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return r.out.Write(r.record)
}

func (r *csvRows) end() error {
	r.out.Flush()
	if err := cmp.Or(r.out.Error(), r.buffer.Flush()); err != nil {
		return err
	}
	return r.file.Commit()
}

func (r *csvRows) discard() { r.file.Discard() }

// npzRows writes the arrays "measures" (float64, samples x columns), "measure_names" (the columns), "rows" (int64, row
// numbers in the file) and, if samples have names, "row_names".
type npzRows struct {
	archive    *npy.Archive
	out        *npy.Writer[float64]
	src        dataset.Source
	columns    []string
	rows, done int
	file       cli.Output
}

func newNPZRows(file cli.Output, src dataset.Source, columns []string) (*npzRows, error) {
	rows, err := importer.CountRows(src)
	if err != nil {
		return nil, err
	}
	r := &npzRows{archive: npy.NewArchive(file), src: src, columns: columns, rows: rows, file: file}
	r.out, err = r.archive.Doubles("measures", rows, len(columns))
	return r, err
}

func (r *npzRows) take(_ string, model, mean []float64) error {
	r.done++
	return cmp.Or(r.out.Write(model), r.out.Write(mean))
}

func (r *npzRows) end() error {
	err := cmp.Or(r.out.Flush(), r.archive.List("measure_names", r.columns))
	if err == nil {
		err = predict.WriteRows(r.archive, r.src, r.done, r.rows)
	}
	if err = cmp.Or(err, r.archive.Close()); err != nil {
		return err
	}
	return r.file.Commit()
}

func (r *npzRows) discard() { r.file.Discard() }
