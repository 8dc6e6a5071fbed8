package spec

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// Resolve makes the job of a spec on a dataset. Every setting of the job has a value: the
// model is a function of job and dataset, bit for bit. Errors about one key are
// *param.Error.
func Resolve(s protocol.Spec, m *dataset.Manifest) (*round.Job, error) {
	a, err := find(s.Algorithm)
	if err != nil {
		return nil, err
	}
	given, err := values(a, s.Set)
	if err != nil {
		return nil, err
	}
	if err := useGroups(&s, m); err != nil {
		return nil, err
	}
	if err := checkSplit(&s, m); err != nil {
		return nil, err
	}
	if err := checkMeasures(a.Name(), &s, m); err != nil {
		return nil, err
	}
	resolved, err := a.Resolve(given, m)
	if err != nil {
		return nil, err
	}
	seed := uint64(DefaultSeed)
	if s.Seed != nil {
		seed = *s.Seed
	}
	split := dataset.Split{
		Seed: seed, TestFraction: s.TestFraction, Folds: s.Folds, Assigned: s.Assigned, Overlap: s.Overlap,
		ValidationFraction: resolved.ValidationFraction, ValidationMin: resolved.ValidationMin,
	}
	if d, ok := a.(algorithms.Divider); ok {
		if resolved.Params, err = d.Divided(resolved.Params, &split, m); err != nil {
			return nil, err
		}
	}
	return &round.Job{
		Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Split: split,
		Folds: s.Folds, Params: resolved.Params, Predictions: kept(&s), Measures: s.Measures, Clip: s.Clip,
		Weights: resolved.Weights, Fill: m.Fill(),
	}, nil
}

// checkMeasures returns an error about a spec whose model has not the measures it asks for. A
// submission may be of any client: its words are checked here as well.
func checkMeasures(algorithm string, s *protocol.Spec, m *dataset.Manifest) error {
	plan, err := pipeline.PlanOf(algorithm, m.Labels, m.LabelType)
	switch {
	case err != nil:
		return param.Errorf("algorithm", "%v", err)
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

// kept returns the greatest size, in bytes, of the held-out predictions that are stored.
func kept(s *protocol.Spec) int64 {
	switch {
	case s.Folds == 0 && s.TestFraction == 0: // no row is held out
		return 0
	case s.KeepPredictions != nil:
		return *s.KeepPredictions
	}
	return DefaultPredictions
}

// values parses settings given as text. The error is about the first wrong one in the order
// of the algorithm's table.
func values(a algorithms.Algorithm, set map[string]string) (param.Values, error) {
	given, params := make(param.Values, len(set)), a.Params()
	for i := range params {
		text, ok := set[params[i].Name]
		if !ok {
			continue
		}
		v, err := params[i].Parse(text)
		if err != nil {
			return nil, err
		}
		given[params[i].Name] = v
	}
	if len(given) == len(set) {
		return given, nil
	}
	var unknown []string
	for name := range set {
		if _, ok := given[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	return nil, unknownKey(a, slices.Min(unknown))
}

// useGroups makes the groups of the dataset the folds of the spec, if it asks for them.
func useGroups(s *protocol.Spec, m *dataset.Manifest) error {
	const key = "group_folds"
	switch {
	case !s.GroupFolds:
		return nil
	case s.Folds != 0 || s.Assigned != "" || s.TestFraction != 0:
		return param.Errorf(key, "cannot be combined with other folds or with a test fraction")
	case m.Groups == nil:
		return param.Errorf(key, "the dataset has no groups; import it with --groups, which names a column of groups")
	case len(m.Groups.Names) < 2:
		return param.Errorf(key, "the dataset has one group, want at least two")
	}
	s.Assigned, s.Folds = m.Groups.Digest, len(m.Groups.Names)
	return nil
}

func checkSplit(s *protocol.Spec, m *dataset.Manifest) error {
	switch f := s.TestFraction; {
	case math.IsNaN(f) || f < 0 || f >= 1:
		return param.Errorf("test_fraction", "%v is not a number from 0 to below 1", f)
	case f > 0 && (s.Folds != 0 || s.Assigned != ""):
		return param.Errorf("test_fraction", "cannot be combined with folds, because each fold is a test set")
	case f > 0 && m.Rows < 2:
		return param.Errorf("test_fraction", "the dataset has only %d sample, so no sample can be held out", m.Rows)
	case s.Overlap && (s.Assigned == "" || s.Folds < 1 || s.Folds > dataset.MaxSplits):
		return param.Errorf("folds", "got %d overlapping splits, want 1 to %d, each listed in a file", s.Folds, dataset.MaxSplits)
	case s.Folds < 0 || s.Folds == 1 && !s.Overlap || s.Folds > MaxFolds:
		return param.Errorf("folds", "got %d, want 0 or a whole number from 2 to %d", s.Folds, MaxFolds)
	case s.Folds > m.Rows && !s.Overlap:
		return param.Errorf("folds", "%s folds are too many for %s samples: some folds would be empty", units.Count(s.Folds), units.Count(m.Rows))
	case s.KeepPredictions != nil && (*s.KeepPredictions < 0 || *s.KeepPredictions > MaxPredictions):
		return param.Errorf("keep_predictions", "%d is not a whole number from 0 to %d", *s.KeepPredictions, MaxPredictions)
	case s.Assigned != "" && s.Folds == 0:
		return param.Errorf("folds", "samples are assigned to folds, but the number of folds is missing")
	}
	return nil
}
