// Package results describes the result of a training, as text, as JSON and in figures.
package results

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// conditions say what else the measures depend on.
type conditions struct {
	Enhance *round.Enhance `json:"enhance,omitempty"` // the label enhancement of training samples; nil: none
	Clip    string         `json:"clip,omitempty"`    // how probabilities were clipped
}

// Result is the result of `coppice train`.
type Result struct {
	conditions

	Job           string          `json:"job"`
	Algorithm     string          `json:"algorithm"`
	Dataset       string          `json:"dataset"`
	DatasetDigest string          `json:"dataset_digest"`
	Seed          uint64          `json:"seed"`
	Split         dataset.Split   `json:"split"`
	Settings      json.RawMessage `json:"settings"` // resolved
	Steps         uint64          `json:"steps"`
	BestStep      uint64          `json:"best_step,omitempty"`
	RefitSteps    uint64          `json:"refit_steps,omitempty"`
	Samples       uint64          `json:"samples_drawn"`
	Seconds       float64         `json:"seconds"`
	// Spent has the seconds of rounds by their kind, and as "waiting" the rest.
	Spent       map[string]float64 `json:"spent_seconds,omitempty"`
	Loss        lossJSON           `json:"loss"` // of training, as K-L; null without a gradient step
	EvaluatedOn string             `json:"evaluated_on"`
	Rows        pipeline.Counts    `json:"samples"`
	Measures    measures.Report    `json:"measures"`
	pipeline.Baselines
	Added       *pipeline.Added `json:"added,omitempty"` // measures of classes, ordinal labels or numbers
	ModelDigest string          `json:"model_digest"`
	Model       string          `json:"model,omitempty"`       // file, or command to download it
	Predictions string          `json:"predictions,omitempty"` // of held-out samples: file, or command to write it
	HeldOut     int             `json:"held_out"`              // number of held-out samples of all folds
	otherFiles
	// Mixture has the weights of the members of an ensemble. For a job of folds they are in Folds.
	Mixture  *algorithms.Mixture `json:"mixture,omitempty"`
	Numerics int                 `json:"numerics"`
	Version  string              `json:"version"`
	Folds    []foldResult        `json:"folds,omitempty"`
	Schema   *schema             `json:"schema,omitempty"`

	Notes []string `json:"notes,omitempty"` // notes and warnings about the data

	unprinted `json:"-"`

	// GainEvaluations is the number of thresholds for which trees computed the gain.
	GainEvaluations uint64 `json:"gain_evaluations,omitempty"`
}

// unprinted is the part of a result that files have, or that the text needs.
type unprinted struct {
	On       []*dataset.Manifest // the manifest of the dataset if it is known
	Line     *protocol.JobCurve  // for --curve-out
	Division *dataset.SplitList  // for --split-out
}

// otherFiles are the files of a result without its model and its predictions.
type otherFiles struct {
	SplitFile string `json:"split_file,omitempty"` // of --split-out
	Curve     string `json:"curve,omitempty"`      // of --curve-out
}

// schema describes the columns of the dataset.
type schema struct {
	Features     int      `json:"features"`
	Labels       int      `json:"labels"`
	FeatureNames []string `json:"feature_names,omitempty"`
	LabelNames   []string `json:"label_names,omitempty"`
}

// SetDataset notes the dataset of a result.
func (r *Result) SetDataset(m *dataset.Manifest) {
	r.On, r.Schema = []*dataset.Manifest{m}, &schema{Features: m.Features, Labels: m.Labels, FeatureNames: m.FeatureNames,
		LabelNames: m.LabelNames}
}

// foldResult is the part of a result that differs between folds.
type foldResult struct {
	Group         string          `json:"group,omitempty"` // the tested group of a split by groups
	Steps         uint64          `json:"steps"`
	BestStep      uint64          `json:"best_step,omitempty"`
	RefitSteps    uint64          `json:"refit_steps,omitempty"`
	Loss          lossJSON        `json:"loss"`
	Rows          pipeline.Counts `json:"samples"`
	Measures      measures.Report `json:"measures"`
	MeanPredictor measures.Report `json:"mean_baseline"`
	Added         *pipeline.Added `json:"added,omitempty"`
	ModelDigest   string          `json:"model_digest"`
	HeldOut       int             `json:"held_out"`

	Mixture *algorithms.Mixture `json:"mixture,omitempty"`
}

