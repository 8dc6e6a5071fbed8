package forest

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func (v Variant) New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:     v.Name,
		Doc:      v.Doc,
		About:    v.About,
		Predicts: algorithms.Distribution,
		Settings: settingsOf(v.Auto),
		Fill:     v.fill,
		Fits:     func(c *Config, m *dataset.Manifest) error { return c.checkDraws(m.Rows) },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			t := newTrainer(j.Config, j.Manifest.Features, j.Manifest.Labels)
			return t, checkSplit(j.Config, j.Job, j.Manifest)
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{variant: v, cfg: *j.Config, seed: j.Seed, features: j.Manifest.Features, labels: j.Manifest.Labels}, nil
		},
		Model:  func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory: memory,
	})
}

// fill computes what depends on the data and was not given: with preset auto, forests of few rows have
// smaller leaves, so that folds of folds of them have enough for a split.
func (v Variant) fill(c *Config, given param.Values, m *dataset.Manifest) {
	if c.Preset == presetAuto {
		param.StandIn(given, "min_samples", &c.MinSamples, max(2, min(v.Auto.MinSamples, m.Rows/5)))
	}
}

// checkSplit returns an error if the job's split leaves so few or so many training rows that
// a bootstrap sample is too small or too large. If the folds are a list in a blob
// (Split.Assigned), it returns nil: the trainer does not have the list, and newTable checks.
func checkSplit(c *Config, j *round.Job, m *dataset.Manifest) error {
	if j.Split.Assigned != "" {
		return nil
	}
	roles, err := j.Split.Assign(m.Rows, nil)
	if err != nil {
		return err
	}
	rows := 0
	for _, role := range roles {
		if role == dataset.Train {
			rows++
		}
	}
	return c.checkDraws(rows)
}
