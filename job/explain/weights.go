package explain

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/predict"
)

// LinearWeights are the weights of a linear model. They are in units of the features as samples have them, also if the
// training scaled the features.
type LinearWeights struct {
	Link      string          `json:"link"` // how the scores become the prediction
	Intercept []float64       `json:"intercept"`
	Features  []FeatureWeight `json:"features"` // in the order of the model

	differences bool // true if the prediction depends only on differences between the scores of labels
}

// FeatureWeight has the weights of a feature.
type FeatureWeight struct {
	Feature string    `json:"feature"`
	Weights []float64 `json:"weights"` // for each label: change of the score for a change of the feature by 1
	// Deviation is the standard deviation of the feature in the samples of a file, if there is a file.
	Deviation *float64 `json:"standard_deviation,omitempty"`
}

// Size returns the greatest absolute weight of a feature, times its standard deviation if that is known. If only
// differences between labels matter, a weight counts as its difference from the mean over the labels.
func (w *LinearWeights) Size(feature int) float64 {
	f := &w.Features[feature]
	mean, most := 0.0, 0.0
	if w.differences {
		for _, w := range f.Weights {
			mean += w / float64(len(f.Weights))
		}
	}
	for _, w := range f.Weights {
		most = max(most, math.Abs(w-mean))
	}
	if f.Deviation != nil {
		most *= *f.Deviation
	}
	return most
}

// NewWeights returns the weights of a linear model.
func NewWeights(m *predict.Model) (*LinearWeights, error) {
	l, ok := m.Model.(maxent.Linear)
	if !ok {
		return nil, errtext.Errorf(errtext.WrongRequest, "a model of %s is not linear, so it has no weights of features; "+
			"{method=permutation} explains all models", m.File.Algorithm)
	}
	weights, link := l.Linear()
	features, labels := m.Shape()
	w := &LinearWeights{Link: link, Intercept: weights[features*labels:],
		differences: labels > 1 && m.Output() != algorithms.Targets}
	for k, name := range FeatureNames(m) {
		w.Features = append(w.Features, FeatureWeight{Feature: name, Weights: weights[k*labels:][:labels]})
	}
	return w, nil
}

// AddDeviations sets the standard deviations of the features in the samples of src.
func (w *LinearWeights) AddDeviations(src dataset.Source, o importer.Options) error {
	n := 0.0
	mean, squares := make([]float64, len(w.Features)), make([]float64, len(w.Features))
	x := make([]float32, len(w.Features))
	err := importer.Blocks(src, blockRows, o, func(rows *dataset.Rows, _ []string) error {
		for i := range rows.N {
			n++
			readRow(x, rows, i)
			for k, v := range x { // Welford's method
				d := float64(v) - mean[k]
				mean[k] += d / n
				squares[k] += d * (float64(v) - mean[k])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k := range w.Features {
		d := 0.0
		if n > 0 {
			d = math.Sqrt(squares[k] / n)
		}
		w.Features[k].Deviation = &d
	}
	return nil
}