// lossJSON is a loss in JSON: null if it is not known.
type lossJSON float64

// MarshalJSON implements json.Marshaler.
func (l lossJSON) MarshalJSON() ([]byte, error) {
	if l < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(l))
}

// New returns the result of a job on a dataset, which took some seconds.
func New(job, data string, j *round.Job, o *pipeline.Outcome, seconds float64) *Result {
	r := &Result{
		Job: job, Algorithm: j.Algorithm, Dataset: data, DatasetDigest: j.Dataset, Seed: j.Seed, Split: j.Split,
		Settings: j.Params, Steps: o.Steps, BestStep: o.BestStep, RefitSteps: o.RefitSteps, Samples: o.Samples,
		Seconds: seconds, Loss: lossJSON(o.Loss),
		EvaluatedOn: o.EvaluatedOn, Rows: o.Rows, Measures: o.Measures, Baselines: o.Baselines, Added: o.Added,
		conditions:  conditions{j.Enhance, j.Clip},
		ModelDigest: o.ModelDigest, Numerics: j.Numerics, Version: version.String,
		GainEvaluations: o.Counters["gain_evaluations"], Spent: o.Spent, Mixture: o.Mixture, HeldOut: o.Rows.Test,
	}
	if o.Rows.Test > 0 {
		r.Predictions = "not kept (keep_predictions)" // unless the caller knows their place
	}
	if len(o.Folds) > 0 {
		r.HeldOut = 0
	}
	for _, f := range o.Folds {
		r.HeldOut += f.Rows.Test
		r.Folds = append(r.Folds, foldResult{Group: f.Group, Steps: f.Steps, BestStep: f.BestStep, RefitSteps: f.RefitSteps,
			Loss: lossJSON(f.Loss), Rows: f.Rows, Measures: f.Measures, MeanPredictor: f.MeanPredictor, Added: f.Added,
			ModelDigest: f.ModelDigest, HeldOut: f.Rows.Test, Mixture: f.Mixture})
	}
	return r
}

// Finished returns the result of a done job, or an error that says why there is none.
func Finished(j *protocol.JobInfo) (*Result, *pipeline.Outcome, error) {
	switch j.State {
	case protocol.Done:
	case protocol.Failed:
		return nil, nil, fmt.Errorf("job %s failed: %s", j.Name, j.Error)
	case protocol.Cancelled:
		return nil, nil, fmt.Errorf("job %s was cancelled", j.Name)
	default:
		return nil, nil, fmt.Errorf("job %s is %s", j.Name, j.State)
	}
	o := new(pipeline.Outcome)
	if err := json.Unmarshal(j.Outcome, o); err != nil {
		return nil, nil, fmt.Errorf("the outcome of job %s: %w", j.Name, err)
	}
	r := New(j.Name, j.Dataset, j.Job, o, j.Seconds)
	if j.Predictions != nil {
		r.Predictions = "coppice job predictions " + j.Name + " --out FILE"
	}
	return r, o, nil
}

