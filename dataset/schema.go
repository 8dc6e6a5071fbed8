package dataset

// Schema is the features that a model reads and the labels that it predicts, in the model's
// order.
type Schema struct {
	Features, Labels int

	FeatureNames []string // empty, or Features long; "" for a feature without a name
	LabelNames   []string // empty, or Labels long
	// LabelColumns says which columns of the file that was trained on were labels.
	LabelColumns LabelColumns
	// Shape is that of the images that the model was trained on; the zero value: of none.
	Shape Shape
	// Reading says how the file that was trained on was read.
	Reading Reading
	// Fill takes the place of missing features with Missing.By, which is Reading.Missing; empty, or Features long.
	Fill []float64
}

// LabelColumns says which columns of a CSV file were read as labels, if their names do not
// say so. It is empty for other kinds of files.
type LabelColumns struct {
	Names     []string `json:"names,omitempty"`     // from the header, unless there are several that begin with label_ or y_
	Positions []int    `json:"positions,omitempty"` // from 0, where there is no header
	// Beside names the columns with exact numbers, intervals and groups, from the header.
	Beside []string `json:"beside,omitempty"`
}
