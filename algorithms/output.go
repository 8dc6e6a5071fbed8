package algorithms

// Output is what a model predicts of a row.
type Output uint8

// The outputs that models have.
const (
	Distribution Output = iota // degrees of the labels, which sum to 1
	ClassShares                // a share for each class, which sum to 1
	Number                     // one number
)
