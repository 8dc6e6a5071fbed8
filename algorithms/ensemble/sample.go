package ensemble

import (
	"errors"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/internal/num"
)

var errRows = errors.New("ensemble: the members predicted different samples of a fold")

// errWeightless says that no weights of members follow from the weights of samples.
var errWeightless error = param.Errorf("weights", "cannot be fitted, because all samples that the members predicted "+
	"have the weight 0; with mean, all members have the same weight")

// sample gathers the predictions of all inner folds: of at most Config.WeightRows rows, drawn by
// the job's seed.
func (t *trainer) sample() (*sample, error) {
	count, n := len(t.members), 0
	folds := make([][]*predictions.Set, t.job.Config.heldOut(innerOf(t.job).folds))
	for f := range folds {
		for m := range count {
			set, err := t.predicted(t.results[count+f*count+m].predictions)
			if err != nil {
				return nil, err
			}
			folds[f] = append(folds[f], set)
			if !slices.Equal(set.Row, folds[f][0].Row) {
				return nil, errRows
			}
		}
		n += len(folds[f][0].Row)
	}
	drawn := draw(t.job.Seed, n, t.job.Config.WeightRows)
	s := &sample{members: count, labels: t.job.Manifest.Labels}
	at, row := 0, make([][]float32, count)
	for _, sets := range folds {
		for i := range sets[0].Row {
			if drawn == nil || drawn[at] {
				weight := 1.0
				if t.job.Manifest.HasWeights {
					weight = sets[0].Weight[i]
					s.weights = append(s.weights, weight)
				}
				for m, set := range sets {
					row[m] = set.PredictedOf(i)
				}
				s.add(sets[0].TruthOf(i), row, weight)
			}
			at++
		}
	}
	if s.total == 0 {
		return nil, errWeightless
	}
	return s, nil
}

// draw marks most of n rows; nil: all are.
func draw(seed uint64, n, most int) []bool {
	if n <= most {
		return nil
	}
	drawn := make([]bool, n)
	p := num.NewPermutation(num.NewKey(seed, "ensemble/rows"), 0, 0, uint64(n))
	for i := range most {
		drawn[p.At(uint64(i))] = true
	}
	return drawn
}
