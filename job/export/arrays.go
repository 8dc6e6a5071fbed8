package export

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/predict"
)

// Array is an input or an output of an exported model. It has a row for each sample.
type Array struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`             // of its elements, such as float32
	Columns []string `json:"columns"`          // names; feature_3 and label_3 stand for features and labels without a name
	Levels  []string `json:"levels,omitempty"` // of a category: the texts that it may have
}

// Arrays lists what a model reads and predicts, once it is exported in a format. In ONNX, each category is an input. In
// other formats, each level of a category is a column of the features.
func Arrays(m *predict.Model, format string) (inputs, outputs []Array, err error) {
	width, labels := m.Shape()
	columns, known := make([]string, width), m.Provenance.FeatureNames
	for i := range columns {
		if columns[i] = fmt.Sprintf("feature_%d", i); i < len(known) && known[i] != "" {
			columns[i] = known[i]
		}
	}
	var categories []category
	if format == "onnx" {
		if categories, err = categoriesOf(m); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range slices.Backward(categories) {
		columns = slices.Delete(columns, c.at, c.at+len(c.Levels))
	}
	if len(columns) > 0 {
		inputs = append(inputs, Array{Name: inputFeatures, Type: "float32", Columns: columns})
	}
	for _, c := range categories {
		inputs = append(inputs, Array{Name: c.Input, Type: "string", Columns: []string{c.Name}, Levels: c.Levels})
	}
	out := Array{Name: outputPredictions, Type: "float32", Columns: m.Labels()}
	if m.Output() == algorithms.Number || len(out.Columns) != labels {
		out.Columns = []string{"number"}
	}
	return inputs, append(outputs, out), nil
}

// Example is a sample with what a model predicts of it.
type Example struct {
	Features    []float32 `json:"features"`
	Predictions []float32 `json:"predictions"`
}

// mostExample is the greatest number of features of an Example.
const mostExample = 4096

// Examples returns two samples with their predictions, by which an exported file can be checked: all features of the
// first are 0, and feature j of the second, counted from 0, is (j mod 5 - 2) / 2. A model with categories has none,
// because its features cannot have these values. A model with more than 4,096 features has none, either.
func Examples(m *predict.Model) ([]Example, error) {
	features, labels := m.Shape()
	if len(m.Provenance.Reading.Categories) > 0 || features > mostExample {
		return nil, nil
	}
	by, err := m.InUnits()
	if err != nil {
		return nil, err
	}
	const samples = 2
	r := &dataset.Rows{N: samples, Features: features, Labels: labels, Row: []uint32{0, 1},
		X: make([]float32, samples*features), D: make([]float32, samples*labels)}
	for j := range features {
		r.X[features+j] = float32(j%5-2) / 2
	}
	width := m.Output().Width(labels)
	dst := make([]float32, samples*width)
	by.Predict(dst, []dataset.RowRef{{Pos: 0}, {Pos: 1}}, func(uint32) *dataset.Rows { return r }, by.NewScratch())
	var all []Example
	for i := range samples {
		all = append(all, Example{r.X[i*features:][:features], dst[i*width:][:width]})
	}
	return all, nil
}