// ModelHint says how to download the models of a job.
func ModelHint(a *cli.App, j *protocol.JobInfo) string {
	if j.ModelDeleted != 0 {
		return "deleted " + cli.Time(j.ModelDeleted)
	}
	if len(j.Models) > 1 {
		return a.Command("model download "+j.Name+"/0 --out FILE") + ", and so on for each fold"
	}
	return a.Command("model download " + j.Name + " --out FILE")
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) {
	steps, speed, over := Steps(r.Steps, r.BestStep, r.RefitSteps), units.Duration(r.Seconds), "samples"
	if r.Seconds > 0 && r.Samples > 0 {
		speed += fmt.Sprintf(" (%s samples/s)", units.Count(uint64(float64(r.Samples)/r.Seconds)))
	}
	if n := len(r.Folds); n > 0 {
		steps, over = foldSteps(r.Steps, r.Folds), fmt.Sprintf("%d folds", n)
	}
	lines := [][2]string{
		{"job", r.Job},
		{"algorithm", r.Algorithm},
		{"dataset", fmt.Sprintf("%s (%s)", r.Dataset, cli.ShortDigest(r.DatasetDigest))},
		{"seed", fmt.Sprint(r.Seed)},
		{"settings", ChangedSettings(r.Algorithm, r.Settings, r.On...)},
		{"steps", steps},
		{"time", speed},
		{"training loss", r.lossText()},
		{"samples", Samples(r.Rows, len(r.Folds))},
	}
	if r.Enhance != nil {
		lines = append(lines, [2]string{"labels", "enhanced for training (" + r.Enhance.String() + ")"})
	}
	if r.Split.Mask.Any() {
		lines = append(lines, [2]string{"mask", r.Split.Mask.String() + "; measures are of whole labels"})
	}
	if r.GainEvaluations > 0 {
		lines = append(lines, [2]string{"gains", units.Count(r.GainEvaluations) + " evaluated"})
	}
	cli.WritePairs(w, lines)
	fmt.Fprintln(w)
	title := fmt.Sprintf("Measures on the %s: mean and standard deviation over %s%s", r.EvaluatedOn, over,
		ClipText(r.Clip))
	WriteMeasures(w, title, r.Measures, r.MeanPredictor, r.Added)
	if r.Schema != nil {
		WriteTargets(w, r.Added, r.Schema.LabelNames)
	}
	WriteAgainst(w, r.Algorithm, r.EvaluatedOn, r.Against)
	WriteLinear(w, r.Algorithm, r.Linear, r.Rows, r.Measures)
	r.writeMixture(w)
	fmt.Fprintln(w)
	end := [][2]string{{"model digest", r.ModelDigest}}
	if r.Model != "" {
		end = append(end, [2]string{"model", r.Model})
	}
	if r.Predictions != "" {
		end = append(end, [2]string{"predictions", r.Predictions})
	}
	if r.SplitFile != "" {
		end = append(end, [2]string{"split file", r.SplitFile})
	}
	if r.Curve != "" {
		end = append(end, [2]string{"curve", r.Curve})
	}
	if len(r.Spent) > 0 {
		end = append(end, [2]string{"time spent on", spentLine(r.Spent)})
	}
	cli.WritePairs(w, end)
}

// lossText writes the training loss.
func (r *Result) lossText() string {
	if r.Added == nil {
		return progress.Loss(float64(r.Loss))
	}
	return progress.LossOf(r.Added.Model, float64(r.Loss))
}

// foldSteps writes the number of steps of all folds, and the steps of their models.
func foldSteps(steps uint64, folds []foldResult) string {
	least, greatest := folds[0].BestStep, folds[0].BestStep
	for _, f := range folds {
		least, greatest = min(least, f.BestStep), max(greatest, f.BestStep)
	}
	if greatest == 0 {
		return units.Count(steps)
	}
	return fmt.Sprintf("%s; best at steps %s to %s of a fold", units.Count(steps), units.Count(least),
		units.Count(greatest))
}

// Steps writes the number of steps, and the step of the model.
func Steps(steps, best, refit uint64) string {
	switch {
	case best == 0:
		return units.Count(steps)
	case refit > 0:
		return fmt.Sprintf(
			"best at step %s of %s, then trained again for as many steps, with the validation samples included",
			units.Count(best), units.Count(steps-refit))
	}
	return fmt.Sprintf("best at step %s of %s", units.Count(best), units.Count(steps))
}

// ClipText is the end of the title of a table of measures, about clipped probabilities.
func ClipText(clip string) string {
	if clip == "" {
		return ""
	}
	return ", probabilities clipped as " + clip + " does"
}

