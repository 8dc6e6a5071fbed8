// Package aaknn is AA-kNN of Geng 2016: a row is predicted the mean label distribution of the k
// training rows that are nearest to it.
//
// Distances are Euclidean, of features that may be scaled; all neighbours weigh the same; of rows
// at the same distance those of lower original row numbers are nearer. With k auto a round finds
// the number of neighbours with the least K-L of training rows of which each is predicted from
// the others.
package aaknn

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "aa-knn"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "AAKNN",
			Summary: "k nearest neighbours",
			When:    "Use it if you must explain each prediction by similar training samples.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc:      "the AA-kNN of Geng 2016: the mean label distribution of the k nearest training samples, which the model keeps",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     (*Config).fits,
		Trainer:  func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{config: j.Config, labels: j.Manifest.Labels}, nil
		},
		StateVersion: 1,
		Model:        func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory:       memory,
	})
}
