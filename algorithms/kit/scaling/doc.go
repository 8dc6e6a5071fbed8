// Package scaling maps each feature x_i to (x_i - shift_i)·scale_i, with shifts and scales
// that are computed from the training rows in rounds before training:
//
//	standard   the mean and one over the population deviation
//	minmax     the least value and one over the range
//
// The trainer's half is Fit, a state machine that a trainer embeds; the workers' half is
// Run; Values are what both apply to dense and sparse rows; Tensors are what a model has of
// them. A constant column is shifted only. Rows hold no missing values: an import refuses
// them, fills them or drops their rows (dataset.Missing).
//
// The rounds have the operations 200 to 202 and the variables 0xfe00 to 0xfe02.
package scaling
