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
