package ensemble

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// The units of a round are child jobs. Unit m < M trains member m on all training rows; it is
// first because it takes longest. Unit M + f·M + m trains member m on the rows that are not of
// inner fold f, and predicts those of the fold.

// heldOut returns the number of inner folds whose rows are predicted.
func (c *Config) heldOut() int {
	switch c.Weights {
	case weightsMean:
		return 0
	case weightsValidated:
		return 1
	}
	return c.InnerFolds
}

// units returns the number of units of M members.
func (c *Config) units(members int) int { return members * (1 + c.heldOut()) }

// child returns the job of a unit. Its split takes validation rows, where the member wants
// some, out of the rows that the unit trains on; the test rows of the ensemble are outside of
// an inner fold.
func child(j *learner.Job[Config], members []member, unit int) (*round.Job, error) {
	count := len(members)
	if unit < 0 || unit >= j.Config.units(count) {
		return nil, fmt.Errorf("ensemble: there is no child job %d", unit)
	}
	m, c := &members[unit%count], *j.Job
	c.Algorithm, c.Params, c.Folds, c.Predictions, c.PredictedRows, c.NoModel = m.Name(), m.resolved.Params, 0, 0, 0, false
	c.Split.ValidationFraction, c.Split.ValidationMin = m.resolved.ValidationFraction, m.resolved.ValidationMin
	if fold := unit/count - 1; fold >= 0 {
		c.Split.Inner, c.Split.InnerFold = j.Config.InnerFolds, fold
		c.Split.InnerWhole = wholeFolds(&c.Split, j.Manifest)
		c.Predictions, c.NoModel = math.MaxInt64, true
	}
	return &c, nil
}

// wholeFolds reports whether inner folds are made of whole groups: those of the dataset are the
// folds, and enough are left.
func wholeFolds(s *dataset.Split, m *dataset.Manifest) bool {
	return m.Groups != nil && s.Assigned == m.Groups.Digest && !s.Overlap && s.Folds-1 >= s.Inner
}
