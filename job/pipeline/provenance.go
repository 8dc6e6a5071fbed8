package pipeline

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
)

// Provenance says how the model of a model file was made. The model's digest does not cover
// it. It has no time and no host, so the same job writes the same file.
type Provenance struct {
	Job           *round.Job        `json:"job"`
	Version       string            `json:"version"`
	Steps         uint64            `json:"steps"`
	BestStep      uint64            `json:"best_step,omitempty"`
	RefitSteps    uint64            `json:"refit_steps,omitempty"`
	Loss          float64           `json:"loss"`
	EvaluatedOn   string            `json:"evaluated_on"`
	Group         string            `json:"group,omitempty"` // that was tested
	Rows          Counts            `json:"samples"`
	Measures      measures.Report   `json:"measures"`
	MeanPredictor measures.Report   `json:"mean_baseline"`
	Added         *Added            `json:"added,omitempty"`
	Counters      map[string]uint64 `json:"counters,omitempty"`
	// Mixture says how the model adds up others.
	Mixture      *algorithms.Mixture `json:"mixture,omitempty"`
	FeatureNames []string            `json:"feature_names,omitempty"`
	LabelNames   []string            `json:"label_names,omitempty"`
	// LabelType says what the labels are.
	LabelType dataset.LabelType `json:"label_type,omitzero"`
	// Shape is that of the images that the model reads.
	Shape dataset.Shape `json:"shape,omitzero"`
	// Missing and CountedFrom say how the data file was read, as dataset.Manifest has them.
	Missing     string           `json:"missing,omitempty"`
	CountedFrom dataset.Counting `json:"counted_from,omitempty"`
	// LabelColumns says which columns of the file that was trained on were labels.
	LabelColumns dataset.LabelColumns `json:"label_columns,omitzero"`
	// Reading says how that file was read.
	Reading dataset.Reading `json:"reading,omitzero"`
	// Fill takes the place of missing features, by feature: their means or medians in the rows
	// trained on.
	Fill []float64 `json:"fill,omitempty"`
	// MeanLabel is what the mean predictor predicts: the mean label distribution of the
	// training and validation rows.
	MeanLabel []float64 `json:"mean_label"`
	// Median is the median of these rows' numbers, which a model of numbers must beat.
	Median *float64 `json:"median,omitempty"`
}

func provenanceOf(j *round.Job, m *dataset.Manifest, o *Outcome, mean, fill []float64) *Provenance {
	learns := *j
	learns.Predictions, learns.PredictedRows = 0, 0 // predictions that are stored with the job do not change the model
	p := &Provenance{
		Job: &learns, Version: version.String, Steps: o.Steps, BestStep: o.BestStep, RefitSteps: o.RefitSteps, Loss: o.Loss,
		EvaluatedOn: o.EvaluatedOn, Group: o.Group, Rows: o.Rows, Measures: o.Measures, MeanPredictor: o.MeanPredictor, Counters: o.Counters,
		FeatureNames: m.FeatureNames, LabelNames: m.LabelNames, LabelColumns: m.LabelColumns, MeanLabel: mean[:m.Labels],
		Missing: m.Missing, CountedFrom: m.CountedFrom, Added: o.Added, Mixture: o.Mixture, LabelType: m.LabelType, Shape: m.Shape, Reading: m.Reading, Fill: fill,
	}
	if len(mean) > m.Labels {
		p.Median = &mean[m.Labels]
	}
	return p
}