// Samples describes the number of samples for training, validation and testing. folds is the number of folds, or 0.
func Samples(c pipeline.Counts, folds int) string {
	s := fmt.Sprintf("%s for training, %s for validation, %s for testing", units.Count(c.Train), units.Count(c.Validation),
		units.Count(c.Test))
	if folds > 0 {
		s += " (in the first fold)"
	}
	return s
}

// Settings writes resolved settings, a JSON object, as key=value in their order.
func Settings(raw json.RawMessage) string {
	return strings.Join(KeyValues(spec.Settings(raw)), " ")
}

// KeyValues writes settings as KEY=VALUE.
func KeyValues(pairs []param.Pair) (list []string) {
	for _, p := range pairs {
		list = append(list, p.Key+"="+p.Value)
	}
	return list
}

// ChangedSettings writes the resolved settings that differ from the defaults on one of the datasets.
func ChangedSettings(algorithm string, raw json.RawMessage, on ...*dataset.Manifest) string {
	all := spec.Settings(raw)
	changed := spec.Changed(algorithm, all, on...)
	switch {
	case len(changed) == 0:
		return "the defaults (-o json has all)"
	case len(changed) == len(all):
		return Settings(raw)
	}
	return strings.Join(KeyValues(changed), " ") + ", and the defaults (-o json has all)"
}

// measureLine is a line of a table of measures: a measure of the model and of the baseline.
type measureLine struct {
	measure         string
	model, baseline measures.Stat
	higher          bool // true if a higher value is better
}

// Compared is a measure of a model and of its baseline.
type Compared struct {
	Name, Title     string // such as kl and K-L
	Model, Baseline measures.Stat
	HigherIsBetter  bool
}

// Compare lists the measures of a model and of its baseline, in the order of WriteMeasures, and names the baseline.
func Compare(model, mean measures.Report, added *pipeline.Added) (baseline string, all []Compared) {
	baseline, lines := measureLines(model, mean, added)
	names := make(map[string]string)
	for _, m := range slices.Concat(measures.All, measures.More) {
		names[m.Title] = m.Name
	}
	for _, l := range lines {
		name := names[l.measure]
		if name == "" {
			name = strings.NewReplacer(", ", "_", " ", "_", "²", "2").Replace(strings.ToLower(l.measure))
		}
		all = append(all, Compared{Name: name, Title: l.measure, Model: l.model, Baseline: l.baseline,
			HigherIsBetter: l.higher})
	}
	return baseline, all
}

// measureLines returns the lines of a table of measures, and the name of the baseline. A model of numbers has none of
// the ten measures.
func measureLines(model, mean measures.Report, added *pipeline.Added) (beat string, lines []measureLine) {
	beat = "mean baseline"
	if added != nil && added.MedianPredictor != nil {
		beat = "median baseline"
	} else if !gaps(added) {
		for i, m := range measures.All {
			lines = append(lines, measureLine{measure: m.Title, model: model[i], baseline: mean[i], higher: m.HigherIsBetter})
		}
	}
	if added != nil && added.Model != nil && added.Baseline() != nil {
		of := addedLines(added.Model, added.Baseline())
		if added.Model.Targets != nil { // what the model is for comes first
			of, lines = lines, of
		}
		lines = append(lines, of...)
	}
	return beat, lines
}

// WriteMeasures writes a table of the measures of a model and of its baseline.
func WriteMeasures(w io.Writer, title string, model, mean measures.Report, added *pipeline.Added) {
	fmt.Fprintln(w, title)
	beat, lines := measureLines(model, mean, added)
	t := cli.NewTable(w, []string{"", "model", "±", beat, "±", "better is"}, 2, 3, 4, 5)
	for _, l := range lines {
		better := "lower"
		if l.higher {
			better = "higher"
		}
		t.AppendRow(cli.Row(l.measure, cli.Measure(l.model.Mean), cli.Measure(l.model.Std), cli.Measure(l.baseline.Mean),
			cli.Measure(l.baseline.Std), better))
	}
	t.Render()
	if gaps(added) {
		o := added.Model.Observed
		fmt.Fprintf(w, "%s of %s degrees are missing. Measures of distributions need complete labels.\n",
			units.Count(o.Missing), units.Count(o.Missing+o.Degrees))
	}
	if added != nil {
		writeScores(w, added)
		if added.Model != nil && added.Model.Targets != nil {
			fmt.Fprintln(w, "K-L and what follows compare targets as distributions: divided by their sum, or projected.")
		}
	}
}

