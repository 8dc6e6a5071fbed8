package ensemble

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The units of a round are child jobs. Unit m < M trains member m on all training rows; it is
// first because it takes longest. Unit M + f·M + m trains member m on the rows that are not of
// inner fold f, and predicts those of the fold.

// inner is how the rows that are not tested are divided: into inner folds of rows, of whole folds of the job's
// split, or of whole groups. If held is true, they are not: the validation rows of the dataset take the place of the
// inner fold whose predictions choose the best member.
type inner struct {
	folds               int
	whole, groups, held bool
}

// innerOf returns how a job divides them. Where the folds of the job are too few for its settings, which Divide
// refuses, its children have a split that they refuse.
func innerOf(j *learner.Job[Config]) inner {
	c, s, m := j.Config, &j.Split, j.Manifest
	switch {
	case c.Weights == WeightsValidated && s.ValidationFrom > 0:
		return inner{folds: c.InnerFolds, held: true}
	case c.Inner == innerFolds:
		return inner{folds: max(2, min(c.InnerFolds, s.Folds-1)), whole: true}
	case c.Inner == innerRows:
		return inner{folds: c.InnerFolds}
	case wholeGroups(c, s, m):
		return inner{folds: c.InnerFolds, whole: true}
	case s.Groups != "" && m.Groups != nil:
		return inner{folds: max(2, min(c.InnerFolds, len(m.Groups.Names))), groups: true}
	}
	return inner{folds: c.InnerFolds}
}

// wholeGroups reports whether inner folds are made of whole folds without a word of the settings: the groups of the
// dataset are the folds, and enough are left.
func wholeGroups(c *Config, s *dataset.Split, m *dataset.Manifest) bool {
	return groupFolds(s, m) && s.Folds-1 >= c.InnerFolds
}

// groupFolds reports whether the groups of the dataset are the folds of a split.
func groupFolds(s *dataset.Split, m *dataset.Manifest) bool {
	return m.Groups != nil && s.Assigned == m.Groups.Digest && !s.Overlap
}

// divide has inner folds made of whole groups if there are groups, and of whole folds if a file lists folds: the rows
// of a group may belong together, such as images of one person.
func divide(c *Config, s *dataset.Split, m *dataset.Manifest) error {
	m.KeepGroups(s)
	listed := s.Assigned != "" && !s.Overlap && s.Folds > 2
	switch {
	case c.Inner == innerFolds && !listed:
		return param.Errorf("inner", "inner folds that are whole folds need a job with at least three folds, listed in a "+
			"file or made of groups")
	case c.Inner != innerAuto || c.Weights == weightsMean || c.Weights == WeightsValidated && s.ValidationFrom > 0:
	case groupFolds(s, m) && !listed && s.Groups != "":
		return param.Errorf("inner", "the training samples of each fold are in one group, so inner folds cannot keep groups "+
			"whole; give inner: rows, or weights: mean")
	case listed && !wholeGroups(c, s, m) && (s.Groups == "" || groupFolds(s, m)):
		c.Inner = innerFolds
	}
	return nil
}

// heldOut returns the number of inner folds, of so many, whose rows are predicted.
func (c *Config) heldOut(folds int) int {
	switch c.Weights {
	case weightsMean:
		return 0
	case WeightsValidated:
		return min(c.Validated, folds)
	}
	return folds
}

// units returns the number of units of M members and so many inner folds.
func (c *Config) units(members, folds int) int { return members * (1 + c.heldOut(folds)) }

// child returns the job of a unit. Its split takes validation rows, where the member wants
// some, out of the rows that the unit trains on; the test rows of the ensemble are outside of
// an inner fold.
func child(j *learner.Job[Config], members []member, unit int) (*round.Job, error) {
	count, in := len(members), innerOf(j)
	if unit < 0 || unit >= j.Config.units(count, in.folds) {
		return nil, fmt.Errorf("ensemble: sub-job %d does not exist", unit)
	}
	m, c := &members[unit%count], *j.Job
	c.Algorithm, c.Params, c.Folds, c.Predictions, c.PredictedRows, c.LinearSamples, c.NoModel = m.Name(),
		m.resolved.Params, 0, 0, 0, 0, false
	c.Split.ValidationFraction, c.Split.ValidationMin = m.resolved.ValidationFraction, m.resolved.ValidationMin
	fold := unit/count - 1
	if fold >= 0 {
		c.Predictions, c.NoModel = math.MaxInt64, true
	}
	switch {
	case fold >= 0 && in.held:
		c.Split.Held = dataset.Held{Fraction: 1}
	case fold >= 0:
		c.Split.Inner, c.Split.InnerFold, c.Split.InnerWhole, c.Split.InnerGroups = in.folds, fold, in.whole, in.groups
	}
	return &c, nil
}
