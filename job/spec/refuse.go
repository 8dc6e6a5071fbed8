package spec

import (
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxFolds bounds folds: a fold's number is stored in 16 bits.
const MaxFolds = 1 << 16

// DefaultPredictions and MaxPredictions are the default and the greatest value of
// keep_predictions, in bytes: the predictions of a job are one blob.
const (
	DefaultPredictions = 64 << 20
	MaxPredictions     = 256 << 20
)

// ten and none are the defaults of measures and clip, which a spec stores as an empty text.
const (
	ten  = "ten"
	none = "none"
)

// TrainFraction is the common key that a method of an experiment may have as well.
const TrainFraction = "train_fraction"

// checkMeasures returns an error if a spec asks for measures that its model does not have. A
// submission may be of any client: its words are checked here as well.
func checkMeasures(algorithm string, s *protocol.Spec, m *dataset.Manifest) error {
	plan, err := pipeline.PlanOf(algorithm, m.Labels, m.LabelType)
	learns := pipeline.CheckLearns(algorithm, m, dataset.Mask{})
	switch {
	case err != nil:
		return param.Errorf("algorithm", "%v", err)
	case learns != nil:
		return param.Errorf("algorithm", "%v", learns)
	case s.WeightedMeasures && !m.HasWeights && m.Reading.Weights == "":
		return param.Errorf("weighted_measures", "the samples have no weights; {weights} names the column with the weights "+
			"where the data are read or imported")
	case s.Measures != pipeline.TenMeasures && s.Measures != pipeline.AllMeasures:
		return param.Errorf("measures", "got %.20q, want %s or %s", s.Measures, ten, pipeline.AllMeasures)
	case s.Clip != string(measures.NoClip) && s.Clip != string(measures.PyLDL):
		return param.Errorf("clip", "got %.20q, want %s or %s", s.Clip, none, measures.PyLDL)
	}
	plan.More, plan.Clip = s.Measures == pipeline.AllMeasures, measures.Clip(s.Clip)
	if err := pipeline.CheckPlan(plan, algorithm); err != nil {
		return param.Errorf("measures", "%v", err)
	}
	return nil
}

// checkValidation returns an error if a job cannot use validation samples of a file, which its dataset has.
func checkValidation(m *dataset.Manifest, validates bool) error {
	if b := m.LabelType.Bounds; m.Validation != nil && validates && b != nil && !b.Given() {
		return param.Errorf("algorithm", "with {validation}, the bounds of targets must be given ({bounds}): targets of "+
			"validation samples may be outside the extremes of the training samples")
	}
	return nil
}

// settingsValidate reports whether a job with resolved settings validates: the settings have a validation fraction
// above 0, or a member with one, or validation samples choose the member.
func settingsValidate(settings []param.Pair) bool {
	return slices.ContainsFunc(settings, func(p param.Pair) bool {
		if p.Key == "members" {
			members, err := param.ParseItems(p.Value)
			return err == nil && slices.ContainsFunc(members, func(m param.Item) bool { return settingsValidate(m.Set) })
		}
		if p.Key == "weights" && p.Value == ensemble.WeightsValidated {
			return true
		}
		f, err := strconv.ParseFloat(p.Value, 64)
		return p.Key == "validation_fraction" && err == nil && f > 0
	})
}

// checkSplit returns an error if a spec has no such folds, or held-out samples, of a dataset.
func checkSplit(s *protocol.Spec, m *dataset.Manifest) error {
	rows := m.Divided().Rows
	switch f := s.TestFraction; {
	case math.IsNaN(f) || f < 0 || f >= 1:
		return param.Errorf("test_fraction", "%v is not a number from 0 to below 1", f)
	case !(s.TrainFraction >= 0 && s.TrainFraction <= 1):
		return param.Errorf(TrainFraction, "%v is not a number above 0 and at most 1", s.TrainFraction)
	case f > 0 && (s.Folds != 0 || s.Assigned != ""):
		return param.Errorf("test_fraction", "cannot be combined with folds, because each fold is a test set")
	case f > 0 && rows < 2:
		return param.Errorf("test_fraction", "the dataset has only %d sample, so no sample can be held out", rows)
	case s.Overlap && (s.Assigned == "" || s.Folds < 1 || s.Folds > dataset.MaxSplits):
		return param.Errorf("folds", "got %d overlapping splits, want 1 to %d, each listed in a file", s.Folds,
			dataset.MaxSplits)
	case s.Folds < 0 || s.Folds == 1 && !s.Overlap || s.Folds > MaxFolds:
		return param.Errorf("folds", "got %d, want 0 or a whole number from 2 to %d", s.Folds, MaxFolds)
	case s.Folds > rows && !s.Overlap:
		return param.Errorf("folds", "%s folds are too many for %s samples: some folds would be empty", units.Count(s.Folds),
			units.Count(rows))
	case s.KeepPredictions != nil && (*s.KeepPredictions < 0 || *s.KeepPredictions > MaxPredictions):
		return param.Errorf("keep_predictions", "%d is not a whole number from 0 to %d", *s.KeepPredictions, MaxPredictions)
	case s.Assigned != "" && s.Folds == 0:
		return param.Errorf("folds", "samples are assigned to folds, but the number of folds is missing")
	case s.Fold != nil && s.Folds == 0:
		return param.Errorf("fold", "there are no folds; give {folds} or {split}, or the key folds or group_folds of a spec")
	case s.Fold != nil && (*s.Fold < 0 || *s.Fold >= s.Folds):
		return param.Errorf("fold", "there is no fold %d: folds are numbered 0 to %d", *s.Fold, s.Folds-1)
	}
	return nil
}
