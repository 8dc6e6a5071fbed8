// Package results describes the result of a training, as text, as JSON and in figures.
package results

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
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
	// WeightedMeasures is true if measures are weighted by the weights of the samples.
	WeightedMeasures bool `json:"weighted_measures,omitempty"`
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
		conditions:  conditions{j.Enhance, j.Clip, j.WeightedMeasures},
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
	return New(j.Name, j.Dataset, j.Job, o, j.Seconds), o, nil
}

// Advise adds the commands that download the models and the predictions of job j.
func (r *Result) Advise(a *cli.App, j *protocol.JobInfo) {
	switch {
	case j.ModelDeleted != 0:
		r.Model = "deleted " + cli.Time(j.ModelDeleted)
	case len(j.Models) > 1:
		r.Model = a.Command("model download "+j.Name+"/0 --out FILE") + ", and so on for each fold"
	default:
		r.Model = a.Command("model download " + j.Name + " --out FILE")
	}
	if j.Predictions != nil {
		r.Predictions = a.Command("job predictions " + j.Name + " --out FILE")
	}
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
		HowText(r.Clip, r.WeightedMeasures))
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

// HowText is the end of the title of a table of measures, about clipped probabilities and weights.
func HowText(clip string, weighted bool) (text string) {
	if clip != "" {
		text = ", probabilities clipped as " + clip + " does"
	}
	if weighted {
		text += ", weighted"
	}
	return text
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
	if s := j.Split; s.ValidationFrom > 0 {
		parts = append(parts, "the samples of a file of their own for validation")
	} else if s.ValidationFraction > 0 {
		part := fmt.Sprintf("%v of the other samples for validation, at least %s samples", s.ValidationFraction,
			units.Count(s.ValidationMin))
		if s.Groups != "" {
			part = fmt.Sprintf("about %s, in whole groups", part)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}