// gaps reports whether labels have missing degrees, so that there are only the errors of the others.
func gaps(a *pipeline.Added) bool {
	return a != nil && a.Model != nil && a.Model.Observed != nil && a.Model.Observed.Missing > 0
}

// WriteTargets writes a table of the errors of each target, if a model has such. names has the names of the labels; it
// may be empty.
func WriteTargets(w io.Writer, added *pipeline.Added, names []string) {
	if added == nil || added.Model == nil || added.Model.Targets == nil || len(added.Model.Targets.Labels) == 0 {
		return
	}
	fmt.Fprintln(w, "\nErrors of each target, in its unit")
	t := cli.NewTable(w, []string{"", "MAE", "RMSE", "R²"}, 2, 3, 4)
	for i, one := range added.Model.Targets.Labels {
		name := strconv.Itoa(i)
		if i < len(names) {
			name = names[i]
		}
		t.AppendRow(cli.Row(name, cli.Measure(one.MAE.Mean), cli.Measure(one.RMSE.Mean), cli.Measure(one.R2.Mean)))
	}
	t.Render()
}

// WriteAgainst writes a warning if a model is not better than the mean baseline on samples. a may be nil.
func WriteAgainst(w io.Writer, algorithm, on string, a *measures.AgainstBaseline) {
	if !a.Unbeaten() {
		return
	}
	by := "differs by"
	if a.Verdict == measures.Worse {
		by = "is higher by"
	}
	fmt.Fprintf(w, "warning: %s is %s than the mean baseline: its K-L on the %s %s %s (standard error %s).\n",
		algorithm, a.Verdict, on, by, cli.Measure(math.Abs(a.Difference.Mean)), cli.Measure(a.StandardError))
}

// WriteLinear writes the K-L of the linear baseline, if there is one, and a warning if the linear baseline is better
// than the model.
func WriteLinear(w io.Writer, algorithm string, l *pipeline.LinearBaseline, rows pipeline.Counts,
	model measures.Report) {
	if l == nil {
		return
	}
	of := "the " + units.Count(uint64(l.Samples))
	if l.Samples < rows.Train {
		of = fmt.Sprintf("%s of the %s", units.Count(uint64(l.Samples)), units.Count(uint64(rows.Train)))
	}
	fmt.Fprintf(w, "Linear baseline: K-L %s (sa-bfgs, fitted to %s training samples)\n",
		cli.Measure(l.Measures[0].Mean), of)
	if l.Better {
		fmt.Fprintf(w, "warning: the linear baseline has a lower K-L than %s (%s). Try --algorithm sa-bfgs.\n", algorithm,
			cli.Measure(model[0].Mean))
	}
}

