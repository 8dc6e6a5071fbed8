package pipeline

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
)

// SumFolds is the progress of a job of folds, of which some have ended, some run and
// some have not begun. Folds stop early: as soon as some have ended, the others are
// expected to need as many steps as these on average, and before that as many as any
// may take. Step is never above Steps where that is known.
func SumFolds(folds []algorithms.UnitProgress) algorithms.Progress {
	sum, losses, done, expected := algorithms.Progress{Loss: -1}, 0, 0, expectedSteps(folds)
	for i := range folds {
		f := &folds[i]
		step, steps := f.Step, max(f.Step, expected)
		switch {
		case f.Done && f.Known:
			steps = step
		case f.Done:
			step = steps
		}
		sum.Step, sum.Steps, sum.Samples = sum.Step+step, sum.Steps+steps, sum.Samples+f.Samples
		if f.Done {
			done++
		}
		if f.Known && f.Loss >= 0 {
			sum.Loss = (max(sum.Loss, 0)*float64(losses) + f.Loss) / float64(losses+1)
			losses++
		}
	}
	sum.Phase = fmt.Sprintf("%d of %d folds done", done, len(folds))
	return sum
}

// expectedSteps returns the steps that a fold is expected to take; 0: nobody knows.
func expectedSteps(folds []algorithms.UnitProgress) (steps uint64) {
	ended, most := uint64(0), uint64(0)
	for i := range folds {
		f := &folds[i]
		most = max(most, f.Steps)
		if f.Done && f.Known {
			ended++
			steps += f.Step
		}
	}
	if ended == 0 {
		return most
	}
	return steps / ended
}
