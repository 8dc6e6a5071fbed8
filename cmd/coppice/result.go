package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// result is what `coppice train` ends with.
type result struct {
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
	// Spent are the seconds that rounds took, by their kind, and "waiting", the rest.
	Spent         map[string]float64 `json:"spent_seconds,omitempty"`
	Loss          lossJSON           `json:"loss"` // of training, as K-L; null where no gradient step was taken
	EvaluatedOn   string             `json:"evaluated_on"`
	Rows          pipeline.Counts    `json:"samples"`
	Measures      measures.Report    `json:"measures"`
	MeanPredictor measures.Report    `json:"mean_baseline"`
	Added         *pipeline.Added    `json:"added,omitempty"` // measures of classes, of a scale or of numbers
	Clip          string             `json:"clip,omitempty"`  // of degrees, before they were compared
	ModelDigest   string             `json:"model_digest"`
	Model         string             `json:"model,omitempty"`       // where it is
	Predictions   string             `json:"predictions,omitempty"` // of held-out rows: where they are
	HeldOut       []int              `json:"held_out,omitempty"`    // rows of the file, from 0; those of folds are in Folds
	// Mixture says how an ensemble weighs its members; that of a fold is in Folds.
	Mixture  *algorithms.Mixture `json:"mixture,omitempty"`
	Numerics int                 `json:"numerics"`
	Version  string              `json:"version"`
	Folds    []foldResult        `json:"folds,omitempty"`
	Curve    string              `json:"curve,omitempty"` // file of the losses step by step

	Notes []string `json:"notes,omitempty"` // how the data was read, and what it is warned of

	// On has the manifest of the dataset, if it is known.
	On []*dataset.Manifest `json:"-"`

	// Line is what --curve-out writes.
	Line *protocol.JobCurve `json:"-"`

	// GainEvaluations counts the thresholds whose gain trees computed.
	GainEvaluations uint64 `json:"gain_evaluations,omitempty"`
}

// foldResult is the part of a result that differs from fold to fold.
type foldResult struct {
	Group         string          `json:"group,omitempty"` // that was tested, of folds of groups
	Steps         uint64          `json:"steps"`
	BestStep      uint64          `json:"best_step,omitempty"`
	RefitSteps    uint64          `json:"refit_steps,omitempty"`
	Loss          lossJSON        `json:"loss"`
	Rows          pipeline.Counts `json:"samples"`
	Measures      measures.Report `json:"measures"`
	MeanPredictor measures.Report `json:"mean_baseline"`
	Added         *pipeline.Added `json:"added,omitempty"`
	ModelDigest   string          `json:"model_digest"`
	HeldOut       []int           `json:"held_out,omitempty"`

	Mixture *algorithms.Mixture `json:"mixture,omitempty"`
}

func newResult(job, data string, j *round.Job, o *pipeline.Outcome, seconds float64) *result {
	r := &result{
		Job: job, Algorithm: j.Algorithm, Dataset: data, DatasetDigest: j.Dataset, Seed: j.Seed, Split: j.Split,
		Settings: j.Params, Steps: o.Steps, BestStep: o.BestStep, RefitSteps: o.RefitSteps, Samples: o.Samples, Seconds: seconds, Loss: lossJSON(o.Loss),
		EvaluatedOn: o.EvaluatedOn, Rows: o.Rows, Measures: o.Measures, MeanPredictor: o.MeanPredictor, Added: o.Added, Clip: j.Clip,
		ModelDigest: o.ModelDigest, Numerics: j.Numerics, Version: version.String,
		GainEvaluations: o.Counters["gain_evaluations"], Spent: o.Spent, Mixture: o.Mixture,
	}
	for _, f := range o.Folds {
		r.Folds = append(r.Folds, foldResult{f.Group, f.Steps, f.BestStep, f.RefitSteps, lossJSON(f.Loss), f.Rows, f.Measures, f.MeanPredictor, f.Added, f.ModelDigest, nil, f.Mixture})
	}
	return r
}

// text writes the result for people.
func (r *result) text(w io.Writer) {
	lines := [][2]string{
		{"job", r.Job},
		{"algorithm", r.Algorithm},
		{"dataset", fmt.Sprintf("%s (%s)", r.Dataset, short(r.DatasetDigest))},
		{"seed", fmt.Sprint(r.Seed)},
		{"settings", changedLine(r.Algorithm, r.Settings, r.On...)},
		{"steps", r.stepsLine()},
		{"time", r.speed()},
		{"training loss", lossText(float64(r.Loss))},
		{"samples", rowsLine(r.Rows, len(r.Folds))},
	}
	if r.GainEvaluations > 0 {
		lines = append(lines, [2]string{"gains", count(r.GainEvaluations) + " evaluated"})
	}
	pairs(w, lines)
	fmt.Fprintln(w)
	writeMeasures(w, r.title(), r.Measures, r.MeanPredictor, r.Added)
	r.writeMixture(w)
	fmt.Fprintln(w)
	end := [][2]string{{"model digest", r.ModelDigest}}
	if r.Model != "" {
		end = append(end, [2]string{"model", r.Model})
	}
	if r.Predictions != "" {
		end = append(end, [2]string{"predictions", r.Predictions})
	}
	if r.Curve != "" {
		end = append(end, [2]string{"curve", r.Curve})
	}
	if len(r.Spent) > 0 {
		end = append(end, [2]string{"time spent on", spentLine(r.Spent)})
	}
	pairs(w, end)
}