// addedLines returns the measures beyond the ten: those of measures.More, and what the type of the labels allows. b is
// the baseline.
func addedLines(m, b *measures.Added) (lines []measureLine) {
	if m.Distribution != nil && b.Distribution != nil {
		for i, x := range measures.More {
			lines = append(lines, measureLine{measure: x.Title, model: m.Distribution[i], baseline: b.Distribution[i],
				higher: x.HigherIsBetter})
		}
	}
	switch {
	case m.Observed != nil && b.Observed != nil:
		lines = append(lines, measureLine{measure: "MAE, observed degrees", model: m.Observed.MAE, baseline: b.Observed.MAE,
			higher: false})
	case m.Classes != nil && b.Classes != nil:
		m, b := m.Classes, b.Classes
		lines = append(lines, []measureLine{
			{measure: "Accuracy", model: m.Accuracy, baseline: b.Accuracy, higher: true}, {measure: "Mean recall",
				model: m.MeanRecall, baseline: b.MeanRecall, higher: true},
			{measure: "Mean Jaccard", model: m.MeanJaccard, baseline: b.MeanJaccard, higher: true},
			{measure: "Log loss", model: m.LogLoss, baseline: b.LogLoss, higher: false},
		}...)
	case m.Scale != nil && b.Scale != nil:
		m, b := m.Scale, b.Scale
		lines = append(lines, []measureLine{
			{measure: "MAE, expected", model: m.Expected.MAE, baseline: b.Expected.MAE, higher: false}, {measure: "MAE, median",
				model: m.Median.MAE, baseline: b.Median.MAE, higher: false},
			{measure: "MAE, mode", model: m.Mode.MAE, baseline: b.Mode.MAE, higher: false},
		}...)
	case m.Targets != nil && b.Targets != nil:
		m, b := m.Targets, b.Targets
		lines = append(lines, []measureLine{
			{measure: "MAE", model: m.MAE, baseline: b.MAE, higher: false},
			{measure: "MSE", model: m.MSE, baseline: b.MSE, higher: false},
			{measure: "RMSE", model: m.RMSE, baseline: b.RMSE, higher: false},
			{measure: "R²", model: m.R2, baseline: b.R2, higher: true},
			{measure: "MAE, scaled", model: m.ScaledMAE, baseline: b.ScaledMAE, higher: false},
			{measure: "MSE, scaled", model: m.ScaledMSE, baseline: b.ScaledMSE, higher: false},
		}...)
	case m.Number != nil && b.Number != nil:
		m, b := m.Number, b.Number
		lines = append(lines, measureLine{measure: "MAE", model: m.Number.MAE, baseline: b.Number.MAE, higher: false},
			measureLine{measure: "MAE, floored", model: m.Floored.MAE, baseline: b.Floored.MAE, higher: false})
	}
	return lines
}

// scoresOf returns the cumulative scores of each predicted number, and their titles.
func scoresOf(a *measures.Added) (titles []string, scores [][]float64) {
	switch {
	case a == nil:
	case a.Scale != nil:
		return []string{"expected", "median", "mode"}, [][]float64{a.Scale.Expected.Scores, a.Scale.Median.Scores,
			a.Scale.Mode.Scores}
	case a.Number != nil:
		return []string{"number", "floored"}, [][]float64{a.Number.Number.Scores, a.Number.Floored.Scores}
	}
	return nil, nil
}

