package pipeline

import (
	"fmt"

	"github.com/coppice-ldl/coppice/round"
)

// SumFolds returns the progress of a job of folds from the progress of each fold. Folds may
// stop early: once some are done, each other fold is expected to take their mean number of
// steps; before that, the greatest Steps of any fold. Step is at most Steps if that is known.
func SumFolds(folds []round.UnitProgress) round.Progress {
	sum, losses, done, expected := round.Progress{Loss: -1}, 0, 0, expectedSteps(folds)
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
	if done == 0 {
		sum.MostSteps = mostSteps(folds, sum.Steps)
	}
	sum.Phase = fmt.Sprintf("%d of %d folds done", done, len(folds))
	return sum
}

// mostSteps returns the greatest possible number of steps of all folds together, if folds
// may end earlier; else 0. No fold has ended.
func mostSteps(folds []round.UnitProgress, expected uint64) uint64 {
	greatest := uint64(0)
	for i := range folds {
		greatest = max(greatest, folds[i].MostSteps)
	}
	if greatest == 0 {
		return 0
	}
	return max(expected, greatest*uint64(len(folds)))
}

// expectedSteps returns the steps that a fold is expected to take; 0: unknown.
func expectedSteps(folds []round.UnitProgress) (steps uint64) {
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