// stepsLine tells the steps, and which of them is the model's.
func (r *result) stepsLine() string {
	if len(r.Folds) == 0 {
		return stepsLine(r.Steps, r.BestStep, r.RefitSteps)
	}
	least, greatest := r.Folds[0].BestStep, r.Folds[0].BestStep
	for _, f := range r.Folds {
		least, greatest = min(least, f.BestStep), max(greatest, f.BestStep)
	}
	if greatest == 0 {
		return count(r.Steps)
	}
	return fmt.Sprintf("%s; best at steps %s to %s of a fold", count(r.Steps), count(least), count(greatest))
}

func stepsLine(steps, best, refit uint64) string {
	switch {
	case best == 0:
		return count(steps)
	case refit > 0:
		return fmt.Sprintf("best at step %s of %s, then trained again for as many steps, with the validation samples included", count(best), count(steps-refit))
	}
	return fmt.Sprintf("best at step %s of %s", count(best), count(steps))
}

func (r *result) speed() string {
	if r.Seconds <= 0 || r.Samples == 0 {
		return duration(r.Seconds)
	}
	return fmt.Sprintf("%s (%s samples/s)", duration(r.Seconds), count(uint64(float64(r.Samples)/r.Seconds)))
}

func (r *result) title() string {
	if n := len(r.Folds); n > 0 {
		return fmt.Sprintf("Measures on the %s: mean and standard deviation over %d folds%s", r.EvaluatedOn, n, clipText(r.Clip))
	}
	return fmt.Sprintf("Measures on the %s: mean and standard deviation over samples%s", r.EvaluatedOn, clipText(r.Clip))
}

// clipText is what the title of a table of measures says of clipped degrees.
func clipText(clip string) string {
	if clip == "" {
		return ""
	}
	return ", probabilities clipped as " + clip + " does"
}

func rowsLine(c pipeline.Counts, folds int) string {
	s := fmt.Sprintf("%s for training, %s for validation, %s for testing", count(c.Train), count(c.Validation), count(c.Test))
	if folds > 0 {
		s += " (in the first fold)"
	}
	return s
}

// settingsLine writes resolved settings, a JSON object, as key=value in their
// order.
func settingsLine(raw json.RawMessage) string {
	return strings.Join(keyValues(spec.Settings(raw)), " ")
}

func keyValues(pairs []param.Pair) (list []string) {
	for _, p := range pairs {
		list = append(list, p.Key+"="+p.Value)
	}
	return list
}

// changedLine writes the resolved settings of a job that differ from the defaults on one of the datasets, and how to see all.
func changedLine(algorithm string, raw json.RawMessage, on ...*dataset.Manifest) string {
	all := spec.Settings(raw)
	changed := spec.Changed(algorithm, all, on...)
	switch {
	case len(changed) == 0:
		return "the defaults (-o json has all)"
	case len(changed) == len(all):
		return settingsLine(raw)
	}
	return strings.Join(keyValues(changed), " ") + ", and the defaults (-o json has all)"
}

// writeMeasures writes a table of measures, those of what the model must beat beside the
// model's. A model of numbers has none of the ten.
func writeMeasures(w io.Writer, title string, model, mean measures.Report, added *pipeline.Added) {
	fmt.Fprintln(w, title)
	beat, lines := "mean baseline", []measureLine(nil)
	if added != nil && added.MedianPredictor != nil {
		beat = "median baseline"
	} else {
		for i, m := range measures.All {
			lines = append(lines, measureLine{m.Title, model[i], mean[i], m.HigherIsBetter})
		}
	}
	t := newTable(w, []string{"", "model", "±", beat, "±", "better is"}, 2, 3, 4, 5)
	for _, l := range append(lines, addedLines(added)...) {
		better := "lower"
		if l.higher {
			better = "higher"
		}
		t.AppendRow(rowOf(l.title, figure(l.model.Mean), figure(l.model.Std), figure(l.mean.Mean), figure(l.mean.Std), better))
	}
	t.Render()
	writeScores(w, added)
}