// writeScores writes a table of cumulative scores, if there are any.
func writeScores(w io.Writer, a *pipeline.Added) {
	header, right := []string{"cumulative score"}, []int(nil)
	for s := range measures.MaxScore + 1 {
		header, right = append(header, strconv.Itoa(s)), append(right, s+2)
	}
	t, rows := cli.NewTable(w, header, right...), 0
	for _, side := range []struct {
		name string
		of   *measures.Added
	}{{"model", a.Model}, {"mean baseline", a.MeanPredictor}, {"median baseline", a.MedianPredictor}} {
		titles, scores := scoresOf(side.of)
		for i, title := range titles {
			cells := []string{side.name + ", " + title}
			for _, v := range scores[i] {
				cells = append(cells, strconv.FormatFloat(v, 'f', 3, 64))
			}
			t.AppendRow(cli.Row(cells...))
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintln(w)
		t.Render()
	}
}

// WriteConfusion writes the confusion matrix of classes. names has the names of the classes.
func WriteConfusion(w io.Writer, c *measures.Classes, names []string) {
	header, right := []string{"true"}, []int(nil)
	for i := range c.Confusion {
		header, right = append(header, names[i]), append(right, i+2)
	}
	fmt.Fprintln(w, "\nConfusion matrix: one line per true class, one column per predicted class")
	t := cli.NewTable(w, header, right...)
	for i, counts := range c.Confusion {
		cells := []string{names[i]}
		for _, n := range counts {
			cells = append(cells, units.Count(n))
		}
		t.AppendRow(cli.Row(cells...))
	}
	t.Render()
}

// mixtures has the mixture of an ensemble for each fold, or one if there are no folds.
type mixtures []*algorithms.Mixture

// writeMixture writes the members of an ensemble with their weights, and their K-L on the samples to which the weights
// were fitted.
func (r *Result) writeMixture(w io.Writer) {
	var all mixtures
	for i := range r.Folds {
		all = append(all, r.Folds[i].Mixture)
	}
	if len(all) == 0 {
		all = mixtures{r.Mixture}
	}
	if all[0] == nil {
		return
	}
	title, header := "Members", []string{"", "weight", "out-of-fold K-L"}
	if len(r.Folds) > 0 {
		title = fmt.Sprintf("Members: mean and standard deviation over %d folds", len(r.Folds))
		header = []string{"", "weight", "±", "out-of-fold K-L", "±"}
	}
	fmt.Fprintf(w, "\n%s\n", title)
	t := cli.NewTable(w, header, 2, 3, 4, 5)
	for i, m := range all[0].Members {
		share := func(x *algorithms.Mixture) *algorithms.Share { return &x.Members[i] }
		weights := all.cells(func(x *algorithms.Mixture) *float64 { return &share(x).Weight })
		losses := all.cells(func(x *algorithms.Mixture) *float64 { return share(x).OutOfFoldKL })
		t.AppendRow(cli.Row(append(append([]string{m.Member}, weights...), losses...)...))
	}
	one := 1.0
	together := append(all.cells(func(*algorithms.Mixture) *float64 {
		return &one
	}), all.cells(func(x *algorithms.Mixture) *float64 { return x.OutOfFoldKL })...)
	t.AppendRow(cli.Row(append([]string{"ensemble"}, together...)...))
	t.Render()
}

// cells returns the mean of a value and, if there are folds, its standard deviation. It returns "-" if there is no
// value.
func (all mixtures) cells(of func(*algorithms.Mixture) *float64) []string {
	var values []float64
	for _, x := range all {
		if v := of(x); v != nil {
			values = append(values, *v)
		}
	}
	s := measures.StatOver(values)
	if len(all) == 1 {
		return []string{cli.Measure(s.Mean)}
	}
	return []string{cli.Measure(s.Mean), cli.Measure(s.Std)}
}

// spentLine says what the time of a job was spent on.
func spentLine(spent map[string]float64) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(spent)) {
		parts = append(parts, kind+" "+units.Duration(spent[kind]))
	}
	return strings.Join(parts, ", ")
}

// Split describes the split of a job. group is the group that it tests, or empty.
func Split(j *round.Job, group string) string {
	var parts []string
	switch s := j.Split; {
	case group != "":
		parts = append(parts, fmt.Sprintf("the group %q for testing, one of %d", group, s.Folds))
	case s.Overlap:
		parts = append(parts, fmt.Sprintf("split %d of %d from a file (digest %s)", s.Fold, s.Folds,
			cli.ShortDigest(s.Assigned)))
	case s.Assigned != "":
		parts = append(parts, fmt.Sprintf("fold %d of %d from a file (digest %s)", s.Fold, s.Folds,
			cli.ShortDigest(s.Assigned)))
	case s.Folds > 0:
		parts = append(parts, fmt.Sprintf("fold %d of %d, seed %d", s.Fold, s.Folds, s.Seed))
	case s.TestFraction > 0:
		parts = append(parts, fmt.Sprintf("%v of the samples for testing, seed %d", s.TestFraction, s.Seed))
	default:
		parts = append(parts, "no samples held out for testing")
	}
	if f := j.Split.TrainFraction; f > 0 {
		parts = append(parts, fmt.Sprintf("%v of the other samples used", f))
	}
	if s := j.Split; s.ValidationFraction > 0 {
		parts = append(parts, fmt.Sprintf("%v of the other samples for validation, at least %s samples", s.ValidationFraction,
			units.Count(s.ValidationMin)))
	}
	return strings.Join(parts, "; ")
}
