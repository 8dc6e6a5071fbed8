package export

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
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
