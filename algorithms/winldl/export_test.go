package winldl

import "github.com/coppice-ldl/coppice/algorithms"

// Objective returns the objective of the last step of a trainer, and the number of that step.
func Objective(tr algorithms.Trainer) (step uint64, value float64) {
	t := tr.(*trainer)
	return t.Progress().Step, t.objective
}
