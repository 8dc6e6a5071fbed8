// Package dfldl is DF-LDL of González et al. 2021: decomposition by pairs of labels, and fusion.
//
// For each pair of labels a < b, the training rows are divided into d_a >= d_b and d_a < d_b. Each side trains a
// maximum-entropy model of all c labels (package sabfgs), so there are c(c-1) models. A side with too few rows trains
// on all rows.
//
// The gate is q(x), the mean label distribution of the k training rows that are nearest to x (package aaknn). Each pair
// predicts by the model of the side that q_a >= q_b chooses. p(x) is the mean of these c(c-1)/2 predictions.
//
// The weight of a row is a factor of its loss in each model. The gate only selects models: rows of weight 0 are no
// neighbours, and all others count alike.
//
// The trainer first has the gate trained. Then one gather round trains all models: task 2i trains the first side of
// pair i, and task 2i+1 the second side. A task trains its model to the end, since its rows are few and its rounds are
// many.
package dfldl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateVersion is the version of a trainer's state.
const stateVersion = 1

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "DFLDL",
			Summary: "maximum-entropy models for pairs of labels",
			When:    "Use it as a member of ensemble, for at most a few tens of labels.",
			Paper:   `González et al. 2021, "Decomposition-Fusion for label distribution learning"`,
		},
		Doc: "DF-LDL of González et al. 2021: two maximum-entropy models for each pair of labels, one for the samples on " +
			"which the first label is at least as " +
			"probable as the second. Nearest neighbours select one model of each pair, and the predictions of the selected " +
			"models are averaged",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    func(c *Config) error { return c.Check(&c.Search) },
		Fits:     (*Config).fits,
		Divide:   divide,
		Trainer:  func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j) },
		Kernel:   func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j) },
		Model:    decodeModel,
		Memory:   memory,

		StateVersion: stateVersion,
	})
}

// memory estimates the memory of a trainer: the memory of the gate, twice: its rows, and their copy while a state is
// written; and the weights of all models, twice: as results and decoded.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	own, err := c.gate(m)
	if err != nil {
		return algorithms.Footprint{} // fits has refused the job
	}
	f, err := nearest.Footprint(&round.Job{Params: own.Params}, m)
	if err != nil {
		return algorithms.Footprint{}
	}
	n := int64(models(m.Labels))
	weights := 8 * n * int64(m.Features+1) * int64(m.Labels)
	f.State += f.State + 2*weights + n*(resultHead+8) + 64
	f.Model += weights + 4*3
	return f
}
